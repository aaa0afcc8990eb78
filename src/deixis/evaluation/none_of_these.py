"""How likely an answer is right: the rule of answers (disambiguation/answer_rule.py), fitted on held-out mentions.

From a part of the candidate lists the right entity is taken out, so that the best of what is left is wrong, as it is
for names of whom a model has never heard. The evidence for each answer is put beside whether it is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from deixis.datasets.dataset import Dataset
from deixis.disambiguation.answer_rule import AnswerRule
from deixis.documents import Evidence
from deixis.errors import InputError
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.inference import Disambiguator
from deixis.settings import Settings

__all__ = ["LEAST_ANSWERS", "JudgedEvidence", "fit_answer_rule", "judge_answers"]

LEAST_ANSWERS = 100  # to fit a rule on


@dataclass(frozen=True, slots=True)
class JudgedEvidence:
    """An answer to a mention: what speaks for it, its probability, and whether it is right."""

    evidence: Evidence
    probability: float
    right: bool


def judge_answers(
    nlp: Disambiguator,
    dataset: Dataset,
    settings: Settings,
    *,
    share: float = 0.25,
    redirects: Mapping[str, str] = NO_REDIRECTS,
) -> Iterator[JudgedEvidence]:
    """Answer the mentions of a set, the right entity taken out of a share of their lists, and judge the answers."""
    if nlp.candidates is None:
        raise InputError("the model has no names to take candidates from")
    dice, golds, documents = np.random.default_rng(0), [], []
    for document in dataset.documents:
        bare = replace(document, mentions=tuple(replace(mention, candidates=None) for mention in document.mentions))
        right = [redirects.get(mention.entity or "", mention.entity) for mention in document.mentions]
        out = dice.random(len(right)) < share
        listed = [
            tuple(one for one in candidates if not (without and redirects.get(one.entity, one.entity) == entity))
            for candidates, without, entity in zip(nlp.candidates.candidates(bare), out, right, strict=True)
        ]
        documents.append(bare.with_candidates(listed))
        golds.append(right)
    answered = nlp.disambiguate_many(documents, settings.changed(answer_threshold=None, evidence=True))
    for resolutions, told in zip(answered, golds, strict=True):
        for resolution, entity in zip(resolutions, told, strict=True):
            if resolution.evidence is not None and resolution.entity is not None:
                answer = redirects.get(resolution.entity, resolution.entity)
                yield JudgedEvidence(resolution.evidence, resolution.probability, answer == entity)


def fit_answer_rule(judged: Iterable[JudgedEvidence], damping: float = 1.0) -> AnswerRule | None:
    """Fit the weights of the evidence by Newton's method, a little damped; None where there is too little to fit on."""
    answers = list(judged)
    right = np.array([one.right for one in answers], float)
    if len(right) < LEAST_ANSWERS or right.min() == right.max():
        return None
    inputs = np.array([(1.0, *one.evidence) for one in answers])
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-np.clip(inputs @ weights, -30, 30)))
        curve = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + damping * np.eye(len(weights))
        weights -= np.linalg.solve(curve, inputs.T @ (chance - right) + damping * weights)
    return AnswerRule(*weights.round(4).tolist())
