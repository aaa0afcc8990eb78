"""Which candidates of a mention take part, and with which rows of B (protocol 4 and 7)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from deixis.documents import LEAST_PRIOR, Candidate, Document
from deixis.knowledge.knowledge import NumberedCandidate
from deixis.knowledge.source import CandidateSource
from deixis.network.special import MASK, UNK
from deixis.settings import Settings

__all__ = ["Choices", "Entities", "choices_of", "distinct", "list_candidates"]

Listed = tuple[Candidate, ...]


class Entities(Protocol):
    """Entities by number: their rows in B; `Knowledge` says more."""

    @property
    def digest(self) -> str: ...
    def number(self, title: str) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Choices:
    """The candidates of a mention among which the network chooses."""

    titles: tuple[str, ...] = ()
    rows: tuple[int, ...] = ()  # MASK: scored 0
    prior_bias: tuple[float, ...] = ()  # added to the score: the weighted logarithm of the prior


def list_candidates(
    document: Document, source: CandidateSource | None, *, with_priors: bool
) -> tuple[list[Listed], list[dict[str, float]]]:
    """Return the candidates of each mention and, where they are asked for, their priors p(e|m).

    Candidates given with a mention come before those of the source. A prior that was not given is the source's.
    """
    given = [mention.candidates for mention in document.mentions]
    unknown_priors = with_priors and any(c.prior is None for listed in given for c in listed or ())
    found: list[Listed] = [() for _ in given]
    if source is not None and (unknown_priors or any(listed is None for listed in given)):
        found = source.candidates(document)
    lists = [other if listed is None else listed for listed, other in zip(given, found, strict=True)]
    if not with_priors:
        return lists, [{} for _ in lists]
    priors = [
        {c.entity: c.prior for c in (*(found_ if unknown_priors else ()), *distinct(listed)) if c.prior is not None}
        for found_, listed in zip(found, lists, strict=True)
    ]
    return lists, priors


def choices_of(candidates: Listed, priors: Mapping[str, float], entities: Entities, settings: Settings) -> Choices:
    """Return the candidates that take part: the first by prior that have a row, and others as the settings say.

    Of several titles of one entity the first takes part.
    """
    found = [(one.entity, _number(one, entities)) for one in _cut(distinct(candidates), settings.top)]
    first: dict[int, str] = {}
    for title, row in found:
        if row is not None:
            first.setdefault(row, title)
    known = [(title, row) for row, title in first.items()]
    unknown = sorted(title for title, row in found if row is None) if len(known) < len(found) else []
    if settings.released == "2022" and unknown:
        known.append((unknown[0], UNK))
    elif settings.released == "2021":
        known.extend((title, MASK) for title in unknown)
    if not known:
        return Choices()
    titles, rows = zip(*known, strict=True)
    if not settings.prior:
        return Choices(titles, rows)
    return Choices(titles, rows, tuple(settings.prior * math.log(max(priors.get(t, 0.0), LEAST_PRIOR)) for t in titles))


def _number(candidate: Candidate, entities: Entities) -> int | None:
    if isinstance(candidate, NumberedCandidate) and candidate.knowledge == entities.digest:
        return candidate.number
    return entities.number(candidate.entity)


def distinct(candidates: Listed) -> list[Candidate]:
    """Merge duplicates: the first keeps its place, the highest prior wins."""
    if len({candidate.entity for candidate in candidates}) == len(candidates):
        return list(candidates)
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        seen = merged.get(candidate.entity)
        if seen is None or (candidate.prior or 0.0) > (seen.prior or 0.0):
            merged[candidate.entity] = candidate
    return list(merged.values())


def _cut(candidates: list[Candidate], top: int | None) -> list[Candidate]:
    """Keep the `top` by prior; without priors there is no honest rule to cut by (protocol 4)."""
    if top is None or len(candidates) <= top or any(candidate.prior is None for candidate in candidates):
        return candidates
    return sorted(candidates, key=lambda candidate: -(candidate.prior or 0.0))[:top]
