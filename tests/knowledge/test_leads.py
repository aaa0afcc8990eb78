"""Names in first sentences: what a description calls its subject before it says what that is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.knowledge.leads import names_in_lead
from deixis.knowledge.surfaces import key, short_titles


@pytest.mark.parametrize(
    ("title", "text", "expected"),
    [
        ("Willie Moir", "William Moir, (born 1922), better known as Willie Moir, was a footballer.", ["William Moir"]),
        ("Shrine of Light", "The Shrine of Light also known as Our Lady of Winds is a title.", ["Our Lady of Winds"]),
        ("Afaq Mausoleum", "The Afāq Mausoleum or Aba Khoja Mausoleum ( آفاق ) , is a tomb.", ["Aba Khoja Mausoleum"]),
        ("Crorepati", "Crorepati ( transl . Who ? ; also simply known as KBC ) is a show.", ["KBC"]),
        ("Trade Office", "The Trade Office (Filipino: Kagawaran, abbreviated as TO) is a department.", ["TO"]),
        ("Lisa Rose", "Lisa Rose ( a.k.a . Dr. Lisa ) is an author.", ["Dr. Lisa"]),
        ("Halle Airport", "Halle Airport ( IATA : HLE , ICAO: EDDH) is an airport.", ["HLE"]),
        ("Halle (town)", "Halle is a town in the south.", []),  # the title without its bracket is known anyway
        ("Velm", "Velm is a village, also known as Little Velm.", []),  # behind the verb anything may be told
        ("List of mayors", "The mayors, also known as bosses, are these.", []),
        ("Velm", "Village in the south", []),
    ],
)
def test_names_in_first_sentences(title: str, text: str, expected: list[str]) -> None:
    assert list(names_in_lead(title, text)) == expected


@given(st.text(max_size=20), st.text(max_size=80))
def test_a_name_is_new_and_stands_in_the_text(title: str, text: str) -> None:
    text = f"{title}, also known as {text} is a thing"
    found = list(names_in_lead(title, text))
    assert all(name in text and key(name) for name in found)
    assert not {key(name) for name in found} & {key(name) for name in (title, *short_titles(title))}
    assert len({key(name) for name in found}) == len(found)
