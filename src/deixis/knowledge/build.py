"""Building a store: names of entities from links, titles, redirects, aliases, pages of meanings and imported lists."""

from __future__ import annotations

import contextlib
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside, write_aside
from deixis.documents import normalise_title
from deixis.errors import InputError
from deixis.knowledge.leads import names_in_lead
from deixis.knowledge.names import WEIGHTS, Kind, Names
from deixis.knowledge.occurrences import Occurrences
from deixis.knowledge.surfaces import INITIALS, initials, key, short_titles, title_parts

__all__ = ["NamesBuilder"]

SPOOLED = 64 << 20  # bytes of keys that are held in memory
MAX_PARTS = 64  # titles kept for a part of a name, the most popular; recall on AIDA is the same with 128

Arrays = dict[str, NDArray[Any]]


class NamesBuilder:
    """Collects names and their counts, and writes them as a store."""

    def __init__(self, redirects: Mapping[str, str] | None = None) -> None:
        self._redirects = redirects or {}
        self._titles: dict[str, int] = {}
        self._popularity: Counter[int] = Counter()
        self._names, self._parts = _Table(), _Table()
        self._occurrences: dict[str, tuple[int, int, int]] = {}  # of the stores added
        self._counted = False  # one of them has occurrences
        self.counts: Counter[str] = Counter()
        for source, target in sorted(self._redirects.items()):
            self.add_redirect(source, target)

    def __len__(self) -> int:
        """Return the number of entities."""
        return len(self._titles)

    def add_meanings(self, title: str, targets: Iterable[str]) -> None:
        """Make entities known by the title of the page that lists them as its meanings.

        Such a page links other things too; a meaning shares a word with the title, or has it as its initials.
        """
        self.counts["pages of meanings"] += 1
        for name in (title, *short_titles(title)):
            own = key(name)
            for target in targets:
                if set(own.split()) & set(key(target).split()) or own in initials(target):
                    self._add(name, target, Kind.DISAMBIGUATION)

    def add_link(self, surface: str, target: str, count: int = 1) -> None:
        """Count links with this surface to this entity."""
        self.counts["links"] += count
        if (number := self._add(surface, target, Kind.LINK, count)) is not None:
            self._popularity[number] += count

    def add_title(self, title: str) -> None:
        """Make an entity known; targets of links, redirects and aliases are known by that."""
        if title:
            self._number(title)

    def add_redirect(self, source: str, target: str) -> None:
        """Make an entity known by the title of a page that leads to it."""
        self.counts["redirects"] += 1
        self._add(source, target, Kind.REDIRECT)
        for name in short_titles(source):
            self._add(name, target, Kind.SHORT)

    def add_alias(self, alias: str, title: str) -> None:
        """Make an entity known by another name."""
        self.counts["aliases"] += 1
        self._add(alias, normalise_title(title), Kind.ALIAS)

    def add_description(self, title: str, description: str) -> None:
        """Make an entity known, and by the names that its description gives it."""
        self.counts["descriptions"] += 1
        title = normalise_title(title)
        self.add_title(title)
        for name in names_in_lead(title, description):
            self.add_alias(name, title)

    def add_listed(self, surface: str, title: str, count: float) -> None:
        """Add an entry of an imported list."""
        self.counts["listed"] += 1
        self._add(surface, normalise_title(title), Kind.LISTED, count)

    def add_store(self, store: Names) -> None:
        """Add another store; counts are summed."""
        self.counts["stores"] += 1
        self._counted |= store.has_occurrences
        for title, popularity in store.titles():
            self._popularity[self._number(title)] += popularity
        for name in store.names():
            for entry in store.entries(name):
                self._names.add(name, self._number(entry.entity), entry.kind, entry.count)
            counted = store.occurrences(cast(int, store.number(name)))
            if counted is not None and any(counted):
                before = self._occurrences.get(name, (0, 0, 0))
                self._occurrences[name] = before[0] + counted[0], before[1] + counted[1], before[2] + counted[2]

    def _number(self, title: str) -> int:
        return self._titles.setdefault(self._redirects.get(title, title), len(self._titles))

    def _add(self, surface: str, title: str, kind: Kind, count: float = 0) -> int | None:
        name = key(surface)
        if not name or not title:
            self.counts["names dropped: no letter and no digit"] += 1
            return None
        number = self._number(title)
        self._names.add(name, number, kind, count)
        return number

    def _add_titles(self) -> None:
        """Add each title, its short forms, its beginnings and ends, and the initials of those that are linked."""
        for title, number in self._titles.items():
            shorts = short_titles(title)
            self._names.add(key(title), number, Kind.TITLE)
            for name in shorts:
                self._names.add(key(name), number, Kind.SHORT)
            parts = title_parts(title)
            if self._popularity[number]:
                parts |= {INITIALS + letters for letters in initials(title)}
            for part in sorted(parts):
                self._parts.add(part, number)

    def save(
        self,
        folder: Path,
        parameters: Mapping[str, Any],
        parents: Mapping[str, str],
        count: Callable[[Path], Iterable[Occurrences]] | None = None,
        smoothing: float = 0.0,
    ) -> Manifest:
        """Write the store; the folder appears whole or not at all.

        `count` is given the path of the trie of names, and yields how often they occur in texts. With `smoothing`, a
        title or an alias of an entity is worth that share of the entity's links, beside its own: somebody famous whom
        few call so goes before a namesake whom nobody knows. Stores with it are not to be added to others.
        """
        if not self._titles:
            raise InputError("there is no link, title or alias in what was given; a store would be empty")
        self._add_titles()
        with folder_aside(folder) as aside:
            arrays = self._arrays(aside, smoothing) | self._occurrence_arrays(aside / "names.marisa", count)
            for name, values in arrays.items():
                with write_aside(aside / f"{name}.npy") as file:
                    np.save(file, _narrow(values))
            files = {path.name: digest_file(path) for path in sorted(aside.iterdir())}
            counts = dict(sorted(self.counts.items()))
            counts |= {"entities": len(self._titles), "names": self._names.size, "parts": self._parts.size}
            manifest = Manifest("candidates", dict(parameters), dict(parents), files, counts)
            manifest.save(aside / MANIFEST)
        return manifest

    def _arrays(self, folder: Path, smoothing: float) -> Arrays:
        ordered = sorted(self._titles)
        places = np.empty(len(ordered), np.int64)  # our number of a title -> its place in the alphabet
        places[[self._titles[title] for title in ordered]] = np.arange(len(ordered))
        popularity = np.zeros(len(ordered), np.uint32)
        for number, count in self._popularity.items():
            popularity[places[number]] = count
        sizes = array("I")
        with write_aside(folder / "titles.bin") as file:
            for title in ordered:
                sizes.append(file.write(title.encode()))
        return {
            "titles-offsets": np.concatenate(([0], np.cumsum(sizes))).astype(np.uint32),
            "popularity": popularity,
            **self._name_arrays(places, folder / "names.marisa", smoothing * popularity),
            **self._part_arrays(places, popularity, folder / "parts.marisa"),
        }

    def _occurrence_arrays(self, path: Path, count: Callable[[Path], Iterable[Occurrences]] | None) -> Arrays:
        if count is None and not self._counted:
            return {}
        trie = marisa_trie.Trie().mmap(str(path))
        table = np.zeros((len(trie), 3), np.uint32)
        for name, counted in self._occurrences.items():
            table[trie[name]] += np.array(counted, np.uint32)
        for found in count(path) if count is not None else ():
            for column, numbers in enumerate(found):
                table[list(numbers), column] += np.array(list(numbers.values()), np.uint32)
        return _sparse(table)

    def _name_arrays(self, places: NDArray[np.int64], trie: Path, fame: NDArray[Any]) -> Arrays:
        owners, entities, counts, kinds = self._names.grouped(places, trie)
        worth = np.array(WEIGHTS, np.float32)[kinds]
        counts += np.rint(worth * fame[entities]).astype(np.float32)
        weights = worth + counts
        order = np.lexsort((entities, -weights, owners))
        return {
            "names-offsets": _offsets(owners, self._names.size),
            "names-entities": entities[order].astype(np.uint32),
            "names-counts": counts[order],
            "names-kinds": kinds[order],
        }

    def _part_arrays(self, places: NDArray[np.int64], popularity: NDArray[np.uint32], trie: Path) -> Arrays:
        owners, entities, _, _ = self._parts.grouped(places, trie)
        order = np.lexsort((entities, -popularity[entities].astype(np.int64), owners))
        starts = np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]) if len(owners) else owners
        place = np.arange(len(owners)) - np.repeat(starts, np.diff(np.r_[starts, len(owners)]))
        kept = order[place < MAX_PARTS]
        return {
            "parts-offsets": _offsets(owners[kept], self._parts.size),
            "parts-entities": entities[kept].astype(np.uint32),
        }


