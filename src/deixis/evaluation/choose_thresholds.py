"""None of these: how plain texts are linked, chosen on held-out data; precision, recall and coverage by threshold.

A threshold removes answers and changes no other: what is left unresolved is still seen by later steps. So a set is
linked once for each prior and least link probability that are tried, with every answer kept, and all thresholds are
read off that. The choice is by F1 or, where a precision is asked for, by recall among those that reach it; among
equals the lower threshold. A name with one candidate has probability 1 and is never left open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from deixis.datasets.dataset import Dataset
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.evaluation.end_to_end import Answers, EndToEnd, count_answers, link_texts
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.folder.model_folder import Linking
from deixis.knowledge.detection import NameDetector
from deixis.rendering import Table

__all__ = ["SHOWN", "THRESHOLDS", "Point", "calibrate", "choose", "curve_table"]

# Networks are sure of much, so that the last hundredth is looked at more closely.
THRESHOLDS = (*(number / 100 for number in range(100)), 0.993, 0.995, 0.997, 0.999)
FLAT = 0.002  # of F1: far inside what chance decides
SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Point:
    """What one way to link comes to."""

    linking: Linking
    counts: EndToEnd


def calibrate(
    nlp: Answers,
    dataset: Dataset,
    detector: NameDetector,
    *,
    names: Sequence[float],
    priors: Sequence[float],
    redirects: Mapping[str, str] = NO_REDIRECTS,
    watch: Callable[[str, int, Iterator[Resolutions]], Iterable[Resolutions]] = lambda label, total, results: results,
    **settings: Any,
) -> list[Point]:
    """Link the texts of a set in every way that is named, and count the answers at every threshold."""
    points = []
    for least, prior in product(names, priors):

        def shown(
            results: Iterator[Resolutions], label: str = f"names {least:g}, prior {prior:g}"
        ) -> Iterable[Resolutions]:
            return watch(label, len(dataset.documents), results)

        finds = replace(detector, threshold=least)
        answered = list(link_texts(nlp, dataset, finds, watch=shown, **settings, answer_threshold=0.0, prior=prior))
        for threshold in THRESHOLDS:
            counts = count_answers(dataset, answered, "deixis", threshold=threshold, redirects=redirects)
            points.append(Point(Linking(least, threshold, prior), counts))
    return points


def choose(points: Sequence[Point], precision: float | None = None) -> Point:
    """Return the best way to link: by F1, and where that is flat, what leaves the fewest names open."""
    if precision is None:
        best = max(points, key=lambda point: point.counts.f1)
        alike = (p for p in points if (p.linking.names, p.linking.prior) == (best.linking.names, best.linking.prior))
        flat = (point for point in alike if point.counts.f1 >= best.counts.f1 - FLAT)
        return min(flat, key=lambda point: point.linking.answers)
    precise = [point for point in points if point.counts.precision >= precision]
    if not precise:
        best = max(points, key=lambda point: point.counts.precision)
        raise InputError(
            f"no threshold reaches a precision of {precision:g}; the most is {best.counts.precision:.3f}, at "
            f"{best.linking.answers:g}"
        )
    return max(precise, key=lambda point: (point.counts.recall, -point.linking.answers))


def curve_table(points: Iterable[Point], chosen: Point) -> Table:
    """Return the curves, a dozen thresholds each and the chosen point, marked by an arrow."""
    rows = [
        (
            f"{'→ ' if point == chosen else ''}{point.linking.names:g}",
            f"{point.linking.prior:g}",
            f"{point.linking.answers:g}",
            f"{point.counts.answers:,}",
            f"{point.counts.right:,}",
            *(
                f"{100 * figure:.1f}"
                for figure in (
                    point.counts.coverage,
                    point.counts.precision,
                    point.counts.recall,
                    point.counts.f1,
                )
            ),
        )
        for point in points
        if point.linking.answers in SHOWN or point == chosen
    ]
    columns = ("names", "prior", "threshold", "answers", "right", "coverage", "precision", "recall", "F1")
    counts = chosen.counts
    note = f"{counts.name}: {counts.golds:,} golds; strict span and entity; coverage: of the mentions found"
    return Table("None of these", columns, tuple(rows), note)
