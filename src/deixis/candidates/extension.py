"""Names on top of a store: those of entities that were added, with stated priors, and without those removed.

The store below stays as it is. What is added is small and lies beside it in `added.json`:

    names    key -> [title, prior] pairs; a prior of null was not stated
    parts    beginnings and ends of titles, and initials -> titles
    hidden   titles of the store below that are no candidates any more

Where the store below knows a name too, its candidates share what the added ones leave: an added name without a stated
prior counts as much as all others together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import marisa_trie
import orjson

from deixis.artefacts import MANIFEST, Manifest, write_aside
from deixis.candidates.building import title_parts
from deixis.candidates.store import CandidateStore, Entry, Kind
from deixis.candidates.surfaces import INITIALS, initials, key, short_titles
from deixis.candidates.words import Span, Word, find_names
from deixis.documents import Candidate
from deixis.errors import ArtefactError

__all__ = ["ADDED", "ExtendedStore", "Extension"]

ADDED = "added.json"
UNSTATED = 0.5  # the prior of an added name that other entities have too
MOST = 0.99  # that added names take from what the store below knows

Names = dict[str, list[tuple[str, float | None]]]


@dataclass(frozen=True, slots=True)
class Extension:
    """What is added to a store, and what is hidden of it."""

    names: Names = field(default_factory=dict)
    parts: dict[str, list[str]] = field(default_factory=dict)
    hidden: frozenset[str] = frozenset()

    @classmethod
    def of(cls, entities: Mapping[str, Sequence[tuple[str, float | None]]], hidden: Collection[str] = ()) -> Extension:
        """Make the extension of entities: titles with their names and stated priors.

        The title and its short forms are names as well; of two priors for one key the stated one counts.
        """
        names: Names = {}
        parts: dict[str, list[str]] = {}
        for title, given in entities.items():
            own: dict[str, float | None] = {}
            for surface, prior in [*((name, None) for name in (title, *short_titles(title))), *given]:
                if (found := key(surface)) and (prior is not None or found not in own):
                    own[found] = prior
            for name, prior in own.items():
                names.setdefault(name, []).append((title, prior))
            for part in title_parts(title) | {INITIALS + letters for letters in initials(title)}:
                parts.setdefault(part, []).append(title)
        return cls(names, parts, frozenset(hidden) - entities.keys())

    def save(self, folder: Path) -> None:
        """Write it beside the files of a store."""
        record = {"names": self.names, "parts": self.parts, "hidden": sorted(self.hidden)}
        with write_aside(folder / ADDED) as file:
            file.write(orjson.dumps(record))

    @classmethod
    def load(cls, folder: Path) -> Extension:
        """Read what `save` wrote."""
        path = folder / ADDED
        try:
            record = orjson.loads(path.read_bytes())
            return cls(record["names"], record["parts"], frozenset(record["hidden"]))
        except (OSError, ValueError, KeyError, TypeError):
            raise ArtefactError(f"{path} is damaged; add the entities again") from None


class ExtendedStore(CandidateStore):
    """A store with an extension; numbers of added names follow those of the store's own."""

    def __init__(self, folder: Path, manifest: Manifest, k: int, extension: Extension) -> None:
        super().__init__(folder, manifest, k)
        self.extension = extension
        self._added = marisa_trie.Trie(sorted(extension.names))

    @classmethod
    def over(cls, store: CandidateStore, extension: Extension) -> ExtendedStore:
        """Put an extension on top of an open store, in place of the one that it has."""
        return cls(store.folder, store.manifest, store.k, extension)

    @classmethod
    def open(cls, folder: Path, k: int = 30) -> ExtendedStore:
        """Map a store and read its extension."""
        return cls(folder, Manifest.load(folder / MANIFEST, "candidates"), k, Extension.load(folder))

    def __contains__(self, surface: str) -> bool:
        return key(surface) in self.extension.names or super().__contains__(surface)

    def _named(self, name: str, k: int) -> tuple[Candidate, ...]:
        added, hidden = self.extension.names.get(name, ()), self.extension.hidden
        if not added and not hidden:
            return super()._named(name, k)
        own = {title for title, _ in added}
        below = [
            candidate
            for candidate in super()._named(name, k + len(hidden) if hidden else k)
            if candidate.entity not in hidden and candidate.entity not in own
        ]
        known = sum(candidate.prior or 0.0 for candidate in below)
        chosen = _priors(added, alone=not below)
        left = 1 - sum(prior for _, prior in chosen)
        scaled = [(entity, (prior or 0.0) / known * left) for entity, prior in below] if known else []
        ranked = sorted([*chosen, *scaled], key=lambda pair: (-pair[1], pair[0]))
        return tuple(Candidate(*pair) for pair in ranked[:k])

    def entries(self, name: str) -> Iterator[Entry]:
        """Yield all that is stored under the key of a name; an added one has its stated prior as its count."""
        for title, prior in self.extension.names.get(name, ()):
            yield Entry(title, prior or 0.0, Kind.LISTED, prior or UNSTATED, 0)
        own = {title for title, _ in self.extension.names.get(name, ())}
        for entry in super().entries(name):
            if entry.entity not in self.extension.hidden and entry.entity not in own:
                yield entry

    def parts(self, name: str) -> list[tuple[str, int]]:
        """Return the titles that a key is a part of; those added go as if linked once."""
        added = [(title, 1) for title in self.extension.parts.get(name, ())]
        own = {title for title, _ in added} | self.extension.hidden
        return [pair for pair in super().parts(name) if pair[0] not in own] + added

    def find_names(self, words: list[Word]) -> Iterator[list[Span]]:
        """Yield the names that start at each word of a text, shorter before longer; an added name hides its like."""
        size = len(self._names)
        added = [span._replace(name=span.name + size) for spans in find_names(words, self._added) for span in spans]
        below = [span for spans in super().find_names(words) for span in spans]
        merged = {(span.first, span.last): span for span in [*below, *added]}
        for _, spans in groupby((merged[place] for place in sorted(merged)), key=lambda span: span.first):
            yield list(spans)

    def number(self, name: str) -> int | None:
        """Return the number of a name, by its key."""
        added = self._added.get(name)
        return super().number(name) if added is None else len(self._names) + int(added)

    def links(self, number: int) -> float:
        """Return how many links have this name; an added one goes as if linked a thousand times."""
        return super().links(number) if number < len(self._names) else 1000.0

    def occurrences(self, number: int) -> tuple[int, int, int] | None:
        """Return in how many articles a name is written as one, linked so, and in lower case.

        An added name is one that somebody wants to find: it goes as if linked wherever it is written as a name.
        """
        size = len(self._names)
        if number < size:
            return super().occurrences(number)
        below = super().number(self._added.restore_key(number - size))
        counted = None if below is None else super().occurrences(below)
        if counted is None:
            return (0, 0, 0) if self.has_occurrences else None
        return counted[0], counted[0], counted[2]


def _priors(added: Iterable[tuple[str, float | None]], alone: bool) -> list[tuple[str, float]]:
    """Return the priors of added entities: as stated; those not stated share UNSTATED or what is left.

    Together they are 1 where no other entity has the name, and at most MOST where one has.
    """
    pairs = list(added)
    stated = sum(prior for _, prior in pairs if prior is not None)
    unstated = sum(prior is None for _, prior in pairs)
    share = max(0.01, min(UNSTATED, 1 - stated)) / unstated if unstated else 0.0
    priors = [(title, share if prior is None else prior) for title, prior in pairs]
    total = sum(prior for _, prior in priors)
    scale = 1 / total if alone and total else min(1.0, MOST / total) if total else 1.0
    return [(title, prior * scale) for title, prior in priors]
