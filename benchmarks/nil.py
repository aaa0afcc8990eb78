"""Probabilities of answers: is right as often as told what is answered, and is left open what has no entity?

    python benchmarks/nil.py texts.jsonl.xz ... [--model MODEL]

Mentions are given, candidates are the model's own, settings those for plain texts. A row a file: mentions, the share
that is right with no answer withheld, the highest threshold that costs at most two points of that, and what is left
open under it when the right entity is taken out of every list. Below, of all files: what was told beside what was
right. Answers by title alone are left out.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import deixis
from deixis.datasets import open_dataset
from deixis.documents import Document
from deixis.evaluation.reliability import Judged, precision_at, reliability
from deixis.inference import Disambiguator
from deixis.settings import Settings

COST = 0.02
THRESHOLDS = [step / 200 for step in range(200)]


def with_lists(nlp: Disambiguator, document: Document, without_gold: bool) -> Document:
    """Return a document whose mentions have the model's candidates, or all but the right one."""
    knowledge, mentions = nlp.knowledge, []
    for mention, found in zip(document.mentions, knowledge.candidates(document), strict=True):  # type: ignore[union-attr]
        gold = knowledge.number(mention.entity or "")
        kept = [one for one in found if not without_gold or gold is None or knowledge.number(one.entity) != gold]
        mentions.append(replace(mention, candidates=tuple(kept)))
    return replace(document, mentions=tuple(mentions))


def answers(nlp: Disambiguator, documents: Sequence[Document]) -> list[Judged]:
    """Return the probability of each answer, 0 for none, and whether it is right."""
    found = []
    settings = nlp.for_texts(Settings(answer_threshold=0.0))
    for document, resolved in zip(documents, nlp.disambiguate_many(documents, settings), strict=True):
        for mention, answer in zip(document.mentions, resolved, strict=True):
            number = None if answer.entity is None else nlp.knowledge.number(answer.entity)
            right = number is not None and number == nlp.knowledge.number(mention.entity or "")
            found.append((answer.probability if number is not None else 0.0, right))
    return found


def summary(name: str, given: list[Judged], without: list[Judged]) -> str:
    """Return a row."""

    def kept(threshold: float) -> float:
        return sum(right and told >= threshold for told, right in given) / len(given)

    threshold = max(each for each in THRESHOLDS if kept(each) >= kept(0.0) - COST)
    left_open = sum(told < threshold for told, _ in without) / len(without)
    return f"{name:24} {len(given):7,} {kept(0.0):7.3f} {threshold:10.3f} {left_open:10.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path, help="document JSONL with golds")
    parser.add_argument("--model", type=Path, help="the model folder; the packaged model if not given")
    options = parser.parse_args()
    nlp = deixis.load(options.model)
    given: list[Judged] = []
    without: list[Judged] = []
    print(f"{'texts':24} {'n':>7} {'right':>7} {'threshold':>10} {'left open':>10}")
    for path in options.files:
        documents = open_dataset(path.parent, str(path)).in_kb().documents
        pair = [answers(nlp, [with_lists(nlp, each, less) for each in documents]) for less in (False, True)]
        print(summary(path.name.split(".")[0], *pair), flush=True)
        given, without = given + pair[0], without + pair[1]
    print(summary("all", given, without))
    answered = [one for one in given if one[0] > 0]
    found = reliability(answered)
    print("\n".join(f"{label:>8} told {told:.3f} right {right:.3f} of {n:,}" for label, right, told, n in found.rows()))
    print(f"expected calibration error {found.error:.3f}")
    for coverage in (0.5, 0.7, 0.9):
        print(f"precision of the surest {coverage:.0%}: {precision_at(answered, coverage):.3f}")


if __name__ == "__main__":
    main()
