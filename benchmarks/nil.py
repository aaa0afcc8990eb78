"""Probabilities of answers: is right as often as told what is answered, and is left open what has no entity?

    python benchmarks/nil.py texts.jsonl.xz ... [--model MODEL]

Mentions are given, candidates are the model's own, settings those for plain texts. A row a file: mentions, the share
that is right with no answer withheld, the highest threshold that costs at most two points of that, and what is left
open under it when the right entity is taken out of every list. Below, of all files: what was told beside what was
right. Answers by title alone are left out.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import deixis
from deixis.datasets import Dataset, open_dataset
from deixis.evaluation.none_of_these import judge_answers
from deixis.evaluation.reliability import Judged, precision_at, reliability
from deixis.inference import Disambiguator
from deixis.settings import Settings

COST = 0.02
THRESHOLDS = [step / 200 for step in range(200)]


def answers(nlp: Disambiguator, dataset: Dataset, without: float) -> list[Judged]:
    """Return probability and rightness of each answer, the right entity taken out of this share of the lists."""
    judged = judge_answers(nlp, dataset, nlp.for_texts(Settings()), share=without, redirects=nlp.knowledge.lead({}))
    return [(one.probability, one.right) for one in judged]


def summary(name: str, mentions: int, given: list[Judged], without: list[Judged]) -> str:
    """Return a row."""

    def kept(threshold: float) -> float:
        return sum(right and told >= threshold for told, right in given) / mentions

    threshold = max(each for each in THRESHOLDS if kept(each) >= kept(0.0) - COST)
    left_open = 1 - sum(told >= threshold for told, _ in without) / mentions
    return f"{name:24} {mentions:7,} {kept(0.0):7.3f} {threshold:10.3f} {left_open:10.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="document JSONL with golds")
    parser.add_argument("--model", type=Path, help="the model folder; the packaged model if not given")
    options = parser.parse_args()
    nlp = deixis.load(options.model)
    mentions = 0
    given: list[Judged] = []
    without: list[Judged] = []
    print(f"{'texts':24} {'n':>7} {'right':>7} {'threshold':>10} {'left open':>10}")
    for path in options.files:
        dataset = open_dataset(path.parent, str(path)).in_kb()
        pair = answers(nlp, dataset, 0.0), answers(nlp, dataset, 1.0)
        print(summary(path.name.split(".")[0], dataset.mentions, *pair), flush=True)
        mentions, given, without = mentions + dataset.mentions, given + pair[0], without + pair[1]
    print(summary("all", mentions, given, without))
    found = reliability(given)
    print("\n".join(f"{label:>8} told {told:.3f} right {right:.3f} of {n:,}" for label, right, told, n in found.rows()))
    print(f"expected calibration error {found.error:.3f}")
    for coverage in (0.5, 0.7, 0.9):
        print(f"precision of the surest {coverage:.0%}: {precision_at(given, coverage):.3f}")


if __name__ == "__main__":
    main()