class _Table:
    """Rows of (key, entity, count, kind), one column each; keys lie in a file, as a dictionary of millions is large."""

    def __init__(self) -> None:
        self._keys = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115 - closed in __del__
        self._entities, self._counts, self._kinds = array("I"), array("f"), array("B")
        self.size = 0  # keys, once they are grouped

    def __del__(self) -> None:
        with contextlib.suppress(OSError):  # what it could not write before
            self._keys.close()

    def add(self, name: str, entity: int, kind: int = 0, count: float = 0) -> None:
        if name:
            try:
                self._keys.write(name.encode() + b"\n")
            except OSError as error:
                where, what = tempfile.gettempdir(), error.strerror or error
                raise InputError(f"cannot write names to {where}: {what}; make room, or set TMPDIR") from error
            self._entities.append(entity)
            self._counts.append(count)
            self._kinds.append(kind)

    def _names(self) -> Iterator[str]:
        self._keys.seek(0)
        return (line[:-1].decode() for line in self._keys)

    def grouped(self, places: NDArray[np.int64], path: Path) -> tuple[NDArray[Any], ...]:
        """Write the keys as a trie and return owners (sorted), entities, summed counts and joined kinds."""
        trie = marisa_trie.Trie(marisa_trie.Trie(self._names()).iterkeys())  # each key once: a trie counts repeats
        trie.save(str(path))
        self.size = len(trie)
        owners = np.fromiter((trie[name] for name in self._names()), np.int64, len(self._entities))
        entities = places[np.frombuffer(self._entities, np.uint32)]
        order = np.lexsort((entities, owners))
        owners, entities = owners[order], entities[order]
        if not len(order):
            return owners, entities, np.empty(0, np.float32), np.empty(0, np.uint8)
        starts = np.flatnonzero(np.r_[True, (owners[1:] != owners[:-1]) | (entities[1:] != entities[:-1])])
        counts = np.add.reduceat(np.frombuffer(self._counts, np.float32)[order], starts)
        kinds = np.bitwise_or.reduceat(np.frombuffer(self._kinds, np.uint8)[order], starts)
        return owners[starts], entities[starts], counts, kinds


