"""AIDA-CoNLL: stand-off annotations over the CoNLL-2003 files, or the single file of both (protocol 5).

A mention whose entity is `--NME--` is not in the knowledge base. The page id of a gold is kept in the mention's
`extra["page"]`, the running number of a document (1–1393) in the document's `extra["number"]`; kinds are CoNLL's tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from deixis.datasets.dataset import Dataset, Report, complaint, page_title
from deixis.datasets.tokens import DOCSTART, TokenDocument, Tokens, read_token_documents
from deixis.documents import Document, Mention

__all__ = ["Split", "read_single_file", "read_standoff"]

Split = Literal["train", "testa", "testb"]
KINDS = {"PER": "person", "ORG": "organisation", "LOC": "place", "MISC": "other"}
NOT_IN_KB = "not in the knowledge base (--NME--)"
HEADING = re.compile(r"(\d+)(testa|testb)?(?: .*)?$")


@dataclass(frozen=True, slots=True)
class _Annotation:
    line: int
    start: int  # a token
    title: str | None
    page: int | None


@dataclass(frozen=True, slots=True)
class _Annotated:
    id: str
    number: int
    annotations: tuple[_Annotation, ...]


def read_standoff(annotations: Path, conll: Path, split: Split) -> Dataset:
    """Read one split from `AIDA-YAGO2-annotations.tsv` and the CoNLL-2003 file with its tokens."""
    report = Report()
    annotated = list(_read_annotations(annotations, split))
    tokens = list(read_token_documents(conll, " "))
    if len(tokens) != len(annotated):
        raise complaint(
            conll, None, f"{len(tokens)} documents, but {annotations} has {len(annotated)} of {split}; expected as many"
        )
    documents = [_document(given, words, annotations, report) for given, words in zip(annotated, tokens, strict=True)]
    return Dataset(f"aida-{split}", tuple(documents), report, nil=NOT_IN_KB)


def read_single_file(path: Path, split: Split) -> Dataset:
    """Read one split from `AIDA-YAGO2-dataset.tsv`: token, B or I, mention, YAGO2 name, URL, page id, Freebase id."""
    report = Report()
    documents = []
    for given in read_token_documents(path, "\t"):
        number, own_split = _split(given.name, path, given.line)
        if own_split == split:
            spans, golds = _marked_mentions(given, path)
            documents.append(_build(given.name, number, given.tokens, spans, golds, report))
    if not documents:
        raise complaint(path, None, f"no document of {split}; expected headings such as {DOCSTART} (947testa CRICKET)")
    return Dataset(f"aida-{split}", tuple(documents), report, nil=NOT_IN_KB)


def _split(heading: str, path: Path, line: int) -> tuple[int, Split]:
    found = HEADING.match(heading)
    if found is None:
        raise complaint(path, line, f"the heading ({heading}); expected a number as in (1 EU) or (947testa CRICKET)")
    named = found[2]
    return int(found[1]), "testa" if named == "testa" else "testb" if named == "testb" else "train"


def _read_annotations(path: Path, split: Split) -> Iterator[_Annotated]:
    for given in read_token_documents(path, "\t"):
        number, own_split = _split(given.name, path, given.line)
        if own_split == split:
            yield _Annotated(given.name, number, tuple(_annotation(f, path, n) for n, f in given.rows))


def _annotation(fields: Sequence[str], path: Path, line: int) -> _Annotation:
    if not fields[0].isdecimal() or len(fields) < 2:
        raise complaint(path, line, "expected the number of a token, a tab and an entity or --NME--")
    title, page = _gold(fields[1:], path, line)
    return _Annotation(line, int(fields[0]), title, page)


def _gold(fields: Sequence[str], path: Path, line: int) -> tuple[str | None, int | None]:
    """Read `YAGO2 name, URL, page id`; the URL names the entity, as the YAGO2 name is escaped."""
    if fields[0] == "--NME--":
        return None, None
    title = page_title(fields[1]) if len(fields) > 2 and fields[2].isdecimal() else None
    if title is None:
        raise complaint(path, line, "expected an entity, the URL of its page in Wikipedia and a page id")
    return title, int(fields[2])


def _document(given: _Annotated, words: TokenDocument, path: Path, report: Report) -> Document:
    starts = {annotation.start for annotation in given.annotations}
    spans: list[tuple[int, int]] = []
    golds: list[Gold] = []
    kinds = []
    for annotation in given.annotations:
        if annotation.start >= len(words.rows):
            raise complaint(
                path, annotation.line, f"token {annotation.start} of a document with {len(words.rows)} tokens"
            )
        spans.append((annotation.start, _end(annotation.start, words, starts)))
        golds.append((annotation.title, annotation.page))
        kinds.append(KINDS.get(words.rows[annotation.start][1][-1].partition("-")[2]))
    document = _build(given.id, given.number, words.tokens, spans, golds, report)
    pairs = zip(document.mentions, kinds, strict=True)
    return replace(document, mentions=tuple(replace(mention, kind=kind) for mention, kind in pairs))


def _end(start: int, words: TokenDocument, starts: set[int]) -> int:
    """Return where a mention ends: after the `I-` tags of its type that follow, across sentence ends.

    CoNLL has spurious sentence ends inside 160 mentions; honouring them would cut those.
    """
    kind = words.rows[start][1][-1].partition("-")[2]
    end = start + 1
    while end < len(words.rows) and end not in starts and kind and words.rows[end][1][-1] == f"I-{kind}":
        end += 1
    return end


Gold = tuple[str | None, int | None]


def _marked_mentions(given: TokenDocument, path: Path) -> tuple[list[tuple[int, int]], list[Gold]]:
    spans: list[tuple[int, int]] = []
    golds: list[Gold] = []
    for token, (line, fields) in enumerate(given.rows):
        mark = fields[1] if len(fields) > 1 else ""
        if mark == "B":
            if len(fields) < 4:
                raise complaint(path, line, "expected token, B, mention and entity, separated by tabs")
            spans.append((token, token + 1))
            golds.append(_gold(fields[3:], path, line))
        elif mark == "I":
            if not spans or spans[-1][1] != token:
                raise complaint(path, line, "I without a mention before it; expected B on the first token of a mention")
            spans[-1] = (spans[-1][0], token + 1)
        elif mark:
            raise complaint(path, line, f"{mark!r} in the second field; expected B, I or nothing")
    return spans, golds


def _build(
    id_: str, number: int, tokens: Tokens, spans: Sequence[tuple[int, int]], golds: Sequence[Gold], report: Report
) -> Document:
    text, offsets = tokens.text(spans)
    report.annotations += len(golds)
    mentions = (
        Mention(start, end, title, extra={} if page is None else {"page": page})
        for (start, end), (title, page) in zip(offsets, golds, strict=True)
    )
    return Document(text, tuple(mentions), id_, {"number": number})
