"""The rule of answers: fitted on evidence, and how well its probabilities are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from deixis.disambiguation.answer_rule import AnswerRule
from deixis.documents import Evidence
from deixis.errors import InputError
from deixis.evaluation.none_of_these import Judged, calibration_error, fit_answer_rule


def judged(rule: AnswerRule, count: int) -> list[Judged]:
    dice = np.random.default_rng(1)
    found = []
    for _ in range(count):
        lone = float(dice.random() < 0.3)
        evidence = Evidence((1 - lone) * dice.normal(0, 3), lone, dice.normal(4, 3), -dice.exponential(2))
        chance = rule.probability(evidence)
        found.append(Judged(evidence, chance, bool(dice.random() < chance), False))
    return found


def test_the_rule_that_made_answers_is_found_again() -> None:
    rule = AnswerRule(-2.0, 0.5, 1.0, 0.7, 0.4)
    assert fit_answer_rule(judged(rule, 20_000), damping=0.01) == pytest.approx(rule, abs=0.1)


def test_probabilities_that_mean_what_they_say_have_no_error() -> None:
    assert calibration_error(judged(AnswerRule(-2.0, 0.5, 1.0, 0.7, 0.4), 20_000)) < 0.02
    never = [Judged(Evidence(0.0, 1.0, 0.0, math.log(0.5)), 1.0, False, True)] * 10
    assert calibration_error(never) == pytest.approx(1.0)


def test_answers_that_are_all_right_teach_nothing() -> None:
    with pytest.raises(InputError, match="all right or all wrong"):
        fit_answer_rule([Judged(Evidence(0.0, 0.0, 1.0, 0.0), 0.5, True, False)])
