"""Rows of B from text, after training: a ridge map from what the network reads in a description.

Training makes B_e = E_e + W·x_e from another encoder's vectors and keeps the sum alone (training/descriptions.py). What
is left can be learned back. The network is asked who is meant in a text that begins with the title, as it is asked of
any mention, and its m_e is mapped to the entity's row and bias:

    "Velm Cup: a rowing race …"    the title is the mention, its entity is [MASK]
    m_e (equation 2)               what rows of B are multiplied with, so a row of the same make
    row and bias                   m_e · weight + offset

A regression draws rows towards their mean, where they would lose against trained ones: they are stretched until they
spread as trained ones do. Stretched until a row scores its own mentions as a trained one does, it would take those of
others: what it lacks of the trained row does not lie where it points. And a name by itself makes the network expect
things ("Azurel" sounds like a drug); half of what the row scores for the text "Azurel." is taken off its bias. A name
that says nothing earns a row no more than a usual one: odd names would win everywhere.

The map is fitted on the entities that training saw often. It is small, and lies in the model folder. Other features
were tried (benchmarks/entities.md).
"""

from __future__ import annotations

import copy
import math
import random
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deixis.errors import ArtefactError, InputError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import Batch, batches_of, make_batch
from deixis.network.encoding import MAX_PIECES, Encoding, Tokenizer
from deixis.network.layers import SelfAttention
from deixis.network.model import Network
from deixis.network.precision import compute_in
from deixis.network.special import MASK

__all__ = ["Describer", "read_texts"]

PIECES = 24  # of a text that are read, [CLS] and [SEP] among them
BATCH_ROWS = 1024  # what lies between two layers stays in a core's cache
MANY = 64  # texts are worth a copy that reads them faster, and show it what numbers to expect
PENALTIES = (1.0, 10.0, 100.0, 1000.0)  # of the ridge, tried on a tenth that is not fitted on
LEAST = 0.5  # of the variance is taken as explained, however little it is
TAKEN_OFF = 0.5  # of what a row scores for its name by itself
FEW = 5  # links under which a row is more its description than what training made of it

_BRACKETS = re.compile(r"\s?\([^()]*\)")

Progress = Callable[[Sequence[list[int]]], Iterable[list[int]]]


@dataclass(frozen=True, slots=True)
class Describer:
    """The map from m_e of a description to a row of B and its bias."""

    weight: Tensor  # (entity_size, entity_size + 1)
    offset: Tensor  # (entity_size + 1,)
    level: float = 0.0  # the mean score of rows for their names by themselves
    explained: float = 0.0  # share of the variance of rows that were not fitted on
    spread: float = math.inf  # the standard deviation of the scores whose mean is the level; older maps lack it

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
        alone = read_texts(network, tokenizer, [(title, None) for title in chosen], progress)
        rows = torch.tensor([vocabulary.row(title) for title in chosen], device=network.entity_predictions.bias.device)
        with torch.no_grad():
            weight, bias = network.candidate_rows(rows)
        found = _ridge(features.double(), torch.cat([weight, bias.unsqueeze(-1)], -1).double().cpu())
        spoken = (found._mapped(features)[:, :-1] * alone).sum(-1)
        return replace(found, level=float(spoken.mean()), spread=float(spoken.std()))

    def rows(
        self,
        network: Network,
        tokenizer: Tokenizer,
        texts: Sequence[tuple[str, str | None]],
        names: Sequence[str | None] | None = None,
        progress: Progress = iter,
    ) -> tuple[Tensor, Tensor]:
        """Return rows (entities, entity_size) and biases (entities,) for titles and descriptions.

        `names` are what texts call them, where that is not the title.
        """
        if self.weight.shape != (network.config.entity_size, network.config.entity_size + 1):
            raise ArtefactError(
                f"the map of descriptions is {tuple(self.weight.shape)}, made for another table than this one of "
                f"{network.config.entity_size} columns; fit it again with `deixis entities fit`"
            )
        called = [title for title, _ in texts] if names is None else names
        spoken = [(name or title, None) for name, (title, _) in zip(called, texts, strict=True)]
        place = {text: number for number, text in enumerate(dict.fromkeys([*texts, *spoken]))}  # each is read once
        states = read_texts(network, tokenizer, list(place), progress)
        out = self._mapped(states[[place[text] for text in texts]])
        alone = states[[place[text] for text in spoken]]
        rows, biases = out[:, :-1], out[:, -1]
        over = (rows * alone).sum(-1) - self.level
        return rows, biases - TAKEN_OFF * over.clamp_min(-self.spread)

    def _mapped(self, features: Tensor) -> Tensor:
        return features @ self.weight + self.offset

    def save(self, path: Path) -> None:
        told = torch.tensor([self.level, self.explained, self.spread])
        save_file({"weight": self.weight.contiguous(), "offset": self.offset, "level_explained": told}, path)

    @classmethod
    def load(cls, path: Path) -> Describer:
        """Read a map that `save` wrote."""
        try:
            found = load_file(path)
            return cls(found["weight"], found["offset"], *found["level_explained"].tolist())
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
    # Rows that explain the share r of the variance of the trained ones have r of it themselves.
    stretch = torch.full((targets.shape[1],), max(LEAST, 1 - errors[best]) ** -0.5, dtype=targets.dtype)
    stretch[-1] = 1  # the bias is no such product
    mean = targets.mean(0)
    return Describer((weight * stretch).float(), (mean + stretch * (offset - mean)).float(), explained=1 - errors[best])


