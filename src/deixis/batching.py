"""Windows to tensors: what the network takes, padded to the longest of windows of like length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deixis.encoding import Window

__all__ = ["Batch", "batches_by_length", "make_batch"]

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

    def to(self, device: torch.device | str) -> Batch:
        """Return the batch on a device."""
        tensors = (self.pieces, self.is_piece, self.starts, self.ends, self.is_mention)
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in tensors))


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
