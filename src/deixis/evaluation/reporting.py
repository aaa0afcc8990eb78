"""What came of sets with given mentions as one report: for the terminal, Markdown, JSON and HTML."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

import deixis
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.evaluation.analyses import Disagreement, FrequencyBin, by_frequency, disagreements
from deixis.evaluation.judging import Judgement
from deixis.evaluation.plan import Outcome
from deixis.evaluation.reliability import Reliability, reliability
from deixis.evaluation.running import BASELINE, SetResult
from deixis.evaluation.tables import count_table, disagreement_table, frequency_table, paper_tables, result_table
from deixis.rendering import Table, bars_text, page, reliability_svg, sequence_html, sequence_record, sequence_text

__all__ = ["Analysis", "SetsReport", "analyse"]


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is behind the figures of one set."""

    result: SetResult
    frequency: Mapping[str, tuple[FrequencyBin, ...]]  # order -> Table 3; empty where training counts are unknown
    differing: tuple[Disagreement, ...]
    reliabilities: Mapping[str, Reliability]  # order -> reliability

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
        if len(self.reliabilities) > 1:
            ids = [document.id for document in self.result.dataset.documents]
            tables.append(disagreement_table(self.differing, ids, f"Where the orders disagree, {self.label}"))
        return tables

    def diagrams(self) -> list[tuple[str, str]]:
        """Return a heading and a diagram in characters for the calibration of every order."""
        return [
            (self._heading(order, measured), bars_text(measured.rows()))
            for order, measured in self.reliabilities.items()
        ]

    def to_html(self) -> Iterator[str]:
        """Yield the sections of a page."""
        for table in self.tables():
            yield table.to_html()
        for order, measured in self.reliabilities.items():
            yield f"<h2>{html.escape(self._heading(order, measured))}</h2>\n"
            yield reliability_svg(measured.rows())

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
            "calibration": {order: asdict(measured) for order, measured in self.reliabilities.items()},
        }

    def _heading(self, order: str, measured: Reliability) -> str:
        return (
            f"Calibration, {self.label}, {order}: expected calibration error {measured.error:.3f} "
            f"over {measured.mentions:,} answers"
        )


def analyse(result: SetResult, annotations: Mapping[str, int] | None) -> Analysis:
    """Analyse the runs of a set; `annotations` are the counts of entities in training, where known."""
    runs = {run.label: run.judgements for run in result.runs if run.order != BASELINE}
    frequency = {} if not annotations else {order: by_frequency(given, annotations) for order, given in runs.items()}
    differing = disagreements(runs) if len(runs) > 1 else ()
    measured = {
        order: reliability((j.probability, j.correct) for j in given if j.answer is not None)
        for order, given in runs.items()
    }
    return Analysis(result, frequency, differing, measured)


