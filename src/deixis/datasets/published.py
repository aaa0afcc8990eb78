"""The published folder of Ganea & Hofmann's data as redistributed by Le & Titov (protocol 1–3).

A candidate file (`aida_testB.csv`) is paired with a text file (`testa_testb_aggregate_original`) and `persons.txt`:

    csv   id  id  Smith  …  …  CANDIDATES  12,0.9,John Smith  13,0.1,Smith, Ohio  GT:  0,12,0.9,John Smith
    text  Smith  B  Smith  John_Smith  http://…  12

Redirects and valid titles come after reading: `Dataset.redirected` and `Dataset.among`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Dataset, Report, complaint, decoded, gold_title
from deixis.datasets.tokens import TokenDocument, read_token_documents
from deixis.documents import Candidate, Document, Mention, normalise_title

__all__ = ["PUBLISHED", "Coreference", "PublishedRow", "read_persons", "read_published", "read_rows"]

Coreference = Literal["original", "in_place", "none"]
PUBLISHED = {  # set -> candidate file, text file
    "aida-train": ("aida_train.csv", "aida_train.txt"),
    "aida-a": ("aida_testA.csv", "testa_testb_aggregate_original"),
    "aida-b": ("aida_testB.csv", "testa_testb_aggregate_original"),
    "msnbc": ("wned-msnbc.csv", "msnbc.conll"),
    "aquaint": ("wned-aquaint.csv", "aquaint.conll"),
    "ace2004": ("wned-ace2004.csv", "ace2004.conll"),
    "cweb": ("wned-clueweb.csv", "clueweb.conll"),
    "wiki": ("wned-wikipedia.csv", "wikipedia.conll"),
}
EXCLUDED = "Jiří_Třanovský"
NON_WORD = re.compile(r"\W+")


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """A line of the candidate file; `start` and `end` are tokens, known once aligned."""

    line: int
    document: str
    surface: str
    candidates: tuple[Candidate, ...]  # by prior, descending
    gold: str | None
    page: int | None
    start: int = 0
    end: int = 0


def read_published(
    folder: Path, name: str, *, coreference: Coreference = "original", drop_first: bool = False
) -> Dataset:
    """Read one of the eight sets.

    `coreference="in_place"` uses lists that the loop has already replaced (the released code of 2021, Le & Titov).
    `drop_first=True` drops golds without a title before aligning and before coreference, as the released code does;
    a repeated surface can then land on an earlier span.
    """
    candidate_file, text_file = (folder / file for file in PUBLISHED[name])
    report = Report()
    texts = _texts(text_file)
    persons = frozenset[str]() if coreference == "none" else read_persons(folder / "persons.txt")
    documents = []
    for id_, rows in _grouped(candidate_file, report).items():
        if id_.split()[0] == EXCLUDED:
            report.removed[f"of the document {EXCLUDED}, which is left out by everybody"] += len(rows)
            continue
        text = texts.get(id_.split()[0])
        if text is None:
            raise complaint(candidate_file, rows[0].line, f"the document {id_!r} is not in {text_file}")
        documents.append(_document(id_, rows, text, candidate_file, report, persons, coreference, drop_first))
    return Dataset(name, tuple(documents), report, "KB+YAGO (published)")


def _texts(path: Path) -> dict[str, TokenDocument]:
    """Read the documents of a text file by the first word of their names."""
    texts: dict[str, TokenDocument] = {}
    for document in read_token_documents(path, "\t"):
        name = next(iter(document.name.split()), "")
        if name in texts and name != EXCLUDED:
            raise complaint(path, document.line, f"a second document {name!r}; expected every name once")
        texts[name] = document
    return texts


def read_persons(path: Path) -> frozenset[str]:
    """Read `persons.txt`: the titles of persons, one a line."""
    return frozenset(normalise_title(decoded(raw, path, line)) for line, raw in read_lines(path))


def _document(
    id_: str,
    rows: Sequence[PublishedRow],
    text: TokenDocument,
    path: Path,
    report: Report,
    persons: frozenset[str],
    coreference: Coreference,
    drop_first: bool,
) -> Document:
    in_kb = [row for row in rows if row.gold is not None]
    report.removed["the gold has no title (NIL)"] += len(rows) - len(in_kb)
    aligned = list(_aligned(in_kb if drop_first else rows, text, path))
    report.noted["mentions of the text file that are not in the candidate file"] += len(_text_mentions(text)) - len(
        rows
    )
    resolved = _with_persons(aligned, persons, in_place=coreference == "in_place")
    kept = [row for row in resolved if row.gold is not None]
    joined, offsets = text.tokens.text([(row.start, row.end) for row in kept])
    mentions = tuple(
        Mention(start, end, row.gold, row.candidates, {} if row.page is None else {"page": row.page})
        for row, (start, end) in zip(kept, offsets, strict=True)
    )
    number = re.match(r"(\d+)(?:testa|testb)? ", id_ + " ")
    return Document(joined, mentions, id_, {} if number is None else {"number": int(number[1])})


def _grouped(path: Path, report: Report) -> dict[str, list[PublishedRow]]:
    grouped: dict[str, list[PublishedRow]] = {}
    for row in read_rows(path, report):
        grouped.setdefault(row.document, []).append(row)
        report.annotations += 1
    return grouped


def read_rows(path: Path, report: Report) -> Iterator[PublishedRow]:
    """Yield the lines of a candidate file."""
    for line, raw in read_lines(path):
        yield _row(raw, path, line, report)


def _row(raw: bytes, path: Path, line: int, report: Report) -> PublishedRow:
    fields = decoded(raw, path, line).split("\t")
    if len(fields) < 9 or fields[5] != "CANDIDATES" or fields[-2] != "GT:" or not fields[0].strip():
        raise complaint(
            path, line, "expected id, id, mention, two contexts, CANDIDATES, candidates, GT: and the gold, by tabs"
        )
    listed = [] if fields[6] == "EMPTYCAND" else [_candidate(field, path, line) for field in fields[6:-2]]
    titled = [candidate for candidate in listed if candidate.entity]
    report.noted["candidates without a title, dropped"] += len(listed) - len(titled)
    best_first = sorted(titled, key=lambda candidate: -(candidate.prior or 0.0))
    gold, page = _gold(fields[-1])
    return PublishedRow(line, fields[0], fields[2], tuple(best_first), gold, page)


def _candidate(field: str, path: Path, line: int) -> Candidate:
    parts = field.split(",", 2)
    try:
        return Candidate(normalise_title(parts[2]), float(parts[1]))
    except (IndexError, ValueError):
        raise complaint(path, line, f"the candidate {field[:60]!r}; expected id,prior,title") from None


def _gold(field: str) -> tuple[str | None, int | None]:
    """Read `position,id,prior,title`, or `-1,id,title` where the gold is no candidate, or `-1`."""
    parts = field.split(",", 2 if field.startswith("-1") else 3)
    title = parts[-1] if len(parts) == (3 if parts[0] == "-1" else 4) else ""
    page = int(parts[1]) if len(parts) > 1 and parts[1].isdecimal() else None
    return gold_title(title), page


def _aligned(rows: Sequence[PublishedRow], text: TokenDocument, path: Path) -> Iterator[PublishedRow]:
    """Give every row the next mention of the text with the same letters; those between are skipped."""
    spans = iter(_text_mentions(text))
    for row in rows:
        for start, end in spans:
            if _letters(" ".join(text.tokens.words[start:end])) == _letters(row.surface):
                yield replace(row, start=start, end=end)
                break
        else:
            raise complaint(path, row.line, f"{row.surface!r} is no further mention of {text.name!r} in the text file")


def _letters(surface: str) -> str:
    return NON_WORD.sub("", surface.lower())


def _text_mentions(text: TokenDocument) -> list[tuple[int, int]]:
    """Return the token spans of lines with six or more fields, `B` or `I` in field 1."""
    spans: list[tuple[int, int]] = []
    for token, (_, fields) in enumerate(text.rows):
        if len(fields) < 6:
            continue
        if fields[1] == "I" and spans and spans[-1][1] == token:
            spans[-1] = (spans[-1][0], token + 1)
        else:
            spans.append((token, token + 1))
    return spans


def _with_persons(rows: Sequence[PublishedRow], persons: frozenset[str], *, in_place: bool) -> list[PublishedRow]:
    """Give a mention the candidates of the fuller names of persons in its document (`Smith`: `John Smith`)."""
    resolved = list(rows)
    for index, row in enumerate(rows):
        fuller = [other for other in (resolved if in_place else rows) if _names_fully(other, row, persons)]
        if not fuller:
            continue
        priors: dict[str, float] = {}
        for other in fuller:
            for entity, prior in other.candidates:
                priors[entity] = priors.get(entity, 0.0) + (prior or 0.0)
        union = sorted(priors.items(), key=lambda pair: -pair[1])
        candidates = tuple(Candidate(entity, prior / len(fuller)) for entity, prior in union)
        resolved[index] = replace(row, candidates=candidates)
    return resolved


def _names_fully(other: PublishedRow, row: PublishedRow, persons: frozenset[str]) -> bool:
    """Whether the other mention names a person and holds this surface as whole words at its first occurrence."""
    if not other.candidates or other.candidates[0].entity not in persons:
        return False
    whole, part = other.surface.lower(), row.surface.lower()
    start = whole.find(part)
    end = start + len(part)
    bounded = (start == 0 or whole[start - 1] == " ") and (end == len(whole) or whole[end] == " ")
    return whole != part and start >= 0 and bounded