def _narrow(values: NDArray[Any]) -> NDArray[Any]:
    """Return whole numbers in the fewest bytes that hold the largest; counts seldom need four."""
    whole = values.dtype.kind == "u" or (values.dtype.kind == "f" and np.array_equal(values, np.floor(values)))
    return values.astype(np.min_scalar_type(int(values.max(initial=0)))) if whole else values


def _sparse(table: NDArray[np.uint32]) -> Arrays:
    """Lay out counts (names, 3), most of them 0, as `Names.occurrences` reads them.

    Counts over 65,535 are halved together until they fit: only their ratios matter.
    """
    present = table.max(1, initial=0) > 0
    kept = table[present]
    while (large := kept.max(1, initial=0) > np.iinfo(np.uint16).max).any():
        kept[large] //= 2
    words = np.packbits(np.pad(present, (0, -len(present) % 64)), bitorder="little").view("<u8")
    before = np.concatenate(([0], np.cumsum(np.bitwise_count(words))))[:-1]
    return {
        "occurrences": kept.astype(np.uint16),
        "occurrences-present": words,
        "occurrences-before": before.astype(np.uint32),
    }


def _offsets(owners: NDArray[np.int64], size: int) -> NDArray[np.uint32]:
    offsets = np.zeros(size + 1, np.uint32)
    np.cumsum(np.bincount(owners, minlength=size), out=offsets[1:])
    return offsets
