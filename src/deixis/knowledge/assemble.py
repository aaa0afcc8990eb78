"""Putting knowledge together: entities, their names and their other titles become one folder of mapped files.

Numbers of entities are those of the trie of their titles, which only exists when all titles are known. So sources give
entities in an order of their own, and everything is renumbered on the way.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import marisa_trie
import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside
from deixis.documents import KNOWN_BY
from deixis.errors import InputError
from deixis.knowledge.entities import Entity
from deixis.knowledge.knowledge import FILTER, NAMES, NUMBERS, PARTS, REDIRECTS, TITLES, UNIT
from deixis.knowledge.mapped import Arrays, Lists, to_bytes, write_arrays
from deixis.knowledge.names import WEIGHTS, Names
from deixis.knowledge.occurrences import LOWER, link_probabilities, term_probabilities
from deixis.knowledge.overlay import Overlay
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.special import SPECIAL

__all__ = ["Entries", "FromEntities", "FromStore", "Known", "Source", "assemble"]

FIRST = len(SPECIAL)  # the number of the first entity


@dataclass(frozen=True, slots=True)
class Known:
    """The entities of a source, in its own order, with a value each."""

    titles: Sequence[str]
    links: NDArray[Any]  # annotations that training saw
    known_by: NDArray[np.uint8]  # places in KNOWN_BY
    wikidata: NDArray[np.uint32] | None = None  # 615 for Q615; 0: not known


@dataclass(frozen=True, slots=True)
class Entries:
    """Keys and what they mean: entries sorted by key, the best of each first."""

    numbered: Callable[[], Iterator[tuple[str, int]]]  # keys, each with its number, in any order
    owners: NDArray[np.int64]  # (entries,) the number of the key
    entities: NDArray[np.int64]  # (entries,) places in `Known`
    weights: NDArray[Any] | None = None  # (entries,) what priors are shares of
    probabilities: Mapping[str, NDArray[np.uint8]] = field(default_factory=dict)  # (keys,) of links, as bytes


class Source(Protocol):
    """Where knowledge comes from."""

    @property
    def known(self) -> Known:
        """The entities."""

    @property
    def names(self) -> Entries | None:
        """Keys of names, if there are any names."""

    @property
    def parts(self) -> Entries | None:
        """Keys of beginnings and ends of titles, if there are any names."""

    @property
    def redirects(self) -> Mapping[str, int]:
        """Other titles, with places in `known`."""

    @property
    def parents(self) -> Mapping[str, str]:
        """Digests of what it was made from."""


def assemble(
    folder: Path, source: Source, parameters: Mapping[str, Any] | None = None, *, title_filter: Path | None = None
) -> NDArray[np.int64]:
    """Write a folder of knowledge, and return the number of each entity of the source; the filter is copied into it."""
    with folder_aside(folder) as aside:
        known = source.known
        titles = marisa_trie.Trie(known.titles)
        if len(titles) != len(known.titles):
            raise InputError(f"{len(known.titles) - len(titles):,} titles of the entities come twice; give each once")
        titles.save(str(aside / TITLES))
        places = np.fromiter(map(titles.__getitem__, known.titles), np.int64, len(titles))
        arrays = _known_arrays(known, places) | _redirect_arrays(source.redirects, places, aside / REDIRECTS)
        counts = {"entities": len(titles), "redirects": len(source.redirects)}
        for name, file, entries in (("names", NAMES, source.names), ("parts", PARTS, source.parts)):
            if entries is not None:
                made, counts[name] = _entry_arrays(name, entries, places, aside / file)
                arrays |= made
        write_arrays(aside / NUMBERS, arrays)
        if title_filter is not None:
            shutil.copyfile(title_filter, aside / FILTER)
        files = {path.name: digest_file(path) for path in sorted(aside.iterdir())}
        Manifest("knowledge", dict(parameters or {}), dict(source.parents), files, counts).save(aside / MANIFEST)
    return places + FIRST


def _known_arrays(known: Known, places: NDArray[np.int64]) -> Arrays:
    order = np.argsort(places)
    arrays: Arrays = {"links": to_bytes(known.links)[order], "known_by": known.known_by[order].astype(np.uint8)}
    if known.wikidata is not None:
        arrays["wikidata"] = known.wikidata[order].astype(np.uint32)
    return arrays


def _redirect_arrays(redirects: Mapping[str, int], places: NDArray[np.int64], path: Path) -> Arrays:
    trie = marisa_trie.Trie(redirects)
    trie.save(str(path))
    numbers = np.zeros(len(trie), np.uint32)
    for title, place in redirects.items():
        numbers[trie[title]] = places[place] + FIRST
    return {"redirects": numbers}


def _entry_arrays(name: str, entries: Entries, places: NDArray[np.int64], path: Path) -> tuple[Arrays, int]:
    """Write the trie of the keys that have an entry; return what lies behind it, and how many there are."""
    size = int(entries.owners[-1]) + 1 if len(entries.owners) else 0
    has = np.zeros(size, bool)
    has[entries.owners] = True
    trie = marisa_trie.Trie(key for key, owner in entries.numbered() if owner < size and has[owner])
    trie.save(str(path))
    numbers = np.zeros(size, np.int64)
    for key, owner in entries.numbered():
        if owner < size and has[owner]:
            numbers[owner] = trie[key]
    owners = numbers[entries.owners]
    order = np.argsort(owners, kind="stable")
    values = places[entries.entities[order]] + FIRST
    if entries.weights is not None:
        values = values << 8 | to_bytes(entries.weights[order], UNIT)
    arrays = Lists.arrays(name, owners[order], values, len(trie))
    for column, given in entries.probabilities.items():
        arrays[f"{name}.{column}"] = np.zeros(len(trie), np.uint8)
        arrays[f"{name}.{column}"][numbers[has]] = given[:size][has]
    return arrays, len(trie)


@dataclass(frozen=True)
class FromStore:
    """Entities with the names that a store has for them, and the titles that lead to them.

    `places` says which entity each title of the store is, -1 for none: the store may be older or newer than the
    entities, and know them by other titles.
    """

    titles: Sequence[str]
    links: NDArray[Any]
    store: Names | None = None
    places: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    redirects: Mapping[str, int] = field(default_factory=dict)
    described: frozenset[str] | None = None  # of the entities without links; None: all of them
    wikidata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, vocabulary: Vocabulary, store: Names | None = None, table: Mapping[str, str] | None = None, **told: Any
    ) -> FromStore:
        """Take the entities of a vocabulary; of those that a redirect table joins, the most annotated alone."""
        moved = vocabulary.lead(table or {})
        kept = [place for place, title in enumerate(vocabulary.titles) if place >= FIRST and title not in moved]
        titles = [vocabulary.titles[place] for place in kept]
        numbers = {title: place for place, title in enumerate(titles)}
        redirects = {title: numbers[end] for title, end in moved.items() if end in numbers}
        places = np.zeros(0, np.int64)
        if store is not None:
            known = numbers | redirects
            places = np.fromiter((known.get(title, -1) for title, _ in store.titles()), np.int64)
        return cls(titles, np.array(vocabulary.counts)[kept], store, places, redirects, **told)

    @property
    def known(self) -> Known:
        """The entities, and how each is known."""
        by = np.where(self.links > 0, KNOWN_BY.index("links"), KNOWN_BY.index("description"))
        if self.described is not None:
            bare = np.fromiter((title not in self.described for title in self.titles), bool, len(self.titles))
            by[bare & (self.links == 0)] = KNOWN_BY.index("title")
        ids = None
        if self.wikidata:
            found = (int(self.wikidata.get(title, "Q0")[1:]) for title in self.titles)
            ids = np.fromiter(found, np.uint32, len(self.titles))
        return Known(self.titles, self.links, by, ids)

    @property
    def names(self) -> Entries | None:
        """The names of the store that mean an entity."""
        if self.store is None:
            return None
        owners, entities, counts, kinds = self._kept(self.store.name_entries())
        if self._are_joined:
            order = np.lexsort((entities, owners))
            owners, entities, counts, kinds = (column[order] for column in (owners, entities, counts, kinds))
            starts = np.flatnonzero(np.r_[True, (np.diff(owners) != 0) | (np.diff(entities) != 0)])
            counts, kinds = np.add.reduceat(counts, starts), np.bitwise_or.reduceat(kinds, starts)
            owners, entities = owners[starts], entities[starts]
        weights = counts + np.array(WEIGHTS, np.float32)[kinds]
        if self._are_joined:
            order = np.lexsort((entities, -weights, owners))
            owners, entities, weights = owners[order], entities[order], weights[order]
        return Entries(self.store.numbered_names, owners, entities, weights, _probability_bytes(self.store))

    @property
    def parts(self) -> Entries | None:
        """The parts of titles that the store has."""
        if self.store is None:
            return None
        owners, entities = self._kept(self.store.part_entries())
        if self._are_joined:
            order = np.lexsort((entities, -self.links[entities], owners))
            owners, entities = owners[order], entities[order]
            new = np.r_[True, (np.diff(owners) != 0) | (np.diff(entities) != 0)]
            owners, entities = owners[new], entities[new]
        return Entries(self.store.numbered_parts, owners, entities)

    @property
    def parents(self) -> Mapping[str, str]:
        """The store's digest."""
        return {} if self.store is None else {"candidates": self.store.digest}

    @cached_property
    def _are_joined(self) -> bool:
        """Whether two titles of the store are one entity here."""
        kept = self.places[self.places >= 0]
        return len(np.unique(kept)) < len(kept)

    def _kept(self, columns: tuple[NDArray[Any], ...]) -> tuple[NDArray[Any], ...]:
        """Return the columns owners, entities and others, for the entities alone, in places of ours."""
        owners, entities, *others = columns
        found = self.places[entities]
        kept = found >= 0
        return owners[kept], found[kept], *(column[kept] for column in others)


