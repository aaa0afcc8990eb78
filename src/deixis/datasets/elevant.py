"""ELEVANT's articles (JSONL), in and out: `*.benchmark.jsonl` with labels, `*.linked_articles.jsonl` with answers.

ELEVANT names entities by Wikidata ids; a table of titles and ids leads from one to the other. Without it a label goes
by its `name`, which is the title where we wrote the file. `Unknown…` is an entity outside the knowledge base.

Where labels are nested (`[Munich], [Bavaria]` inside `[Munich, Bavaria]`) the outermost is kept. Dates and quantities
and what is marked so are optional: to find them is no error, nor to miss them. Only what lies in `evaluation_span`
is evaluated; it is kept in the document's `extra`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deixis.datasets.dataset import Dataset, Report, gold_title, read_records
from deixis.documents import Document, Mention, Resolutions

__all__ = ["NO_IDS", "linked_article", "read_elevant"]

NO_IDS: Mapping[str, str] = {}
QID = re.compile(r"Q\d+")
VALUES = ("DATETIME", "QUANTITY")


def read_elevant(path: Path, name: str | None = None, wikidata: Mapping[str, str] = NO_IDS) -> Dataset:
    """Read articles with labels; `wikidata` has the ids of titles."""
    titles = {id_: title for title, id_ in wikidata.items()}
    report = Report()
    wanted = "text and labels, each with span, entity_id and name"
    documents = tuple(read_records(path, lambda record: _document(record, titles, report), wanted))
    return Dataset(name or path.name, documents, report, nil="not in the knowledge base (Unknown)")


def _document(record: dict[str, Any], titles: Mapping[str, str], report: Report) -> Document:
    text = record["text"]
    begin, stop = record.get("evaluation_span") or (0, len(text))
    mentions = []
    for label in record["labels"]:
        start, end = label["span"]
        report.annotations += 1
        if label.get("parent") is not None:
            report.removed["inside another label"] += 1
        elif not begin <= start < end <= stop:
            report.removed["outside the evaluation span"] += 1
        else:
            mentions.append(_mention(start, end, label, titles, report))
    name = record.get("title") or record.get("id")
    mentions.sort(key=lambda mention: (mention.start, mention.end))
    return Document(text, tuple(mentions), None if name is None else str(name), {"evaluation_span": [begin, stop]})


def _mention(start: int, end: int, label: dict[str, Any], titles: Mapping[str, str], report: Report) -> Mention:
    id_, kind = label["entity_id"], label.get("type", "OTHER")
    title = titles.get(id_)
    if title is None and not id_.startswith("Unknown") and kind not in VALUES:
        title = gold_title(label["name"] if QID.fullmatch(id_) else id_)
        if QID.fullmatch(id_):
            report.noted["the title of a Wikidata id is not known, its label stands for it"] += 1
    optional = label.get("optional") or kind in VALUES
    return Mention(start, end, title, extra={"optional": True} if optional else {}, kind=kind)


def linked_article(resolutions: Resolutions, place: int, wikidata: Mapping[str, str] = NO_IDS) -> dict[str, Any]:
    """Return an article as ELEVANT reads it, with answers and golds.

    A title without an id in `wikidata` stands for itself, as in ELEVANT's custom knowledge bases.
    """
    document = resolutions.document
    return {
        "id": place,
        "title": document.id or str(place),
        "text": document.text,
        "hyperlinks": [],
        "title_synonyms": [],
        "evaluation_span": document.extra.get("evaluation_span", [0, len(document.text)]),
        "entity_mentions": [
            {
                "span": [resolution.start, resolution.end],
                "recognized_by": "given",
                "id": wikidata.get(resolution.entity, resolution.entity),
                "linked_by": "deixis",
                "candidates": [wikidata.get(title, title) for title, _ in resolution.alternatives],
            }
            for resolution in resolutions
            if resolution.entity is not None
        ],
        "labels": [
            {
                "id": number,
                "span": [mention.start, mention.end],
                "entity_id": wikidata.get(mention.entity, mention.entity),
                "name": mention.entity,
                "parent": None,
                "children": [],
                "optional": mention.extra.get("optional", False),
                "type": mention.kind or "OTHER",
            }
            for number, mention in enumerate(document.mentions)
            if mention.entity is not None
        ],
    }
