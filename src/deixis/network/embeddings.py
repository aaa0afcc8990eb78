"""Embeddings of words and entities, and the entity table B."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.errors import ArtefactError
from deixis.network.batching import Batch
from deixis.network.config import Config
from deixis.network.layers import Embedding, LayerNorm, Linear
from deixis.network.quantisation import quantise_rows, round_rows
from deixis.network.special import MASK

__all__ = ["EntityEmbeddings", "EntityTable", "WordEmbeddings"]


class WordEmbeddings(nn.Module):
    """Token, type and position embedding of words (A, C_word, D)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, pieces: Tensor, places: Tensor) -> Tensor:
        """Embed pieces (pieces,) at their places in their windows."""
        x = self.word_embeddings(pieces) + self.token_type_embeddings.weight[0] + self.position_embeddings(places)
        out: Tensor = self.dropout(self.LayerNorm(x))
        return out


class EntityTable(nn.Module):
    """B: one row an entity, in fp32, fp16, or int8 with a scale a row; rows come out in the scale's precision."""

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        super().__init__()
        if weight.dtype == torch.int8 and scale is None:
            raise ArtefactError("an int8 entity table needs one scale a row")
        # Only a table in full precision is trained; the others are read as they lie on disk.
        self.weight = nn.Parameter(weight, requires_grad=weight.dtype == torch.float32)
        self.scale = None if scale is None else nn.Parameter(scale, requires_grad=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows (…) of B as (…, entity_size)."""
        if self.weight.dtype == torch.float32:
            return F.embedding(rows, self.weight)
        x = self.weight[rows].float()
        return x if self.scale is None else x * self.scale[rows].unsqueeze(-1)

    def whole(self) -> Tensor:
        """Return all of B, (entities, entity_size)."""
        if self.weight.dtype == torch.float32:
            return self.weight
        rows: Tensor = self(torch.arange(len(self.weight), device=self.weight.device))
        return rows

    def quantised(self, precision: Literal["fp32", "fp16", "int8"], seen: Tensor | None = None) -> EntityTable:
        """Return the table in another precision; int8 is rounded for vectors m_e (seen, entity_size), if given."""
        if precision == "int8" and self.weight.dtype == torch.int8:
            return self  # as it was rounded
        x = self.whole().detach()
        if precision == "fp32":
            return EntityTable(x)
        if precision == "fp16":
            return EntityTable(x.half())
        return EntityTable(*(quantise_rows(x) if seen is None else round_rows(x, seen)))


class EntityEmbeddings(nn.Module):
    """Token, type and position embedding of entities (B, C_entity, E)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.entity_embeddings = EntityTable(torch.empty(config.entities, config.entity_size))
        # [MASK] has a vector of its own, so that fine-tuning can train it while B stays fixed (protocol 12).
        self.mask_embedding = nn.Parameter(torch.empty(config.entity_size))
        self.entity_embedding_dense = (
            Linear(config.entity_size, config.hidden_size, bias=False)
            if config.entity_size != config.hidden_size
            else nn.Identity()
        )
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(1, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def positions(self, batch: Batch) -> Tensor:
        """Average E over the pieces of each mention: (mentions, hidden)."""
        place = torch.arange(batch.longest, device=batch.pieces.device)
        inside = (place >= batch.starts.unsqueeze(-1)) & (place < batch.ends.unsqueeze(-1))
        weight = self.position_embeddings.weight[: len(place)]
        average: Tensor = inside.to(weight.dtype) @ weight
        return average / (batch.ends - batch.starts).unsqueeze(-1)

    def forward(self, entities: Tensor | None, positions: Tensor) -> Tensor:
        """Embed rows of B (mentions,), MASK among them, at averaged positions; None: all are MASK."""
        token: Tensor = self.mask_embedding
        if entities is not None:
            token = torch.where((entities == MASK).unsqueeze(-1), token, self.entity_embeddings(entities))
        x = self.entity_embedding_dense(token) + self.token_type_embeddings.weight[0] + positions
        out: Tensor = self.dropout(self.LayerNorm(x))
        return out
