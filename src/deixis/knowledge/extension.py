"""Names on top of a store: those of entities that were added, with stated priors, and without those removed.

The store below stays as it is. What is added is small and lies beside it in `added.json`:

    names    key -> [title, prior] pairs; a prior of null was not stated
    parts    beginnings and ends of titles, and initials -> titles
    hidden   titles of the store below that are no candidates any more

Where the store below knows a name too, its candidates share what the added ones leave: an added name without a stated
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

__all__ = ["ADDED", "UNSTATED", "Extension"]

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

    def priors(self, name: str, alone: bool) -> list[tuple[str, float]]:
        """Return the entities added under a key with their priors; those not stated share UNSTATED or what is left.

        Together they are 1 where no other entity has the name, and at most MOST where one has.
        """
        pairs = self.names.get(name, ())
        stated = sum(prior for _, prior in pairs if prior is not None)
        unstated = sum(prior is None for _, prior in pairs)
        share = max(0.01, min(UNSTATED, 1 - stated)) / unstated if unstated else 0.0
        priors = [(title, share if prior is None else prior) for title, prior in pairs]
        total = sum(prior for _, prior in priors)
        scale = 1 / total if alone and total else min(1.0, MOST / total) if total else 1.0
        return [(title, prior * scale) for title, prior in priors]
