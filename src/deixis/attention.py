"""How the rows of windows lie in memory and see each other: padded under a mask, or packed without padding.

    Padded    (windows, rows, hidden)   every window as long as the longest; False in the mask is seen by nobody
    Packed    (rows, hidden)            windows one behind the other; offsets say where each begins

Decoding takes padded windows, training packed ones. The network asks either for the same three things: to `join`
rows of two kinds into one sequence a window, to give the `second` kind back, and to attend.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

__all__ = ["Attention", "Packed", "Padded", "Segments"]


@dataclass(frozen=True, slots=True)
class Padded:
    """Windows padded to one shape."""

    mask: Tensor | None  # (windows, 1, 1 or rows, rows) bool: what is seen; None, which is faster: all

    def join(self, first: Tensor, second: Tensor) -> Tensor:
        """Put second rows behind first ones: (windows, …, rows, size)."""
        return torch.cat((first, second), -2)

    def second(self, rows: Tensor, first: Tensor) -> Tensor:
        """Return the rows (windows, rows, hidden) that `join` put behind the first."""
        return rows[:, first.shape[1] :]

    def select(self, windows: Tensor) -> Padded:
        """Return the part of some windows."""
        return self if self.mask is None else Padded(self.mask[windows])

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, dropout: float) -> Tensor:
        """Attend: (windows, heads, rows, size) each."""
        return F.scaled_dot_product_attention(query, keys, values, attn_mask=self.mask, dropout_p=dropout)


@dataclass(frozen=True, slots=True)
class Segments:
    """Where each window begins among packed rows."""

    offsets: Tensor  # (windows + 1,) int32
    longest: int  # rows of the longest window, or more

    def to(self, device: torch.device | str) -> Segments:
        """Return the segments on a device."""
        return Segments(self.offsets.to(device, non_blocking=True), self.longest)


@dataclass(frozen=True, slots=True)
class Packed:
    """Windows one behind the other; no row is padding, and no attention needs a mask."""

    queries: Segments
    keys: Segments
    first: Tensor  # (first rows,) int64: where `join` puts each
    behind: Tensor  # (second rows,) int64

    def join(self, first: Tensor, second: Tensor) -> Tensor:
        """Put the second rows of each window behind its first ones: (…, rows, size)."""
        if first.shape[-2] == 0:
            return second
        # Rows lie one behind the other in memory, also those of keys (heads, rows, size), which are a view.
        joined: Tensor = _Join.apply(  # type: ignore[no-untyped-call]
            first.movedim(-2, 0), second.movedim(-2, 0), self.first, self.behind
        )
        return joined.movedim(0, -2)

    def second(self, rows: Tensor, first: Tensor) -> Tensor:
        """Return the rows (rows, hidden) that `join` put behind the first."""
        return rows if first.shape[-2] == 0 else rows.index_select(0, self.behind)

    def select(self, windows: Tensor) -> Packed:
        """Packed windows stay together: decoding, where windows leave, pads."""
        raise NotImplementedError

    def to(self, device: torch.device | str) -> Packed:
        """Return the layout on a device."""
        first, behind = (tensor.to(device, non_blocking=True) for tensor in (self.first, self.behind))
        return Packed(self.queries.to(device), self.keys.to(device), first, behind)

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
        query_sizes, key_sizes = (part.offsets.diff().tolist() for part in (self.queries, self.keys))
        parts = zip(
            torch.split(query, query_sizes, 1),
            torch.split(keys, key_sizes, 1),
            torch.split(values, key_sizes, 1),
            strict=True,
        )
        return torch.cat([F.scaled_dot_product_attention(*part, dropout_p=dropout) for part in parts], 1)


Attention = Padded | Packed


class _Join(torch.autograd.Function):
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
    flat = rows.flatten(1)
    return flat.view(torch.int64) if flat.shape[1] * flat.element_size() % 8 == 0 else flat
