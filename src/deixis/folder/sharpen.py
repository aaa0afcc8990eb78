"""Example sentences sharpen rows: a few gradient steps on the row of each entity alone, everything else frozen.

What the network makes of a mention whose entity is [MASK] does not depend on B, so it is read once; the steps are on
the loss of equation 3, over the candidates of the surface and a sample of other entities. The row is held near the one
that the description gave.

No sentence about the others is at hand, so a row could be drawn to all that has its name. Instead it is drawn to what a
sentence says beyond the name: to m_e less that of the name by itself, which scores after the steps what it did before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

from deixis.documents import Candidate, Document
from deixis.knowledge.describe import read_texts
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import batches_of, make_batch
from deixis.network.encoding import Tokenizer, windows_of
from deixis.network.model import Network
from deixis.network.special import MASK, PAD, SPECIAL

__all__ = ["read_mentions", "sharpen"]

STEPS = 30
RATE = 0.1  # by how much a step raises the score of a sentence, at most and on average
HOLD = 0.02  # of the squared distance to the row that the description gave, beside a loss a sentence
SAMPLE = 512  # entities that are rivals of every example
BATCH_ROWS = 4096


def sharpen(
    network: Network,
    tokenizer: Tokenizer,
    knowledge: Knowledge | Vocabulary,
    examples: Sequence[Document],
    owners: Sequence[int],
    rows: Tensor,
    biases: Tensor,
) -> tuple[Tensor, Tensor]:
    """Return rows and biases moved by examples; `owners` are the places in `rows` of the examples' entities."""
    device = network.embeddings.word_embeddings.weight.device
    rows, biases = rows.cpu(), biases.cpu()  # the steps are small: all but the network's own reading is on the CPU
    seen = read_mentions(network, tokenizer, examples)
    surfaces = [one.text[mention.start : mention.end] for one in examples for mention in one.mentions]
    known = list(dict.fromkeys(surfaces))
    read = dict(zip(known, read_texts(network, tokenizer, [(surface, None) for surface in known]), strict=True))
    alone = torch.stack([read[surface] for surface in surfaces])
    has_names = not isinstance(knowledge, Vocabulary) and knowledge.has_names
    found = map(knowledge.candidates, examples) if has_names else ()  # type: ignore[union-attr]  # it has
    rivals = _table([_rows(knowledge, one) for one in chain.from_iterable(found)], len(seen))
    owner = torch.tensor([own for own, one in zip(owners, examples, strict=True) for _ in one.mentions])
    sample = torch.randperm(len(knowledge) - len(SPECIAL), generator=torch.Generator().manual_seed(0))[:SAMPLE]
    with torch.no_grad():
        weight, bias = (x.cpu() for x in network.candidate_rows(rivals.to(device)))
        near = (weight @ seen.unsqueeze(-1)).squeeze(-1) + bias
        near = near.masked_fill(rivals == PAD, float("-inf"))
        weight, bias = (x.cpu() for x in network.candidate_rows((sample + len(SPECIAL)).to(device)))
        against = torch.cat([near, seen @ weight.T + bias], -1).logsumexp(-1)
        before = (rows[owner] * seen).sum(-1) + biases[owner]
    moved, beyond = torch.zeros_like(rows, requires_grad=True), seen - alone
    optimiser = torch.optim.SGD([moved], lr=RATE / float(beyond.square().sum(-1).mean().clamp_min(1e-6)))
    for _ in range(STEPS):
        score = before + (moved[owner] * beyond).sum(-1)
        loss = F.softplus(against - score).sum() + HOLD * moved.square().sum()
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        optimiser.step()
    move, number = moved.detach(), owner.bincount(minlength=len(rows)).clamp_min(1)
    for_names = torch.zeros_like(biases).index_add_(0, owner, (move[owner] * alone).sum(-1)) / number
    return rows + move, biases - for_names


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
        batch = make_batch([windows[index] for index in group]).to(network.embeddings.word_embeddings.weight.device)
        hidden = network.answer(network.read(batch), torch.full_like(batch.starts, MASK))
        states[np.concatenate([places[index] for index in group])] = network.entity_predictions(hidden.float()).cpu()
    return states


def _table(lists: Sequence[Sequence[int]], number: int) -> Tensor:
    """Lay rows of rivals out (mentions, rivals), PAD behind."""
    table = np.full((number, max([1, *map(len, lists)])), PAD, np.int64)
    for index, listed in enumerate(lists):
        table[index, : len(listed)] = listed
    return torch.from_numpy(table)


def _rows(knowledge: Knowledge | Vocabulary, candidates: Sequence[Candidate]) -> list[int]:
    found = (knowledge.number(candidate.entity) for candidate in candidates)
    return [row for row in found if row is not None]
