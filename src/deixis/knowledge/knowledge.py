"""What a model knows beside its weights, mapped into memory from one folder: entities, their names, their other titles.

    titles.marisa        trie of the titles: the number of an entity is 3 + its id there, and its row in B
    redirects.marisa     trie of other titles
    names.marisa         trie of the keys of names (surfaces.py)
    parts.marisa         trie of beginnings and ends of titles, and initials (behind a "#"): no names by themselves,
                         tried with a document's help (resolve.py)
    numbers.safetensors  what the tries lead to (mapped.py):
        links, known_by, wikidata             of each entity: annotations that training saw, as a byte; a place in
                                              KNOWN_BY; 615 for Q615
        redirects                             of each redirect: the number of its entity
        names.counts, .starts, .entries       of each name: 256 * number + what priors are shares of, as a byte
        names.probability, .unsure, .term     of each name: link probabilities (occurrences.py), the root of each
        parts.counts, .starts, .entries       of each part: numbers
    titles.filter        titles of which nothing else is known (title_filter.py); need not be there
    added.json           entities that were added and removed (overlay.py); need not be there
    manifest.json

A folder without names has neither names nor parts.
"""

from __future__ import annotations

import copy
import hashlib
from collections import ChainMap
from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import groupby
from pathlib import Path
from typing import Self, cast

import marisa_trie
import numpy as np

from deixis.artefacts import MANIFEST, Manifest
from deixis.documents import KNOWN_BY, Candidate, Document, KnownBy
from deixis.knowledge.mapped import Lists, amounts, map_arrays, map_trie
from deixis.knowledge.overlay import Overlay
from deixis.knowledge.resolve import resolve_names
from deixis.knowledge.surfaces import key, variants, words_of
from deixis.knowledge.title_filter import TitleFilter
from deixis.knowledge.vocabulary import Vocabulary
from deixis.knowledge.words import Span, Word, find_names, find_words
from deixis.network.special import SPECIAL

__all__ = ["Knowledge", "NumberedCandidate", "Redirects", "WikidataIds"]

TITLES, REDIRECTS, NAMES, PARTS = "titles.marisa", "redirects.marisa", "names.marisa", "parts.marisa"
NUMBERS, FILTER, ADDED = "numbers.safetensors", "titles.filter", "added.json"
UNIT = 1 / 16  # of the weights of names
CACHE = 1 << 15  # names whose candidates are kept: texts repeat theirs
FIRST = len(SPECIAL)

Pairs = tuple[tuple[int, float], ...]


class NumberedCandidate(Candidate):
    """A candidate that knows its number, so that its title is not looked up again."""

    number: int
    knowledge: str  # the digest of the knowledge that it is a number of


