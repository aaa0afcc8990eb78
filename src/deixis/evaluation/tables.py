"""Results laid out: the two tables of the paper, the long table of everything, and the analyses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from deixis.evaluation.analyses import Disagreement, FrequencyBin
from deixis.evaluation.paper import FIVE, PAPER, PAPER_FREQUENCY, paper_figure
from deixis.evaluation.running import BASELINE, Run, SetResult
from deixis.rendering import Table

__all__ = ["count_table", "disagreement_table", "frequency_table", "paper_tables", "percent", "result_table"]

VARIANTS = ("zero-shot", "fine-tuned")
ORDERS = ("local", "natural", "confidence")
MISSING = "–"


def percent(share: float | None, digits: int = 1) -> str:
    return MISSING if share is None else f"{100 * share:.{digits}f}"


def count_table(results: Sequence[SetResult]) -> Table:
    """Return what was read: the counts add up, and every reason for a difference has a line below."""
    rows = tuple(
        (
            f"{result.name} {result.candidates}",
            f"{result.dataset.report.annotations:,}",
            f"{result.dataset.report.removed.total():,}",
            f"{result.dataset.mentions:,}",
            f"{len(result.dataset.documents):,}",
            percent(result.recall, 2),
        )
        for result in results
    )
    columns = ("set, candidates", "annotations", "removed", "in-KB mentions", "documents", "candidate recall")
    return Table("Data", columns, rows, "annotations = removed + in-KB mentions; candidate recall is the ceiling")


def result_table(results: Sequence[SetResult]) -> Table:
    """Return one row a run, with the paper's figures in the same order."""
    rows = tuple(_result_row(result, run) for result in results for run in result.runs)
    columns = (
        *("set, candidates", "order", "n", "P", "R = accuracy", "F1", "95 % interval"),
        *("paper zero-shot", "paper fine-tuned", "passes", "seconds"),
    )
    note = (
        "P = c/a, R = c/n: n in-KB mentions, a of them with a candidate, c right. "
        "The interval, over documents, is of the accuracy (AIDA) or the F1 (others), which is what the paper reports."
    )
    return Table("Results", columns, rows, note)


def _result_row(result: SetResult, run: Run) -> tuple[str, ...]:
    counts = run.tally
    low, high = run.interval
    paper = [paper_figure(variant, run.label, result.name, result.candidates) for variant in VARIANTS]
    return (
        f"{result.name} {result.candidates}",
        run.label,
        f"{counts.mentions:,}",
        percent(counts.precision),
        percent(counts.recall),
        percent(counts.f1),
        f"{percent(low)}–{percent(high)}",
        *(MISSING if figure is None else f"{figure:.1f}" for figure in paper),
        MISSING if run.passes is None else f"{run.passes:,}",
        MISSING if run.seconds is None else f"{run.seconds:.1f}",
    )


def paper_tables(results: Sequence[SetResult]) -> list[Table]:
    """Return the paper's Table 1 (AIDA testb) and Table 2 (the five others), our rows above the paper's."""
    ours = {(result.name, result.candidates): result for result in results}
    for result in results:  # where a set was run with other candidates only, they stand in the column of KB+YAGO
        if result.candidates != "ppr" and result.runs:
            ours.setdefault((result.name, "kb+yago"), result)
    first = [("aida-b", "kb+yago"), ("aida-b", "ppr")]
    second = [(name, "kb+yago") for name in FIVE]
    return [
        _paper_table("Table 1: in-KB accuracy on AIDA testb", first, ["KB+YAGO", "PPRforNED"], ours, average=False),
        _paper_table("Table 2: micro F1", second, [name.upper() for name in FIVE], ours, average=True),
    ]


def _paper_table(
    title: str,
    columns: Sequence[tuple[str, str]],
    headings: Sequence[str],
    ours: Mapping[tuple[str, str], SetResult],
    *,
    average: bool,
) -> Table:
    others = {c: ours[c].candidates for c in columns if c in ours and ours[c].candidates != c[1]}
    note = "; ".join(f"{name}: candidates of {given}, not {asked}" for (name, asked), given in others.items())
    rows = [("candidate recall", [_recall(ours.get(column)) for column in columns])]
    mixed = dict.fromkeys(run.label for result in ours.values() for run in result.runs if run.prior)
    for label in (BASELINE, *ORDERS, *mixed):
        rows.append((label, [_figure(ours.get(column), label) for column in columns]))
    for (variant, order), figures in PAPER.items():
        rows.append((f"paper, {variant}, {order}", [figures[column] for column in columns]))
    cells = tuple(
        (
            name,
            *(MISSING if figure is None else f"{figure:.1f}" for figure in figures),
            *([_average(figures)] if average else []),
        )
        for name, figures in rows
    )
    return Table(title, ("", *headings, *(["average"] if average else [])), cells, note)


def _average(figures: Sequence[float | None]) -> str:
    known = [figure for figure in figures if figure is not None]
    return f"{sum(known) / len(known):.1f}" if len(known) == len(figures) else MISSING


def _recall(result: SetResult | None) -> float | None:
    return None if result is None or result.recall is None else 100 * result.recall


def _figure(result: SetResult | None, label: str) -> float | None:
    run = None if result is None else result.run(label)
    if result is None or run is None:
        return None
    return 100 * (run.tally.accuracy if result.measure == "accuracy" else run.tally.f1)


def frequency_table(bins: Mapping[str, Sequence[FrequencyBin]], title: str) -> Table:
    """Return Table 3: accuracy by the annotations of the gold in training, one column an order."""
    orders = list(bins)
    rows = []
    for place, first in enumerate(bins[orders[0]]):
        cells = [percent(bins[order][place].accuracy, 2) for order in orders]
        paper = [f"{PAPER_FREQUENCY[order][place]:.2f}" if order in PAPER_FREQUENCY else MISSING for order in orders]
        rows.append((first.label, f"{first.mentions:,}", *cells, *paper))
    columns = ("annotations", "mentions", *orders, *(f"paper {order}" for order in orders))
    note = "mentions whose gold is among the candidates; the paper's figures are of AIDA testb, fine-tuned"
    return Table(title, columns, tuple(rows), note)


def disagreement_table(found: Sequence[Disagreement], ids: Sequence[str | None], title: str, most: int = 50) -> Table:
    """Return the mentions that the orders answer differently, one a row, the right answers marked."""
    orders = list(found[0].answers) if found else []
    rows = tuple(
        (
            f"{ids[item.document]} · {item.surface}",
            item.gold,
            *(f"{'✓' if j.correct else '✗'} {j.answer} {j.probability:.2f}" for j in item.answers.values()),
        )
        for item in found[:most]
    )
    patterns = Counter(item.pattern for item in found)
    told = "; ".join(
        f"{count} right in {' and '.join(pattern)} only" if pattern else f"{count} right in none"
        for pattern, count in patterns.most_common()
    )
    note = f"{len(found):,} mentions differ ({told})" if found else "the orders agree on every mention"
    return Table(
        title, ("mention", "gold", *orders), rows, note + ("; the first 50 are shown" if len(found) > most else "")
    )
