"""Answers for other tools: document JSONL, NIF for GERBIL, and the linked-article JSONL of ELEVANT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import orjson

from deixis.artefacts import write_aside
from deixis.datasets.elevant import NO_IDS, linked_article
from deixis.datasets.nif import NIF_PREFIXES, to_turtle
from deixis.documents import Resolutions
from deixis.evaluation.plan import Outcome

__all__ = ["FORMATS", "Format", "write_answers", "write_predictions"]

Format = Literal["jsonl", "nif", "elevant"]
FORMATS: dict[Format, str] = {"jsonl": ".jsonl", "nif": ".ttl", "elevant": ".linked_articles.jsonl"}


def write_answers(
    folder: Path, name: str, answers: Sequence[Resolutions], form: Format, wikidata: Mapping[str, str] = NO_IDS
) -> Path:
    """Write the answers to `folder/name` with the ending of the format; return the path."""
    path = folder / (name + FORMATS[form])
    with write_aside(path) as file:
        for piece in _pieces(answers, form, wikidata):
            file.write(piece)
    return path


def write_predictions(
    folder: Path, outcome: Outcome, forms: Sequence[Format], wikidata: Mapping[str, str] = NO_IDS
) -> Iterator[Path]:
    """Write the answers of every run in every format, and yield the files."""
    for result in outcome.results:
        for run in result.runs:
            if run.resolutions:
                candidates = Path(result.candidates).name.replace("+", "-")
                name = f"{Path(result.name).stem}.{candidates}.{run.label.replace(', ', '-').replace(' ', '-')}"
                for form in forms:
                    yield write_answers(folder, name, run.resolutions, form, wikidata)


def _pieces(answers: Sequence[Resolutions], form: Format, wikidata: Mapping[str, str]) -> Iterator[bytes]:
    if form == "nif":
        yield NIF_PREFIXES.encode()
        for place, resolutions in enumerate(answers):
            name = resolutions.document.id or str(place)
            base = name if name.startswith(("http://", "https://")) else "http://deixis.invalid/" + quote(name, safe="")
            yield from (part.encode() for part in to_turtle(resolutions, base))
    elif form == "elevant":
        for place, resolutions in enumerate(answers):
            yield orjson.dumps(linked_article(resolutions, place, wikidata)) + b"\n"
    else:
        for resolutions in answers:
            yield resolutions.to_json() + b"\n"