class Knowledge:
    """Entities by number, title and name.

    Examples:
        >>> knowledge = Knowledge.open(Path("velm/model/knowledge"))
        >>> number = knowledge.number("Falcon (boat)")
        >>> knowledge.title(number)
        'Falcon (boat)'
        >>> [candidate.entity for candidate in knowledge.lookup("the Falcon")]
        ['Falcon (boat)', 'Falcon (opening)']
    """

    def __init__(self, folder: Path, manifest: Manifest, k: int = 30) -> None:
        self.folder, self.manifest, self.k = folder, manifest, k
        arrays = map_arrays(folder / NUMBERS)
        self._titles, self._redirects = map_trie(folder / TITLES), map_trie(folder / REDIRECTS)
        self._links, self._known_by, self._wikidata = arrays["links"], arrays["known_by"], arrays.get("wikidata")
        self._ends = arrays["redirects"]
        self.has_wikidata = self._wikidata is not None
        self.language: str = manifest.parameters.get("language", "en")  # of the wiki, whose words names may have
        self.has_names = "names.counts" in arrays
        if self.has_names:
            self._names, self._parts = map_trie(folder / NAMES), map_trie(folder / PARTS)
            self._meanings, self._wholes = Lists.of(arrays, "names"), Lists.of(arrays, "parts")
            self._sure = arrays["names.probability"]
            self._unsure, self._term = arrays.get("names.unsure"), arrays.get("names.term")
        else:
            self._names = self._parts = marisa_trie.Trie()
        self._filter = TitleFilter.open(folder / FILTER) if (folder / FILTER).exists() else None
        self.size = FIRST + len(self._titles)  # the number of the first added entity
        self._amounts, self._weights = amounts(), amounts(UNIT)
        self._cover(Overlay())

    def _cover(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self._added = {title: number for number, title in enumerate(overlay.titles, self.size)}
        self._added_names = marisa_trie.Trie(overlay.names)
        self.named = lru_cache(CACHE)(self._named)
        self.words = lru_cache(1 << 16)(self._words)

    @classmethod
    def open(cls, folder: Path, k: int = 30) -> Self:
        """Map a folder; `k` is the number of candidates a mention gets."""
        return cls(folder, Manifest.load(folder / MANIFEST, "knowledge"), k).with_overlay(Overlay.load(folder / ADDED))

    def with_overlay(self, overlay: Overlay) -> Self:
        """Return the same knowledge with other additions; the mapped files are shared."""
        other = copy.copy(self)
        for kept in ("digest", "vocabulary"):
            other.__dict__.pop(kept, None)
        other._cover(overlay)
        return other

    @cached_property
    def digest(self) -> str:
        """What numbers of these entities and names are told apart by from those of others."""
        if self.overlay == Overlay():
            return self.manifest.digest
        return hashlib.sha256(self.manifest.digest.encode() + self.overlay.to_json()).hexdigest()

    def __len__(self) -> int:
        """Return the number of rows of B: those of entities, removed ones too, and the special ones."""
        return self.size + len(self.overlay.titles)

    def __contains__(self, title: str) -> bool:
        return self.number(title) is not None

    def number(self, title: str) -> int | None:
        """Return the number of an entity by its title or by one that leads to it, None for an unknown one."""
        if (number := self._added.get(title)) is not None:
            return number
        place = self._titles.get(title)
        if place is None:
            end = self._redirects.get(title)
            if end is None:
                return None
            number = self._ends[end]
        else:
            number = FIRST + cast(int, place)
        return None if number in self.overlay.hidden else number

    def title(self, number: int) -> str:
        if number < self.size:
            return cast(str, self._titles.restore_key(number - FIRST))
        return self.overlay.titles[number - self.size]

    def titles(self) -> Iterator[str]:
        """Yield the titles of all entities, in no particular order."""
        for title, place in self._titles.iteritems():
            if place + FIRST not in self.overlay.hidden:
                yield title
        yield from self.overlay.titles

    @property
    def redirects(self) -> Redirects:
        """Titles that lead to entities, as a table for reading data with."""
        return Redirects(self)

    def lead(self, table: Mapping[str, str]) -> Mapping[str, str]:
        """Return a redirect table with its ends in titles that are known here, before the known redirects."""
        return ChainMap(self.vocabulary.lead(table), cast(dict[str, str], self.redirects)) if table else self.redirects

    def other_titles(self) -> Iterator[tuple[str, int]]:
        """Yield other titles, each with the number of its entity."""
        for title, place in self._redirects.iteritems():
            yield title, self._ends[place]

    def title_named(self, surface: str) -> str | None:
        """Return the title that a surface is, where no name of an entity is written so: of that nothing else is known.

        Names whose entities were removed have no title either: the answer would be what was removed.
        """
        if self._filter is None or key(surface) in self._names:
            return None
        return self._filter.find(surface)

    def links(self, number: int) -> int:
        """Return how many annotations of an entity training saw: exact up to 63, else within 3.5 %."""
        return round(self._amounts[self._links[number - FIRST]]) if number < self.size else 0

    def known_by(self, number: int) -> KnownBy:
        """Return by what an entity is known."""
        return KNOWN_BY[self._known_by[number - FIRST]] if number < self.size else "description"

    def wikidata(self, number: int) -> str | None:
        """Return the Wikidata id of an entity, as Q615."""
        known = self._wikidata is not None and number < self.size
        return f"Q{found}" if known and (found := self._wikidata[number - FIRST]) else None  # type: ignore[index]

    @property
    def wikidata_ids(self) -> Mapping[str, str]:
        """The Wikidata ids of titles, where they are known, as a table for reading and writing data with."""
        return WikidataIds(self)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The entities as a vocabulary whose rows are the numbers; removed ones have no title there."""
        titles = [*SPECIAL, *([""] * (len(self) - FIRST))]
        for title, place in self._titles.iteritems():
            titles[FIRST + place] = title
        titles[self.size :] = self.overlay.titles
        for number in self.overlay.hidden:
            titles[number] = f"[REMOVED {number}]"
        counts = np.round(np.array(self._amounts)[np.asarray(self._links)]).astype(int).tolist()
        return Vocabulary(titles, [0] * FIRST + counts + [0] * len(self.overlay.titles))

    def lookup(self, surface: str, k: int | None = None) -> tuple[Candidate, ...]:
        """Return the k best candidates of a surface by itself: of its key, else of the first variant that has any."""
        name = key(surface)
        found = next(
            (found for one in (name, *variants(name, self.language)) if (found := self.named(one, k or self.k))), ()
        )
        return self._listed(found, self.digest)

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        """Return the candidates of every mention, with the help of the whole document (resolve.py).

        Examples:
            >>> from deixis import Mention
            >>> knowledge = Knowledge.open(Path("velm/model/knowledge"))
            >>> document = Document("Lena Brandt rowed. Brandt sang.", (Mention(0, 11), Mention(19, 25)))
            >>> [len(candidates) for candidates in knowledge.candidates(document)]
            [2, 2]
        """
        digest = self.digest
        return [self._listed(found, digest) for found in resolve_names(self, document, self.k)]

    def _listed(self, pairs: Pairs, digest: str) -> tuple[Candidate, ...]:
        found = []
        for number, prior in pairs:
            candidate = NumberedCandidate(self.title(number), prior)
            candidate.number, candidate.knowledge = number, digest
            found.append(candidate)
        return tuple(found)

    def _named(self, name: str, k: int, number: int | None = None) -> Pairs:
        """Return the k best entities that a key means, with their priors p(e|m), those added among them."""
        overlay = self.overlay
        added = overlay.names.get(name, ())
        if not added and not overlay.hidden:
            return self._meant(name, k, number)
        gone = overlay.hidden | {one for one, _ in added}
        below = [pair for pair in self._meant(name, k + len(gone), number) if pair[0] not in gone]
        known = sum(prior for _, prior in below)
        chosen = overlay.priors(name, alone=not below)
        left = 1 - sum(prior for _, prior in chosen)
        scaled = [(one, prior / known * left) for one, prior in below]
        return tuple(sorted([*chosen, *scaled], key=lambda pair: (-pair[1], pair[0]))[:k])

    def _meant(self, name: str, k: int, number: int | None) -> Pairs:
        if number is None or number >= len(self._names):  # not asked for by number, or by that of an added name
            number = self._names.get(name)
        if number is None:
            return ()
        start, end = self._meanings.range(number)
        entries = self._meanings.entries[start:end].tolist()
        if len(entries) == 1:
            return ((entries[0] >> 8, 1.0),)
        weights = [self._weights[entry & 255] for entry in entries]
        total = sum(weights)
        return tuple([(entry >> 8, weight / total) for entry, weight in zip(entries[:k], weights, strict=False)])

    def parts(self, name: str) -> list[tuple[int, int]]:
        """Return the entities whose titles a key is a part of (or the initials of, behind a "#"), with their links.

        Those added go as if linked once.
        """
        found: list[tuple[int, int]] = []
        number = self._parts.get(name)
        if number is not None:
            start, end = self._wholes.range(number)
            links, hidden = self._links, self.overlay.hidden
            entries = self._wholes.entries[start:end].tolist()
            found = [(one, round(self._amounts[links[one - FIRST]])) for one in entries if one not in hidden]
        return found + [(one, 1) for one in self.overlay.parts.get(name, ())]

    def _words(self, number: int) -> frozenset[str]:
        return words_of(self.title(number))

    def find_names(self, words: list[Word]) -> Iterator[list[Span]]:
        """Yield the names that start at each word of a text, shorter before longer; an added name hides its like."""
        if not self.overlay.names:
            yield from find_names(words, self._names)
            return
        size = len(self._names)
        below = [span for spans in find_names(words, self._names) for span in spans]
        added = [
            span._replace(name=span.name + size) for spans in find_names(words, self._added_names) for span in spans
        ]
        merged = {(span.first, span.last): span for span in [*below, *added]}
        for _, spans in groupby((merged[place] for place in sorted(merged)), key=lambda span: span.first):
            yield list(spans)

    def link_probability(self, number: int, single: bool, unsure: bool) -> float:
        """Return how often a name is linked where it occurs; `unsure`: where its capital says nothing.

        An added name is one that somebody wants to find: it goes as if linked wherever it is written as a name.
        """
        if number >= len(self._names):
            below = self._names.get(self._added_names.restore_key(number - len(self._names)))
            if below is None or not unsure:
                return 1.0
            return self.link_probability(below, single, True) / max(self.link_probability(below, single, False), 1e-6)
        if unsure and self._unsure is not None:
            return (self._unsure[number] / 255) ** 2
        return 0.0 if unsure and single else (self._sure[number] / 255) ** 2

    def find_words(self, words: list[Word]) -> Iterator[Span]:
        """Yield the longest term in lower case that starts at each word of a text."""
        return find_words(words, self._names)

    def term_probability(self, number: int, single: bool) -> float:
        """Return how often a name is linked where it occurs in lower case."""
        return 0.0 if self._term is None else (self._term[number] / 255) ** 2

    def is_common(self, name: str) -> bool:
        """Tell whether a name is a word that is written in lower case too, by its key."""
        number = self._names.get(name)
        return number is not None and self._unsure is not None and self._unsure[number] < self._sure[number]


class Redirects(Mapping[str, str]):
    """Other titles of the entities of a model, each with the title that the model has."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def __getitem__(self, title: str) -> str:
        number = self._knowledge.number(title)
        found = None if number is None else self._knowledge.title(number)
        if found is None or found == title:
            raise KeyError(title)
        return found

    def __iter__(self) -> Iterator[str]:
        return (title for title, _ in self._knowledge.other_titles())

    def __len__(self) -> int:
        return sum(1 for _ in self)


class WikidataIds(Mapping[str, str]):
    """The Wikidata ids of the entities of a model, by title."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge

    def __getitem__(self, title: str) -> str:
        number = self._knowledge.number(title)
        found = None if number is None else self._knowledge.wikidata(number)
        if found is None:
            raise KeyError(title)
        return found

    def __iter__(self) -> Iterator[str]:
        return (
            (title for title in self._knowledge.titles() if title in self) if self._knowledge.has_wikidata else iter(())
        )

    def __len__(self) -> int:
        return sum(1 for _ in self)
