"""The store: surfaces to entities with counts, mapped into memory from one folder.

    titles.bin, titles-offsets.npy        the titles in alphabetical order, as UTF-8: an entity's number is its place
    popularity.npy     (titles,)          links to the entity with any surface
    names.marisa       trie: keys of surfaces (surfaces.py) -> number
    names-offsets.npy  (names + 1,)       into the three below; a name's entries are sorted by weight, ties by title
    names-entities.npy (entries,)
    names-counts.npy   (entries,)         links with this surface to this entity, and the counts of imported lists
    names-kinds.npy    (entries,) uint8   where the entry comes from, a sum of `Kind`s
    parts.marisa, parts-offsets.npy, parts-entities.npy
                                          beginnings and ends of titles, and initials (behind a "#"), to entities by
                                          popularity: no names by themselves, tried with a document's help (names.py)

    occurrences.npy    (counted, 3)       articles where a name is written as one, where it is linked so, where it
                                          is in lower case (occurrences.py); a store need not have it
    occurrences-present.npy  (names / 64,)  a bit a name: whether it was counted at all
    occurrences-before.npy   (names / 64,)  how many were, before each 64

Counts are kept and priors computed when asked, so stores can be merged. Numbers are unsigned, in as few bytes as the
largest of their file needs; counts are float32 where a list was imported with parts of a link.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntFlag
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest
from deixis.documents import Candidate, Document
from deixis.knowledge.mapped import damaged, map_trie
from deixis.knowledge.occurrences import LOWER, link_probabilities, term_probabilities
from deixis.knowledge.resolve import resolve_names
from deixis.knowledge.surfaces import key, variants, words_of
from deixis.knowledge.words import Span, Word, find_names, find_words

__all__ = ["WEIGHTS", "Entry", "Kind", "Names"]

CACHE = 1 << 15  # names whose candidates are kept: texts repeat theirs


class Kind(IntFlag):
    """Where an entry of the store comes from."""

    LINK = 1  # a link text
    TITLE = 2  # the title
    SHORT = 4  # the title without its bracket or what follows its comma
    REDIRECT = 8  # a page that leads there
    ALIAS = 16  # a list of other names, or an abbreviation in the entity's description
    DISAMBIGUATION = 32  # a page of meanings
    LISTED = 64  # an imported candidate list


# What a source is worth beside one link: titles are names that nobody needed to write down twice.
_WORTH = {Kind.TITLE: 1.0, Kind.REDIRECT: 1.0, Kind.SHORT: 0.5, Kind.ALIAS: 0.5, Kind.DISAMBIGUATION: 0.25}
WEIGHTS = tuple(sum(worth for kind, worth in _WORTH.items() if kinds & kind) for kinds in range(256))


@dataclass(frozen=True, slots=True)
class Entry:
    """One meaning of a name, as stored."""

    entity: str
    count: float
    kind: Kind
    weight: float  # the count, and what the sources are worth
    popularity: int


class Names:
    """Surfaces to candidates; `lookup` for one surface, `candidates` for all mentions of a document.

    Examples:
        >>> store = Names.open(Path("velm/store"))
        >>> [candidate.entity for candidate in store.lookup("the Falcon")]
        ['Falcon (boat)', 'Falcon (opening)']
    """

    language = "en"  # stores are made for English models; of any other wiki `deixis wikipedia` makes a folder

    def __init__(self, folder: Path, manifest: Manifest, k: int) -> None:
        self.folder, self.manifest, self.k = folder, manifest, k
        self._names, self._parts = map_trie(folder / "names.marisa"), map_trie(folder / "parts.marisa")
        # Slices of memoryviews cost a third of those of arrays, and look-ups are many and small.
        self._titles, self._title_offsets = _mapped(folder / "titles.bin"), _view(folder / "titles-offsets.npy")
        self._popularity = _view(folder / "popularity.npy")
        self._name_offsets, self._name_entities = (
            _view(folder / "names-offsets.npy"),
            _view(folder / "names-entities.npy"),
        )
        self._counts, self._kinds = _view(folder / "names-counts.npy"), _view(folder / "names-kinds.npy")
        self._part_offsets, self._part_entities = (
            _view(folder / "parts-offsets.npy"),
            _view(folder / "parts-entities.npy"),
        )
        self._occurrences = (
            tuple(_view(folder / f"occurrences{part}.npy") for part in ("", "-present", "-before"))
            if (folder / "occurrences.npy").exists()
            else None
        )
        self.named = lru_cache(CACHE)(self._named)

    @classmethod
    def open(cls, folder: Path, k: int = 30) -> Names:
        """Map a store; `k` is the number of candidates a mention gets."""
        return cls(folder, Manifest.load(folder / MANIFEST, "candidates"), k)

    @cached_property
    def digest(self) -> str:
        """The digest that what is made with this store records."""
        return self.manifest.digest

    def __len__(self) -> int:
        """Return the number of names."""
        return len(self._names)

    def __contains__(self, surface: str) -> bool:
        return key(surface) in self._names

    def names(self) -> Iterator[str]:
        """Yield the key of every name."""
        yield from self._names.iterkeys()

    def counted(self) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any] | None]:
        """Return the links of every name, whether it is a single word, and its occurrences, if they were counted."""
        single = np.zeros(len(self), bool)
        for name, number in self._names.iteritems():
            single[number] = " " not in name
        sums = np.concatenate(([0.0], np.cumsum(np.asarray(self._counts), dtype=np.float64)))
        offsets = np.asarray(self._name_offsets, np.int64)
        links = sums[offsets[1:]] - sums[offsets[:-1]]
        if self._occurrences is None:
            return links, single, None
        table = np.zeros((len(self), 3), np.uint16)
        present = np.unpackbits(np.asarray(self._occurrences[1], "<u8").view(np.uint8), bitorder="little")[: len(self)]
        table[present.astype(bool)] = np.asarray(self._occurrences[0])
        return links, single, table

    def link_probability(self, number: int, single: bool, unsure: bool) -> float:
        """Return how often a name is linked where it occurs; `unsure`: where its capital says nothing."""
        sure, other = link_probabilities(*self._one(number, single))
        return float((other if unsure else sure)[0])

    def term_probability(self, number: int, single: bool) -> float:
        """Return how often a name is linked where it occurs in lower case."""
        return float(term_probabilities(*self._one(number, single))[0])

    def _one(self, number: int, single: bool) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any] | None]:
        counted = self.occurrences(number)
        table = None if counted is None else np.array([counted])
        return np.array([self.links(number)]), np.array([single]), table

    def is_common(self, name: str) -> bool:
        """Tell whether a name is a word that is written in lower case too, by its key."""
        number = self.number(name)
        counted = None if number is None else self.occurrences(number)
        return counted is not None and counted[LOWER] > 0

    def numbered_names(self) -> Iterator[tuple[str, int]]:
        """Yield the key of every name with its number."""
        yield from self._names.iteritems()

    def name_entries(self) -> tuple[NDArray[Any], ...]:
        """Return all that is stored under names: number of the name, of the entity, count and kinds, best first."""
        entries = (np.asarray(view) for view in (self._name_entities, self._counts, self._kinds))
        return (_owners(self._name_offsets), *entries)

    def numbered_parts(self) -> Iterator[tuple[str, int]]:
        """Yield every part of titles with its number."""
        yield from self._parts.iteritems()

    def part_entries(self) -> tuple[NDArray[Any], ...]:
        """Return all that is stored under parts of titles: number of the part and of the entity."""
        return _owners(self._part_offsets), np.asarray(self._part_entities)

    def titles(self) -> Iterator[tuple[str, int]]:
        """Yield every entity with its popularity, in alphabetical order."""
        for number, popularity in enumerate(self._popularity):
            yield self._title(number), popularity

    def lookup(self, surface: str, k: int | None = None) -> tuple[Candidate, ...]:
        """Return the k best candidates of a surface by itself: of its key, else of the first variant that has any."""
        name = key(surface)
        found = self.named(name, k or self.k)
        if not found:
            for variant in variants(name):
                if found := self.named(variant, k or self.k):
                    break
        return found

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        """Return the candidates of every mention, with the help of the whole document (names.py).

        Examples:
            >>> from deixis import Mention
            >>> store = Names.open(Path("velm/store"))
            >>> document = Document("Lena Brandt rowed. Brandt sang.", (Mention(0, 11), Mention(19, 25)))
            >>> [len(candidates) for candidates in store.candidates(document)]
            [2, 2]
        """
        found: list[tuple[tuple[str, float], ...]] = resolve_names(self, document, self.k)  # type: ignore[arg-type]
        return [tuple(Candidate(*pair) for pair in pairs) for pairs in found]

    @staticmethod
    @lru_cache(1 << 16)
    def words(title: str) -> frozenset[str]:
        """Return the words of a title."""
        return words_of(title)

    def forget(self) -> None:
        """Empty the cache of names asked before."""
        self.named.cache_clear()

    def _named(self, name: str, k: int, number: int | None = None) -> tuple[Candidate, ...]:
        """Return the k best candidates stored under a key, with their priors p(e|m)."""
        number = self._names.get(name) if number is None else number
        if number is None:
            return ()
        start, end = self._name_offsets[number], self._name_offsets[number + 1]
        if end - start == 1:
            return (Candidate(self._title(self._name_entities[start]), 1.0),)
        weight = WEIGHTS
        weights = [n + weight[kind] for n, kind in zip(self._counts[start:end], self._kinds[start:end], strict=True)]
        total, title = sum(weights), self._title
        entities = self._name_entities[start : start + k if end - start > k else end].tolist()
        return tuple([Candidate(title(one), n / total) for one, n in zip(entities, weights, strict=False)])

    def parts(self, name: str) -> list[tuple[str, int]]:
        """Return the titles that a key is a part of (or the initials of, behind a "#"), with their popularity."""
        number = self._parts.get(name)
        if number is None:
            return []
        entities = self._part_entities[self._part_offsets[number] : self._part_offsets[number + 1]]
        return [(self._title(entity), self._popularity[entity]) for entity in entities]

    def find_names(self, words: list[Word]) -> Iterator[list[Span]]:
        """Yield the names that start at each word of a text, shorter before longer."""
        return find_names(words, self._names)

    def find_words(self, words: list[Word]) -> Iterator[Span]:
        """Yield the longest term in lower case that starts at each word of a text."""
        return find_words(words, self._names)

    def number(self, name: str) -> int | None:
        """Return the number of a name, by its key."""
        return cast("int | None", self._names.get(name))

    def links(self, number: int) -> float:
        """Return how many links (and counts of imported lists) have this name."""
        return float(sum(self._counts[self._name_offsets[number] : self._name_offsets[number + 1]]))

    @property
    def has_occurrences(self) -> bool:
        """Whether it was counted how often names occur in text."""
        return self._occurrences is not None

    def occurrences(self, number: int) -> tuple[int, int, int] | None:
        """Return in how many articles a name is written as one, linked so, and in lower case; None if not counted."""
        if self._occurrences is None:
            return None
        counted, present, before = self._occurrences
        word, bit = divmod(number, 64)
        bits = present[word]
        if not bits >> bit & 1:
            return 0, 0, 0
        row = before[word] + (bits & ((1 << bit) - 1)).bit_count()
        return counted[row, 0], counted[row, 1], counted[row, 2]

    def entries(self, name: str) -> Iterator[Entry]:
        """Yield all that is stored under the key of a name."""
        number = self._names.get(name)
        if number is None:
            return
        for at in range(self._name_offsets[number], self._name_offsets[number + 1]):
            entity, count, kinds = self._name_entities[at], self._counts[at], self._kinds[at]
            yield Entry(self._title(entity), count, Kind(kinds), count + WEIGHTS[kinds], self._popularity[entity])

    def _title(self, number: int) -> str:
        return self._titles[self._title_offsets[number] : self._title_offsets[number + 1]].decode()


def _owners(offsets: memoryview[Any]) -> NDArray[np.int64]:
    ends = np.asarray(offsets, np.int64)
    sizes = ends[1:] - ends[:-1]
    return np.repeat(np.arange(len(sizes)), sizes)


def _mapped(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        raise damaged(path) from None


def _view(path: Path) -> memoryview[Any]:
    try:
        return memoryview(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError):
        raise damaged(path) from None
