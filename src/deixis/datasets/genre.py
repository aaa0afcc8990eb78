"""GENRE's ordered KB+YAGO candidate lists (JSONL) for MSNBC, AQUAINT and ACE2004: best first, without priors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import orjson

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Dataset, complaint, gold_title
from deixis.documents import Candidate, Document, Mention, normalise_title

__all__ = ["GenreList", "attach_genre", "read_genre"]

NON_WORD = re.compile(r"[\W_]+")
RETITLED = "gold title is now the one that the candidate lists use"
UNKNOWN = "the candidate lists do not know the gold, its title is kept"


@dataclass(frozen=True, slots=True)
class GenreList:
    """A line of the file: titles, best first, and the gold as the lists name it, where they know it."""

    line: int
    mention: str
    answer: str | None
    titles: tuple[str, ...]


def attach_genre(dataset: Dataset, path: Path) -> Dataset:
    """Return the dataset with the k-th list of the file for its k-th mention; the surfaces must agree.

    Where the list names the gold by another title (a redirect), the gold takes that title.
    """
    report = dataset.report.copy()
    lists = list(read_genre(path))
    if len(lists) != dataset.mentions:
        raise complaint(path, None, f"{len(lists)} lists; expected one for each of the {dataset.mentions} mentions")
    remaining = iter(lists)

    def attach(document: Document) -> Document:
        return replace(document, mentions=tuple(give(document, mention) for mention in document.mentions))

    def give(document: Document, mention: Mention) -> Mention:
        given, surface = next(remaining), document.surface(mention)
        if _bare(given.mention) != _bare(surface):
            raise complaint(path, given.line, f"the mention {given.mention!r}; expected {surface!r} of {document.id}")
        if given.answer is None:
            report.noted[UNKNOWN] += 1
        elif given.answer != mention.entity:
            report.repaired[RETITLED] += 1
        candidates = tuple(Candidate(title) for title in given.titles)
        return replace(mention, entity=given.answer or mention.entity, candidates=candidates)

    return replace(dataset.mapped(attach), report=report, candidates="KB+YAGO (GENRE's lists)")


def _bare(surface: str) -> str:
    return NON_WORD.sub("", surface).lower()


def read_genre(path: Path) -> Iterator[GenreList]:
    for line, raw in read_lines(path):
        try:
            record = orjson.loads(raw)
            answers = [item["answer"] for item in record.get("output", ())]
            mention = record["meta"]["mention"]
            listed = tuple(dict.fromkeys(normalise_title(t.replace("%22", '"')) for t in record["candidates"]))
            answer = gold_title(answers[0].replace("%22", '"')) if answers else None
            yield GenreList(line, mention, answer, listed)
        except orjson.JSONDecodeError as error:
            raise complaint(path, line, f"not JSON ({error})") from None
        except (KeyError, TypeError, AttributeError):
            raise complaint(path, line, "expected output[0].answer, meta.mention and candidates") from None
