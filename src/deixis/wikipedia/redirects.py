"""Redirects: where each title leads in the end, over chains, and which lead nowhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from deixis.artefacts import read_lines
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
    """Read a redirect table: lines `from<TAB>to`, plain or compressed."""
    table: dict[str, str] = {}
    for number, line in read_lines(path):
        try:
            fields = line.decode().split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number} is not UTF-8; save the redirect table as UTF-8") from None
        if len(fields) < 2 or not (source := normalise_title(fields[0])) or not (target := normalise_title(fields[1])):
            raise InputError(f"{path}:{number} is no redirect; expected from<TAB>to")
        table[source] = target
    return table
