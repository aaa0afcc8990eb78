"""The layers of BERT, whose rows may also see rows computed earlier."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.network.attention import Packed
from deixis.network.config import Config

__all__ = [
    "Attention",
    "Embedding",
    "Encoder",
    "KeysValues",
    "Layer",
    "LayerNorm",
    "Linear",
    "SelfAttention",
    "activation",
]

KeysValues = tuple[Tensor, Tensor]  # each (heads, rows, hidden / heads)


def activation(name: str) -> nn.Module:
    """Return the activation that a config.json names."""
    return nn.ReLU() if name == "relu" else nn.GELU(approximate="tanh" if name == "gelu_new" else "none")


class Linear(nn.Linear):
    """A projection in the precision of its rows; the weights stay in fp32."""

    def reset_parameters(self) -> None:
        """Draw nothing: `Network.initialise` does, or a folder has the weights."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class Embedding(nn.Embedding):
    """A table of vectors."""

    def reset_parameters(self) -> None:
        """Draw nothing, as `Linear`; torch would load its compiler to draw normal numbers for a folder's network."""


class LayerNorm(nn.LayerNorm):
    """A layer norm in the precision of its rows (its sums are in fp32 all the same)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class Output(nn.Module):
    """A projection back to the residual stream, and its layer norm."""

    def __init__(self, size: int, config: Config) -> None:
        super().__init__()
        self.dense = Linear(size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + residual)
        return out


class SelfAttention(nn.Module):
    """The three projections of attention: query, key and value."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = Linear(size, size)
        self.key = Linear(size, size)
        self.value = Linear(size, size)

    def forward(self, rows: Tensor, first: int = 0, last: int = 3) -> tuple[Tensor, ...]:
        """Return some of the three, `first` to before `last`, each (rows, hidden)."""
        parts = (self.query, self.key, self.value)[first:last]
        if not torch.is_grad_enabled():
            return tuple(part(rows) for part in parts)
        # One wide product is faster than three, and joining the weights costs little beside the rows of training.
        weight = torch.cat([part.weight for part in parts]).to(rows.dtype)
        bias = torch.cat([part.bias for part in parts]).to(rows.dtype)
        return F.linear(rows, weight, bias).chunk(len(parts), -1)


class Attention(nn.Module):
    """Rows that see what they are given keys and values of."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self: nn.Module = SelfAttention(config.hidden_size)  # or the same in another precision
        self.output = Output(config.hidden_size, config)
        self.heads = config.num_attention_heads
        self.dropout = config.dropout

    def _split(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """(rows, hidden) → (heads, rows, hidden / heads)"""
        return tuple(part.view(len(part), self.heads, -1).transpose(0, 1) for part in parts)

    def queries(self, rows: Tensor) -> Tensor:
        """Return what rows look for."""
        return self._split(self.self(rows, 0, 1))[0]

    def keys_values(self, rows: Tensor) -> KeysValues:
        """Return what other rows see of these."""
        keys, values = self._split(self.self(rows, 1, 3))
        return keys, values

    def project(self, rows: Tensor) -> tuple[Tensor, KeysValues]:
        """Return the queries of rows, and what other rows see of them."""
        query, keys, values = self._split(self.self(rows, 0, 3))
        return query, (keys, values)

    def forward(self, query: Tensor, seen: KeysValues, attend: Packed) -> Tensor:
        """Attend from queries to all that `seen` holds: (rows, hidden)."""
        dropout = self.dropout if self.training else 0.0
        return attend(query, *seen, dropout).transpose(0, 1).flatten(1)


class Intermediate(nn.Module):
    """The wide half of the feed-forward block."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.activation = activation(config.hidden_act)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.dense(x))
        return out


class Layer(nn.Module):
    """One layer of BERT, whose rows may also see rows computed earlier."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.compiled: Callable[[Tensor, Tensor], Tensor] | None = None  # `finish`, compiled for training
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Output(config.intermediate_size, config)

    def forward(self, rows: Tensor, query: Tensor, seen: KeysValues, attend: Packed) -> Tensor:
        """Return the next states of rows, given their queries and the keys and values of all they see."""
        return (self.compiled or self.finish)(self.attention(query, seen, attend), rows)

    def finish(self, attended: Tensor, rows: Tensor) -> Tensor:
        """Do what comes after the attention: nothing here looks from one row to another."""
        rows = self.attention.output(attended, rows)
        out: Tensor = self.output(self.intermediate(rows), rows)
        return out


class Encoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    @property
    def layers(self) -> list[Layer]:
        return list(self.layer)  # type: ignore[arg-type]  # ModuleList is untyped in its items
