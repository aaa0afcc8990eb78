"""What is reported of linked texts: figures, recall by kind, and what probabilities are worth, as tables and JSON."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import deixis
from deixis.evaluation.reliability import precision_at, reliability
from deixis.evaluation.tables import percent
from deixis.evaluation.texts import COVERAGES, NO_KIND, TextScores
from deixis.rendering import Table
from deixis.settings import Settings

__all__ = ["TextsReport", "kind_table", "probability_tables", "text_table"]


@dataclass(frozen=True, slots=True)
class TextsReport:
    """The scores of sets, each with one or several ways to find mentions, and of all sets together."""

    scores: tuple[TextScores, ...]
    settings: Settings
    model: str | None = None  # the digest of the model folder

    def together(self) -> list[TextScores]:
        """Return the sum over the sets for each way to find mentions, none where there is one set."""
        if len({scores.name for scores in self.scores}) < 2:
            return []
        ways = dict.fromkeys(scores.mentions for scores in self.scores)
        return [
            sum((scores for scores in self.scores if scores.mentions == way), TextScores("together", way))
            for way in ways
        ]

    def tables(self) -> list[Table]:
        """Return the scores, recall by kind where kinds are known, and what probabilities are worth."""
        every = [*self.scores, *self.together()]
        kinds = kind_table(self.scores)
        return [text_table(every), *([] if kinds is None else [kinds]), *probability_tables(every)]

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "deixis": deixis.__version__,
            "model": self.model,
            "settings": self.settings.given(),
            "results": [scores.to_record() for scores in self.scores],
            "together": [scores.to_record() for scores in self.together()],
        }


def text_table(results: Iterable[TextScores]) -> Table:
    """Return one row a set and way to find mentions."""
    rows = tuple(
        (
            scores.name,
            scores.mentions,
            f"{scores.spans.golds:,}",
            f"{scores.entities.golds:,}",
            f"{scores.found:,}",
            *map(percent, (scores.spans.precision, scores.spans.recall, scores.spans.f1, scores.spans_weak.f1)),
            f"{scores.entities.right:,}",
            *map(percent, (scores.entities.precision, scores.entities.recall, scores.entities.f1)),
            *map(percent, (scores.entities_weak.f1, scores.with_nil.f1)),
        )
        for scores in results
    )
    columns = (
        *("set", "mentions by", "golds", "in KB", "found", "span P", "span R", "span F1", "weak"),
        *("right", "entity P", "entity R", "entity F1", "weak", "with NIL"),
    )
    note = "micro, strict: exactly the gold's span; weak: F1 where spans overlap; with NIL: F1, open mentions count"
    return Table("From plain text", columns, rows, note)


def kind_table(results: Iterable[TextScores]) -> Table | None:
    """Return recall of spans and entities by kind, None where no gold has one."""
    rows = tuple(
        (
            scores.name,
            scores.mentions,
            kind,
            f"{counts.golds:,}",
            percent(counts.found / max(1, counts.golds)),
            f"{counts.in_kb:,}",
            percent(counts.right / max(1, counts.in_kb)),
        )
        for scores in results
        for kind, counts in scores.kinds.items()
        if set(scores.kinds) != {NO_KIND}
    )
    columns = ("set", "mentions by", "kind", "golds", "span recall", "in KB", "entity recall")
    return Table("By kind of the gold", columns, rows, "strict") if rows else None


def probability_tables(results: Iterable[TextScores]) -> list[Table]:
    """Return how honest probabilities are: calibration error and precision at coverages, and reliability in bins."""
    measured = [(scores, reliability(scores.judged)) for scores in results if scores.judged]
    rows = tuple(
        (
            scores.name,
            scores.mentions,
            f"{found.mentions:,}",
            f"{found.error:.3f}",
            *(percent(precision_at(scores.judged, share)) for share in COVERAGES),
        )
        for scores, found in measured
    )
    columns = ("set", "mentions by", "answers", "ECE", *(f"precision at {share:.0%}" for share in COVERAGES))
    note = "answers at gold spans, whatever the threshold; the surest 50, 70, 90 % of them"
    tables = [Table("Probabilities", columns, rows, note)] if rows else []
    for scores, found in measured[-1:]:
        bins = tuple(
            (label, f"{count:,}", percent(confidence) if count else "–", percent(accuracy) if count else "–")
            for label, accuracy, confidence, count in found.rows()
        )
        title = f"Reliability, {scores.name}, mentions by {scores.mentions}"
        tables.append(Table(title, ("probability", "answers", "mean probability", "right"), bins))
    return tables
