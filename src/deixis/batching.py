"""Windows to tensors: what the network takes, padded to the longest of windows of like length, or packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.attention import Packed, Padded, Segments
from deixis.encoding import Window

__all__ = ["Batch", "PackedBatch", "batches_by_length", "make_batch", "pack"]

Ints = NDArray[np.int64]

MAX_MENTION_PIECES = 30  # of a mention count for its position (protocol 9)


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows as tensors; False in a mask is padding."""

    pieces: Tensor  # (windows, pieces) int64
    is_piece: Tensor  # (windows, pieces) bool
    starts: Tensor  # (windows, mentions) int64: first piece of each mention
    ends: Tensor  # (windows, mentions) int64: the piece after its last, at most 30 after the first
    is_mention: Tensor  # (windows, mentions) bool

    def __len__(self) -> int:
        return len(self.pieces)

    @property
    def places(self) -> None:
        """The places of pieces in their windows; None: their columns."""
        return None

    @property
    def longest(self) -> int:
        """Pieces of the longest window."""
        return self.pieces.shape[1]

    def together(self) -> Padded:
        """Words and one row a mention, all seeing all."""
        return _padded(self.is_piece, self.is_mention)

    def answers(self) -> Padded:
        """Answers that see words, placeholders and each other."""
        return _padded(self.is_piece, self.is_mention, self.is_mention)

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on a device."""
        tensors = (self.pieces, self.is_piece, self.starts, self.ends, self.is_mention)
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


def _padded(*parts: Tensor) -> Padded:
    """Join masks of rows into one that attention takes; None, which is faster, where nothing is padding."""
    mask = torch.cat(parts, 1)[:, None, None]
    return Padded(None if bool(mask.all()) else mask)


@dataclass(frozen=True, slots=True)
class PackedBatch:
    """Windows one behind the other, without padding."""

    pieces: Tensor  # (pieces,) int64
    places: Tensor  # (pieces,) int64: the place of each in its window
    starts: Tensor  # (mentions,) int64: first piece of each mention in its window
    ends: Tensor  # (mentions,) int64: the piece after its last, at most 30 after the first
    longest: int  # pieces of the longest window, or more
    windows: int
    packed_together: Packed
    packed_answers: Packed

    def __len__(self) -> int:
        return self.windows

    def together(self) -> Packed:
        """Words and one row a mention, all seeing all."""
        return self.packed_together

    def answers(self) -> Packed:
        """Answers that see words, placeholders and each other."""
        return self.packed_answers

    def to(self, device: torch.device | str) -> PackedBatch:
        """Return the batch on a device."""
        tensors = (self.pieces, self.places, self.starts, self.ends)
        pieces, places, starts, ends = (tensor.to(device, non_blocking=True) for tensor in tensors)
        together, answers = self.packed_together.to(device), self.packed_answers.to(device)
        return PackedBatch(pieces, places, starts, ends, self.longest, self.windows, together, answers)


def pack(pieces: Ints, piece_counts: Ints, spans: Ints, mention_counts: Ints) -> PackedBatch:
    """Pack windows whose pieces, [CLS] and [SEP] among them, and mention spans (mentions, 2) lie end to end."""
    starts = spans[:, 0]
    ends = np.minimum(spans[:, 1], starts + MAX_MENTION_PIECES)
    places = _places(piece_counts)
    # Rounded up: the kernel takes the longest as the size of its grid, and few sizes mean few compilations.
    longest = _rounded(piece_counts.max(initial=1), 64)
    most = _rounded(mention_counts.max(initial=1), 16)
    static = piece_counts + mention_counts
    words_and_mentions = Segments(_offsets(static), longest + most)
    behind_words = Packed(words_and_mentions, words_and_mentions, *_interleaved(piece_counts, mention_counts))
    behind_static = Packed(
        Segments(_offsets(mention_counts), most),
        Segments(_offsets(static + mention_counts), longest + 2 * most),
        *_interleaved(static, mention_counts),
    )
    return PackedBatch(
        torch.from_numpy(pieces),
        torch.from_numpy(places),
        torch.from_numpy(np.ascontiguousarray(starts)),
        torch.from_numpy(ends),
        longest,
        len(piece_counts),
        behind_words,
        behind_static,
    )


def _places(counts: Ints) -> Ints:
    """Count from 0 in every window."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)


def _rounded(number: int, multiple: int) -> int:
    return -(-int(number) // multiple) * multiple


def _offsets(counts: Ints) -> Tensor:
    return torch.from_numpy(np.concatenate(([0], np.cumsum(counts))).astype(np.int32))


def _interleaved(first: Ints, second: Ints) -> tuple[Tensor, Tensor]:
    """Return where first and second rows go when each window's second ones stand behind its first ones."""
    before_first, before_second = np.cumsum(first), np.cumsum(second)
    to_first = np.arange(first.sum()) + np.repeat(before_second - second, first)
    to_second = np.arange(second.sum()) + np.repeat(before_first, second)
    return torch.from_numpy(to_first), torch.from_numpy(to_second)


def make_batch(windows: Sequence[Window], pad: int = 0) -> Batch:
    """Pad windows to one shape."""
    longest = max((len(window.pieces) for window in windows), default=0)
    most = max((len(window.mentions) for window in windows), default=0)
    pieces = np.full((len(windows), longest), pad, np.int64)
    is_piece = np.zeros(pieces.shape, bool)
    spans = np.zeros((len(windows), most, 2), np.int64)
    spans[..., 1] = 1  # a padded mention stands on [CLS], so that its average is defined
    is_mention = np.zeros((len(windows), most), bool)
    for index, window in enumerate(windows):
        pieces[index, : len(window.pieces)] = window.pieces
        is_piece[index, : len(window.pieces)] = True
        spans[index, : len(window.spans)] = window.spans
        is_mention[index, : len(window.spans)] = True
    starts, ends = spans[..., 0], np.minimum(spans[..., 1], spans[..., 0] + MAX_MENTION_PIECES)
    return Batch(*(torch.from_numpy(array) for array in (pieces, is_piece, starts, ends, is_mention)))


def batches_by_length(windows: Sequence[Window], rows: int) -> list[list[int]]:
    """Group windows of like length into batches of at most `rows` padded rows (pieces and mentions)."""
    order = sorted(range(len(windows)), key=lambda i: (len(windows[i].pieces), len(windows[i].mentions)))
    batches: list[list[int]] = []
    most = 0
    for index in order:  # lengths rise, so the newest window is the longest
        window = windows[index]
        wider = max(most, len(window.mentions))
        if batches and (len(batches[-1]) + 1) * (len(window.pieces) + 2 * wider) <= rows:
            batches[-1].append(index)
            most = wider
        else:
            batches.append([index])
            most = len(window.mentions)
    return batches
