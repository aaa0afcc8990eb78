"""Metrics against a slow reference on random cases, and on the published traps by hand (protocol 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from deixis.datasets.dataset import Dataset
from deixis.datasets.published import read_published
from deixis.documents import Document, Resolutions
from deixis.errors import InputError
from deixis.evaluation import bootstrap, describe, judge, most_frequent, run_order, tally
from deixis.evaluation.metrics import measure_of

from ..datasets.traps import write_traps
from .fakes import LOCAL, Scripted, random_dataset


def slow_figures(documents: Sequence[Document], answers: Sequence[Resolutions]) -> dict[str, float]:
    """Protocol 6, word by word."""
    n = a = c = listed = 0
    for document, resolutions in zip(documents, answers, strict=True):
        for mention, resolution in zip(document.mentions, resolutions, strict=True):
            n = n + 1
            titles = []
            for candidate in mention.candidates or ():
                titles.append(candidate[0])
            if titles != []:
                a = a + 1
            if mention.entity in titles:
                listed = listed + 1
            if resolution.entity == mention.entity:
                c = c + 1
    precision = c / a if a > 0 else 0.0
    recall = c / n if n > 0 else 0.0
    f1 = 0.0 if precision + recall == 0 else 2 * precision * recall / (precision + recall)
    return {"precision": precision, "recall": recall, "f1": f1, "listed": listed / max(n, 1)}


@pytest.mark.parametrize("seed", range(40))
def test_metrics_equal_the_slow_reference(seed: int) -> None:
    dataset = random_dataset(seed)
    run = run_order(Scripted(), dataset, LOCAL)
    slow = slow_figures(dataset.documents, run.resolutions)
    assert run.tally.precision == pytest.approx(slow["precision"])
    assert run.tally.recall == run.tally.accuracy == pytest.approx(slow["recall"])
    assert run.tally.f1 == pytest.approx(slow["f1"])
    recall, baseline = describe(dataset)
    answers = [most_frequent(document) for document in dataset.documents]
    assert recall == pytest.approx(slow_figures(dataset.documents, answers)["listed"])
    assert baseline.tally.f1 == pytest.approx(slow_figures(dataset.documents, answers)["f1"])


def test_intervals_equal_a_slow_bootstrap() -> None:
    dataset = random_dataset(3)
    run = run_order(Scripted(), dataset, LOCAL)
    places = [place for place, document in enumerate(dataset.documents) if document.mentions]
    draws = np.random.default_rng(7).multinomial(len(places), [1 / len(places)] * len(places), size=200)
    values = []
    for draw in draws:
        chosen = [place for place, times in zip(places, draw, strict=True) for _ in range(times)]
        documents = [dataset.documents[place] for place in chosen]
        values.append(slow_figures(documents, [run.resolutions[place] for place in chosen])["f1"])
    low, high = bootstrap(run.judgements, "f1", samples=200, seed=7)
    assert [low, high] == pytest.approx(np.quantile(values, [0.025, 0.975]).tolist())
    assert low <= run.tally.f1 <= high
    assert bootstrap(run.judgements, "f1") == bootstrap(run.judgements, "f1")
    assert bootstrap([], "accuracy") == (0.0, 0.0)


def test_the_published_traps_by_hand(tmp_path: Path) -> None:
    """n = 5, Nowhere has no candidates so a = 4; Paris is answered Paris, so c = 3; the gold is listed 4 times."""
    dataset = read_published(write_traps(tmp_path), "msnbc")
    recall, baseline = describe(dataset)
    counts = baseline.tally
    assert recall == pytest.approx(4 / 5)
    assert (counts.mentions, counts.with_candidates, counts.correct) == (5, 4, 3)
    assert (counts.precision, counts.recall) == (3 / 4, 3 / 5)
    assert counts.f1 == pytest.approx(2 / 3)
    without = read_published(tmp_path, "msnbc", coreference="none")
    assert describe(without)[1].tally.correct == 2  # Smith is answered Smith (surname)


def test_redirects_apply_to_golds_and_answers() -> None:
    dataset = random_dataset(1)
    answers = [most_frequent(document) for document in dataset.documents]
    all_one = dict.fromkeys("BCDEFG", "A")
    judged = judge(dataset, answers, all_one)
    assert all(j.correct == (j.answer is not None) for j in judged)
    assert tally(judged).precision == 1.0


def test_answers_to_other_data_are_refused() -> None:
    dataset = random_dataset(1)
    answers = [most_frequent(document) for document in dataset.documents]
    for wrong in (answers[:-1], [*answers, answers[0]]):
        with pytest.raises(InputError, match="random has 12"):
            judge(dataset, wrong)
    cut = [replace(answers[0], items=answers[0].items[:-1]), *answers[1:]]
    with pytest.raises(InputError, match="the answers for document d0 are not to its"):
        judge(dataset, cut)


def test_counts_that_do_not_add_up_are_refused() -> None:
    dataset = random_dataset(1)
    with pytest.raises(InputError, match="do not add up"):
        Dataset("x", dataset.documents[1:], dataset.report)


def test_aida_reports_accuracy_and_the_others_f1() -> None:
    assert [measure_of(name) for name in ("aida-b", "zelda-aida-b", "msnbc")] == ["accuracy", "accuracy", "f1"]
