"""The vocabulary: entities and their rows in B, with how often each was annotated."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from deixis.artefacts import read_lines, write_aside
from deixis.errors import InputError
from deixis.network.special import SPECIAL

__all__ = ["Vocabulary"]

AT_ONCE = 4096  # lines of a file that are read together
_WRONG = (ValueError, TypeError, KeyError, IndexError)


class Vocabulary:
    """Entities in the order of their rows; rows 0 to 2 are [PAD], [UNK] and [MASK]."""

    def __init__(self, titles: Sequence[str], counts: Sequence[int] | None = None) -> None:
        if tuple(titles[:3]) != SPECIAL:
            raise InputError(f"a vocabulary starts with {', '.join(SPECIAL)}, not with {list(titles[:3])}")
        self.titles = list(titles)
        self.counts = list(counts) if counts is not None else [0] * len(self.titles)
        self._rows = {title: row for row, title in enumerate(self.titles)}
        if len(self._rows) != len(self.titles):
            repeated = next(title for row, title in enumerate(self.titles) if self._rows[title] != row)
            raise InputError(f"the vocabulary has {repeated!r} twice")
        for special in SPECIAL:  # rows, but no entities: nothing can mean them
            del self._rows[special]

    @classmethod
    def of(cls, titles: Iterable[str]) -> Vocabulary:
        """Make a vocabulary of the given titles, behind the special rows."""
        return cls([*SPECIAL, *titles])

    @classmethod
    def build(
        cls, counts: Mapping[str, int], *, min_count: int = 1, include: Collection[str] = (), limit: int | None = None
    ) -> Vocabulary:
        """Choose the entities annotated at least `min_count` times and those of a white list.

        Rows go by count, ties by title. The limit is on entities, without the special rows; those of the white list
        are kept before any other.
        """
        wanted = {title: counts.get(title, 0) for title in include}
        others = {title: count for title, count in counts.items() if count >= min_count and title not in wanted}
        for special in SPECIAL:
            wanted.pop(special, None)
            others.pop(special, None)

        def by_count(found: Mapping[str, int]) -> list[str]:
            return sorted(found, key=lambda title: (-found[title], title))

        if limit is not None and len(wanted) > limit:
            raise InputError(f"the white list has {len(wanted)} entities and the limit is {limit}; raise the limit")
        kept = by_count(others)[: None if limit is None else limit - len(wanted)]
        chosen = wanted | {title: others[title] for title in kept}
        titles = by_count(chosen)
        return cls([*SPECIAL, *titles], [0] * len(SPECIAL) + [chosen[title] for title in titles])

    def __len__(self) -> int:
        return len(self.titles)

    def __iter__(self) -> Iterator[str]:
        return iter(self.titles)

    def __contains__(self, title: str) -> bool:
        return title in self._rows

    def row(self, title: str) -> int | None:
        """Return the row of an entity, or None where it has none (as the special rows' names)."""
        return self._rows.get(title)

    number = row  # as knowledge calls it

    def title(self, number: int) -> str:
        return self.titles[number]

    @property
    def entities(self) -> list[str]:
        """The titles without the special rows."""
        return self.titles[len(SPECIAL) :]

    def lead(self, redirects: Mapping[str, str]) -> dict[str, str]:
        """Return a redirect table that leads each entity to the most annotated of its titles that have a row.

        A model may be older than the table, and know an entity by a title that leads elsewhere today.
        """
        best: dict[str, str] = {}  # where titles lead -> the title that has the row
        for title, end in redirects.items():
            for one in (end, title):
                row = self.row(one)
                if row is not None and (end not in best or self.counts[row] > self.counts[self._rows[best[end]]]):
                    best[end] = one
        moved = {title: best.get(end, end) for title, end in redirects.items()}
        moved.update(best)
        return {title: end for title, end in moved.items() if title != end}

    def cut(self, limit: int, keep: Collection[str] = ()) -> Vocabulary:
        """Return the vocabulary of so many entities: those of a list that have a row, then the most annotated."""
        counts = dict(zip(self.titles, self.counts, strict=True))
        return Vocabulary.build(counts, min_count=0, include=[title for title in keep if title in self], limit=limit)

    @cached_property
    def digest(self) -> str:
        """A digest of titles and rows: windows, tables and checkpoints made with another vocabulary do not fit."""
        return hashlib.sha256("\n".join(self.titles).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write one JSON line `[title, count]` a row."""
        with write_aside(path) as file:
            for title, count in zip(self.titles, self.counts, strict=True):
                line = json.dumps([title, count], ensure_ascii=False, separators=(",", ":"))
                file.write(line.encode() + b"\n")

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a vocabulary that `save` wrote, or LUKE's `entity_vocab.jsonl`."""
        rows: list[tuple[str, int]] = []
        lines = read_lines(path)
        while part := list(islice(lines, AT_ONCE)):
            rows += _rows(part, len(rows), path)
        titles, counts = zip(*rows, strict=True) if rows else ((), ())
        return cls(titles, counts)


def _rows(lines: Sequence[tuple[int, bytes]], first: int, path: Path) -> list[tuple[str, int]]:
    """Read lines together: a model is opened while somebody waits."""
    try:
        records = json.loads(b"[" + b",".join(line for _, line in lines) + b"]")
        return [_row(record, row) for row, record in enumerate(records, first)]
    except _WRONG:
        return [_row_of(line, row, path, number) for row, (number, line) in enumerate(lines, first)]


def _row_of(line: bytes, row: int, path: Path, number: int) -> tuple[str, int]:
    try:
        return _row(json.loads(line), row)
    except _WRONG:
        raise InputError(
            f'{path}:{number} is neither [title, count] nor {{"id", "entities", "count"}} of LUKE, ids rising'
        ) from None


def _row(record: Any, row: int) -> tuple[str, int]:
    """Read `[title, count]`, or `{"id": row, "entities": [[title, language], …], "count"}`."""
    if isinstance(record, dict):
        if record["id"] != row:
            raise ValueError
        title, count = record["entities"][0][0], record["count"]
    else:
        title, count = record
    if not isinstance(title, str) or not isinstance(count, int):
        raise TypeError
    return title, count
