"""Mention detection on a benchmark: precision, recall and speed by threshold; and end to end by prior alone.

python benchmarks/detection.py STORE BENCHMARKS aida-a aida-b msnbc --redirects TABLE
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from deixis.datasets import open_dataset, read_redirects
from deixis.datasets.dataset import Dataset
from deixis.documents import Document, Resolutions
from deixis.evaluation import most_frequent
from deixis.evaluation.texts import link_texts, score_texts, text_table
from deixis.knowledge.detection import THRESHOLD, Detector, NameDetector
from deixis.knowledge.names import Names
from deixis.knowledge.words import read_words
from deixis.rendering import Table
from deixis.settings import Settings

THRESHOLDS = (0.05, 0.08, THRESHOLD, 0.15, 0.2, 0.3)


class Priors:
    """Answers every mention with the store's likeliest candidate: what a model has to beat."""

    answer_threshold = 0.0

    def __init__(self, store: Names) -> None:
        self._store, self._detector = store, NameDetector(store)

    def for_texts(self, settings: Settings) -> Settings:
        """Return the settings as they are."""
        return settings

    def link_many(self, texts: Iterable[str | Document], settings: Settings) -> Iterator[Resolutions]:
        """Yield the answers to the mentions that are found."""
        for text in texts:
            document = Document(text) if isinstance(text, str) else text
            found = tuple(self._detector.mentions(read_words(document.text)))
            yield from self.disambiguate_many([replace(document, mentions=found)], settings)

    def disambiguate_many(self, documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
        """Yield the answers to the mentions that are given."""
        for document in documents:
            yield most_frequent(document.with_candidates(self._store.candidates(document)))


def measure(detector: Detector, dataset: Dataset, label: str) -> tuple[str, ...]:
    """Return the cells of a row: strict spans against those of the mentions that have a gold entity."""
    started, words, found, right = time.process_time(), 0, 0, 0
    for document in dataset.documents:
        spans = set(detector.detect(document.text))
        words += len(document.text.split())
        found += len(spans)
        right += len(spans & {(mention.start, mention.end) for mention in document.mentions})
    seconds = time.process_time() - started
    precision, recall = right / max(found, 1), right / max(dataset.mentions, 1)
    f1 = 2 * right / max(found + dataset.mentions, 1)
    return label, f"{precision:.3f}", f"{recall:.3f}", f"{f1:.3f}", f"{found:,}", f"{words / seconds:,.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table a set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", type=Path)
    parser.add_argument("data", type=Path, help="the folder with the benchmarks")
    parser.add_argument("sets", nargs="*", default=["aida-a"], metavar="SET")
    parser.add_argument("--redirects", type=Path, help="older and newer titles, for answers and golds")
    parser.add_argument("--spacy", help="also a spaCy pipeline by its name, e.g. en_core_web_sm")
    options = parser.parse_args(arguments)
    store = Names.open(options.store)
    detectors: list[tuple[str, Detector]] = [(f"{at:g}", NameDetector(store, at)) for at in THRESHOLDS]
    if options.spacy:
        from deixis.integrations.spacy import SpacyDetector

        detectors.append((options.spacy, SpacyDetector.load(options.spacy)))
    linked = []
    redirects = read_redirects(options.redirects) if options.redirects else {}
    for name in options.sets or ["aida-a"]:
        dataset = open_dataset(options.data, name)
        rows = tuple(measure(detector, dataset, label) for label, detector in detectors)
        columns = ("threshold", "precision", "recall", "F1", "spans", "words/s")
        print(Table(f"{name}, {dataset.mentions:,} mentions", columns, rows).to_markdown())
        for label in ("found", "gold"):
            answered = link_texts(Priors(store), dataset, Settings(), gold=label == "gold")
            linked.append(score_texts(dataset, answered, label, redirects=redirects))
    print(text_table(linked).to_markdown())


if __name__ == "__main__":
    main()
