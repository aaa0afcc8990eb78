"""Rows of B from text, after training: a ridge map from what the model's own encoder reads in a description.

Training makes B_e = E_e + W·x_e from another encoder's vectors and keeps the sum alone (training/descriptions.py). What
is left can be learned back: the map is fitted on the entities that training saw often, from the states of the model's
encoder over "title: description" to their rows and biases. It is small, and lies in the model folder.

    features of a text    the mean state of its pieces after each of LAYERS (0: the embeddings), one behind the other
    rows and biases       features · weight + offset
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deixis.batching import batches_of, make_batch
from deixis.encoding import Tokenizer, Window
from deixis.errors import ArtefactError, InputError
from deixis.model import Network
from deixis.vocabulary import Vocabulary

__all__ = ["Describer", "read_texts"]

LAYERS = (0, 6)  # whose states are averaged; those above are not computed
PIECES = 48  # of a text that are read, [CLS] and [SEP] among them
BATCH_ROWS = 4096
PENALTIES = (1.0, 10.0, 100.0, 1000.0)  # of the ridge, tried on a tenth that is not fitted on
FEW = 5  # links under which a row is more its description than what training made of it

Progress = Callable[[Sequence[list[int]]], Iterable[list[int]]]


@dataclass(frozen=True, slots=True)
class Describer:
    """The map from features of a text to a row of B and its bias."""

    weight: Tensor  # (features, entity_size + 1)
    offset: Tensor  # (entity_size + 1,)
    explained: float = 0.0  # share of the variance of rows that were not fitted on

    @classmethod
    def fit(
        cls,
        network: Network,
        tokenizer: Tokenizer,
        vocabulary: Vocabulary,
        descriptions: Mapping[str, str],
        *,
        limit: int = 20_000,
        seed: int = 0,
        progress: Progress = iter,
    ) -> Describer:
        """Fit the map on described entities that training saw; at most `limit` of them, chosen by seed."""
        counts = dict(zip(vocabulary.titles, vocabulary.counts, strict=True))
        able = sorted(title for title in vocabulary.titles if counts[title] >= FEW and title in descriptions)
        chosen = random.Random(seed).sample(able, min(limit, len(able)))
        if len(chosen) < 10:
            raise InputError(
                f"{len(chosen)} entities have both a description and {FEW} links; a map needs at least 10 to be "
                "fitted on (and thousands to be good)"
            )
        features = read_texts(network, tokenizer, [(title, descriptions[title]) for title in chosen], progress)
        rows = torch.tensor([vocabulary.row(title) for title in chosen])
        with torch.inference_mode():
            weight, bias = network.candidate_rows(rows)
        return _ridge(features.double(), torch.cat([weight, bias.unsqueeze(-1)], -1).double())

    def rows(
        self, network: Network, tokenizer: Tokenizer, texts: Sequence[tuple[str, str]], progress: Progress = iter
    ) -> tuple[Tensor, Tensor]:
        """Return rows (entities, entity_size) and biases (entities,) for titles and descriptions."""
        features = read_texts(network, tokenizer, texts, progress)
        if features.shape[1] != len(self.weight) or self.weight.shape[1] != network.config.entity_size + 1:
            raise ArtefactError(
                f"the map of descriptions is {tuple(self.weight.shape)} and the encoder gives {features.shape[1]} "
                "features; fit it again with `deixis entities fit`"
            )
        out = features @ self.weight + self.offset
        return out[:, :-1], out[:, -1]

    def save(self, path: Path) -> None:
        """Write the map."""
        explained = torch.tensor(self.explained)
        save_file({"weight": self.weight.contiguous(), "offset": self.offset, "explained": explained}, path)

    @classmethod
    def load(cls, path: Path) -> Describer:
        """Read a map that `save` wrote."""
        try:
            found = load_file(path)
            return cls(found["weight"].float(), found["offset"].float(), float(found["explained"]))
        except (SafetensorError, OSError, KeyError):
            raise ArtefactError(f"{path} is damaged; make it again with `deixis entities fit`") from None


def _ridge(features: Tensor, targets: Tensor) -> Describer:
    """Fit with the best of PENALTIES on a tenth, then on all with that one."""
    order = torch.randperm(len(features), generator=torch.Generator().manual_seed(0))
    last, others = order[: max(1, len(order) // 10)], order[max(1, len(order) // 10) :]
    spread = (targets[last] - targets[others].mean(0)).square().sum()

    def left(penalty: float) -> float:
        weight, offset = _solved(features[others], targets[others], penalty)
        return float((targets[last] - features[last] @ weight - offset).square().sum() / spread)

    errors = {penalty: left(penalty) for penalty in PENALTIES}
    best = min(errors, key=lambda penalty: errors[penalty])
    weight, offset = _solved(features, targets, best)
    return Describer(weight.float(), offset.float(), 1 - errors[best])


def _solved(features: Tensor, targets: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    """Ridge regression of centred targets on features of spread 1; folded back to plain features."""
    mean, target = features.mean(0), targets.mean(0)
    scale = features.std(0).clamp_min(1e-6)
    x = (features - mean) / scale
    gram = x.T @ x + penalty * torch.eye(x.shape[1], dtype=x.dtype)
    weight = torch.linalg.solve(gram, x.T @ (targets - target)) / scale.unsqueeze(-1)
    return weight, target - mean @ weight


@torch.inference_mode()
def read_texts(
    network: Network, tokenizer: Tokenizer, texts: Sequence[tuple[str, str]], progress: Progress = iter
) -> Tensor:
    """Return the features (texts, features) of titles and descriptions."""
    encoded = tokenizer.encode_many([(f"{title}: {description}", ()) for title, description in texts])
    none = np.zeros(0, np.int64)
    windows = [tokenizer.window(one, 0, min(len(one.pieces), PIECES - 2), none) for one in encoded]
    layers = [min(layer, network.config.num_hidden_layers) for layer in LAYERS]
    features = torch.zeros(len(windows), len(layers) * network.config.hidden_size)
    device = network.embeddings.word_embeddings.weight.device
    for places in progress(batches_of(windows, BATCH_ROWS)):
        features[places] = _features(network, [windows[place] for place in places], layers, device)
    return features


def _features(network: Network, windows: list[Window], layers: list[int], device: torch.device) -> Tensor:
    batch = make_batch(windows).to(device)
    counts = torch.tensor([len(window.pieces) for window in windows], device=device)
    owner = torch.repeat_interleave(torch.arange(len(windows), device=device), counts)
    rows = network.embeddings(batch.pieces, batch.places)
    means = {}
    for place in range(max(layers) + 1):
        if place:
            layer = network.encoder.layers[place - 1]
            rows = layer(rows, *layer.attention.project(rows), batch.together)
        if place in layers:
            sums = torch.zeros(len(windows), rows.shape[1], device=device).index_add_(0, owner, rows)
            means[place] = sums / counts.unsqueeze(-1)
    return torch.cat([means[place] for place in layers], -1).cpu()
