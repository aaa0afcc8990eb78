"""Precision, recall, F1 and in-KB accuracy (protocol 6), with bootstrap intervals over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from deixis.evaluation.judging import Judgement

__all__ = ["Interval", "Measure", "Tally", "bootstrap", "measure_of", "tally"]

Measure = Literal["accuracy", "f1"]
Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Tally:
    """The three counts of protocol 6; shares of nothing are 0."""

    mentions: int  # n: in-KB mentions
    with_candidates: int  # a: those with at least one candidate
    correct: int  # c

    @property
    def precision(self) -> float:
        """c / a."""
        return self.correct / self.with_candidates if self.with_candidates else 0.0

    @property
    def recall(self) -> float:
        """c / n, which is also the in-KB accuracy."""
        return self.correct / self.mentions if self.mentions else 0.0

    accuracy = recall

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2c / (a + n)."""
        both = self.with_candidates + self.mentions
        return 2 * self.correct / both if both else 0.0


def measure_of(name: str) -> Measure:
    """Return what the paper reports for a set: accuracy for AIDA, micro F1 for the others."""
    return "accuracy" if "aida" in name.lower() else "f1"


def tally(judgements: Sequence[Judgement]) -> Tally:
    return Tally(
        len(judgements),
        sum(judgement.has_candidates for judgement in judgements),
        sum(judgement.correct for judgement in judgements),
    )


def bootstrap(
    judgements: Sequence[Judgement], measure: Measure, *, samples: int = 2000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return the percentile interval of a measure over documents drawn with replacement.

    Mentions of one document stand or fall together, so documents are drawn, not mentions.
    """
    counts = _by_document(judgements)  # (documents, 3)
    documents = len(counts)
    if documents == 0:
        return 0.0, 0.0
    generator = np.random.default_rng(seed)
    drawn = generator.multinomial(documents, np.full(documents, 1 / documents), size=samples)  # (samples, documents)
    n, a, c = (drawn @ counts).T  # each (samples,)
    values = c / np.maximum(n, 1) if measure == "accuracy" else 2 * c / np.maximum(a + n, 1)
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _by_document(judgements: Sequence[Judgement]) -> NDArray[np.int64]:
    places: dict[int, int] = {}
    rows: list[list[int]] = []
    for judgement in judgements:
        row = places.setdefault(judgement.document, len(rows))
        if row == len(rows):
            rows.append([0, 0, 0])
        rows[row][0] += 1
        rows[row][1] += judgement.has_candidates
        rows[row][2] += judgement.correct
    return np.array(rows, dtype=np.int64).reshape(-1, 3)
