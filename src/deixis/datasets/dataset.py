"""A benchmark read into documents, with an account of what was removed, repaired or left unmatched (protocol 5)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import unquote

import orjson

from deixis.artefacts import read_lines
from deixis.documents import Candidate, Document, Mention, normalise_title
from deixis.errors import InputError

__all__ = [
    "Dataset",
    "Report",
    "complaint",
    "decoded",
    "gold_title",
    "is_optional",
    "page_of",
    "page_title",
    "read_records",
]

Record = TypeVar("Record")
PAGE = re.compile(r"https?://(?:[a-z]+\.)?(?:wikipedia\.org/wiki|dbpedia\.org/resource)/(.+)")


def complaint(path: Path, line: int | None, what: str) -> InputError:
    """Return the error that names the file, the line and what was expected there."""
    return InputError(f"{path}{'' if line is None else f', line {line}'}: {what}")


def decoded(raw: bytes, path: Path, line: int) -> str:
    """Decode a line; what is not UTF-8 is an error that names it."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise complaint(path, line, "not UTF-8; expected text in UTF-8") from None


def read_records(path: Path, read: Callable[[dict[str, Any]], Record], expected: str) -> Iterator[Record]:
    """Yield what is read of each JSON object of a file; of a line without what is expected, an error that names it."""
    for line, raw in read_lines(path):
        try:
            yield read(orjson.loads(raw))
        except orjson.JSONDecodeError as error:
            raise complaint(path, line, f"not JSON ({error})") from None
        except InputError as error:
            raise complaint(path, line, str(error)) from None
        except (KeyError, TypeError, ValueError, AttributeError):
            raise complaint(path, line, f"expected {expected}") from None


def page_of(mention: Mention) -> int | None:
    """Return the Wikipedia page id of the gold, where the data gives one."""
    page = mention.extra.get("page")
    return page if isinstance(page, int) else None


def is_optional(mention: Mention) -> bool:
    """Tell whether the annotators leave it open if this is a mention: it is right to find it, and not wrong to miss."""
    return mention.extra.get("optional") is True


