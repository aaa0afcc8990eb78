"""Our own document JSONL, streamed: bad lines are named by file and line, and stop the reading or are counted."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Dataset, Report, complaint, gold_title
from deixis.documents import Candidate, Document, Mention, normalise_title
from deixis.errors import InputError

__all__ = ["read_jsonl", "stream_documents"]

log = logging.getLogger(__name__)


def stream_documents(path: Path, *, strict: bool = True, report: Report | None = None) -> Iterator[Document]:
    """Yield the documents of a plain or compressed file, one a line.

    `strict` stops at the first bad line; otherwise each is logged and counted as unmatched in the report.
    """
    for line, raw in read_lines(path):
        try:
            document = Document.from_json(raw)
        except InputError as error:
            named = complaint(path, line, str(error))
            if strict:
                raise named from None
            log.warning("%s; line skipped", named)
            if report is not None:
                report.unmatched["lines that are no document, skipped"] += 1
        else:
            yield document


def read_jsonl(path: Path, name: str | None = None, *, strict: bool = True) -> Dataset:
    """Read documents to evaluate on; titles are normalised."""
    report = Report()
    documents = []
    for document in stream_documents(path, strict=strict, report=report):
        report.annotations += len(document.mentions)
        documents.append(replace(document, mentions=tuple(map(_normalised, document.mentions))))
    own = any(m.candidates is not None for document in documents for m in document.mentions)
    candidates = "given with the mentions" if own else "none"
    return Dataset(name or path.name, tuple(documents), report, candidates, nil="no gold entity")


def _normalised(mention: Mention) -> Mention:
    candidates = mention.candidates
    if candidates is not None:
        candidates = tuple(Candidate(normalise_title(candidate.entity), candidate.prior) for candidate in candidates)
    return replace(mention, entity=gold_title(mention.entity or ""), candidates=candidates)
