"""Attention over packed rows: windows lie end to end in memory, without padding.

    rows (rows, hidden)    |  window 0  |   window 1   | window 2 |    offsets say where each begins

The network asks for three things: to `append` rows of a second kind to those of a first, window by window; to take
the `appended` ones back; and to attend. No row is padding, and no attention needs a mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["Packed", "Segments"]


@dataclass(frozen=True, slots=True)
class Segments:
    """Where each window begins among packed rows."""

    offsets: Tensor  # (windows + 1,) int32
    bounds: tuple[int, ...]  # the same, at hand without asking a device
    longest: int  # rows of the longest window, or more

    @classmethod
    def of(cls, counts: NDArray[np.int64], longest: int | None = None) -> Segments:
        """Lay windows of these numbers of rows end to end."""
        offsets = np.concatenate(([0], np.cumsum(counts)))
        most = int(counts.max(initial=1)) if longest is None else longest
        return cls(torch.from_numpy(offsets.astype(np.int32)), tuple(offsets.tolist()), most)

    def to(self, device: torch.device | str) -> Segments:
        return replace(self, offsets=self.offsets.to(device, non_blocking=True))


@dataclass(frozen=True, slots=True)
class Packed:
    """Which rows see which: the queries of a window see its keys, first and second ones."""

    queries: Segments
    keys: Segments
    first_at: Tensor | None  # (first rows,) int64: where `append` puts each; None: they lie there, with room reserved
    second_at: Tensor  # (second rows,) int64

    def append(self, first: Tensor, second: Tensor) -> Tensor:
        """Append the second rows of each window to its first ones: (…, rows, size)."""
        if first.shape[-2] == 0:
            return second
        # Rows lie one behind the other in memory, also those of keys (heads, rows, size), which are a view.
        wide = first.movedim(-2, 0), second.movedim(-2, 0)
        if self.first_at is None:
            wide[0].index_copy_(0, self.second_at, wide[1])
            return first
        joined: Tensor = _Append.apply(*wide, self.first_at, self.second_at)  # type: ignore[no-untyped-call]
        return joined.movedim(0, -2)

    def reserve(self, first: Sequence[Tensor]) -> Tensor:
        """Copy first rows, in parts (heads, rows, size), to where there is room for each later `append`."""
        assert self.first_at is not None, "room was reserved before"
        parts = [part.movedim(-2, 0) for part in first]
        room = parts[0].new_empty(self.keys.bounds[-1], *parts[0].shape[1:])
        for part, to in zip(parts, torch.split(self.first_at, [len(part) for part in parts]), strict=True):
            room.index_copy_(0, to, part)
        return room.movedim(0, -2)

    def appended(self, rows: Tensor, first: Tensor) -> Tensor:
        """Return the rows (rows, hidden) that `append` put after the first."""
        return rows if first.shape[-2] == 0 else rows.index_select(0, self.second_at)

    def to(self, device: torch.device | str) -> Packed:
        first_at = None if self.first_at is None else self.first_at.to(device, non_blocking=True)
        second_at = self.second_at.to(device, non_blocking=True)
        return Packed(self.queries.to(device), self.keys.to(device), first_at, second_at)

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """Attend: (heads, rows, size) each."""
        if query.is_cuda and query.dtype in (torch.bfloat16, torch.float16):
            return self._flash(query, keys, values, dropout)
        return self._by_window(query, keys, values, dropout)

    def _flash(self, query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        # The operator under torch.nn.attention.varlen, which itself has no dropout.
        attended: Tensor = torch.ops.aten._flash_attention_forward(
            *(x.transpose(0, 1) for x in (query, keys, values)),  # (rows, heads, size)
            self.queries.offsets,
            self.keys.offsets,
            self.queries.longest,
            self.keys.longest,
            dropout,
            False,
            False,
        )[0]
        return attended.transpose(0, 1)

    def _by_window(self, query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        windows = zip(pairwise(self.queries.bounds), pairwise(self.keys.bounds), strict=True)
        parts = [
            # With a dimension for the batch it takes the fused kernel, without one the plain products.
            F.scaled_dot_product_attention(
                query[None, :, start:end], keys[None, :, first:last], values[None, :, first:last], dropout_p=dropout
            )
            for (start, end), (first, last) in windows
            if start < end
        ]
        return torch.cat([part[0].transpose(0, 1) for part in parts]).transpose(0, 1)  # rows end to end


class _Append(torch.autograd.Function):
    """Scatter two tensors of rows into one; each place is taken once, so both directions are plain copies."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, to_first: Tensor, to_second: Tensor) -> Tensor:
        ctx.save_for_backward(to_first, to_second)
        joined = first.new_empty(len(first) + len(second), *first.shape[1:])
        wide = _wide(joined)
        wide.index_copy_(0, to_first, _wide(first)).index_copy_(0, to_second, _wide(second))
        return joined

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        wide = _wide(grads[0])
        first, second = (
            wide.index_select(0, at).view(grads[0].dtype).view(-1, *grads[0].shape[1:]) for at in ctx.saved_tensors
        )
        return first, second, None, None


def _wide(rows: Tensor) -> Tensor:
    """See rows as numbers of 8 bytes each: a copy that moves four bf16 at once is that much faster."""
    flat = rows.contiguous().flatten(1)  # the gradient of a single window comes transposed
    return flat.view(torch.int64) if flat.shape[1] * flat.element_size() % 8 == 0 else flat
