"""Example sentences sharpen rows: a few gradient steps on the row of each entity alone, everything else frozen.

What the network makes of a mention whose entity is [MASK] does not depend on B, so it is read once; the steps are on
the loss of equation 3, over the candidates of the surface and a sample of other entities. The row is held near the one
that the description gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

from deixis.batching import batches_of, make_batch
from deixis.candidates import CandidateSource
from deixis.documents import Document
from deixis.encoding import Tokenizer, windows_of
from deixis.model import Network
from deixis.vocabulary import MASK, PAD, SPECIAL, Vocabulary

__all__ = ["read_mentions", "sharpen"]

STEPS = 30
RATE = 0.1
HOLD = 0.02  # of the squared distance to the row that the description gave, beside a loss a sentence
SAMPLE = 512  # entities that are rivals of every example
BATCH_ROWS = 4096


def sharpen(
    network: Network,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    store: CandidateSource | None,
    examples: Sequence[Document],
    owners: Sequence[int],
    rows: Tensor,
    biases: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return rows and biases moved by examples; `owners` are the places in `rows` of the examples' entities."""
    seen = read_mentions(network, tokenizer, examples)
    found = [()] * len(examples) if store is None else map(store.candidates, examples)
    rivals = _table([_rows(vocabulary, one) for one in chain.from_iterable(found)], len(seen))
    owner = torch.tensor([own for own, one in zip(owners, examples, strict=True) for _ in one.mentions])
    sample = torch.randperm(len(vocabulary) - len(SPECIAL), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    with torch.no_grad():
        weight, bias = network.candidate_rows(rivals)
        near = (weight @ seen.unsqueeze(-1)).squeeze(-1) + bias
        near = near.masked_fill(rivals == PAD, float("-inf"))
        weight, bias = network.candidate_rows(sample + len(SPECIAL))
        against = torch.cat([near, seen @ weight.T + bias], -1).logsumexp(-1)
    start = torch.cat([rows, biases.unsqueeze(-1)], -1)
    seen = torch.cat([seen, torch.ones(len(seen), 1)], -1)
    moved = start.clone().requires_grad_()
    optimiser = torch.optim.SGD([moved], lr=RATE)
    for _ in range(STEPS):
        score = (moved[owner] * seen).sum(-1)
        loss = F.softplus(against - score).sum() + HOLD * (moved - start).square().sum()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimiser.step()
    out = moved.detach()
    return out[:, :-1], out[:, -1]


@torch.no_grad()
def read_mentions(network: Network, tokenizer: Tokenizer, documents: Sequence[Document]) -> Tensor:
    """Return m_e (mentions, entity_size) of every mention, all entities [MASK]; documents follow each other."""
    encoded = tokenizer.encode_many([(one.text, [(m.start, m.end) for m in one.mentions]) for one in documents])
    first = np.cumsum([0, *(len(one.mentions) for one in documents)])
    windows, places = [], []
    for encoding, start in zip(encoded, first, strict=False):
        for window in windows_of(tokenizer, encoding, "simple"):
            windows.append(window)
            places.append(start + window.mentions)
    states = torch.zeros(int(first[-1]), network.config.entity_size)
    for group in batches_of(windows, BATCH_ROWS):
        batch = make_batch([windows[index] for index in group])
        hidden = network.answer(network.read(batch), torch.full_like(batch.starts, MASK))
        states[np.concatenate([places[index] for index in group])] = network.entity_predictions(hidden.float())
    return states


def _table(lists: Sequence[Sequence[int]], number: int) -> Tensor:
    """Lay rows of rivals out (mentions, rivals), PAD behind."""
    table = np.full((number, max([1, *map(len, lists)])), PAD, np.int64)
    for index, listed in enumerate(lists):
        table[index, : len(listed)] = listed
    return torch.from_numpy(table)


def _rows(vocabulary: Vocabulary, candidates: Sequence[tuple[str, float | None]]) -> list[int]:
    found = (vocabulary.row(title) for title, _ in candidates)
    return [row for row in found if row is not None]
