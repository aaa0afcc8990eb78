"""ZELDA's test sets (JSONL): texts with golds as page id and title of 2022, without candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deixis.datasets.dataset import Dataset, Report, gold_title, read_records
from deixis.documents import Document, Mention

__all__ = ["read_zelda"]


def read_zelda(path: Path, name: str | None = None) -> Dataset:
    """Read a file of ZELDA; page ids are in `extra["page"]` of the mentions."""
    report = Report()
    wanted = "id, text, index, wikipedia_ids and wikipedia_titles, the last three equally long"
    documents = tuple(read_records(path, lambda record: _document(record, report), wanted))
    return Dataset(name or path.stem, documents, report)


def _document(record: dict[str, Any], report: Report) -> Document:
    mentions = []
    for (start, end), page, title in zip(
        record["index"], record["wikipedia_ids"], record["wikipedia_titles"], strict=True
    ):
        report.annotations += 1
        gold = gold_title(title)
        if gold is None:
            report.removed["the gold has no title"] += 1
        elif not 0 <= start < end <= len(record["text"]):  # one in Jiří_Třanovský, whose text ZELDA has changed
            report.removed["the span is not inside the text"] += 1
        else:
            mentions.append(Mention(start, end, gold, extra={"page": int(page)}))
    extra = {"bracket": record["bracket"]} if "bracket" in record else {}
    return Document(record["text"], tuple(mentions), str(record["id"]), extra)
