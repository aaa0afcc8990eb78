"""What is behind the figures: rare entities (Table 3), where orders disagree, and how honest probabilities are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deixis.errors import InputError
from deixis.evaluation.judging import Judgement
from deixis.evaluation.paper import FREQUENCY_BINS

__all__ = [
    "Calibration",
    "Disagreement",
    "FrequencyBin",
    "ReliabilityBin",
    "by_frequency",
    "calibration",
    "disagreements",
]


@dataclass(frozen=True, slots=True)
class FrequencyBin:
    """Mentions whose gold was annotated `low` to `high` times in training; `high` None: or more."""

    low: int
    high: int | None
    mentions: int
    correct: int

    @property
    def label(self) -> str:
        """As in Table 3: `0`, `1–10`, `≥51`."""
        if self.high is None:
            return f"≥{self.low}"
        return str(self.low) if self.low == self.high else f"{self.low}–{self.high}"

    @property
    def accuracy(self) -> float | None:
        """The share of right answers, None in an empty bin."""
        return self.correct / self.mentions if self.mentions else None


def by_frequency(judgements: Sequence[Judgement], annotations: Mapping[str, int]) -> tuple[FrequencyBin, ...]:
    """Split the mentions whose gold is among the candidates by the annotations of the gold in training (Table 3)."""
    found = [(annotations.get(j.gold, 0), j.correct) for j in judgements if j.gold_listed]
    bins = []
    for low, high in FREQUENCY_BINS:
        inside = [correct for count, correct in found if count >= low and (high is None or count <= high)]
        bins.append(FrequencyBin(low, high, len(inside), sum(inside)))
    return tuple(bins)


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A mention that the orders answer differently."""

    document: int
    mention: int
    surface: str
    gold: str
    answers: Mapping[str, Judgement]  # order -> what it answered

    @property
    def pattern(self) -> tuple[str, ...]:
        """The orders that are right."""
        return tuple(order for order, judgement in self.answers.items() if judgement.correct)


def disagreements(runs: Mapping[str, Sequence[Judgement]]) -> tuple[Disagreement, ...]:
    """Return the mentions on which runs of the same data in several orders do not agree, in document order."""
    found = []
    for together in zip(*runs.values(), strict=True):
        first = together[0]
        if any((j.document, j.mention) != (first.document, first.mention) for j in together):
            raise InputError("the runs that are compared are not over the same mentions")
        if len({judgement.answer for judgement in together}) > 1:
            answers = dict(zip(runs, together, strict=True))
            found.append(Disagreement(first.document, first.mention, first.surface, first.gold, answers))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """Answers whose probability is in `(low, high]` (the first bin holds 0 too)."""

    low: float
    high: float
    mentions: int
    confidence: float  # mean probability
    accuracy: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """A reliability diagram and its expected calibration error: the mean gap of confidence and accuracy."""

    bins: tuple[ReliabilityBin, ...]
    error: float
    mentions: int  # those answered


def calibration(judgements: Sequence[Judgement], bins: int = 10) -> Calibration:
    """Compare the probabilities of answers with how often they are right, in bins of equal width."""
    answered = [judgement for judgement in judgements if judgement.answer is not None]
    groups: list[list[Judgement]] = [[] for _ in range(bins)]
    for judgement in answered:
        place = math.ceil(judgement.probability * bins) - 1
        groups[min(bins - 1, max(0, place))].append(judgement)
    made = tuple(_reliability(place, bins, group) for place, group in enumerate(groups))
    gaps = sum(bin_.mentions * abs(bin_.confidence - bin_.accuracy) for bin_ in made)
    return Calibration(made, gaps / max(1, len(answered)), len(answered))


def _reliability(place: int, bins: int, group: Sequence[Judgement]) -> ReliabilityBin:
    count = max(1, len(group))
    confidence = sum(judgement.probability for judgement in group) / count
    accuracy = sum(judgement.correct for judgement in group) / count
    return ReliabilityBin(place / bins, (place + 1) / bins, len(group), confidence, accuracy)