@dataclass(slots=True)
class Report:
    """Reasons and counts, such that annotations = mentions kept + removed."""

    annotations: int = 0  # in the files, those outside the knowledge base included
    removed: Counter[str] = field(default_factory=Counter)
    repaired: Counter[str] = field(default_factory=Counter)
    unmatched: Counter[str] = field(default_factory=Counter)  # kept, but without candidates or without a place
    noted: Counter[str] = field(default_factory=Counter)

    @property
    def _kinds(self) -> dict[str, Counter[str]]:
        return {name: getattr(self, name) for name in ("removed", "repaired", "unmatched", "noted")}

    def copy(self) -> Report:
        """Return a report that can be added to without changing this one."""
        return Report(self.annotations, *map(Counter, self._kinds.values()))

    def lines(self) -> list[str]:
        """Return one line a reason, e.g. `removed 1,131: not in the knowledge base`."""
        return [
            f"{kind} {count:,}: {reason}"
            for kind, counts in self._kinds.items()
            for reason, count in counts.most_common()
            if count
        ]

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the report."""
        return {"annotations": self.annotations, **{kind: dict(counts) for kind, counts in self._kinds.items()}}


@dataclass(frozen=True, slots=True)
class Dataset:
    """Documents with gold mentions, and the report of how they were read.

    A mention whose `entity` is None names something outside the knowledge base (NIL).
    """

    name: str
    documents: tuple[Document, ...]
    report: Report = field(default_factory=Report)
    candidates: str = "none"  # where the candidate lists came from, in a few words
    nil: str = "not in the knowledge base"  # why mentions have no gold entity, in the words of the format

    def __post_init__(self) -> None:
        kept, removed = self.mentions, self.report.removed.total()
        if self.report.annotations != kept + removed:
            raise InputError(
                f"the counts of {self.name} do not add up: {self.report.annotations} annotations, "
                f"{kept} kept, {removed} removed; this is a fault of the reader"
            )

    @property
    def mentions(self) -> int:
        """The number of mentions; after `in_kb` all have a gold entity (n of protocol 6)."""
        return sum(len(document.mentions) for document in self.documents)

    def mapped(self, change: Callable[[Document], Document], **changes: Any) -> Dataset:
        """Return the dataset with every document changed."""
        return replace(self, documents=tuple(map(change, self.documents)), **changes)

    def top(self, count: int) -> Dataset:
        """Return the dataset with the first candidates only, by prior, equal or unknown priors in the given order."""
        return self.mapped(lambda document: _each(document, lambda m: _cut(m, count)))

    def first(self, count: int) -> Dataset:
        """Return the dataset with its first documents only; the mentions of the others count as removed."""
        kept = self.documents[:count]
        report = self.report.copy()
        report.removed[f"in documents after the first {count}"] += sum(
            len(document.mentions) for document in self.documents[count:]
        )
        return replace(self, documents=kept, report=report)

    def redirected(self, redirects: Mapping[str, str]) -> Dataset:
        """Return the dataset with golds and candidates mapped through redirects, one hop (protocol 3)."""
        report = self.report.copy()
        done = self.mapped(lambda document: _each(document, lambda m: _redirect(m, redirects, report)))
        return replace(done, report=report)

    def among(self, titles: set[str] | frozenset[str]) -> Dataset:
        """Return the dataset without the mentions whose gold is no title of the list (protocol 3)."""
        return self._without(lambda m: m.entity not in titles, "the gold is not in the list of titles")

    def in_kb(self) -> Dataset:
        """Return the dataset without the mentions that have no gold entity, and without optional ones (protocol 5)."""
        return self._without(lambda m: m.entity is None, self.nil)._without(is_optional, "optional")

    def _without(self, unwanted: Callable[[Mention], bool], reason: str) -> Dataset:
        kept = tuple(
            replace(document, mentions=tuple(m for m in document.mentions if not unwanted(m)))
            for document in self.documents
        )
        removed = self.mentions - sum(len(document.mentions) for document in kept)
        report = self.report.copy()
        if removed:
            report.removed[reason] += removed
        return replace(self, documents=kept, report=report)


def _each(document: Document, change: Callable[[Mention], Mention]) -> Document:
    return replace(document, mentions=tuple(map(change, document.mentions)))


def _cut(mention: Mention, count: int) -> Mention:
    if mention.candidates is None or len(mention.candidates) <= count:
        return mention
    best_first = sorted(mention.candidates, key=lambda c: -(c.prior or 0.0))  # stable: unknown priors keep their rank
    return replace(mention, candidates=tuple(best_first[:count]))


def _redirect(mention: Mention, redirects: Mapping[str, str], report: Report) -> Mention:
    gold = mention.entity
    if gold is not None and gold in redirects:
        report.repaired["gold title mapped through a redirect"] += 1
        gold = redirects[gold]
    if mention.candidates is None:
        return replace(mention, entity=gold)
    merged: dict[str, float | None] = {}
    for entity, prior in mention.candidates:
        target = redirects.get(entity, entity)
        known = merged.get(target)
        merged[target] = prior if known is None else max(known, prior or 0.0)
    # The higher prior wins, so a merged candidate may move up; where priors are unknown the ranks are kept.
    pairs = sorted(merged.items(), key=lambda pair: -(pair[1] or 0.0))
    return replace(mention, entity=gold, candidates=tuple(Candidate(*pair) for pair in pairs))


def gold_title(raw: str) -> str | None:
    """Return the normalised title of a gold, or None where it names nothing (empty, `NIL`, `--NME--`)."""
    title = normalise_title(raw)
    return None if title in ("", "NIL", "--NME--") else title


def page_title(url: str) -> str | None:
    """Return the title of a page of Wikipedia or DBpedia, None where a URL is of anything else."""
    found = PAGE.fullmatch(url)
    return None if found is None else gold_title(unquote(found[1]))
