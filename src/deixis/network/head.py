"""The entity head: from the state of an answer to the scores of entities (paper 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from deixis.network.config import Config
from deixis.network.layers import LayerNorm, Linear, activation

__all__ = ["EntityHead"]


class Transform(nn.Module):
    """m_e = layernorm(gelu(W_f h_e + b_f)) (equation 2)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.entity_size)
        self.LayerNorm = LayerNorm(config.entity_size, config.layer_norm_eps)
        self.activation = activation(config.hidden_act)

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.activation(self.dense(hidden)))
        return out


class EntityHead(nn.Module):
    """What turns h_e into m_e, and b_o; B is the entity table itself (equation 1)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.transform = Transform(config)
        self.bias = nn.Parameter(torch.empty(config.entities))

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.transform(hidden)
        return out
