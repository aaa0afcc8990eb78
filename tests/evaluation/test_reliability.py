"""Reliability, calibration error and precision at a coverage: by hand, and what holds of any answers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.evaluation import precision_at, reliability
from deixis.evaluation.reliability import Judged

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), max_size=30)


def test_reliability_by_hand() -> None:
    result = reliability([(1.0, True), (0.95, False), (0.5, True), (0.0, False)])
    assert result.mentions == 4
    assert [b.mentions for b in result.bins] == [1, 0, 0, 0, 1, 0, 0, 0, 0, 2]
    assert result.bins[9].accuracy == 0.5
    # gaps: |0 - 0|, |0.5 - 1|, 2 * |0.975 - 0.5|, over four answers
    assert result.error == pytest.approx((0.5 + 2 * 0.475) / 4)
    assert result.rows()[9][0] == "0.9–1.0"
    assert reliability([]).error == 0


@given(ANSWERS, st.integers(1, 12))
def test_every_answer_is_in_one_bin(answers: list[Judged], bins: int) -> None:
    result = reliability(answers, bins)
    assert sum(b.mentions for b in result.bins) == len(answers) == result.mentions
    assert 0 <= result.error <= 1
    for b in result.bins:
        assert b.mentions == 0 or b.low - 1e-9 <= b.confidence <= b.high + 1e-9


def test_precision_at_a_coverage_by_hand() -> None:
    answers = [(0.9, True), (0.5, True), (0.5, False), (0.2, False)]
    assert precision_at(answers, 0.25) == 1
    assert precision_at(answers, 0.5) == 0.75  # one of two equally sure answers, of which half are right
    assert precision_at(answers, 1) == 0.5
    assert precision_at([], 0.5) is None


@given(ANSWERS.flatmap(lambda answers: st.tuples(st.just(answers), st.permutations(answers))), st.floats(0.01, 1))
def test_the_order_of_answers_changes_nothing(pair: tuple[list[Judged], list[Judged]], coverage: float) -> None:
    assert precision_at(pair[0], coverage) == pytest.approx(precision_at(pair[1], coverage))
