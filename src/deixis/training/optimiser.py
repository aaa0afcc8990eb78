"""What is trained and how fast: frozen parts, groups with rates of their own, AdamW, the schedule (appendix A, B)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from deixis.network.model import Network
from deixis.training.recipe import Recipe

__all__ = ["Optimiser", "freeze", "rate_at"]

TABLE = "entity_embeddings.entity_embeddings."
ENTITIES = (TABLE, "entity_predictions.bias")
PROJECTION = TABLE + "projection"  # of descriptions, where the table has them: one matrix, not a row an entity
LAYER = re.compile(r"encoder\.layer\.(\d+)\.")


def freeze(network: Network, recipe: Recipe) -> list[tuple[str, nn.Parameter]]:
    """Say which parameters are trained, set `requires_grad` so, and return them with their names."""
    trained = []
    for name, parameter in network.named_parameters():
        if recipe.train == "new":
            wanted = not from_bert(name)
        else:
            wanted = recipe.train == "all" or not name.startswith(ENTITIES)
        parameter.requires_grad_(wanted)
        if wanted:
            trained.append((name, parameter))
    return trained


def from_bert(name: str) -> bool:
    """Whether a parameter is one that a BERT folder gives."""
    return name.startswith(("embeddings.", "encoder."))


def rate_at(step: int, steps: int, recipe: Recipe) -> float:
    """Return the part of the full rate at a step, from 0: warm-up, then constant or a line down to 0."""
    warmup = max(recipe.warmup_steps, round(recipe.warmup_fraction * steps))
    if step < warmup:
        return (step + 1) / (warmup + 1)
    if recipe.decay == "none":
        return 1.0
    return max(0.0, (steps - step) / max(1, steps - warmup))


@dataclass(frozen=True, slots=True)
class Group:
    """Parameters that share a rate and a weight decay."""

    names: tuple[str, ...]
    rate: float
    decay: float
    first: int = 0  # the step from which it is trained


def groups(names: Sequence[str], layers: int, recipe: Recipe) -> list[Group]:
    """Sort parameters by rate and weight decay."""
    sorted_: dict[tuple[float, float, int], list[str]] = {}
    for name in names:
        plain = name.endswith("bias") or "LayerNorm" in name
        first = recipe.encoder_from if from_bert(name) else 0
        sorted_.setdefault((_rate(name, layers, recipe), 0.0 if plain else recipe.weight_decay, first), []).append(name)
    return [Group(tuple(members), *key) for key, members in sorted_.items()]


def _rate(name: str, layers: int, recipe: Recipe) -> float:
    if name.startswith(ENTITIES) and name != PROJECTION:
        return recipe.learning_rate if recipe.entity_rate is None else recipe.entity_rate
    if not from_bert(name):
        return recipe.learning_rate
    full = recipe.learning_rate if recipe.encoder_rate is None else recipe.encoder_rate
    layer = LAYER.match(name)
    depth = layers if layer is None else layers - 1 - int(layer[1])  # the embeddings lie below every layer
    return float(full * recipe.layer_decay**depth)


class Optimiser:
    """AdamW over the trained parameters, with the schedule of a recipe."""

    def __init__(self, trained: list[tuple[str, nn.Parameter]], layers: int, steps: int, recipe: Recipe) -> None:
        self.recipe, self.steps = recipe, steps
        self.named = dict(trained)
        self.groups = groups([name for name, _ in trained], layers, recipe)
        on_gpu = all(parameter.is_cuda for parameter in self.named.values())
        self.adam = torch.optim.AdamW(
            [{"params": [self.named[name] for name in group.names]} for group in self.groups],
            betas=(recipe.beta1, recipe.beta2),
            eps=recipe.epsilon,
            fused=on_gpu,
        )

    def update(self, step: int) -> Tensor:
        """Clip the gradient, take one step (from 0), forget the gradient; return the gradient's norm."""
        clip = self.recipe.clip or float("inf")
        norm = nn.utils.clip_grad_norm_(self.named.values(), clip)
        for settings, group in zip(self.adam.param_groups, self.groups, strict=True):
            rate = group.rate * rate_at(step, self.steps, self.recipe) if step >= group.first else 0.0
            settings.update(lr=rate, weight_decay=group.decay)
        self.adam.step()
        self.adam.zero_grad(set_to_none=True)
        return norm

    def state(self) -> dict[str, Tensor]:
        """Return the optimiser's tensors by name."""
        tensors = {}
        for name, parameter in self.named.items():
            for key, value in self.adam.state[parameter].items():
                tensors[f"{key}/{name}"] = value
        return tensors

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take the tensors of `state` back."""
        for name, parameter in self.named.items():
            state: dict[str, Any] = {}
            for key in ("step", "exp_avg", "exp_avg_sq"):
                value = tensors[f"{key}/{name}"]
                on_cpu = key == "step" and not self.adam.param_groups[0]["fused"]
                state[key] = value.clone() if on_cpu else value.to(parameter.device, copy=True)
            self.adam.state[parameter] = state
