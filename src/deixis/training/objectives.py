"""The two losses: over the whole vocabulary (paper equations 1 and 2), and over a mention's candidates (equation 3)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

from deixis.network.model import Network
from deixis.network.special import PAD
from deixis.training.steps import Pass

__all__ = ["AddedLoss", "Outcome", "candidate_loss", "outcome", "score_rows", "vocabulary_loss"]

# What a recipe may add to the loss of a pass: of the network, the pass and m_e of its targets (targets, entity_size),
# summed over the targets. Distillation, for one.
AddedLoss = Callable[[Network, Pass, Tensor], Tensor]

CELLS = 1 << 26  # of logits in memory at once: 256 MiB in fp32


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a pass gave, summed over its targets."""

    loss: Tensor  # () fp32
    correct: Tensor  # () int64: targets whose entity had the highest score


def outcome(network: Network, data: Pass, candidate_weight: float, added: AddedLoss | None = None) -> Outcome:
    """Predict the targets of a pass: the loss over the vocabulary, the one over candidates, or a mixture."""
    answers = network.answer(network.read(data.batch), data.entities)
    states = network.entity_predictions(answers.index_select(0, data.targets).float())
    results: list[tuple[float, Outcome]] = []
    if candidate_weight < 1:
        results.append((1 - candidate_weight, vocabulary_loss(network, states, data.labels)))
    if candidate_weight > 0:
        if data.candidates is None:
            raise ValueError("candidate_weight is above 0, but the pass has no candidates")
        results.append((candidate_weight, candidate_loss(network, states, data.labels, data.candidates)))
    loss = torch.stack([weight * result.loss for weight, result in results]).sum()
    if added is not None:
        loss = loss + added(network, data, states)
    return Outcome(loss, results[0][1].correct)


def score_rows(network: Network, states: Tensor, rows: Tensor) -> Tensor:
    """Return B*·m_e + b*_o of entities (targets, n)."""
    weight, bias = network.candidate_rows(rows)
    return (weight @ states.unsqueeze(-1)).squeeze(-1) + bias


def vocabulary_loss(network: Network, states: Tensor, labels: Tensor) -> Outcome:
    """Sum -log softmax(B·m_e + b_o) of the labels over all entities (equation 1)."""
    table = network.entity_embeddings.entity_embeddings.whole()
    loss, correct = _WholeSoftmax.apply(  # type: ignore[no-untyped-call]
        states, table, network.entity_predictions.bias, labels, network.precision, network.compiled
    )
    return Outcome(loss, correct)


def candidate_loss(network: Network, states: Tensor, labels: Tensor, candidates: Tensor) -> Outcome:
    """Sum -log softmax(B*·m_e + b*_o) of the labels over their candidates (equation 3).

    The label stands first; its own place among the candidates is crossed out, so that each entity counts once, and
    a label that is not among its candidates has them as rivals all the same.
    """
    rows = torch.cat((labels.unsqueeze(-1), candidates), -1)  # (targets, 1 + candidates)
    rivals = (candidates != PAD) & (candidates != labels.unsqueeze(-1))
    exists = torch.cat((torch.ones_like(rivals[:, :1]), rivals), -1)
    logits = score_rows(network, states, rows).masked_fill(~exists, float("-inf"))
    loss = F.cross_entropy(logits, torch.zeros_like(labels), reduction="sum")
    # A tie is no success: the label would win it only by standing first.
    correct = (logits[:, :1] > logits[:, 1:]).all(-1).sum()
    return Outcome(loss, correct)


class _WholeSoftmax(torch.autograd.Function):
    """Cross-entropy over the whole vocabulary, exact, without ever holding (targets, entities) at once.

    Forward goes over the vocabulary part by part and keeps a running log-sum-exp; backward computes each part's
    logits again. Products are in the rows' precision with sums in fp32; everything else is in fp32.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, table: Tensor, bias: Tensor, labels: Tensor, precision: torch.dtype, compiled: bool
    ) -> tuple[Tensor, Tensor]:
        tally = _compiled(_tally) if compiled else _tally
        low = states.to(precision)
        total = torch.full((len(states),), float("-inf"), device=states.device)  # log-sum-exp so far
        best, at = total.clone(), torch.zeros_like(labels)
        for part in _parts(len(states), len(table)):
            products = _product(low, table[part].to(precision).t())  # (targets, part)
            highest, place, sums = tally(products, bias[part])
            at = torch.where(highest > best, place + part.start, at)
            best = torch.maximum(best, highest)
            total = torch.logaddexp(total, sums)
        given = (low.float() * table[labels].to(precision).float()).sum(-1) + bias[labels]
        ctx.save_for_backward(low, table, bias, labels, total)
        ctx.compiled = compiled
        correct = (at == labels).sum()
        ctx.mark_non_differentiable(correct)
        return (total - given).sum(), correct

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        error_of = _compiled(_error) if ctx.compiled else _error
        low, table, bias, labels, total = ctx.saved_tensors
        to_states = torch.zeros(low.shape, device=low.device)
        to_table = torch.empty_like(table) if ctx.needs_input_grad[1] else None
        to_bias = torch.empty_like(bias) if ctx.needs_input_grad[2] else None
        for part in _parts(len(low), len(table)):
            rows = table[part].to(low.dtype)
            error, sums = error_of(_product(low, rows.t()), bias[part], total, labels - part.start, low.dtype)
            to_states += _product(error, rows)
            if to_table is not None:
                to_table[part] = _product(error.t(), low).mul_(grads[0])
            if to_bias is not None:
                to_bias[part] = sums * grads[0]
        return to_states * grads[0], to_table, to_bias, None, None, None


def _tally(products: Tensor, bias: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the highest logit of each target, its place, and the log-sum-exp."""
    logits = products + bias
    highest, place = logits.max(-1)
    return highest, place, torch.logsumexp(logits, -1)


def _error(
    products: Tensor, bias: Tensor, total: Tensor, labels: Tensor, precision: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Return d loss / d logits, softmax - 1 at the label, in the precision of the products; and its sums in fp32."""
    at_label = torch.arange(products.shape[1], device=labels.device) == labels.unsqueeze(-1)
    error = (products + bias - total.unsqueeze(-1)).exp() - at_label.float()
    return error.to(precision), error.sum(0)


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a chain of small operations on (targets, part), each of which would go through all memory."""
    return torch.compile(function, dynamic=True)


def _parts(targets: int, entities: int) -> list[slice]:
    size = max(1024, CELLS // max(targets, 1) // 1024 * 1024)
    return [slice(first, min(first + size, entities)) for first in range(0, entities, size)]


def _product(left: Tensor, right: Tensor) -> Tensor:
    """Multiply, with sums and result in fp32 whatever the precision of the factors."""
    if left.dtype == torch.float32:
        return left @ right
    if left.is_cuda:
        return torch.mm(left, right, out_dtype=torch.float32)
    return left.float() @ right.float()
