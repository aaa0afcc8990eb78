"""Shortened names: parts of titles, and articles rewritten with them."""

from __future__ import annotations

import pytest

from deixis.wikipedia.articles import Article, Link
from deixis.wikipedia.shortening import parts_of, shorten


@pytest.mark.parametrize(
    ("title", "some", "never"),
    [
        ("Chicago White Sox", {"Chicago", "White Sox", "CWS"}, {"Chicago White Sox"}),
        ("Spain national football team", {"Spain"}, {"team", "football team"}),
        ("Supreme Court of Florida", {"Supreme Court"}, {"Florida", "Supreme Court of"}),
        ("1998 FIFA World Cup", {"World Cup", "FIFA World Cup"}, {"1998"}),
        ("George W. Bush", {"Bush", "George"}, set()),
        ("Paris, Texas", {"Paris"}, {"Texas"}),
        ("Java (island)", {"Java"}, {"island"}),
        ("Tokyo", set(), {"Tokyo"}),
    ],
)
def test_parts_of_titles(title: str, some: set[str], never: set[str]) -> None:
    parts = parts_of(title)
    assert some <= set(parts)
    assert never.isdisjoint(parts)
    assert len(parts) == len(set(parts))


def names_of(target: str) -> list[str]:
    return {"Chicago White Sox": ["Chicago"], "New York Yankees": ["New York", "Yankees"]}.get(target, [])


TEXT = "The White Sox beat the Yankees in Chicago."
LINKS = (Link(4, 13, "Chicago White Sox"), Link(23, 30, "New York Yankees"), Link(34, 41, "Chicago"))
GAME = Article("A game", TEXT, LINKS)


def test_links_stay_on_their_names() -> None:
    short = shorten(GAME, LINKS, names_of, rate=1.0, seed=0)
    assert short.text == "The Chicago beat the New York in Chicago."
    assert [short.surface(link) for link in short.links] == ["Chicago", "New York", "Chicago"]
    assert [link.target for link in short.links] == [link.target for link in LINKS]
    assert shorten(GAME, LINKS, names_of, rate=0.0, seed=0) == GAME


def test_the_choice_is_the_seeds() -> None:
    many = Article("M", "Sox " * 400, tuple(Link(4 * i, 4 * i + 3, "Chicago White Sox") for i in range(400)))
    first, again, other = (shorten(many, many.links, names_of, 0.5, seed) for seed in (1, 1, 2))
    assert first == again != other
    changed = sum(first.surface(link) == "Chicago" for link in first.links)
    assert 150 < changed < 250