@dataclass(frozen=True, slots=True)
class SetsReport:
    """The outcome, its analyses, and documents as each run decided them."""

    outcome: Outcome
    model: str | None = None  # the digest of the model folder
    paper: bool = False  # with the paper's two tables
    analyses: tuple[Analysis, ...] = ()
    shown: tuple[tuple[str, Resolutions], ...] = ()  # heading, document

    @classmethod
    def build(
        cls,
        outcome: Outcome,
        model: str | None = None,
        *,
        paper: bool = False,
        analysed: bool = False,
        links: Mapping[str, int] | None = None,
        documents: Sequence[str] = (),
    ) -> SetsReport:
        """Analyse the outcome, with the links of entities in training, and gather documents by how their ids start."""
        analyses = tuple(analyse(result, links) for result in outcome.results) if analysed else ()
        shown = tuple(_sequences(outcome, documents))
        if documents and not shown:
            raise InputError(f"no answered document has an id that starts with {' or '.join(documents)}")
        return cls(outcome, model, paper, analyses, shown)

    def tables(self, *, paper: bool) -> list[Table]:
        """Return the data, the results and, where asked, the paper's two tables."""
        results = self.outcome.results
        tables = [count_table(results)]
        if any(result.runs for result in results):
            tables.append(result_table(results))
        return tables + (paper_tables(results) if paper else [])

    def reasons(self) -> list[str]:
        """Return a line for whatever was removed, repaired, unmatched or missing."""
        lines = [f"{r.name} {r.candidates}: {line}" for r in self.outcome.results for line in _lines(r)]
        return lines + [f"missing: {sentence}" for sentence in self.outcome.missing]

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object."""
        record: dict[str, Any] = {
            "deixis": deixis.__version__,
            "model": self.model,
            "parameters": self.outcome.plan.to_record(),
            "results": [result.to_record() for result in self.outcome.results],
            "missing": list(self.outcome.missing),
        }
        if self.analyses:
            record["analyses"] = [analysis.to_record() for analysis in self.analyses]
        if self.shown:
            record["sequences"] = [{"heading": heading, **sequence_record(item)} for heading, item in self.shown]
        return record

    def to_markdown(self) -> str:
        """Return tables, reasons and analyses."""
        parts = [table.to_markdown() for table in self.tables(paper=self.paper)]
        parts.append("\n".join(f"- {line}" for line in self.reasons()))
        for analysis in self.analyses:
            parts += ["\n" + table.to_markdown() for table in analysis.tables()]
            parts += [f"\n{heading}\n\n```\n{diagram}\n```" for heading, diagram in analysis.diagrams()]
        return "\n".join(parts)

    def to_rich(self) -> Group:
        """Return what a terminal shows."""
        parts: list[RenderableType] = [table.to_rich() for table in self.tables(paper=self.paper)]
        parts += [Text(line) for line in self.reasons()]
        for analysis in self.analyses:
            parts += [table.to_rich() for table in analysis.tables()]
            parts += [Text(f"\n{heading}\n{diagram}") for heading, diagram in analysis.diagrams()]
        for heading, resolutions in self.shown:
            parts += [Text(f"\n{heading}\n", style="bold"), sequence_text(resolutions)]
        return Group(*parts)

    def to_html(self) -> str:
        """Return a self-contained page."""
        sections = [table.to_html() for table in self.tables(paper=True)]
        told = "".join(f"<li>{html.escape(line)}</li>\n" for line in self.reasons())
        sections.append(f"<h2>Removed, repaired, unmatched, missing</h2>\n<ul>{told}</ul>\n")
        for analysis in self.analyses:
            sections.extend(analysis.to_html())
        sections.extend(sequence_html(item, heading) for heading, item in self.shown)
        return page("deixis: evaluation", sections)


def _lines(result: SetResult) -> list[str]:
    lines = result.dataset.report.lines()
    if result.candidates == "ppr":
        lines.append("noted: PPRforNED has no priors, the share of inCount stands for them in the baseline")
    return lines


def _sequences(outcome: Outcome, prefixes: Sequence[str]) -> Iterator[tuple[str, Resolutions]]:
    """Yield the documents whose id starts with a prefix, as each run decided them, with a heading."""
    for result in outcome.results:
        for run in result.runs:
            for place, resolutions in enumerate(run.resolutions):
                id_ = resolutions.document.id or ""
                if any(id_.startswith(prefix) for prefix in prefixes):
                    heading = f"{id_ or f'document {place + 1}'}, {result.name} {result.candidates}, {run.label} order"
                    yield heading, _as_judged(resolutions, [j for j in run.judgements if j.document == place])


def _as_judged(resolutions: Resolutions, judgements: Sequence[Judgement]) -> Resolutions:
    """Name the gold as the answer does where they are the same after redirects, so that it is shown as right."""
    mentions = list(resolutions.document.mentions)
    for judgement in judgements:
        if judgement.correct:
            mentions[judgement.mention] = replace(mentions[judgement.mention], entity=judgement.answer)
    return replace(resolutions, document=replace(resolutions.document, mentions=tuple(mentions)))
