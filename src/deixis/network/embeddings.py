"""Embeddings of words and entities."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deixis.network.batching import Batch
from deixis.network.config import Config
from deixis.network.entity_table import EntityTable
from deixis.network.layers import Embedding, LayerNorm, Linear
from deixis.network.special import MASK

__all__ = ["EntityEmbeddings", "WordEmbeddings"]


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
