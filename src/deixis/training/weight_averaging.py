"""The average of models' weights: of several runs, and with the encoder they started from.

Runs from one start lie in one valley, and what lies between them often answers better than either. An encoder moved
part of the way back to where it started has kept more of what it knew of texts unlike Wikipedia's.

Training shows entities that are right; inference shows what it has decided, which is wrong now and then. A model that
trusts a decided entity less reads it as if it were part of the way to [MASK].
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder, network_from_bert
from deixis.training.optimiser import from_bert

__all__ = ["average", "read_weighted", "trust"]


def read_weighted(text: str) -> tuple[Path, float]:
    """Read FOLDER=WEIGHT."""
    folder, equals, weight = text.rpartition("=")
    try:
        return Path(folder if equals else text), float(weight)
    except ValueError:
        raise InputError(f"{text!r} is not FOLDER=WEIGHT, such as model/=0.5") from None


@torch.no_grad()
def average(models: Sequence[tuple[ModelFolder, float]], start: tuple[Path, float] | None = None) -> ModelFolder:
    """Return the first model with the weighted mean of all weights; of the encoder, also with that of a BERT folder.

    The weights of the models add up to 1; the encoder's mean then gives `start` its part, and the models the rest.
    """
    total = sum(weight for _, weight in models)
    if not models or abs(total - 1) > 1e-6:
        raise InputError(f"the weights of the models add up to {total:g}; expected 1")
    if start is not None and not 0 <= start[1] <= 1:
        raise InputError(f"the starting encoder's weight is {start[1]:g}; expected 0 to 1")
    first = models[0][0]
    for model, _ in models[1:]:
        if model.vocabulary.digest != first.vocabulary.digest or model.network.config != first.network.config:
            raise InputError("the models differ in vocabulary or shape; only runs of one start can be averaged")
    for model, _ in models:
        entities = model.network.entity_embeddings
        entities.entity_embeddings = entities.entity_embeddings.quantised("fp32")
    mean: dict[str, Tensor] = {}
    for model, weight in models:
        for name, parameter in model.network.named_parameters():
            mean[name] = mean.get(name, 0) + weight * parameter
    if start is not None:
        folder, part = start
        given = network_from_bert(folder, first.network.config.entities, torch.Generator())
        for name, parameter in given.named_parameters():
            if from_bert(name):
                mean[name] = torch.lerp(mean[name], parameter, part)
    for name, parameter in first.network.named_parameters():
        parameter.copy_(mean[name])
    return first


@torch.no_grad()
def trust(model: ModelFolder, part: float) -> None:
    """Let an entity in the input be what it was by a part, and [MASK] by the rest; all masked, nothing changes.

    U is linear: U' = part U, and what [MASK] lacks then goes into the embedding that all entities share.
    """
    if not 0 <= part <= 1:
        raise InputError(f"trust in decided entities is {part:g}; expected 0 to 1")
    entities = model.network.entity_embeddings
    if isinstance(entities.entity_embedding_dense, nn.Identity):
        raise InputError("trust needs a matrix between B and the encoder; train with an --entity-size below its width")
    entities.token_type_embeddings.weight[0] += (1 - part) * entities.entity_embedding_dense(entities.mask_embedding)
    entities.entity_embedding_dense.weight *= part
