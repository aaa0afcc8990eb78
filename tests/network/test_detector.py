"""The learned detector: spans of the original text, windows of long texts, saving and loading."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import ArtefactError
from deixis.network.detector import TAGS, DetectorHead, LearnedDetector, TaggedWords, consistent_tags, windows
from deixis.network.encoding import MAX_PIECES
from deixis.network.word_features import FEATURES, WordPieces, sections, split_words, word_features
from tests.worlds import make_network, make_tokenizer


def make_detector(threshold: float = 0.5) -> LearnedDetector:
    torch.manual_seed(0)
    return LearnedDetector(make_network(), make_tokenizer(), DetectorHead(32, (1, 3), 16), threshold)


def tagged(*tags: int) -> TaggedWords:
    """Return words of two letters with a space between, surely tagged."""
    spans = np.array([[3 * place, 3 * place + 2] for place in range(len(tags))])
    return TaggedWords(0, "ab " * len(tags), spans, np.eye(TAGS, dtype=np.float32)[list(tags)] * 0.9 + 0.1 / TAGS)


def test_names_begin_go_on_and_end() -> None:
    names = tagged(0, 1, 2, 1, 0, 4, 4).names(0.5)
    assert [(name.start, name.end, name.kind) for name in names] == [
        (3, 8, "person"),
        (9, 11, "person"),
        (15, 20, "organisation"),  # an inside without a beginning begins one
    ]


def test_a_name_is_as_likely_as_its_weakest_word() -> None:
    words = tagged(1, 2, 0)
    words.tags[1] = 0
    words.tags[1, 2], words.tags[1, 0] = 0.6, 0.4
    assert words.name(0, 1).probability == pytest.approx(0.6)
    assert words.name(0, 0).probability == pytest.approx(0.4)  # it would go on


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=400))
def test_spans_are_of_the_text_whatever_it_holds(text: str) -> None:
    found = make_detector(0.2).detect(text)
    assert all(0 <= start < end <= len(text) and text[start:end].strip() == text[start:end] for start, end in found)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(found))


@pytest.mark.parametrize("text", ["", "   ", "☃️😀👩‍👩‍👧 😀", "a" * 100_000, "مرحبا بالعالم " * 40, "नमस्ते दुनिया"])
def test_odd_texts(text: str) -> None:
    for start, end in make_detector(0.0).detect(text):
        assert text[start:end].strip()


def test_combining_marks_stay_with_their_word() -> None:
    words = split_words(make_tokenizer(), ["e\u0301a\u0301 b"])[0]
    assert words.spans.tolist() == [[0, 4], [5, 6]]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=120), st.integers(0, 3))
def test_every_word_counts_in_one_window(sizes: list[int], seed: int) -> None:
    word = np.repeat(np.arange(len(sizes)), sizes)
    words = WordPieces(np.arange(len(word), dtype=np.int32), word, np.zeros((len(sizes), 2), np.int64))
    features = np.arange(len(sizes), dtype=np.float16)[:, None] * np.ones(FEATURES, np.float16)
    parts = list(windows(words, features))
    counted = np.concatenate([part.features[part.counting, 0] for part in parts])
    assert counted.tolist() == list(range(len(sizes)))
    assert all(len(part.pieces) <= MAX_PIECES and part.word.max() + 1 == len(part.features) for part in parts)


def test_windows_overlap() -> None:
    words = WordPieces(np.arange(1200, dtype=np.int32), np.arange(1200), np.zeros((1200, 2), np.int64))
    parts = list(windows(words, np.zeros((1200, FEATURES), np.float16)))
    assert [part.start for part in parts] == [0, 230, 460, 690]


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet="ab. \n", max_size=300))
def test_sections_join_to_the_text(text: str) -> None:
    parts = list(sections(text, 20))
    assert "".join(part for _, part in parts) == text
    assert all(text[start : start + len(part)] == part and len(part) <= 20 for start, part in parts)


def test_features_tell_what_an_uncased_encoder_does_not_see() -> None:
    text = "He met IBM at I 5. A iPhone\nBIG NEWS"
    words = split_words(make_tokenizer(), [text])[0]
    features = word_features(text, words)
    shapes = features[:, :7].argmax(1).tolist()
    assert shapes == [1, 0, 2, 0, 3, 5, 6, 3, 4, 2, 2]
    assert np.flatnonzero(features[:, 7]).tolist() == [0, 7, 9]  # after a full stop and in a new line
    assert np.flatnonzero(features[:, 8]).tolist() == [6]  # attached: the full stop
    assert features[-1, 9:].tolist() == pytest.approx([1, 1, 7 / 9], abs=1e-3)


def test_a_head_is_saved_with_its_shape(tmp_path: Path) -> None:
    detector = make_detector(0.0)
    detector.head.save(tmp_path / "detector.safetensors")
    again = LearnedDetector(detector.network, detector.tokenizer, DetectorHead.load(tmp_path / "detector.safetensors"))
    before, after = (next(iter(one.tags_of(["Messi won the World Cup."])))[0].tags for one in (detector, again))
    assert np.abs(before - after).max() < 1e-2


def test_a_head_of_another_encoder_is_refused() -> None:
    with pytest.raises(ArtefactError, match="another encoder"):
        LearnedDetector(make_network(), make_tokenizer(), DetectorHead(64, (1, 3)))


def test_a_word_before_the_inside_of_a_name_is_in_it() -> None:
    tags = np.zeros((3, TAGS), np.float32)
    tags[0, 1], tags[1, 0], tags[1, 2], tags[2, 2], tags[2, 0] = 1.0, 0.6, 0.4, 0.9, 0.1  # P . Anderson
    told = consistent_tags(tags)
    assert told[1, 2] == pytest.approx(0.9) and told.sum(-1) == pytest.approx(np.ones(3))
