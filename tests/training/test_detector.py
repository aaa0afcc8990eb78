"""Training a detector: what may be true of each word, and a head that learns names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from deixis.errors import InputError
from deixis.network.detector import KINDS, TAGS, LearnedDetector, kind_tags
from deixis.training.detector import (
    DetectorRecipe,
    MarkedText,
    allowed_tags,
    lessons_of,
    read_marked_texts,
    score_detector,
    train_detector,
)
from tests.worlds import make_network, make_tokenizer

ALL = frozenset(KINDS)


def tags_of(marked: MarkedText) -> list[set[int]]:
    """Return the tags that each word of a text, split at spaces, may have."""
    words = marked.text.split(" ")
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    spans = np.array([[start, start + len(word)] for start, word in zip(starts, words, strict=False)])
    capital = np.array([word[0].isupper() for word in words])
    minor = np.array([len(word) < 3 and word.islower() for word in words])
    allowed = allowed_tags(marked, spans, capital, minor)
    return [{tag for tag in range(TAGS) if bits >> tag & 1} for bits in allowed.tolist()]


def test_what_is_marked_is_known() -> None:
    begins, inside = kind_tags("organisation")
    assert tags_of(MarkedText("at West Ham now", ((3, 11, "organisation"),), ALL)) == [{0}, {begins}, {inside}, {0}]


def test_a_kind_that_is_not_marked_may_be_anywhere() -> None:
    some = frozenset({"person", "place"})
    assert tags_of(MarkedText("so Ann", ((3, 6, "person"),), some))[0] == set(range(TAGS)) - {1, 2, 5, 6}


def test_other_stands_for_all_that_have_no_kind_of_their_own() -> None:
    coarse = MarkedText("Dutch", ((0, 5, "other"),), frozenset({"person", "organisation", "place", "other"}))
    assert tags_of(coarse)[0] == {kind_tags(kind)[0] for kind in ("work", "product", "event", "group", "other")}
    assert tags_of(MarkedText("Dutch", ((0, 5, "other"),), ALL))[0] == {kind_tags("other")[0]}


def test_where_marks_are_missing_a_capital_says_nothing() -> None:
    any_begin = {kind_tags(kind)[0] for kind in KINDS}
    partial = MarkedText("the cup of Old Velm", ((4, 7, None), (15, 19, None)), ALL, partial=True)
    the, cup, of, old, velm = tags_of(partial)
    assert the == of == {0} and old == cup == set(range(TAGS))  # a term in lower case is no name
    assert velm > any_begin  # "Old Velm" may be one name


def test_a_head_learns(tmp_path: Path) -> None:
    lines = [
        {"text": f"the {a} won in {b}.", "spans": [[4, 4 + len(a), "person"], [12 + len(a), 12 + len(a + b), "place"]]}
        for a in ("Messi", "Ada", "Brandt", "Old Marlow")
        for b in ("Velm", "Rook", "Oar City")
    ]
    lines += [{**line, "split": "test"} for line in lines[:3]]
    path = tmp_path / "marked.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    texts, network, tokenizer = list(read_marked_texts([path])), make_network(), make_tokenizer()
    recipe = DetectorRecipe(epochs=40, batch_pieces=256, rate=2e-2, size=16, cases=0.2)
    detector = LearnedDetector(
        network, tokenizer, train_detector(network, tokenizer, lessons_of(tokenizer, texts), recipe)
    )
    assert detector.detect("the Ada won in Rook.") == [(4, 7), (15, 19)]
    (score,) = score_detector(detector, texts)
    assert (score.marked, score.right, score.kind) == (6, 6, 6)


@pytest.mark.gpu
def test_a_head_learns_on_a_gpu() -> None:
    texts = [MarkedText("the Messi won.", ((4, 9, "person"),), ALL)]
    head = train_detector(
        make_network().cuda(), make_tokenizer(), lessons_of(make_tokenizer(), texts), DetectorRecipe(epochs=3, size=16)
    )
    assert all(torch.isfinite(parameter).all() for parameter in head.parameters())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "Messi", "spans": [[0, 9, "person"]]}', "does not fit"),
        ('{"text": "Messi", "spans": [[0, 5, "rower"]]}', "unknown"),
        ('{"text": "Messi"}', "line 1"),
    ],
)
def test_bad_data_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match=message):
        list(read_marked_texts([path]))
