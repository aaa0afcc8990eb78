"""Plain text to entities: what counts as found and right, strict and weak, with NIL, and the command that prints it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Document, Mention, Resolution, Resolutions
from deixis.evaluation.texts import (
    KindCounts,
    Score,
    TextScores,
    judged_answers,
    score_texts,
    score_ways,
)
from deixis.evaluation.texts_report import TextsReport, kind_table
from deixis.inference import Disambiguator
from deixis.settings import Settings
from deixis.toy import marked

Answer = tuple[int, int, str | None, float]


def scored(
    golds: Sequence[Mention], answers: Sequence[Answer], threshold: float = 0.0, span: tuple[int, int] | None = None
) -> TextScores:
    """Score answers in a text of thirty letters."""
    document = Document("x" * 30, tuple(golds), extra={} if span is None else {"evaluation_span": list(span)})
    items = tuple(Resolution(start, end, "x", entity, p, 1) for start, end, entity, p in answers)
    dataset = Dataset("x", (document,), Report(len(golds)))
    return score_texts(dataset, [Resolutions(document, items)], "test", threshold=threshold, redirects={"Old": "A"})


GOLDS = (
    Mention(0, 4, "A", kind="person"),
    Mention(5, 9, "B", kind="person"),
    Mention(10, 14, kind="place"),  # NIL
    Mention(15, 19, "C"),
)


def test_every_way_to_count_by_hand() -> None:
    scores = scored(
        GOLDS,
        [
            (0, 4, "Old", 0.9),  # right after redirects
            (6, 9, "B", 0.8),  # the entity, but half of the name
            (10, 14, None, 0.0),  # left open where the gold is NIL
            (15, 19, "B", 0.7),  # the span, another entity
            (20, 22, "A", 0.6),  # nothing there
        ],
    )
    assert scores.found == 5
    assert (scores.spans, scores.spans_weak) == (Score(4, 5, 3), Score(4, 5, 4))
    assert (scores.entities, scores.entities_weak) == (Score(3, 4, 1), Score(3, 4, 2))
    assert (scores.with_nil, scores.with_nil_weak) == (Score(4, 5, 2), Score(4, 5, 3))
    assert scores.judged == ((0.9, True), (0.7, False))
    assert scores.kinds == {
        "person": KindCounts(golds=2, found=1, in_kb=2, right=1),
        "place": KindCounts(golds=1, found=1),
        "unknown": KindCounts(golds=1, found=1, in_kb=1),
    }


def test_an_answer_to_nil_is_wrong_and_one_under_the_threshold_is_none() -> None:
    answers: list[Answer] = [(10, 14, "A", 0.4)]
    assert scored(GOLDS, answers).entities == Score(3, 1, 0)
    assert scored(GOLDS, answers).with_nil == Score(4, 1, 0)
    assert scored(GOLDS, answers, threshold=0.5).entities == Score(3, 0, 0)
    assert scored(GOLDS, answers, threshold=0.5).with_nil == Score(4, 1, 1)
    assert scored(GOLDS, answers, threshold=0.5).judged == ((0.4, False),)  # whatever the threshold


def test_one_answer_is_right_once() -> None:
    assert scored(GOLDS[:2], [(0, 9, "A", 1.0)]).spans_weak == Score(2, 1, 1)
    assert scored(GOLDS[:1], [(0, 2, "A", 1.0), (2, 4, "A", 1.0)]).entities_weak == Score(1, 2, 1)
    # Of two that overlap the exact one is taken, and the other is left for its neighbour.
    assert scored(GOLDS[:2], [(3, 6, None, 0), (0, 4, None, 0)]).spans_weak == Score(2, 2, 2)


def test_optional_golds_are_neither_missed_nor_wrong() -> None:
    optional = Mention(20, 24, "A", extra={"optional": True})
    date = Mention(25, 29, extra={"optional": True}, kind="DATETIME")
    golds = (GOLDS[0], optional, date)
    assert scored(golds, []).entities == Score(1, 0, 0)
    both: list[Answer] = [(20, 24, "A", 1.0), (25, 29, "1995", 1.0)]
    assert scored(golds, both).spans == scored(golds, both).entities == scored(golds, both).with_nil == Score(1, 0, 0)
    assert scored(golds, [(20, 24, "B", 1.0)]).entities == Score(1, 1, 0)
    assert scored(golds, [(25, 28, "1995", 1.0)]).entities_weak == Score(1, 0, 0)


def test_only_the_evaluation_span_counts() -> None:
    assert scored(GOLDS[:1], [(0, 4, "A", 1.0), (15, 19, "C", 1.0)], span=(0, 10)).entities == Score(1, 1, 1)


SPANS = st.lists(st.integers(0, 28), unique=True, max_size=8).map(
    lambda cuts: [(a, b) for a, b in zip(sorted(cuts)[::2], sorted(cuts)[1::2], strict=False)]
)
ENTITIES = st.sampled_from(["A", "B", None])


@given(SPANS, SPANS, st.lists(ENTITIES, min_size=8, max_size=8), st.lists(ENTITIES, min_size=8, max_size=8))
def test_weak_finds_no_less_than_strict(
    gold_spans: list[tuple[int, int]], spans: list[tuple[int, int]], golds: list[str | None], given: list[str | None]
) -> None:
    mentions = [Mention(*span, entity) for span, entity in zip(gold_spans, golds, strict=False)]
    answers: list[Answer] = [(*span, entity, 1.0) for span, entity in zip(spans, given, strict=False)]
    scores = scored(mentions, answers)
    assert scores.spans.right <= scores.spans_weak.right <= min(len(mentions), len(answers))
    assert scores.entities.right <= scores.entities_weak.right <= scores.spans_weak.right
    assert scores.entities.right <= scores.with_nil.right <= scores.spans.right
    itself: list[Answer] = [(m.start, m.end, m.entity, 1.0) for m in mentions]
    perfect = scored(mentions, itself)
    assert perfect.spans == perfect.with_nil == perfect.with_nil_weak == Score(*[len(mentions)] * 3)
    assert perfect.entities.f1 == (1 if any(m.entity for m in mentions) else 0)


DOCUMENTS = (
    marked("After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Elsewhere]."),
    Document("It was the time of the Golden Rook.", (Mention(0, 2, "Ada Marlow (rower)"),)),
    Document("Nothing."),
)


def test_texts_are_linked_and_scored(island: Path) -> None:
    nlp = Disambiguator.load(island / "model")
    dataset = Dataset("velm", DOCUMENTS, Report(4))
    found, gold = score_ways(nlp, dataset, ["found", "gold"], Settings())
    assert (found.found, found.spans.right, found.entities) == (4, 3, Score(4, 4, 2))
    assert (found.entities.precision, found.entities.recall, found.entities.f1) == (0.5, 0.5, 0.5)
    (renamed,) = score_ways(nlp, dataset, ["found"], Settings(), redirects={"Lena Brandt (coach)": "Elsewhere"})
    assert renamed.entities.right == 3
    (sure,) = score_ways(nlp, dataset, ["gold"], Settings(answer_threshold=1))
    assert (sure.found, sure.spans.right, sure.entities) == (4, 4, Score(4, 1, 1))  # the sure one is right
    report = TextsReport((found, gold, found), Settings())
    assert report.together() == [] and report.tables()[0].rows[0][-3:-2] == ("50.0",)
    assert kind_table([found]) is None
    answered = list(nlp.link_many([document.text for document in DOCUMENTS]))
    assert sum(right for _, right in judged_answers(dataset, answered)) == 2
