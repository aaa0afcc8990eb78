"""Text and mentions to word pieces, and pieces to windows the network can see (paper 3.1, protocol 8 and 9).

text      Messi played in the World Cup .
pieces    [CLS] messi played in the world cup . [SEP]
positions   0     1     2    3   4    5    6  7   8
mentions        └1,2┘                └─5,7─┘
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as _Tokenizer
from tokenizers import models, normalizers, pre_tokenizers

from deixis.errors import ArtefactError

if TYPE_CHECKING:  # machines that only read need not have what settings are checked with
    from deixis.settings import Splitting

__all__ = ["MAX_MENTIONS", "MAX_PIECES", "Encoding", "Tokenizer", "Window", "overlapping_windows", "windows_of"]

MAX_PIECES = 510  # of text in a window: BERT's 512 positions less [CLS] and [SEP]
MAX_MENTIONS = 128  # in a window

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Encoding:
    """A text as word pieces, without [CLS] and [SEP], and the range of pieces of each mention."""

    pieces: NDArray[np.int32]  # (pieces,)
    spans: Ints  # (mentions, 2): [start, end)


@dataclass(frozen=True, slots=True)
class Window:
    """At most 512 pieces of a document, [CLS] and [SEP] included, with the mentions wholly inside."""

    pieces: NDArray[np.int32]  # (pieces,)
    mentions: Ints  # (mentions,): which of the document's, from left to right
    spans: Ints  # (mentions, 2): their ranges of pieces in this window
    counting: Ints | None = None  # the places in `mentions` of those whose answers count; None: all
    centred: bool = False  # stands for as many windows as mentions count, each centred on one of them and alike else
    start: int = 0  # the piece of the document that it begins with

    @property
    def place(self) -> tuple[int, int]:
        """The pieces `[start, end)` of the document that it holds."""
        return self.start, self.start + len(self.pieces) - 2


class Tokenizer:
    """BERT's word pieces, with the ids of the special ones."""

    def __init__(self, tokenizer: _Tokenizer) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        specials = (self._special(token) for token in ("[CLS]", "[SEP]", "[PAD]", "[MASK]"))
        self.cls, self.sep, self.pad, self.mask = specials

    def _special(self, token: str) -> int:
        row = self._tokenizer.token_to_id(token)
        if row is None:
            raise ArtefactError(f"the tokenizer has no {token} piece; deixis needs a BERT word-piece tokenizer")
        return int(row)

    @classmethod
    def load(cls, folder: Path) -> Tokenizer:
        """Read `tokenizer.json`, or the `vocab.txt` of an older BERT folder (lower-cased)."""
        if (folder / "tokenizer.json").exists():
            return cls(_Tokenizer.from_file(str(folder / "tokenizer.json")))
        if (folder / "vocab.txt").exists():
            tokenizer = _Tokenizer(models.WordPiece.from_file(str(folder / "vocab.txt"), unk_token="[UNK]"))
            tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
            tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
            return cls(tokenizer)
        raise ArtefactError(f"{folder} has neither tokenizer.json nor vocab.txt; expected a BERT tokenizer")

    def save(self, folder: Path) -> None:
        """Write `tokenizer.json`."""
        self._tokenizer.save(str(folder / "tokenizer.json"))

    def __len__(self) -> int:
        return int(self._tokenizer.get_vocab_size())

    def tokens(self, pieces: Sequence[int]) -> list[str]:
        """Return the pieces as text, for people."""
        return [self._tokenizer.id_to_token(int(piece)) or "[UNK]" for piece in pieces]

    def encode(self, text: str, spans: Sequence[tuple[int, int]]) -> Encoding:
        """Return the pieces of one text; see `encode_many`."""
        return self.encode_many([(text, spans)])[0]

    def encode_many(self, texts: Sequence[tuple[str, Sequence[tuple[int, int]]]]) -> list[Encoding]:
        """Return the pieces of texts with spans `[start, end)` in characters.

        What stands between two borders of mentions is tokenised by itself, so every border is a border of pieces,
        also where mentions overlap or start inside a word. A mention without any piece (white space) takes the
        piece before it.
        """
        borders = [sorted({0, len(text), *(border for span in spans for border in span)}) for text, spans in texts]
        segments = [
            text[left:right] for (text, _), cuts in zip(texts, borders, strict=True) for left, right in pairwise(cuts)
        ]
        encoded = iter(self._tokenizer.encode_batch_fast(segments, add_special_tokens=False))
        results = []
        for (_, spans), cuts in zip(texts, borders, strict=True):
            ids: list[int] = []
            at = {cuts[0]: 0}  # character -> number of pieces before it
            for right in cuts[1:]:
                ids.extend(next(encoded).ids)
                at[right] = len(ids)
            ranges = [(min(at[start], max(at[end] - 1, 0)), at[end]) for start, end in spans]
            results.append(Encoding(np.array(ids, np.int32), np.array(ranges, np.int64).reshape(-1, 2)))
        return results

    def split_many(self, texts: Sequence[str]) -> Iterator[tuple[list[int], list[int | None], list[tuple[int, int]]]]:
        """Yield of each text its pieces, and the word and the `[start, end)` in characters of each."""
        for encoded in self._tokenizer.encode_batch(list(texts), add_special_tokens=False):
            yield encoded.ids, encoded.word_ids, encoded.offsets

    def window(
        self,
        encoding: Encoding,
        start: int,
        end: int,
        mentions: Ints,
        counting: Ints | None = None,
        centred: bool = False,
    ) -> Window:
        """Return pieces `[start, end)` between [CLS] and [SEP], with the given mentions."""
        pieces = np.concatenate(([self.cls], encoding.pieces[start:end], [self.sep])).astype(np.int32)
        spans = encoding.spans[mentions] - start + 1
        spans[:, 1] = np.maximum(spans[:, 1], spans[:, 0] + 1)  # a text without any piece: [CLS] or [SEP] stands in
        return Window(pieces, mentions, spans, counting, centred, start)


