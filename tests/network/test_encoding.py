"""Pieces, spans and windows: nothing is cut, nothing is lost, whatever the text."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from deixis.errors import ArtefactError
from deixis.network.encoding import MAX_MENTIONS, MAX_PIECES, Encoding, Tokenizer, windows_of
from deixis.settings import Splitting
from tests.worlds import make_tokenizer

TOKENIZER = make_tokenizer()
AWKWARD = "a🙂b e\u0301te\u0301 \r\n\t x\u200by 日本 ﬁn \u0000"


def spans_in(text: str) -> st.SearchStrategy[list[tuple[int, int]]]:
    border = st.integers(0, len(text))
    span = st.tuples(border, border).map(lambda pair: (min(pair), max(pair))).filter(lambda pair: pair[0] < pair[1])
    return st.lists(span, max_size=6)


texts = st.text(st.characters(blacklist_categories=["Cs"]) | st.sampled_from(AWKWARD), min_size=1, max_size=60)


@settings(deadline=None, max_examples=150)
@given(texts.flatmap(lambda text: st.tuples(st.just(text), spans_in(text))))
@example((AWKWARD, [(0, 2), (1, 5), (3, len(AWKWARD))]))
def test_a_mention_has_just_the_pieces_of_its_surface(case: tuple[str, list[tuple[int, int]]]) -> None:
    text, spans = case
    encoding = TOKENIZER.encode(text, spans)
    borders = sorted({border for span in spans for border in span})
    for (start, end), (first, last) in zip(spans, encoding.spans.tolist(), strict=True):
        inner = [start, *(border for border in borders if start < border < end), end]
        expected = [piece for pair in pairwise(inner) for piece in TOKENIZER.encode(text[slice(*pair)], []).pieces]
        if expected:
            assert encoding.pieces[first:last].tolist() == expected
        else:  # white space and the like: the piece before it, or nothing at all
            assert last - first <= 1


def test_a_mention_may_start_inside_a_word() -> None:
    encoding = TOKENIZER.encode("pre-worldcup", [(4, 9), (9, 12)])
    start, end = encoding.spans[0].tolist()
    assert TOKENIZER.tokens(encoding.pieces[start:end].tolist()) == ["world"]
    start, end = encoding.spans[1].tolist()
    assert TOKENIZER.tokens(encoding.pieces[start:end].tolist()) == ["cup"]


def random_encoding(length: int, mentions: int, seed: int, widest: int = 12) -> Encoding:
    dice = np.random.default_rng(seed)
    starts = dice.integers(0, max(1, length - widest), mentions)
    ends = np.minimum(starts + dice.integers(1, widest, mentions), length)
    return Encoding(dice.integers(5, 100, length).astype(np.int32), np.stack((starts, ends), 1))


@settings(deadline=None, max_examples=80)
@given(
    length=st.integers(12, 3000),
    mentions=st.integers(0, 400),
    seed=st.integers(0, 99),
    splitting=st.sampled_from(["simple", "overlapping", "per_mention"]),
    widest=st.sampled_from([2, 12, 200]),
)
@example(length=520, mentions=300, seed=1, splitting="overlapping", widest=200)  # what counts does not lie side by side
def test_every_mention_counts_in_exactly_one_window(
    length: int, mentions: int, seed: int, splitting: Splitting, widest: int
) -> None:
    encoding = random_encoding(max(length, widest + 1), mentions, seed, widest)
    counted: list[int] = []
    for window in windows_of(TOKENIZER, encoding, splitting):
        assert len(window.pieces) <= MAX_PIECES + 2 and len(window.mentions) <= MAX_MENTIONS
        assert (window.pieces[0], window.pieces[-1]) == (TOKENIZER.cls, TOKENIZER.sep)
        for mention, (start, end) in zip(window.mentions, window.spans, strict=True):
            whole = encoding.pieces[slice(*encoding.spans[mention])]
            assert window.pieces[start:end].tolist() == whole.tolist()
        counted += (window.mentions if window.counting is None else window.mentions[window.counting]).tolist()
    assert sorted(counted) == list(range(len(encoding.spans)))


def test_a_short_document_is_one_window() -> None:
    for splitting in ("simple", "overlapping", "per_mention"):
        (window,) = windows_of(TOKENIZER, random_encoding(510, 20, 0), splitting)
        assert len(window.pieces) == 512 and window.counting is None


def test_simple_parts_are_nearly_equal_and_move_left_off_a_mention() -> None:
    encoding = Encoding(np.arange(1000, dtype=np.int32), np.array([[5, 6], [498, 503], [900, 901]]))
    first, second = windows_of(TOKENIZER, encoding, "simple")  # the last two pieces are an extra part, without mentions
    assert (first.pieces[1:-1].tolist(), second.pieces[1:-1].tolist()) == ([*range(498)], [*range(498, 998)])
    assert (first.mentions.tolist(), second.mentions.tolist()) == ([0], [1, 2])
    plain = Encoding(np.arange(1021, dtype=np.int32), np.array([[0, 1], [400, 401], [1020, 1021]]))
    assert [len(window.pieces) - 2 for window in windows_of(TOKENIZER, plain, "simple")] == [341, 341, 339]


def test_the_first_mention_is_never_cut() -> None:
    encoding = Encoding(np.arange(600, dtype=np.int32), np.array([[298, 305]]))
    windows = list(windows_of(TOKENIZER, encoding, "simple"))
    assert [window.mentions.tolist() for window in windows] == [[0]]
    assert windows[0].pieces[slice(*windows[0].spans[0])].tolist() == list(range(298, 305))


@pytest.mark.parametrize(("start", "first", "last"), [(0, 0, 510), (500, 246, 756), (999, 490, 1000)])
def test_per_mention_windows_are_centred(start: int, first: int, last: int) -> None:
    encoding = Encoding(np.arange(1000, dtype=np.int32), np.array([[start, start + 1]]))
    (window,) = windows_of(TOKENIZER, encoding, "per_mention")
    assert window.pieces[1:-1].tolist() == list(range(first, last)) and window.centred and window.counting == 0


def test_per_mention_windows_that_are_alike_are_one() -> None:
    spans = np.array([[place, place + 1] for place in (0, 10, 20, 260, 300, 301, 400, 590, 599)])
    windows = list(windows_of(TOKENIZER, Encoding(np.arange(600, dtype=np.int32), spans), "per_mention"))
    counted = [window.mentions[window.counting].tolist() for window in windows]
    assert counted == [[0, 1, 2], [3], [4], [5], [6, 7, 8]]
    assert [int(window.pieces[1]) for window in windows] == [0, 6, 46, 47, 90]


def test_overlapping_windows_count_a_mention_where_it_is_nearest_to_the_middle() -> None:
    spans = np.array([[place, place + 1] for place in (0, 300, 382, 383, 500, 700, 999)])
    windows = list(windows_of(TOKENIZER, Encoding(np.arange(1000, dtype=np.int32), spans), "overlapping"))
    assert [int(window.pieces[1]) for window in windows] == [0, 245, 490]
    assert [window.mentions[window.counting].tolist() for window in windows] == [[0, 1], [2, 3, 4], [5, 6]]
    assert [window.mentions.tolist() for window in windows] == [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5], [4, 5, 6]]
    assert not any(window.centred for window in windows)


def test_a_mention_longer_than_a_window_is_in_none() -> None:
    encoding = Encoding(np.arange(2000, dtype=np.int32), np.array([[0, 511], [600, 601]]))
    for splitting in ("simple", "overlapping", "per_mention"):
        windows = list(windows_of(TOKENIZER, encoding, splitting))
        assert [window.mentions.tolist() for window in windows] == [[1]]


def test_text_without_pieces() -> None:
    encoding = TOKENIZER.encode("   ", [(0, 2)])
    (window,) = windows_of(TOKENIZER, encoding, "simple")
    assert window.pieces.tolist() == [TOKENIZER.cls, TOKENIZER.sep]
    assert window.spans.tolist() == [[1, 2]]


def test_tokenizers_load_and_wrong_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match=r"neither tokenizer.json nor vocab.txt"):
        Tokenizer.load(tmp_path)
    pieces = TOKENIZER.tokens(range(len(TOKENIZER)))
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    old = Tokenizer.load(tmp_path)
    TOKENIZER.save(tmp_path)
    new = Tokenizer.load(tmp_path)
    for text in ("Messi won the World Cup!", AWKWARD):
        wanted = TOKENIZER.encode(text, []).pieces.tolist()
        assert old.encode(text, []).pieces.tolist() == new.encode(text, []).pieces.tolist() == wanted
