"""ZELDA's test sets (JSONL): texts with golds as page id and title of 2022, without candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Dataset, Report, complaint, gold_title
from deixis.documents import Document, Mention
from deixis.errors import InputError

__all__ = ["read_zelda"]


def read_zelda(path: Path, name: str | None = None) -> Dataset:
    """Read a file of ZELDA; page ids are in `extra["page"]` of the mentions."""
    report = Report()
    documents = []
    for line, raw in read_lines(path):
        try:
            documents.append(_document(orjson.loads(raw), report))
        except orjson.JSONDecodeError as error:
            raise complaint(path, line, f"not JSON ({error})") from None
        except InputError as error:
            raise complaint(path, line, str(error)) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise complaint(
                path, line, "expected id, text, index, wikipedia_ids and wikipedia_titles, the last three equally long"
            ) from None
    return Dataset(name or path.stem, tuple(documents), report)


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
