"""The WNED sets: where mentions are placed, and what is said of malformed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets.wned import read_wned
from deixis.errors import InputError


def wned(folder: Path, xml: str, text: str = "A & B met B in Café\r\nBern.") -> Path:
    root = folder / "tiny"
    (root / "RawText").mkdir(parents=True, exist_ok=True)
    (root / "RawText" / "d.").write_text(text, encoding="utf-8", newline="")
    (root / "tiny.xml").write_text(xml, encoding="utf-8")
    return root


def annotation(mention: str, title: str, offset: object, length: object) -> str:
    fields = f"<mention>{mention}</mention><wikiName>{title}</wikiName><offset>{offset}</offset>"
    return f"<annotation>{fields}<length>{length}</length></annotation>"


def test_wned_places(tmp_path: Path) -> None:
    text = "\ufeffA &amp; B met B in\r\nBern, Bern"
    annotations = [
        annotation("A &amp; B", "A &amp; B", 1, 9),  # the text holds the escape: the span is right
        annotation("B", "NIL", 15, 1),
        annotation("Bern", "bern", 18, 4),  # 3 too small: the nearest is 21
    ]
    document = f'<document docName="d.">\n{"".join(annotations)}<entity/>\n</document>'
    whole = read_wned(wned(tmp_path, f"<x>{document}{document}</x>", text))
    assert [m.entity for m in whole.documents[0].mentions] == ["A & B", None, "Bern"]
    dataset = whole.in_kb()
    assert [d.id for d in dataset.documents] == ["d.", "d.#2"]
    first = dataset.documents[0]
    assert [(m.start, first.surface(m), m.entity) for m in first.mentions] == [
        (1, "A &amp; B", "A & B"),
        (21, "Bern", "Bern"),
    ]
    assert dataset.report.annotations == 6
    assert dataset.report.removed.total() == 2
    assert dataset.report.repaired.total() == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (annotation("Rome", "Rome", 3, 4), "line 2: 'Rome' is not in the text of d."),
        (annotation("B", "B", "x", 4), "line 2: expected numbers"),
        ("<annotation><mention>B</mention></annotation>", "line 2: an <annotation> without <wikiName>"),
        ("<oops>", "line 2: not XML"),
        ('</document><document docName="gone">', "line 2: the text"),
    ],
)
def test_malformed_wned(tmp_path: Path, body: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        read_wned(wned(tmp_path, f'<x><document docName="d.">\n{body}</document></x>'))
    assert "tiny.xml" in str(error.value)
    assert expected in str(error.value)