class FromEntities:
    """Entities as people describe them; their names mean nothing else."""

    def __init__(self, entities: Sequence[Entity]) -> None:
        self._entities = {entity.title: entity for entity in entities}
        self._overlay = Overlay.of({title: entity.names for title, entity in self._entities.items()}, 0)
        self.redirects: Mapping[str, int] = {}
        self.parents: Mapping[str, str] = {}

    @property
    def known(self) -> Known:
        """The entities, all known by their descriptions."""
        ids = np.array([int((entity.wikidata or "Q0")[1:]) for entity in self._entities.values()], np.uint32)
        by = np.full(len(ids), KNOWN_BY.index("description"), np.uint8)
        return Known(tuple(self._entities), np.zeros(len(ids)), by, ids)

    @property
    def names(self) -> Entries:
        """Titles, their short forms and the names that were given."""
        meant = [sorted(self._overlay.priors(name, alone=True), key=lambda p: -p[1]) for name in self._overlay.names]
        entities, weights = zip(*(pair for pairs in meant for pair in pairs), strict=True)
        certain = {name: np.full(len(meant), 255, np.uint8) for name in ("probability", "unsure")}
        shares = 100 * np.array(weights)  # so that they survive as bytes
        return Entries(_numbered(self._overlay.names), _owners(meant), np.array(entities), shares, certain)

    @property
    def parts(self) -> Entries:
        """Beginnings and ends of the titles."""
        parts = self._overlay.parts
        entities = np.array([entity for found in parts.values() for entity in found], np.int64)
        return Entries(_numbered(parts), _owners(parts.values()), entities)


def _numbered(keys: Iterable[str]) -> Callable[[], Iterator[tuple[str, int]]]:
    return lambda: ((key, number) for number, key in enumerate(keys))


def _owners(lists: Iterable[Sequence[Any]]) -> NDArray[np.int64]:
    sizes = [len(found) for found in lists]
    return np.repeat(np.arange(len(sizes)), sizes)


def _probability_bytes(store: Names) -> dict[str, NDArray[np.uint8]]:
    """Return link probabilities as bytes, the root of each; a name that occurs in lower case has two that differ."""
    links, single, counted = store.counted()
    sure, unsure, term = (
        (np.sqrt(found) * 255).round().astype(np.uint8)
        for found in (*link_probabilities(links, single, counted), term_probabilities(links, single, counted))
    )
    if counted is None:
        return {"probability": sure}
    lower = counted[:, LOWER] > 0
    sure = np.where(lower, np.maximum(sure, 1), sure)
    return {"probability": sure, "unsure": np.where(lower, np.minimum(unsure, sure - 1), unsure), "term": term}
