"""What was added to knowledge, and what was removed from it: a small file beside mapped ones, which stay as they are.

    titles    of added entities, in the order of their numbers, which follow those of the knowledge below
    names     key -> [number, prior] pairs; a prior of null was not stated
    parts     beginnings and ends of titles, and initials -> numbers
    hidden    numbers of entities that were removed

Where the knowledge below has a name too, its candidates share what the added ones leave: an added name without a stated
prior counts as much as all others together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from deixis.artefacts import write_aside
from deixis.errors import ArtefactError
from deixis.knowledge.surfaces import INITIALS, initials, key, short_titles, title_parts

__all__ = ["Overlay"]

UNSTATED = 0.5  # the prior of an added name that other entities have too
MOST = 0.99  # that added names take from what the knowledge below knows

Names = Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class Overlay:
    """Added entities with their names, and hidden ones."""

    titles: tuple[str, ...] = ()
    names: Mapping[str, list[tuple[int, float | None]]] = field(default_factory=dict)
    parts: Mapping[str, list[int]] = field(default_factory=dict)
    hidden: frozenset[int] = frozenset()

    @classmethod
    def of(cls, entities: Mapping[str, Names], first: int, hidden: Collection[int] = ()) -> Overlay:
        """Make the overlay of entities, titles with their names and stated priors; `first` is the first number.

        The title and its short forms are names as well; of two priors for one key the stated one counts.
        """
        names: dict[str, list[tuple[int, float | None]]] = {}
        parts: dict[str, list[int]] = {}
        for number, (title, given) in enumerate(entities.items(), first):
            own: dict[str, float | None] = {}
            for surface, prior in [*((name, None) for name in (title, *short_titles(title))), *given]:
                if (found := key(surface)) and (prior is not None or found not in own):
                    own[found] = prior
            for name, prior in own.items():
                names.setdefault(name, []).append((number, prior))
            for part in title_parts(title) | {INITIALS + letters for letters in initials(title)}:
                parts.setdefault(part, []).append(number)
        return cls(tuple(entities), names, parts, frozenset(hidden))

    def to_json(self) -> bytes:
        """Return what is written of it."""
        record = {"titles": self.titles, "names": self.names, "parts": self.parts, "hidden": sorted(self.hidden)}
        return orjson.dumps(record)

    def save(self, path: Path) -> None:
        with write_aside(path) as file:
            file.write(self.to_json())

    @classmethod
    def load(cls, path: Path) -> Overlay:
        """Read what `save` wrote; no file is an empty overlay."""
        if not path.exists():
            return cls()
        try:
            record = orjson.loads(path.read_bytes())
            names = {name: [(number, prior) for number, prior in pairs] for name, pairs in record["names"].items()}
            return cls(tuple(record["titles"]), names, record["parts"], frozenset(record["hidden"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise ArtefactError(f"{path} is damaged; add the entities again") from None

    def priors(self, name: str, alone: bool) -> list[tuple[int, float]]:
        """Return the entities added under a key with their priors; those not stated share UNSTATED or what is left.

        Together they are 1 where no other entity has the name, and at most MOST where one has.
        """
        pairs = self.names.get(name, ())
        stated = sum(prior for _, prior in pairs if prior is not None)
        unstated = sum(prior is None for _, prior in pairs)
        share = max(0.01, min(UNSTATED, 1 - stated)) / unstated if unstated else 0.0
        priors = [(number, share if prior is None else prior) for number, prior in pairs]
        total = sum(prior for _, prior in priors)
        scale = 1 / total if alone and total else min(1.0, MOST / total) if total else 1.0
        return [(number, prior * scale) for number, prior in priors]