def _solved(features: Tensor, targets: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    """Ridge regression of centred targets on features of spread 1; folded back to plain features."""
    mean, target = features.mean(0), targets.mean(0)
    scale = features.std(0).clamp_min(1e-6)
    x = (features - mean) / scale
    gram = x.T @ x + penalty * torch.eye(x.shape[1], dtype=x.dtype)
    weight = torch.linalg.solve(gram, x.T @ (targets - target)) / scale.unsqueeze(-1)
    return weight, target - mean @ weight


def read_texts(
    network: Network, tokenizer: Tokenizer, texts: Sequence[tuple[str, str | None]], progress: Progress = iter
) -> Tensor:
    """Return m_e (texts, entity_size) of the titles in texts "title: description", or in "Title." by itself."""
    encoded = tokenizer.encode_many([(_text(title, text), [(0, len(_name(title)))]) for title, text in texts])
    only = np.zeros(1, np.int64)
    windows = [tokenizer.window(one, 0, _end(one), only) for one in encoded]
    states = torch.zeros(len(windows), network.config.entity_size)
    device = network.embeddings.word_embeddings.weight.device
    reader = network if len(windows) < MANY else _fast(network, make_batch(windows[:MANY]).to(device))

    @torch.no_grad()  # which holds for its own thread alone
    def read(places: list[int]) -> Tensor:
        batch = make_batch([windows[place] for place in places]).to(device)
        hidden = reader.answer(reader.read(batch), torch.full_like(batch.starts, MASK))
        found: Tensor = reader.entity_predictions(hidden.float()).cpu()
        return found

    # A core reads its own batches: texts are short, and two that share every product wait for each other.
    threads, batches = torch.get_num_threads(), batches_of(windows, BATCH_ROWS)
    cores = threads if device.type == "cpu" else 1
    try:
        with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(threads // cores,)) as pool:
            for places, found in zip(progress(batches), pool.map(read, batches), strict=True):
                states[places] = found
    finally:
        torch.set_num_threads(threads)
    return states


def _text(title: str, description: str | None) -> str:
    """Return what is read; what a description has in brackets, as dates and sounds, tells little for its length."""
    return f"{_name(title)}." if description is None else f"{title}: {_BRACKETS.sub('', description)}"


def _end(encoding: Encoding) -> int:
    """Return where a text is cut: after PIECES, but not inside its title."""
    return min(len(encoding.pieces), max(PIECES - 2, int(encoding.spans[0, 1])), MAX_PIECES)


def _name(title: str) -> str:
    """Return a title without its bracket: what a text would call it."""
    from deixis.knowledge.surfaces import short_titles  # training opens folders where no store can be read

    return next((short for short in short_titles(title) if title.startswith(short)), title)


def _fast(network: Network, usual: Batch) -> Network:
    """Return a network that reads as fast as the machine can, given a sample: this one, or a copy of its layers."""
    device = network.embeddings.word_embeddings.weight.device
    tell: Callable[[], Mapping[str, Any]] = getattr(torch.cpu, "get_capabilities", dict)  # older torch has none
    able = tell()
    if device.type == "cuda" or able.get("avx512_bf16"):
        reader = copy.copy(network)
        reader.precision = torch.bfloat16  # of rows; the weights are shared
        return reader
    as_opened = all(isinstance(layer.attention.self, SelfAttention) for layer in network.encoder.layers)
    if not able.get("avx512_vnni") or not as_opened:
        return network
    shared = {id(part): part for name, part in network.named_children() if name != "encoder"}
    reader = copy.deepcopy(network, shared)
    compute_in(reader, "int8", usual)
    return reader
