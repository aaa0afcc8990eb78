"""The whole outcome as one report: tables, reasons, analyses and sequences, for the terminal, Markdown, JSON, HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import deixis
from deixis.documents import Resolutions
from deixis.evaluation.analyses import (
    Calibration,
    Disagreement,
    FrequencyBin,
    by_frequency,
    calibration,
    disagreements,
)
from deixis.evaluation.judging import Judgement
from deixis.evaluation.plan import Outcome
from deixis.evaluation.running import BASELINE, SetResult
from deixis.evaluation.tables import (
    count_table,
    disagreement_table,
    frequency_table,
    paper_tables,
    reliability_rows,
    result_table,
)
from deixis.rendering import Table, bars_text, page, reliability_svg, sequence_html, sequence_record

__all__ = ["Analysis", "analyse", "main_tables", "reasons", "report_page", "report_record", "sequences"]


def main_tables(outcome: Outcome, *, paper: bool) -> list[Table]:
    """Return the data, the results and, where asked, the paper's two tables."""
    tables = [count_table(outcome.results)]
    if any(result.runs for result in outcome.results):
        tables.append(result_table(outcome.results))
    return tables + (paper_tables(outcome.results) if paper else [])


def reasons(outcome: Outcome) -> list[str]:
    """Return a line for whatever was removed, repaired, unmatched or missing."""
    lines = [f"{result.name} {result.candidates}: {line}" for result in outcome.results for line in _lines(result)]
    return lines + [f"missing: {sentence}" for sentence in outcome.missing]


def _lines(result: SetResult) -> list[str]:
    lines = result.dataset.report.lines()
    if result.candidates == "ppr":
        lines.append("noted: PPRforNED has no priors, the share of inCount stands for them in the baseline")
    return lines


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is behind the figures of one set."""

    result: SetResult
    frequency: Mapping[str, tuple[FrequencyBin, ...]]  # order -> Table 3; empty where training counts are unknown
    differing: tuple[Disagreement, ...]
    calibrations: Mapping[str, Calibration]  # order -> reliability

    @property
    def label(self) -> str:
        """The set and its candidates."""
        return f"{self.result.name} {self.result.candidates}"

    def tables(self) -> list[Table]:
        """Return Table 3 and the disagreements."""
        tables = []
        if self.frequency:
            tables.append(
                frequency_table(self.frequency, f"Accuracy by annotations of the gold in training, {self.label}")
            )
        if len(self.calibrations) > 1:
            ids = [document.id for document in self.result.dataset.documents]
            tables.append(disagreement_table(self.differing, ids, f"Where the orders disagree, {self.label}"))
        return tables

    def diagrams(self) -> list[tuple[str, str]]:
        """Return a heading and a diagram in characters for the calibration of every order."""
        return [
            (self._heading(order, calibrated), bars_text(reliability_rows(calibrated)))
            for order, calibrated in self.calibrations.items()
        ]

    def to_html(self) -> Iterator[str]:
        """Yield the sections of a page."""
        for table in self.tables():
            yield table.to_html()
        for order, calibrated in self.calibrations.items():
            yield f"<h2>{html.escape(self._heading(order, calibrated))}</h2>\n"
            yield reliability_svg(reliability_rows(calibrated))

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "set": self.result.name,
            "candidates": self.result.candidates,
            "by_frequency": {order: [asdict(item) for item in bins] for order, bins in self.frequency.items()},
            "disagreements": [
                {
                    "document": self.result.dataset.documents[item.document].id,
                    "mention": item.mention,
                    "surface": item.surface,
                    "gold": item.gold,
                    "answers": {order: judgement.answer for order, judgement in item.answers.items()},
                    "right": list(item.pattern),
                }
                for item in self.differing
            ],
            "calibration": {order: asdict(calibrated) for order, calibrated in self.calibrations.items()},
        }

    def _heading(self, order: str, calibrated: Calibration) -> str:
        return (
            f"Calibration, {self.label}, {order}: expected calibration error {calibrated.error:.3f} "
            f"over {calibrated.mentions:,} answers"
        )


def analyse(result: SetResult, annotations: Mapping[str, int] | None) -> Analysis:
    """Analyse the runs of a set; `annotations` are the counts of entities in training, where known."""
    runs = {run.label: run.judgements for run in result.runs if run.order != BASELINE}
    frequency = {} if not annotations else {order: by_frequency(given, annotations) for order, given in runs.items()}
    differing = disagreements(runs) if len(runs) > 1 else ()
    return Analysis(result, frequency, differing, {order: calibration(given) for order, given in runs.items()})


def sequences(outcome: Outcome, prefixes: Sequence[str]) -> list[tuple[str, Resolutions]]:
    """Return the documents whose id starts with a prefix, as each run decided them, with a heading."""
    return [
        (
            f"{resolutions.document.id or f'document {place + 1}'}, {result.name} {result.candidates}, "
            f"{run.label} order",
            _as_judged(resolutions, [j for j in run.judgements if j.document == place]),
        )
        for result in outcome.results
        for run in result.runs
        for place, resolutions in enumerate(run.resolutions)
        if any((resolutions.document.id or "").startswith(prefix) for prefix in prefixes)
    ]


def _as_judged(resolutions: Resolutions, judgements: Sequence[Judgement]) -> Resolutions:
    """Name the gold as the answer does where they are the same after redirects, so that it is shown as right."""
    mentions = list(resolutions.document.mentions)
    for judgement in judgements:
        if judgement.correct:
            mentions[judgement.mention] = replace(mentions[judgement.mention], entity=judgement.answer)
    return replace(resolutions, document=replace(resolutions.document, mentions=tuple(mentions)))


def report_record(
    outcome: Outcome, analyses: Sequence[Analysis], shown: Sequence[tuple[str, Resolutions]], model: str | None
) -> dict[str, Any]:
    """Return the report as a JSON object; `model` is the digest of the model folder."""
    record: dict[str, Any] = {
        "deixis": deixis.__version__,
        "model": model,
        "parameters": outcome.plan.to_record(),
        "results": [result.to_record() for result in outcome.results],
        "missing": list(outcome.missing),
    }
    if analyses:
        record["analyses"] = [analysis.to_record() for analysis in analyses]
    if shown:
        record["sequences"] = [{"heading": heading, **sequence_record(item)} for heading, item in shown]
    return record


def report_page(outcome: Outcome, analyses: Sequence[Analysis], shown: Sequence[tuple[str, Resolutions]]) -> str:
    """Return the report as a self-contained HTML page."""
    sections = [table.to_html() for table in main_tables(outcome, paper=True)]
    told = "".join(f"<li>{html.escape(line)}</li>\n" for line in reasons(outcome))
    sections.append(f"<h2>Removed, repaired, unmatched, missing</h2>\n<ul>{told}</ul>\n")
    for analysis in analyses:
        sections.extend(analysis.to_html())
    sections.extend(sequence_html(item, heading) for heading, item in shown)
    return page("deixis: evaluation", sections)
