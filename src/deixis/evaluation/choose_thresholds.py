"""Thresholds for plain texts, chosen on held-out data; precision, recall and coverage by threshold.

A threshold removes answers and changes no other: later steps still see rejected answers. So a set is linked once for
each prior and detection threshold that is tried, with every answer kept, and all answer thresholds are read off that.
The choice is by F1 or, where a precision is asked for, by recall among those that reach it; among equals the lower
threshold. A name with one candidate has probability 1 and is never left open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from deixis.datasets.dataset import Dataset
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.evaluation.texts import Score, judged_answers, link_texts
from deixis.folder.model_folder import Linking
from deixis.knowledge.detection import NameDetector, UnitedDetector
from deixis.rendering import Table
from deixis.settings import Settings

if TYPE_CHECKING:
    from deixis.inference import Disambiguator

__all__ = ["SHOWN", "THRESHOLDS", "Point", "calibrate", "choose", "curve_table"]

# Networks are sure of much, so that the last hundredth is looked at more closely.
THRESHOLDS = (*(number / 100 for number in range(100)), 0.993, 0.995, 0.997, 0.999)
FLAT = 0.002  # of F1: far inside what chance decides
SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)


@dataclass(frozen=True, slots=True)
class Point:
    """What one way to link comes to: strict span and entity."""

    linking: Linking
    name: str  # of the set
    found: int  # mentions, answered or left open
    score: Score

    @property
    def coverage(self) -> float:
        """The share of found mentions that are answered."""
        return self.score.answers / max(1, self.found)

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the counts and figures."""
        return {"set": self.name, "found": self.found, **self.score.to_record(), "coverage": self.coverage}


def calibrate(
    nlp: Disambiguator,
    dataset: Dataset,
    settings: Settings,
    *,
    names: Sequence[float] = (),
    priors: Sequence[float] = (),
    redirects: Mapping[str, str] = NO_REDIRECTS,
    watch: Callable[[str, int, Iterator[Resolutions]], Iterable[Resolutions]] = lambda label, total, results: results,
) -> list[Point]:
    """Link the texts of a set with each detection threshold and prior, and count the answers at every threshold."""
    if not isinstance(nlp.detector, NameDetector | UnitedDetector):
        raise InputError("this model has no names to find mentions by; give it some: deixis assemble --names NAMES")
    golds = sum(mention.entity is not None for document in dataset.documents for mention in document.mentions)
    points = []
    detector = nlp.detector
    for least, prior in product(names or [_names(detector).threshold], priors or [nlp.prior]):
        finds = replace(nlp, detector=_at_least(detector, least))
        results = link_texts(finds, dataset, settings.changed(prior=prior))
        answered = list(watch(f"names {least:g}, prior {prior:g}", len(dataset.documents), results))
        judged = judged_answers(dataset, answered, redirects)
        found = sum(map(len, answered))
        for threshold in THRESHOLDS:
            kept = [right for probability, right in judged if probability >= threshold]
            score = Score(golds, len(kept), sum(kept))
            points.append(Point(Linking(least, threshold, prior), dataset.name, found, score))
    return points


def _names(detector: NameDetector | UnitedDetector) -> NameDetector:
    return detector.names if isinstance(detector, UnitedDetector) else detector


def _at_least(detector: NameDetector | UnitedDetector, threshold: float) -> NameDetector | UnitedDetector:
    names = replace(_names(detector), threshold=threshold)
    return replace(detector, names=names) if isinstance(detector, UnitedDetector) else names


def choose(points: Sequence[Point], precision: float | None = None) -> Point:
    """Return the best way to link: by F1, and where that is flat, what leaves the fewest names open."""
    if precision is None:
        best = max(points, key=lambda point: point.score.f1)
        alike = (p for p in points if (p.linking.names, p.linking.prior) == (best.linking.names, best.linking.prior))
        flat = (point for point in alike if point.score.f1 >= best.score.f1 - FLAT)
        return min(flat, key=lambda point: point.linking.answers)
    precise = [point for point in points if point.score.precision >= precision]
    if not precise:
        best = max(points, key=lambda point: point.score.precision)
        raise InputError(
            f"no threshold reaches a precision of {precision:g}; the highest is {best.score.precision:.3f}, at "
            f"{best.linking.answers:g}"
        )
    return max(precise, key=lambda point: (point.score.recall, -point.linking.answers))


def curve_table(points: Iterable[Point], chosen: Point) -> Table:
    """Return the curves, a dozen thresholds each and the chosen point, marked by an arrow."""
    rows = [
        (
            f"{'→ ' if point == chosen else ''}{point.linking.names:g}",
            f"{point.linking.prior:g}",
            f"{point.linking.answers:g}",
            f"{point.score.answers:,}",
            f"{point.score.right:,}",
            *(
                f"{100 * figure:.1f}"
                for figure in (point.coverage, point.score.precision, point.score.recall, point.score.f1)
            ),
        )
        for point in points
        if point.linking.answers in SHOWN or point == chosen
    ]
    columns = ("detection", "prior", "threshold", "answers", "right", "coverage", "precision", "recall", "F1")
    note = f"{chosen.name}: {chosen.score.golds:,} golds; strict span and entity; coverage: of the mentions found"
    return Table("Answers by threshold", columns, tuple(rows), note)
