"""Redirects: where each title leads in the end, over chains, and which lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from deixis.artefacts import open_text, read_lines
from deixis.documents import normalise_title
from deixis.errors import InputError

__all__ = ["Redirects", "read_redirects"]


@dataclass(frozen=True, slots=True)
class Redirects:
    """Titles that lead to others in the end, titles that lead nowhere with the reason, and counts of both."""

    table: Mapping[str, str] = field(default_factory=dict)
    lost: Mapping[str, str] = field(default_factory=dict)  # title -> "self" or "loop"
    counts: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def build(cls, found: Mapping[str, str], given: Mapping[str, str] | None = None) -> Redirects:
        """Follow every redirect to its end.

        What is `given` by the user goes before what was `found` in the dump: a title that the user's table names as
        the right one is not led on by the dump.
        """
        hops = dict(found)
        if given:
            for target in given.values():
                hops.pop(target, None)
            hops.update(given)
        table: dict[str, str] = {}
        lost: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for title in hops:
            if title not in table and title not in lost:
                _follow(title, hops, table, lost)
        for title, target in table.items():
            counts["direct" if hops[title] == target else "chain"] += 1
        counts.update(lost.values())
        return cls(table, lost, dict(counts))

    def resolve(self, title: str) -> str | None:
        """Return the title that a title leads to, itself where it is no redirect, None where it leads nowhere."""
        return self.table.get(title) or (None if title in self.lost else title)


def _follow(title: str, hops: Mapping[str, str], table: dict[str, str], lost: dict[str, str]) -> None:
    """Walk from a title to the end of its chain and note the end for every title on the way."""
    way = [title]
    on_way = {title}
    while True:
        following = hops.get(way[-1])
        if following is None:
            end = way.pop()
            break
        if following in lost or following in on_way:
            lost.update((passed, "self" if hops[passed] == passed else "loop") for passed in way)
            return
        if following in table:
            end = table[following]
            break
        way.append(following)
        on_way.add(following)
    table.update((passed, end) for passed in way)


def read_redirects(path: Path) -> dict[str, str]:
    """Read a redirect table: lines `old<TAB>new`, or in a `.json` file one object old → new; plain or compressed."""
    pairs = _json_pairs(path) if ".json" in path.suffixes else _tab_pairs(path)
    table = {normalise_title(old): normalise_title(new) for old, new in pairs}
    return {old: new for old, new in table.items() if old != new}  # some differ only in how spaces are written


def _json_pairs(path: Path) -> Iterable[tuple[str, str]]:
    with open_text(path) as file:
        try:
            record = orjson.loads(file.read())
        except orjson.JSONDecodeError as error:
            raise InputError(f"{path}: not JSON ({error})") from None
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        raise InputError(f"{path}: expected one object of old title: new title")
    return record.items()


def _tab_pairs(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in read_lines(path):
        try:
            fields = line.decode().split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{path}, line {number}: not UTF-8; save the redirect table as UTF-8") from None
        if len(fields) < 2 or not fields[0].strip() or not fields[1].strip():
            raise InputError(f"{path}, line {number}: expected old title, a tab and new title")
        yield fields[0], fields[1]
