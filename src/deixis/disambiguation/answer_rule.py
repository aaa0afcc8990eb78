"""None of these: the probability that an answer is right, also where no candidate may be.

A softmax over the candidates of a mention says which of them is likeliest, never that none is meant: a lone candidate
gets 1 whatever the text says. So the probability of an answer is a logistic function of what speaks for it (`Evidence`
in documents.py), fitted on held-out mentions from a part of whose lists the right entity was taken out
(evaluation/none_of_these.py). What is missing to 1 is the probability of something else.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from deixis.documents import LEAST_PRIOR, Evidence, Resolution

__all__ = ["ARBITRARY", "AnswerRule", "evidence_of"]

ARBITRARY = 1024  # entities that an answer is compared with
SUREST = 0.999  # of the softmax: what is above says no more


class AnswerRule(NamedTuple):
    """Weights of the evidence for an answer."""

    bias: float
    softmax: float
    lone: float
    fit: float
    prior: float

    def probability(self, evidence: Evidence) -> float:
        """Return how likely an answer is right."""
        score = self.bias + sum(weight * value for weight, value in zip(self[1:], evidence, strict=True))
        return 1 / (1 + math.exp(-score))

    def applied(self, resolution: Resolution) -> Resolution:
        """Return a resolution with this probability; those of the other candidates shrink or grow with the rest."""
        if resolution.evidence is None or resolution.entity is None:
            return resolution
        before, after = resolution.probability, self.probability(resolution.evidence)
        # The others keep their shares of what is left, and never get more than the softmax gave them.
        scale = min(after / before, (1 - after) / max(1 - before, 1e-9), 1.0)
        ranked = tuple(
            (title, after if title == resolution.entity else chance * scale)
            for title, chance in resolution.alternatives
        )
        return replace(resolution, probability=after, alternatives=ranked)


def evidence_of(chance: float, candidates: int, fit: float, prior: float | None) -> Evidence:
    """Return what speaks for an answer: its softmax among so many candidates, its fit, and its share of the name."""
    chance = min(max(chance, 1 - SUREST), SUREST)
    softmax = 0.0 if candidates == 1 else math.log(chance / (1 - chance))
    return Evidence(softmax, float(candidates == 1), fit, math.log(max(prior or 0.0, LEAST_PRIOR)))
