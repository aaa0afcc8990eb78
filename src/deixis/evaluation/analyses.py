"""What is behind the figures: rare entities (Table 3), and where orders disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from deixis.errors import InputError
from deixis.evaluation.judging import Judgement
from deixis.evaluation.paper import FREQUENCY_BINS

__all__ = ["Disagreement", "FrequencyBin", "by_frequency", "disagreements"]


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