def windows_of(tokenizer: Tokenizer, encoding: Encoding, splitting: Splitting) -> Iterator[Window]:
    """Yield the windows of a document; each mention that fits into a window counts in exactly one.

    A document of at most 510 pieces is one window. A longer one is split: `simple` into nearly equal parts that
    never cut a mention, `overlapping` into windows of 510 pieces that each begin half a window after the one before,
    where a mention counts in the window whose middle is nearest, `per_mention` into one window a mention, centred on
    it. Those of `per_mention` that are alike but for the mention are one. A window takes 128 mentions; where there are
    more, `simple` sees the same pieces again for the next 128, the others keep the nearest.
    """
    order = np.lexsort((encoding.spans[:, 1], encoding.spans[:, 0]))
    order = order[np.diff(encoding.spans[order]).ravel() <= MAX_PIECES]
    if splitting == "simple" or len(encoding.pieces) <= MAX_PIECES:
        yield from _parts(tokenizer, encoding, order)
    elif splitting == "overlapping":
        yield from _overlapping(tokenizer, encoding, order)
    else:
        yield from _centred(tokenizer, encoding, order, np.arange(len(order)))


def _parts(tokenizer: Tokenizer, encoding: Encoding, order: Ints) -> Iterator[Window]:
    length = len(encoding.pieces)
    size = -(-length // max(1, -(-length // MAX_PIECES)))
    starts, ends = encoding.spans[order].T
    covered = np.zeros(len(order), bool)
    start = 0
    while True:
        end = _cut(starts, ends, start, min(start + size, length), length)
        inside = (starts >= start) & (ends <= end) & ~covered
        covered |= inside
        for first in range(0, int(inside.sum()), MAX_MENTIONS):
            yield tokenizer.window(encoding, start, end, order[inside][first : first + MAX_MENTIONS])
        if end >= length:
            break
        start = end
    # Mentions in a knot of overlaps wider than a window are cut by every split: each gets a window of its own.
    yield from _centred(tokenizer, encoding, order, np.flatnonzero(~covered))


def _cut(starts: Ints, ends: Ints, start: int, end: int, length: int) -> int:
    """Move a cut left off every mention it would go through; where nothing stays left of it, take a whole window."""
    cut = end
    while cut < length and (across := (starts < cut) & (ends > cut) & (starts >= start)).any():
        cut = int(starts[across].min())
    if cut > start:
        return cut
    return min(start + MAX_PIECES, length)


def overlapping_windows(length: int, starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return where the windows of so many pieces begin, and in which each range of pieces is at home.

    Each window begins half a window after the one before. A range is at home in the window whose middle is nearest:
    borders lie halfway between two middles.
    """
    number = -(-max(length - MAX_PIECES, 0) // (MAX_PIECES // 2)) + 1
    firsts = np.linspace(0, max(length - MAX_PIECES, 0), number).astype(np.int64)
    return firsts, np.searchsorted(firsts[:-1] + firsts[1:] + MAX_PIECES, starts + ends)


def _overlapping(tokenizer: Tokenizer, encoding: Encoding, order: Ints) -> Iterator[Window]:
    starts, ends = encoding.spans[order].T
    firsts, home = overlapping_windows(len(encoding.pieces), starts, ends)
    fits = (starts >= firsts[home]) & (ends <= firsts[home] + MAX_PIECES)
    for index, first in enumerate(firsts.tolist()):
        inside = _inside(starts, ends, first, first + MAX_PIECES)
        counting = inside[home[inside] == index]
        # Where a window has too many mentions, half of those that it takes are context.
        most = MAX_MENTIONS if len(inside) <= MAX_MENTIONS else MAX_MENTIONS // 2
        for part in range(0, len(counting), most):
            chosen = counting[part : part + most]
            taken = _nearest(inside, np.searchsorted(inside, chosen))
            places = np.searchsorted(taken, chosen)
            yield tokenizer.window(encoding, first, first + MAX_PIECES, order[taken], places)
    # A mention so long that it is cut by the border of the window nearest to it.
    yield from _centred(tokenizer, encoding, order, np.flatnonzero(~fits))


def _inside(starts: Ints, ends: Ints, start: int, end: int) -> Ints:
    """Return the mentions, sorted by their starts, that lie wholly in a range of pieces."""
    first, last = np.searchsorted(starts, (start, end))
    inside: Ints = first + np.flatnonzero(ends[first:last] <= end)
    return inside


def _nearest(inside: Ints, wanted: Ints) -> Ints:
    """Keep as many as a window takes of the mentions inside it: those at the wanted places, and what is near them.

    Wanted ones need not lie side by side: mentions that overlap them may be at home in another window.
    """
    if len(inside) <= MAX_MENTIONS:
        return inside
    distance = np.abs(np.arange(len(inside)) - wanted[len(wanted) // 2])
    distance[wanted] = -1
    return inside[np.sort(np.argsort(distance, kind="stable")[:MAX_MENTIONS])]


def _centred(tokenizer: Tokenizer, encoding: Encoding, order: Ints, places: Ints) -> Iterator[Window]:
    """Yield windows centred on each of the mentions `order[places]`; near a border of the text many are the same."""
    length = len(encoding.pieces)
    starts, ends = encoding.spans[order].T
    alike: dict[tuple[int, int, int, int], list[int]] = {}  # pieces and mentions -> mentions that it is centred on
    for place in places.tolist():
        start, end = int(starts[place]), int(ends[place])
        free = MAX_PIECES - (end - start)
        left = min(start, free // 2)
        right = min(length - end, free - left)
        left = min(start, free - right)
        inside = _inside(starts, ends, start - left, end + right)
        taken = _nearest(inside, np.searchsorted(inside, [place]))
        alike.setdefault((start - left, end + right, int(taken[0]), int(taken[-1])), []).append(place)
    for (start, end, first, last), centred in alike.items():
        inside = _inside(starts, ends, start, end)
        inside = inside[(inside >= first) & (inside <= last)]
        yield tokenizer.window(encoding, start, end, order[inside], np.searchsorted(inside, centred), centred=True)
