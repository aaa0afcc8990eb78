"""The rule of answers: fitted on evidence, and how well its probabilities are kept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from deixis.disambiguation.answer_rule import AnswerRule
from deixis.documents import Evidence
from deixis.evaluation.none_of_these import LEAST_ANSWERS, JudgedEvidence, fit_answer_rule
from deixis.evaluation.reliability import reliability


def judged(rule: AnswerRule, count: int) -> list[JudgedEvidence]:
    dice = np.random.default_rng(1)
    found = []
    for _ in range(count):
        lone = float(dice.random() < 0.3)
        evidence = Evidence((1 - lone) * dice.normal(0, 3), lone, dice.normal(4, 3), -dice.exponential(2))
        chance = rule.probability(evidence)
        found.append(JudgedEvidence(evidence, chance, bool(dice.random() < chance)))
    return found


def test_the_rule_that_made_answers_is_found_again() -> None:
    rule = AnswerRule(-2.0, 0.5, 1.0, 0.7, 0.4)
    assert fit_answer_rule(judged(rule, 20_000), damping=0.01) == pytest.approx(rule, abs=0.1)


def test_fitted_probabilities_mean_what_they_say() -> None:
    rule = fit_answer_rule(judged(AnswerRule(-2.0, 0.5, 1.0, 0.7, 0.4), 20_000))
    assert rule is not None
    fresh = judged(AnswerRule(-2.0, 0.5, 1.0, 0.7, 0.4), 5_000)
    assert reliability((rule.probability(one.evidence), one.right) for one in fresh).error < 0.03


def test_too_little_teaches_nothing() -> None:
    right = JudgedEvidence(Evidence(0.0, 0.0, 1.0, 0.0), 0.5, True)
    assert fit_answer_rule([right] * LEAST_ANSWERS) is None
    assert fit_answer_rule([right, replace(right, right=False)]) is None
