"""The answer threshold that held-out data asks for, written into the model, and heeded by what links texts."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Document
from deixis.errors import InputError
from deixis.evaluation.choose_thresholds import THRESHOLDS, Point, calibrate, choose, curve_table
from deixis.evaluation.texts import Score, score_ways
from deixis.folder.model_folder import Linking
from deixis.inference import Disambiguator
from deixis.settings import Settings
from deixis.toy import marked

DOCUMENTS = (
    marked(
        "After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Lena Brandt (coach)]."
    ),
    Document("Brandt was praised."),
)
DATASET = Dataset("velm", DOCUMENTS, Report(3))


def test_one_run_gives_the_answers_of_every_threshold(island: Path) -> None:
    nlp = Disambiguator.load(island / "model")
    points = calibrate(nlp, DATASET, Settings(), names=[0.1], priors=[0.0, 1.0])
    some = len(THRESHOLDS)
    assert [point.linking for point in points[:some]] == [Linking(0.1, threshold, 0.0) for threshold in THRESHOLDS]
    for place in (0, 50, 90, some - 1, some + 50):
        linking = points[place].linking
        settings = Settings(answer_threshold=linking.answers, prior=linking.prior)
        (asked,) = score_ways(nlp, DATASET, ["found"], settings)
        assert (points[place].score, points[place].found) == (asked.entities, asked.found)
    assert points[0].coverage == 1 and points[99].coverage < 1


def point(threshold: float, answers: int, right: int) -> Point:
    return Point(Linking(0.1, threshold), "set", 12, Score(10, answers, right))


def test_the_choice_is_the_best_f1_or_the_most_recall_at_a_precision() -> None:
    points = [point(0.0, 12, 7), point(0.3, 10, 7), point(0.4, 10, 7), point(0.8, 5, 5), point(0.9, 3, 3)]
    assert choose(points).linking.answers == 0.3  # the lower of two equals
    flat = [
        Point(Linking(0.1, threshold), "set", 5000, Score(5000, answers, right))
        for threshold, answers, right in ((0.1, 5000, 3500), (0.3, 4900, 3495), (0.6, 4500, 3355), (0.9, 3000, 2500))
    ]
    assert max(flat, key=lambda one: one.score.f1).linking.answers == 0.6
    assert choose(flat).linking.answers == 0.3  # 0.6 is better by a breath, and leaves more open
    assert choose(points, 0.9).linking.answers == 0.8
    with pytest.raises(InputError, match=r"no threshold reaches a precision of 0\.9; the highest is 0\.700, at 0\.3"):
        choose(points[:2], 0.9)
    table = curve_table(points, points[1])
    assert [row[0] for row in table.rows] == ["0.1", "→ 0.1", "0.1", "0.1", "0.1"]
    assert table.rows[1][-4:] == ("83.3", "70.0", "70.0", "70.0")
