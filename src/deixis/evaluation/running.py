"""A set, its candidates, and the orders run over it: from data to figures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from deixis.datasets.dataset import Dataset
from deixis.documents import Document, Resolutions
from deixis.evaluation.judging import NO_REDIRECTS, Judgement, candidate_recall, judge, most_frequent
from deixis.evaluation.metrics import Interval, Measure, Tally, bootstrap, measure_of, tally
from deixis.settings import Settings

__all__ = ["BASELINE", "Disambiguates", "Run", "SetResult", "describe", "run_order"]

BASELINE = "most frequent"


class Disambiguates(Protocol):
    """What a model must do to be evaluated: answer documents in their order."""

    def disambiguate_many(self, documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
        """Resolve the mentions of the documents."""


@dataclass(frozen=True, slots=True)
class Run:
    """The answers of one order over one set, judged."""

    order: str  # or "most frequent", the baseline
    judgements: tuple[Judgement, ...]
    interval: Interval
    resolutions: tuple[Resolutions, ...] = ()
    seconds: float | None = None
    passes: int | None = None
    prior: float = 0.0  # the weight of log p(e|m) beside the network's score; the paper has none

    @property
    def label(self) -> str:
        """The order, and the weight of the prior where one was mixed in."""
        return self.order if self.prior == 0 else f"{self.order}, prior {self.prior:g}"

    @property
    def tally(self) -> Tally:
        """The counts of protocol 6."""
        return tally(self.judgements)

    def to_record(self, measure: Measure) -> dict[str, Any]:
        """Return the JSON object of the run's figures."""
        counts = self.tally
        return {
            "order": self.order,
            "prior": self.prior,
            "mentions": counts.mentions,
            "with_candidates": counts.with_candidates,
            "correct": counts.correct,
            "precision": counts.precision,
            "recall": counts.recall,
            "f1": counts.f1,
            "accuracy": counts.accuracy,
            "measure": measure,
            "interval_95": list(self.interval),
            "passes": self.passes,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class SetResult:
    """All that is known of one set with one source of candidates."""

    dataset: Dataset
    candidates: str  # kb+yago, ppr, model, or the path of a store
    recall: float | None  # None where the candidates are the model's and not known before it runs
    runs: tuple[Run, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.dataset.name

    @property
    def measure(self) -> Measure:
        """What the paper reports for this set."""
        return measure_of(self.dataset.name)

    def run(self, label: str) -> Run | None:
        """Return the run of a label: an order, with or without a prior."""
        return next((run for run in self.runs if run.label == label), None)

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the set: counts, what was not taken as it stands, and every run."""
        return {
            "set": self.name,
            "candidates": self.candidates,
            "candidate_lists": self.dataset.candidates,
            "documents": len(self.dataset.documents),
            "mentions": self.dataset.mentions,
            "report": self.dataset.report.to_record(),
            "candidate_recall": self.recall,
            "runs": [run.to_record(self.measure) for run in self.runs],
        }


def describe(dataset: Dataset, redirects: Mapping[str, str] = NO_REDIRECTS) -> tuple[float, Run]:
    """Return candidate recall and the most-frequent-candidate baseline of a set with candidates."""
    judgements = judge(dataset, map(most_frequent, dataset.documents), redirects)
    interval = bootstrap(judgements, measure_of(dataset.name))
    return candidate_recall(judgements), Run(BASELINE, judgements, interval)


def run_order(
    model: Disambiguates,
    dataset: Dataset,
    settings: Settings,
    *,
    redirects: Mapping[str, str] = NO_REDIRECTS,
    watch: Callable[[Iterator[Resolutions]], Iterable[Resolutions]] = iter,
) -> Run:
    """Disambiguate a set and judge the answers; `watch` sees each result pass by, e.g. a progress bar."""
    started = time.perf_counter()
    answers = tuple(watch(model.disambiguate_many(dataset.documents, settings)))
    seconds = time.perf_counter() - started
    judgements = judge(dataset, answers, redirects)
    passes = sum(resolutions.passes for resolutions in answers)
    interval = bootstrap(judgements, measure_of(dataset.name))
    return Run(settings.order, judgements, interval, answers, seconds, passes, settings.prior or 0.0)
