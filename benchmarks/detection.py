"""Mention detection: strict precision and recall of spans, by the names alone, the learned detector alone, and both.

python benchmarks/detection.py MODEL BENCHMARKS aida-a aida-b msnbc texts.jsonl.xz
python benchmarks/detection.py MODEL BENCHMARKS aida-a --case lower      # also upper
python benchmarks/detection.py MODEL BENCHMARKS aida-a --fit             # the rule that unites the two

A set is one of the benchmarks or document JSONL. Precision and recall are those of all marked names, also of those that
have no entity where the set marks them (AIDA does); "in KB" is the recall of those that have one.
End-to-end figures of a model are those of `deixis evaluate`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

import deixis
from deixis.datasets.catalogue import read_texts
from deixis.datasets.dataset import Dataset
from deixis.knowledge.detection import Detector, Evidence, UnionRule, UnitedDetector
from deixis.knowledge.words import read_words
from deixis.rendering import Table

THRESHOLDS = (0.2, 0.25, 0.3, 0.35, 0.4, 0.5)
COLUMNS = ("mentions by", "precision", "recall", "F1", "in KB", "spans", "words/s")


def in_case(dataset: Dataset, case: str) -> Dataset:
    """Return a set in lower or upper case; letters whose other case is longer stay."""

    def change(letter: str) -> str:
        changed = letter.lower() if case == "lower" else letter.upper()
        return changed if len(changed) == 1 else letter

    documents = tuple(replace(each, text="".join(map(change, each.text))) for each in dataset.documents)
    return replace(dataset, documents=documents)


def measure(detector: Detector, dataset: Dataset, label: str) -> tuple[str, ...]:
    """Return the cells of a row."""
    started, words, found, right, in_kb, known = time.process_time(), 0, 0, 0, 0, 0
    for document in dataset.documents:
        spans = set(detector.detect(document.text))
        words += len(document.text.split())
        found += len(spans)
        right += len(spans & {(mention.start, mention.end) for mention in document.mentions})
        linked = {(mention.start, mention.end) for mention in document.mentions if mention.entity is not None}
        in_kb, known = in_kb + len(linked), known + len(linked & spans)
    seconds = time.process_time() - started
    precision, recall = right / max(found, 1), right / max(dataset.mentions, 1)
    f1 = 2 * right / max(found + dataset.mentions, 1)
    figures = (precision, recall, f1, known / max(in_kb, 1))
    return label, *(f"{figure:.3f}" for figure in figures), f"{found:,}", f"{words / seconds:,.0f}"


def proposals(detector: UnitedDetector, dataset: Dataset) -> Iterator[tuple[Evidence, bool]]:
    """Yield what speaks for each span that is proposed, and whether it is a mention."""
    texts = (document.text for document in dataset.documents)
    for document, parts in zip(dataset.documents, detector.learned.tags_of(texts), strict=True):
        golds = {(mention.start, mention.end) for mention in document.mentions}
        for part in parts:
            for evidence, mention in detector.proposals(part, read_words(part.text)):
                yield evidence, (mention.start + part.start, mention.end + part.start) in golds


def fit(evidence: Sequence[tuple[Evidence, bool]], damping: float = 1e-3) -> UnionRule:
    """Fit the rule by Newton's method."""
    inputs = np.array([(1.0, *one) for one, _ in evidence])
    right = np.array([is_right for _, is_right in evidence], float)
    weights = np.zeros(inputs.shape[1])
    for _ in range(30):
        chance = 1 / (1 + np.exp(-inputs @ weights))
        curve = (inputs * (chance * (1 - chance))[:, None]).T @ inputs + damping * np.eye(len(weights))
        weights -= np.linalg.solve(curve, inputs.T @ (chance - right) + damping * weights)
    return UnionRule(*weights.round(3).tolist())


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table a set, or the fitted rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path, help="the folder with the benchmarks")
    parser.add_argument("sets", nargs="+", metavar="SET")
    parser.add_argument("--case", choices=["lower", "upper"])
    parser.add_argument("--fit", action="store_true", help="print the rule fitted on the sets, and thresholds")
    parser.add_argument("--spacy", help="also a spaCy pipeline by its name, e.g. en_core_web_sm")
    options = parser.parse_args(arguments)
    detector = deixis.load(options.model).detector
    if detector is None:
        parser.error(f"{options.model} has nothing to find mentions by")
    datasets = [read_texts(options.data, name) for name in options.sets]
    if options.case:
        datasets = [in_case(dataset, options.case) for dataset in datasets]
    ways: list[tuple[str, Detector]] = [("names", detector)]
    if isinstance(detector, UnitedDetector):
        ways = [("names", detector.names), ("learned", detector.learned), ("both", detector)]
        if options.fit:
            rule = fit([pair for dataset in datasets for pair in proposals(detector, dataset)])
            print(rule)
            ways += [(f"fitted, {at:g}", replace(detector, rule=rule, threshold=at)) for at in THRESHOLDS]
    if options.spacy:
        from deixis.integrations.spacy import SpacyDetector

        ways.append((options.spacy, SpacyDetector.load(options.spacy)))
    for name, dataset in zip(options.sets, datasets, strict=True):
        rows = tuple(measure(way, dataset, label) for label, way in ways)
        print(Table(f"{name}, {dataset.mentions:,} mentions", COLUMNS, rows).to_markdown(), flush=True)


if __name__ == "__main__":
    main()
