"""ELEVANT's articles: what is read of labels, and that what we write is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from deixis.datasets import read_texts
from deixis.datasets.elevant import linked_article, read_elevant
from deixis.documents import Document, Mention, Resolution, Resolutions
from deixis.errors import InputError

TEXT = "Ada of Bern, Canton of Bern, met Zed in 1995. Ada left."


def label(number: int, start: int, surface: str, entity_id: str, **more: Any) -> dict[str, Any]:
    start = TEXT.index(surface, start)
    return {"id": number, "span": [start, start + len(surface)], "entity_id": entity_id, "name": surface} | more


ARTICLE = {
    "id": 3,
    "title": "A day",
    "text": TEXT,
    "evaluation_span": [0, 45],
    "labels": [
        label(1, 0, "Bern, Canton of Bern", "Q70", children=[2]),
        label(2, 0, "Bern", "Q70", parent=1),
        label(0, 0, "Ada", "Q1", type="Q5"),
        label(3, 0, "Zed", "Unknown7", type="Q5", optional=True),
        label(4, 0, "1995", "1995", type="DATETIME"),
        label(5, 45, "Ada", "Q1"),
    ],
}


def write(folder: Path, *records: Any) -> Path:
    path = folder / "day.benchmark.jsonl"
    path.write_bytes(b"".join(orjson.dumps(record) + b"\n" for record in records))
    return path


def test_labels_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, ARTICLE)
    dataset = read_elevant(path, wikidata={"Ada Marlow": "Q1"})
    (document,) = dataset.documents
    assert (document.id, document.text, document.extra) == ("A day", TEXT, {"evaluation_span": [0, 45]})
    assert [(document.surface(m), m.entity, m.kind, dict(m.extra)) for m in document.mentions] == [
        ("Ada", "Ada Marlow", "Q5", {}),
        ("Bern, Canton of Bern", "Bern, Canton of Bern", "OTHER", {}),  # by its label: Q70 is in no table
        ("Zed", None, "Q5", {"optional": True}),
        ("1995", None, "DATETIME", {"optional": True}),
    ]
    assert dataset.report.removed == {"inside another label": 1, "outside the evaluation span": 1}
    in_kb = read_texts(tmp_path, str(path)).in_kb()  # the first line tells the format
    assert [m.entity for m in in_kb.documents[0].mentions] == ["Ada", "Bern, Canton of Bern"]
    assert in_kb.report.removed["not in the knowledge base (Unknown)"] == 2


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    document = Document("Ada met Bo.", (Mention(0, 3, "Ada Marlow"), Mention(8, 10, "Bo (rower)")), "d")
    answers = Resolutions(
        document, (Resolution(0, 3, "Ada", "Bo (rower)", 0.5, 1), Resolution(8, 10, "Bo", None, 0, 0))
    )
    record = linked_article(answers, 0, {"Ada Marlow": "Q1"})
    assert [(mention["span"], mention["id"]) for mention in record["entity_mentions"]] == [([0, 3], "Bo (rower)")]
    (read,) = read_elevant(write(tmp_path, record)).documents
    assert [(m.start, m.end, m.entity) for m in read.mentions] == [(0, 3, "Ada Marlow"), (8, 10, "Bo (rower)")]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"labels": [{"span": [0]}], "text": "x"}, "line 2: expected text and labels"),
        (ARTICLE | {"labels": [{"span": [0, 99], "entity_id": "Q1", "name": "x"}], "evaluation_span": [0, 99]}, "99"),
        ("x", "line 2: expected text and labels"),
    ],
)
def test_malformed_articles_are_named(tmp_path: Path, record: Any, expected: str) -> None:
    with pytest.raises(InputError, match=r"day.benchmark.jsonl, line 2: ") as error:
        read_elevant(write(tmp_path, ARTICLE, record))
    assert expected in str(error.value)
