"""How honest probabilities are: reliability in bins, expected calibration error (ECE), precision at a coverage."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

__all__ = ["Judged", "Reliability", "ReliabilityBin", "precision_at", "reliability"]

Judged = tuple[float, bool]  # the probability of an answer, and whether it is right


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Answers whose probability is in `(low, high]` (the first bin holds 0 too)."""

    low: float
    high: float
    mentions: int
    confidence: float  # mean probability
    accuracy: float


@dataclass(frozen=True, slots=True)
class Reliability:
    """A reliability diagram and its expected calibration error: the mean gap of confidence and accuracy."""

    bins: tuple[ReliabilityBin, ...]
    error: float
    mentions: int  # those answered

    def rows(self) -> list[tuple[str, float, float, int]]:
        """Return the bins as `(label, accuracy, confidence, count)` for a diagram."""
        return [(f"{b.low:.1f}–{b.high:.1f}", b.accuracy, b.confidence, b.mentions) for b in self.bins]


def reliability(answers: Iterable[Judged], bins: int = 10) -> Reliability:
    """Compare the probabilities of answers with how often they are right, in bins of equal width.

    Examples:
        >>> round(reliability([(0.9, True), (0.9, False)]).error, 6)
        0.4
    """
    groups: list[list[Judged]] = [[] for _ in range(bins)]
    for probability, right in answers:
        place = math.ceil(probability * bins) - 1
        groups[min(bins - 1, max(0, place))].append((probability, right))
    made = tuple(_bin(place, bins, group) for place, group in enumerate(groups))
    count = sum(bin_.mentions for bin_ in made)
    gaps = sum(bin_.mentions * abs(bin_.confidence - bin_.accuracy) for bin_ in made)
    return Reliability(made, gaps / max(1, count), count)


def _bin(place: int, bins: int, group: Sequence[Judged]) -> ReliabilityBin:
    count = max(1, len(group))
    confidence = sum(probability for probability, _ in group) / count
    accuracy = sum(right for _, right in group) / count
    return ReliabilityBin(place / bins, (place + 1) / bins, len(group), confidence, accuracy)


def precision_at(answers: Iterable[Judged], coverage: float) -> float | None:
    """Return the precision of the surest answers, as many as the coverage says; None where there are no answers.

    Of equally sure answers, of which only some are covered, the mean counts: their order changes nothing.

    Examples:
        >>> precision_at([(0.9, True), (0.8, True), (0.5, False), (0.5, True)], 0.75)
        0.8333333333333334
    """
    surest_first = sorted(answers, key=lambda answer: -answer[0])
    wanted = left = math.ceil(coverage * len(surest_first))
    right = 0.0
    for _, group in groupby(surest_first, key=lambda answer: answer[0]):
        alike = [correct for _, correct in group]
        taken = min(left, len(alike))
        right += sum(alike) * taken / len(alike)
        left -= taken
    return right / wanted if wanted else None
