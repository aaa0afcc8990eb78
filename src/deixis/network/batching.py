"""Windows to tensors: what the network takes, windows end to end without padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.network.attention import Packed, Segments
from deixis.network.encoding import Window

__all__ = ["Batch", "append_layout", "batches_of", "make_batch", "pack"]

Ints = NDArray[np.int64]

MAX_MENTION_PIECES = 30  # of a mention count for its position (protocol 9)


@dataclass(frozen=True, slots=True)
class Batch:
    """Windows end to end, without padding."""

    pieces: Tensor  # (pieces,) int64
    places: Tensor  # (pieces,) int64: the place of each in its window
    starts: Tensor  # (mentions,) int64: first piece of each mention in its window
    ends: Tensor  # (mentions,) int64: the piece after its last, at most 30 after the first
    span_pieces: Tensor  # (pieces of mentions,) int64: the pieces of each mention, among all of the batch
    span_offsets: Tensor  # (mentions,) int64: where each mention begins in these
    longest: int  # pieces of the longest window, or more
    piece_counts: Ints  # (windows,)
    mention_counts: Ints  # (windows,)
    word_rows: Segments
    joint: Packed  # words and one row a mention, all seeing all
    answers: Packed  # answers that see words, placeholders and each other

    @property
    def words(self) -> Packed:
        """Words that see words only."""
        return replace(self.joint, queries=self.word_rows, keys=self.word_rows)

    @property
    def placeholders(self) -> Packed:
        """Placeholders that see words and each other."""
        return replace(self.joint, queries=self.answers.queries)

    def __len__(self) -> int:
        return len(self.piece_counts)

    def parts(self, rows: int) -> list[Batch]:
        """Return the windows in parts of at most so many rows of words and mentions; one window may have more."""
        needed = self.piece_counts + self.mention_counts
        cuts, free = [0], rows
        for index, number in enumerate(needed.tolist()):
            if number > free and index > cuts[-1]:
                cuts.append(index)
                free = rows
            free -= number
        cuts.append(len(needed))
        if len(cuts) == 2:
            return [self]
        pieces, spans = self.pieces.numpy(), torch.stack((self.starts, self.ends), 1).numpy()
        ends = np.concatenate(([0], self.piece_counts.cumsum())), np.concatenate(([0], self.mention_counts.cumsum()))
        return [
            pack(
                pieces[ends[0][first] : ends[0][last]],
                self.piece_counts[first:last],
                spans[ends[1][first] : ends[1][last]],
                self.mention_counts[first:last],
            )
            for first, last in pairwise(cuts)
        ]

    def to(self, device: torch.device | str) -> Batch:
        moved: dict[str, Any] = {}
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, Tensor):
                moved[name] = value.to(device, non_blocking=True)
            elif isinstance(value, Segments | Packed):
                moved[name] = value.to(device)
        return replace(self, **moved)


def pack(pieces: Ints, piece_counts: Ints, spans: Ints, mention_counts: Ints) -> Batch:
    """Pack windows whose pieces, [CLS] and [SEP] among them, and mention spans (mentions, 2) lie end to end."""
    starts = spans[:, 0]
    ends = np.minimum(spans[:, 1], starts + MAX_MENTION_PIECES)
    places = np.arange(piece_counts.sum()) - np.repeat(np.cumsum(piece_counts) - piece_counts, piece_counts)
    # Rounded up: the kernel takes the longest as the size of its grid, and few sizes mean few compilations.
    longest = _rounded(piece_counts.max(initial=1), 64)
    most = _rounded(mention_counts.max(initial=1), 16)
    static = piece_counts + mention_counts
    joint = append_layout(piece_counts, mention_counts, Segments.of(static, longest + most))
    seen = append_layout(static, mention_counts, Segments.of(static + mention_counts, longest + 2 * most))
    sizes = ends - starts
    span_offsets = np.cumsum(sizes) - sizes
    firsts = starts + np.repeat(np.cumsum(piece_counts) - piece_counts, mention_counts)
    span_pieces = np.arange(sizes.sum()) + np.repeat(firsts - span_offsets, sizes)
    return Batch(
        torch.from_numpy(pieces),
        torch.from_numpy(places),
        torch.from_numpy(np.ascontiguousarray(starts)),
        torch.from_numpy(ends),
        torch.from_numpy(span_pieces),
        torch.from_numpy(span_offsets),
        longest,
        piece_counts,
        mention_counts,
        Segments.of(piece_counts, longest),
        joint,
        replace(seen, queries=Segments.of(mention_counts, most)),
    )


def append_layout(first: Ints, second: Ints, rows: Segments | None = None) -> Packed:
    """Return the layout that appends the second rows of each window to its first ones, all seeing all."""
    before_first, before_second = np.cumsum(first), np.cumsum(second)
    to_first = np.arange(first.sum()) + np.repeat(before_second - second, first)
    to_second = np.arange(second.sum()) + np.repeat(before_first, second)
    rows = rows or Segments.of(first + second)
    return Packed(rows, rows, torch.from_numpy(to_first), torch.from_numpy(to_second))


def _rounded(number: int, multiple: int) -> int:
    return -(-int(number) // multiple) * multiple


def make_batch(windows: Sequence[Window]) -> Batch:
    pieces, spans = [window.pieces for window in windows], [window.spans for window in windows]
    piece_counts, mention_counts = (np.array([len(part) for part in parts]) for parts in (pieces, spans))
    return pack(np.concatenate(pieces).astype(np.int64), piece_counts, np.concatenate(spans), mention_counts)


def batches_of(windows: Sequence[Window], rows: int) -> list[list[int]]:
    """Group windows with like numbers of mentions, which take like numbers of steps, into batches of at most `rows`.

    Rows are those of words, placeholders and answers; one window may have more.
    """
    batches: list[list[int]] = []
    free = 0
    for index in sorted(range(len(windows)), key=lambda index: len(windows[index].mentions)):
        needed = len(windows[index].pieces) + 2 * len(windows[index].mentions)
        if needed > free or not batches:
            batches.append([])
            free = rows
        batches[-1].append(index)
        free -= needed
    return batches
