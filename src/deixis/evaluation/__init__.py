"""Evaluation: metrics, intervals, the paper's tables and analyses (paper 4, protocol 6)."""

from __future__ import annotations

from deixis.evaluation.analyses import by_frequency, disagreements
from deixis.evaluation.judging import Judgement, candidate_recall, judge, most_frequent
from deixis.evaluation.metrics import Tally, bootstrap, measure_of, tally
from deixis.evaluation.reliability import precision_at, reliability
from deixis.evaluation.running import Disambiguates, Run, SetResult, describe, run_order

__all__ = [
    "Disambiguates",
    "Judgement",
    "Run",
    "SetResult",
    "Tally",
    "bootstrap",
    "by_frequency",
    "candidate_recall",
    "describe",
    "disagreements",
    "judge",
    "measure_of",
    "most_frequent",
    "precision_at",
    "reliability",
    "run_order",
    "tally",
]
