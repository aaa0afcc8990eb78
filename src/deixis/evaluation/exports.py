"""Answers for other tools: document JSONL, NIF for GERBIL, and the linked-article JSONL of ELEVANT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import orjson

from deixis.artefacts import write_aside
from deixis.datasets.nif import NIF_PREFIXES, to_turtle
from deixis.documents import Resolutions

__all__ = ["FORMATS", "Format", "linked_article", "write_answers"]

Format = Literal["jsonl", "nif", "elevant"]
FORMATS: dict[Format, str] = {"jsonl": ".jsonl", "nif": ".ttl", "elevant": ".linked_articles.jsonl"}
NO_QIDS: Mapping[str, str] = {}


def write_answers(
    folder: Path, name: str, answers: Sequence[Resolutions], form: Format, qids: Mapping[str, str] = NO_QIDS
) -> Path:
    """Write the answers to `folder/name` with the ending of the format; return the path."""
    path = folder / (name + FORMATS[form])
    with write_aside(path) as file:
        for piece in _pieces(answers, form, qids):
            file.write(piece)
    return path


def _pieces(answers: Sequence[Resolutions], form: Format, qids: Mapping[str, str]) -> Iterator[bytes]:
    if form == "nif":
        yield NIF_PREFIXES.encode()
        for place, resolutions in enumerate(answers):
            name = resolutions.document.id or str(place)
            base = name if name.startswith(("http://", "https://")) else "http://deixis.invalid/" + quote(name, safe="")
            yield from (part.encode() for part in to_turtle(resolutions, base))
    elif form == "elevant":
        for place, resolutions in enumerate(answers):
            yield orjson.dumps(linked_article(resolutions, place, qids)) + b"\n"
    else:
        for resolutions in answers:
            yield resolutions.to_json() + b"\n"


def linked_article(resolutions: Resolutions, place: int, qids: Mapping[str, str] = NO_QIDS) -> dict[str, Any]:
    """Return an article as ELEVANT reads it, with answers and golds.

    ELEVANT names entities by Wikidata ids; `qids` maps titles to them. A title without one stands for itself, as in
    ELEVANT's custom knowledge bases.
    """
    document = resolutions.document
    whole = [0, len(document.text)]
    return {
        "id": place,
        "title": document.id or str(place),
        "text": document.text,
        "hyperlinks": [],
        "title_synonyms": [],
        "evaluation_span": whole,
        "entity_mentions": [
            {
                "span": [resolution.start, resolution.end],
                "recognized_by": "given",
                "id": qids.get(resolution.entity, resolution.entity),
                "linked_by": "deixis",
                "candidates": [qids.get(title, title) for title, _ in resolution.alternatives],
            }
            for resolution in resolutions
            if resolution.entity is not None
        ],
        "labels": [
            {
                "id": number,
                "span": [mention.start, mention.end],
                "entity_id": qids.get(mention.entity, mention.entity),
                "name": mention.entity,
                "parent": None,
                "children": [],
                "optional": False,
                "type": "OTHER",
            }
            for number, mention in enumerate(document.mentions)
            if mention.entity is not None
        ],
    }
