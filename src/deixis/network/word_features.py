"""Words of a text with the pieces that spell them, and what an uncased encoder does not see of them.

    He joined  AT & T  in  O ' Fallon  .        words are as BERT splits texts: at white space and punctuation
    T  l       UC- l   UC  l  U - T    -        shape: lower, Title, UPPER, Capital alone, mixed, digits, neither
    ^                                           starts a sentence, or a quotation
                              * *      *        attached: no white space before it

Three more numbers tell how far to trust capitals: the share of capitalised words in the line, of words all in capitals
in the line, and of capitalised words in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from deixis.network.encoding import Tokenizer

__all__ = ["CASES", "FEATURES", "SECTION", "WordPieces", "sections", "split_words", "with_case", "word_features"]

SHAPES = 7
FEATURES = SHAPES + 5
SECTION = 1 << 16  # letters that are tokenised at once: bounds memory
LONGEST = 3  # sections more for a word that does not end
CASES = ("lower", "upper", "headline", "tokenised")  # ways to write a text in which case and spaces say less
_SPACE = re.compile(r"\s")
_STOP = frozenset('.!?:;"“”„‘«»([{`|•')


@dataclass(frozen=True, slots=True)
class WordPieces:
    """The words of a text and the pieces that spell them; a word without any piece is left out."""

    pieces: NDArray[np.int32]  # (pieces,)
    word: NDArray[np.int64]  # (pieces,): which word each piece belongs to
    spans: NDArray[np.int64]  # (words, 2): [start, end) in characters

    def __len__(self) -> int:
        return len(self.spans)

    @classmethod
    def joined(cls, parts: Sequence[tuple[int, Self]]) -> WordPieces:
        """Return the words of a text that was split in parts, each with its place in the text."""
        before = accumulate((len(part) for _, part in parts), initial=0)
        return WordPieces(
            np.concatenate([part.pieces for _, part in parts]),
            np.concatenate([part.word + first for first, (_, part) in zip(before, parts, strict=False)]),
            np.concatenate([part.spans + start for start, part in parts]),
        )


def split_words(tokenizer: Tokenizer, texts: Sequence[str]) -> list[WordPieces]:
    """Return the words of texts."""
    found = []
    for text, (ids, words, offsets) in zip(texts, tokenizer.split_many(texts), strict=True):
        word = np.array(words, np.int64)
        borders = np.array(offsets, np.int64).reshape(-1, 2)
        first = np.flatnonzero(np.diff(word, prepend=-1))
        last = np.append(first[1:], len(word)) - 1 if len(first) else first
        spans = np.stack([borders[first, 0], borders[last, 1]], 1)
        if not text.isascii():
            _take_marks(text, spans)
        numbers = np.cumsum(np.diff(word, prepend=-1) != 0) - 1
        found.append(WordPieces(np.array(ids, np.int32), numbers, spans))
    return found


def _take_marks(text: str, spans: NDArray[np.int64]) -> None:
    """Let words end behind combining marks and what else the tokenizer drops at their ends."""
    limits = [*spans[:, 0].tolist()[1:], len(text)][: len(spans)]
    for place, (end, limit) in enumerate(zip(spans[:, 1].tolist(), limits, strict=True)):
        while end < limit and unicodedata.category(text[end])[0] == "M":
            end += 1
        spans[place, 1] = end


def sections(text: str, size: int = SECTION) -> Iterator[tuple[int, str]]:
    """Yield a long text in parts with their places, cut where a paragraph, line, sentence or word ends.

    A word is cut only if it is several times as long as a part.
    """
    start = 0
    while len(text) - start > size:
        half, limit = start + size // 2, start + size
        found = (text.rfind(mark, half, limit) for mark in ("\n\n", "\n", ". ", " "))
        cut = next((at for at in found if at >= 0), None)
        if cut is None:
            space = _SPACE.search(text, limit, limit + LONGEST * size)
            cut = min(limit + LONGEST * size, len(text)) - 1 if space is None else space.start()
        yield start, text[start : cut + 1]
        start = cut + 1
    if start < len(text) or not text:
        yield start, text[start:]


def _shape(written: str) -> int:
    if written.islower():
        return 0
    if not written[0].isalnum():
        return 6
    if written.isupper():
        return 2 if len(written) > 1 else 3
    if written[0].isdigit():
        return 5
    if written.istitle():
        return 1
    # Scripts without case have neither lower nor upper letters.
    return 4 if written.lower() != written else 6


_BREAK = re.compile(r"\n")


def word_features(text: str, words: WordPieces) -> NDArray[np.float16]:
    """Return the features of every word (words, FEATURES)."""
    count = len(words)
    out = np.zeros((count, FEATURES), np.float16)
    if count == 0:
        return out
    starts, ends = words.spans.T
    shapes = np.array([_shape(text[start:end]) for start, end in words.spans.tolist()])
    out[np.arange(count), shapes] = 1
    attached = np.append(False, starts[1:] == ends[:-1])
    out[:, SHAPES] = _opens(text, words.spans.tolist())
    out[:, SHAPES + 1] = attached & (starts > 0)
    breaks = np.array([match.start() for match in _BREAK.finditer(text)], np.int64)
    line = np.searchsorted(breaks, starts)
    cased = (shapes <= 4).astype(np.float64)
    capital, upper = cased * (shapes > 0), (shapes == 2).astype(np.float64)
    per_line = [np.bincount(line, x, minlength=len(breaks) + 1) for x in (cased, capital, upper)]
    out[:, SHAPES + 2] = (per_line[1] / np.maximum(per_line[0], 1))[line]
    out[:, SHAPES + 3] = (per_line[2] / np.maximum(per_line[0], 1))[line]
    out[:, SHAPES + 4] = capital.sum() / max(cased.sum(), 1)
    return out


def _opens(text: str, spans: Sequence[Sequence[int]]) -> list[bool]:
    """Tell of every word whether a sentence or a quotation begins with it, or would if case told."""
    ends = accumulate((end for _, end in spans), lambda _, end: end, initial=0)
    opens, before = [], "."
    for (start, end), last in zip(spans, ends, strict=False):
        opens.append(before in _STOP or "\n" in text[last:start])
        before = text[end - 1]
    return opens


def with_case(
    features: NDArray[np.float16],
    single: NDArray[np.bool_],
    glued: NDArray[np.bool_],
    case: str,
    dice: np.random.Generator,
) -> NDArray[np.float16]:
    """Return features as if the text were written in another case; `single` are the words of one letter.

    `glued` words are not torn from what stands before them when a text is tokenised.
    """
    out = features.copy()
    if case == "tokenised":
        out[~glued, SHAPES + 1] = 0
        return out
    cased = out[:, :5].any(1)
    upper: float | None
    if case == "lower":
        shape, line, upper, text = np.zeros(len(out), np.int64), 0.0, 0.0, 0.0
    elif case == "upper":
        shape, line, upper, text = np.where(single, 3, 2), 1.0, 1.0, 1.0
    else:
        small = (out[:, 0] > 0) & (dice.random(len(out)) < 0.2)  # words as "of" stay in lower case
        shape = np.where(out[:, 0] > 0, np.where(small, 0, np.where(single, 3, 1)), out[:, :SHAPES].argmax(1))
        share = 1 - small.sum() / max(cased.sum(), 1)
        line, upper, text = share, None, share
    out[cased, :SHAPES] = np.eye(SHAPES, dtype=np.float16)[shape[cased]]
    out[:, SHAPES + 2], out[:, SHAPES + 4] = line, text
    if upper is not None:
        out[:, SHAPES + 3] = upper
    return out
