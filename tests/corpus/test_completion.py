"""Annotation completion: what follows from the page is added, and nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deixis.corpus.completion import complete, describe
from deixis.wikipedia.articles import Article, Link


def article(title: str, text: str, **links: str) -> Article:
    found = [(text.index(surface), surface, target) for surface, target in links.items()]
    return Article(title, text, tuple(Link(start, start + len(surface), to) for start, surface, to in sorted(found)))


def added(before: Article, **flags: bool) -> list[tuple[int, str, str]]:
    after = complete(before, **flags)
    assert set(before.links) <= set(after.links)
    assert all(one.end <= other.start for one, other in zip(after.links, after.links[1:], strict=False))
    return [(link.start, after.surface(link), link.target) for link in after.links if link not in before.links]


def test_nothing_is_added_unless_asked_for() -> None:
    page = article("Bonn", "Bonn is on the Rhine. The Rhine passes Bonn.", Rhine="Rhine")
    assert complete(page) is page


def test_repeats_of_a_linked_surface() -> None:
    page = article("Bonn", "Bonn is on the Rhine. The Rhine passes Bonn; Rhineland.", Rhine="Rhine")
    assert added(page, repeats=True) == [(26, "Rhine", "Rhine")]


def test_the_own_name_without_its_bracket() -> None:
    page = article("Java (island)", "Java is an island. On Java people grow Java coffee and javas.")
    assert [start for start, _, _ in added(page, own_name=True)] == [0, 22, 39]
    assert {target for _, _, target in added(page, own_name=True)} == {"Java (island)"}


def test_never_inside_another_mention_and_never_part_of_a_longer_name() -> None:
    page = article(
        "George Bush", "Bush met Kate Bush. Then Bush left the Bush House. The Bush era.", Bush="George Bush"
    )
    assert [start for start, _, _ in added(page, repeats=True)] == [25, 55]
    text = "the Bank of Japan and the Bank"
    nested = Article("X", text, (Link(4, 17, "Bank of Japan"), Link(26, 30, "Bank")))
    assert added(nested, repeats=True) == []


def test_never_ambiguous_within_the_article() -> None:
    text = "Clinton and Clinton and Clinton"
    page = Article("X", text, (Link(0, 7, "Bill Clinton"), Link(12, 19, "Hillary Clinton")))
    assert added(page, repeats=True) == []
    own = article("Java (island)", "Java is not Java. And Java too.", Java="Java (programming language)")
    assert added(own, own_name=True, repeats=True) == []


def test_words_are_no_names() -> None:
    page = article("X", "a ship and another ship", ship="Ship")
    assert added(page, repeats=True) == []


def test_descriptions_are_articles_about_their_subject() -> None:
    described = describe(b"Bonn\tBonn ( German : Bonna ) is a city . Bonn lies on the Rhine .\tintro")
    assert described is not None
    assert [described.surface(link) for link in described.links] == ["Bonn", "Bonn"]
    capitals = describe(b"Hutchinson's facies\tHUTCHINSON 'S FACIES is a facial appearance.")
    assert capitals is not None
    assert capitals.surface(capitals.links[0]) == "HUTCHINSON 'S FACIES"
    place = describe(b"Paris, Texas (film)\tParis, Texas is a film.")
    assert place is not None
    assert place.links == (Link(0, 12, "Paris, Texas (film)"),)
    person = describe(b"Tara Thornton\tTara Mae J. Thornton is a character.")
    assert person is not None
    assert person.surface(person.links[0]) == "Tara Mae J. Thornton"
    assert describe(b"Tara Thornton\tTara said that Thornton is a town.") is None
    assert describe(b"Bonn\tA city on the Rhine.") is None


@given(st.text("AB ab.-", max_size=60), st.text("ABab", min_size=1, max_size=4))
def test_links_stay_in_order_and_apart(text: str, title: str) -> None:
    start = text.find("A")
    links = (Link(start, start + 1, "Target"),) if start >= 0 else ()
    for flags in ({"own_name": True}, {"repeats": True}, {"own_name": True, "repeats": True}):
        added(Article(title, text, links), **flags)
