"""Shortened names: parts of titles, and articles rewritten with them."""

from __future__ import annotations

import pytest

from deixis.corpus.shortening import is_team, parts_of, shorten
from deixis.wikipedia.articles import Article, Link

WORDS = {"War", "Foundation", "Club", "Bulls"}


@pytest.mark.parametrize(
    ("title", "team", "parts"),
    [
        ("Chicago White Sox", True, {"Chicago", "Chicago White", "White Sox", "Sox"}),
        ("Chicago Bulls", True, {"Chicago"}),
        ("Leeds United F.C.", True, {"Leeds", "Leeds United"}),
        ("Spain national football team", True, {"Spain"}),
        ("1946 Oklahoma Sooners football team", True, {"1946 Oklahoma Sooners"}),
        ("George W. Bush", False, {"W. Bush", "Bush"}),
        ("Pope Gregory IX", False, set()),
        ("Salvadoran Civil War", False, set()),
        ("Sierra Club Foundation", False, set()),
        ("Supreme Court of Florida", False, set()),
        ("Radiation therapy", False, set()),
        ("Boeing 727", False, set()),
        ("Paris, Texas", False, {"Paris"}),
        ("Java (island)", False, {"Java"}),
        ("Tokyo", False, set()),
        (", Indiana", False, set()),
    ],
)
def test_parts_of_titles(title: str, team: bool, parts: set[str]) -> None:
    assert set(parts_of(title, team, False, WORDS.__contains__)) == parts


@pytest.mark.parametrize(
    ("title", "team", "parts"),
    [
        ("New York City", False, {"New", "New York"}),
        ("Surrey County Cricket Club", True, {"Surrey", "Surrey County Cricket"}),
        ("Spain national football team", True, {"Spain"}),
        ("George W. Bush", False, {"George", "George W.", "W. Bush", "Bush"}),
        ("Sierra Club Foundation", False, {"Sierra"}),
        ("Radiation therapy", False, set()),
        ("Boeing 727", False, set()),
    ],
)
def test_parts_of_every_proper_name(title: str, team: bool, parts: set[str]) -> None:
    assert set(parts_of(title, team, True, (WORDS | {"City", "County"}).__contains__)) == parts


@pytest.mark.parametrize(
    ("description", "team"),
    [
        ("The Chicago White Sox are an American professional baseball team based in Chicago.", True),
        ("English football club", True),
        ("Brian Lara is a Trinidadian former cricket player. He led the team.", False),
        ("Soldier Field is a football stadium , home of the Chicago Bears team .", False),
        ("St. Louis Blues are a hockey team in the league.", True),
        ("Jazz is a kind of music.", False),
        ("", False),
    ],
)
def test_descriptions_tell_teams(description: str, team: bool) -> None:
    assert is_team(description) is team


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
