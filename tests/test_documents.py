"""Document JSONL: what goes in comes out, and what is wrong is named by its field."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions, normalise_title
from deixis.errors import InputError

LINE = {
    "id": "1163testb",
    "text": "Messi played in the World Cup.",
    "mentions": [
        {
            "start": 0,
            "end": 5,
            "entity": "Lionel Messi",
            "candidates": [["Lionel Messi", 0.93], ["Messi (film)", 0.02]],
        },
        {"start": 20, "end": 29, "candidates": [], "colour": "blue"},
        {"start": 20, "end": 25},
    ],
    "source": {"year": 2022},
}


def test_round_trip_keeps_unknown_keys() -> None:
    document = Document.from_json(orjson.dumps(LINE))
    assert orjson.loads(document.to_json()) == LINE
    assert document.mentions[0].candidates == (Candidate("Lionel Messi", 0.93), Candidate("Messi (film)", 0.02))
    assert document.mentions[1].candidates == () and document.mentions[2].candidates is None
    assert document.surface(document.mentions[1]) == "World Cup"


@given(
    st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=30).flatmap(
        lambda text: st.tuples(st.just(text), st.integers(0, len(text) - 1))
    )
)
def test_offsets_are_python_characters(case: tuple[str, int]) -> None:
    text, start = case
    document = Document(text, (Mention(start, len(text)),))
    again = Document.from_json(document.to_json())
    assert again == document and again.surface(again.mentions[0]) == text[start:]


def test_resolutions_are_written_beside_their_mentions() -> None:
    document = Document.from_json(orjson.dumps(LINE))
    items = (
        Resolution(
            0, 5, "Messi", "Lionel Messi", 0.9, 2, (("Lionel Messi", 0.9), ("Messi (film)", 0.1)), known_by="links"
        ),
        Resolution(20, 29, "World Cup", None, 0.0, 0, (), "no candidates"),
        Resolution(20, 25, "World", None, 0.0, 0, (), "no candidates"),
    )
    first, second, _ = orjson.loads(Resolutions(document, items).to_json())["mentions"]
    assert first["resolution"] == {
        "entity": "Lionel Messi",
        "probability": 0.9,
        "step": 2,
        "alternatives": [["Lionel Messi", 0.9], ["Messi (film)", 0.1]],
        "url": "https://en.wikipedia.org/wiki/Lionel_Messi",
        "known_by": "links",
    }
    assert (second["resolution"], second["reason"], second["colour"]) == (None, "no candidates", "blue")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not JSON"),
        (b"[]", "the document is"),
        (b"{}", "text is missing or null; expected a string"),
        (b'{"text": 5}', "text is 5"),
        (b'{"text": "a", "mentions": 1}', "mentions is 1; expected a list"),
        (b'{"text": "a", "mentions": [{"start": 0}]}', r"mentions\[0\].end is missing"),
        (b'{"text": "a", "mentions": [{"start": true, "end": 1}]}', r"mentions\[0\].start is True"),
        (b'{"text": "a", "mentions": [{"start": 0, "end": 2}]}', r"mentions\[0\] is \[0, 2\) but the text has 1"),
        (b'{"text": "a", "mentions": [{"start": 0, "end": 0}]}', r"\[0, 0\)"),
        (b'{"text": "a", "mentions": [{"start": -1, "end": 1}]}', r"\[-1, 1\)"),
        (b'{"text": "a", "mentions": [{"start": 0, "end": 1, "candidates": [["x"]]}]}', r"candidates\[0\] is"),
        (b'{"text": "a", "mentions": [{"start": 0, "end": 1, "candidates": [["x", "y"]]}]}', "prior 'y'"),
        (b'{"text": "a", "id": 5}', "id is 5"),
        (b'{"text": "\xff"}', "not JSON"),
    ],
)
def test_what_is_wrong_is_named(line: bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Document.from_json(line)


def test_titles_are_normalised() -> None:
    assert normalise_title("world_Cup") == "World Cup"
    assert normalise_title(" AT&amp;T ") == "AT&T"
    assert normalise_title("éclair") == "Éclair"
    assert normalise_title("") == ""


def test_urls_are_wikipedias() -> None:
    resolution = Resolution(0, 1, "x", "Café de l'Été (50% off)", 1.0, 1)
    assert resolution.url == "https://en.wikipedia.org/wiki/Caf%C3%A9_de_l'%C3%89t%C3%A9_(50%25_off)"
    assert Resolution(0, 1, "x", None, 0.0, 0).url is None
