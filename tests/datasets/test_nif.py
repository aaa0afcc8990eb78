"""NIF in and out: offsets, links elsewhere, own pages, and what is said of malformed files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from deixis.datasets.nif import NIF_PREFIXES, parse_nif, read_nif, to_turtle
from deixis.documents import Document, Identity, Mention, Resolution, Resolutions
from deixis.errors import InputError


def test_nif_round_trip(tmp_path: Path) -> None:
    text = 'He said "Ø😀" in\nBern \\ Zürich.'
    spans = [(text.index("Bern"), "Bern"), (text.index("Zürich"), 'Zürich "Z" (city)')]
    mentions = tuple(Mention(start, start + len(title.split()[0]), title) for start, title in spans)
    document = Document(text, mentions, "http://example.org/d 1")
    items = tuple(Resolution(m.start, m.end, document.surface(m), m.entity, 0.5, 1, ()) for m in document.mentions)
    turtle = NIF_PREFIXES + "".join(to_turtle(Resolutions(document, items), "http://example.org/d1"))
    (tmp_path / "d.ttl").write_text(turtle, encoding="utf-8")
    (read,) = read_nif(tmp_path / "d.ttl").documents
    assert (read.text, read.mentions, read.id) == (text, mentions, "http://example.org/d1")
    utf16 = turtle.replace(f'"{mentions[0].start}"', f'"{mentions[0].start + 1}"').replace(
        f'"{mentions[0].end}"', f'"{mentions[0].end + 1}"'
    )
    documents, report = parse_nif(utf16.encode(), tmp_path)
    assert documents[0].mentions[0].start == mentions[0].start
    assert report.repaired == {"offsets in UTF-16 units converted to characters": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.replace(" .\n<", " <"), "line 4: not Turtle"),
        (lambda t: t.replace('anchorOf "Bern"', 'anchorOf "Rome"'), "nif:anchorOf 'Rome' is not there"),
        (lambda t: t.replace("nif:isString", "nif:other"), "no nif:Context with nif:isString"),
        (lambda t: t.replace('beginIndex "3"', 'beginIndex "x"'), "has no numbers in nif:beginIndex"),
    ],
)
def test_malformed_nif(tmp_path: Path, change: Callable[[str], str], expected: str) -> None:
    document = Document("In Bern", (Mention(3, 7),))
    answers = Resolutions(document, (Resolution(3, 7, "Bern", "Bern", 1.0, 1),))
    turtle = NIF_PREFIXES + "".join(to_turtle(answers, "http://example.org/d"))
    with pytest.raises(InputError) as error:
        parse_nif(change(turtle).encode(), Path("d.ttl"))
    assert "d.ttl" in str(error.value)
    assert expected in str(error.value)


def test_nif_links_elsewhere_are_counted(tmp_path: Path) -> None:
    document = Document("In Bern", (Mention(3, 7),))
    answers = Resolutions(document, (Resolution(3, 7, "Bern", "Bern", 1.0, 1),))
    turtle = NIF_PREFIXES + "".join(to_turtle(answers, "http://example.org/d"))
    (tmp_path / "d.ttl").write_text(turtle.replace("http://en.wikipedia.org", "http://aksw.org"), encoding="utf-8")
    dataset = read_nif(tmp_path / "d.ttl")
    assert dataset.documents[0].mentions == (Mention(3, 7),)
    assert dataset.in_kb().report.removed == {"linked to no page of Wikipedia or DBpedia": 1}


def test_turtle_tells_own_pages_and_wikidata_items() -> None:
    document = Document("Orrin rows Zed.", (Mention(0, 5), Mention(11, 14)))
    page = "https://en.wikipedia.org/wiki/Orrin_(lake)"
    items = (
        Resolution(0, 5, "Orrin", "Orrin (lake)", 0.9, 1, identity=Identity(page, wikidata="Q7")),
        Resolution(11, 14, "Zed", "Zed", 0.9, 2, identity=Identity("https://example.org/a b>c")),
    )
    turtle = "".join(to_turtle(Resolutions(document, items), "http://example.org/d"))
    assert "<http://en.wikipedia.org/wiki/Orrin_(lake)>, <http://www.wikidata.org/entity/Q7> ." in turtle
    assert "taIdentRef <https://example.org/a%20b%3Ec> ." in turtle
    nowhere = (items[0], Resolution(11, 14, "Zed", "Zed", 0.9, 2, identity=Identity()))
    assert "<http://deixis.invalid/entity/Zed>" in "".join(to_turtle(Resolutions(document, nowhere), "http://e.org/d"))
