"""The three orders of inference: local, natural, confidence (paper 3.3, Algorithm 1; protocol 10).

    local        one pass; every mention is read off it
    natural      one pass a mention, from left to right; each answer is an input of the next pass
    confidence   one pass a mention; each time the most probable answer is committed, wherever it stands

A mention with one candidate has probability 1 by definition and needs no pass: confidence order commits such
mentions first, natural order when their turn comes. Windows advance together, one step a pass each, and leave the
batch when the last of their mentions that counts is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor

from deixis.batching import Batch
from deixis.errors import InputError
from deixis.model import Network, Static
from deixis.vocabulary import PAD

__all__ = ["Commit", "Decisions", "Observer", "Order", "Question", "check_order", "decode", "parse_commit"]

Order = Literal["local", "natural", "confidence"]
Commit = Literal["one"] | float

SHRINK = 0.75  # finished windows leave when this part or less of a batch still runs: each leaving copies the rest


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a batch of windows: the candidates of each mention, and which mention goes first."""

    candidates: Tensor  # (windows, mentions, candidates) rows of B; PAD: no candidate
    inputs: Tensor  # (windows, mentions, candidates) the row that an answer becomes as an input
    initial: Tensor  # (windows, mentions) the row that a mention is before it is decided: MASK
    zero: Tensor  # (windows, mentions, candidates) bool: scored 0, not by the network (protocol 7, legacy)
    favour: Tensor  # (windows, mentions, candidates) added to the score; 0 but where priors are mixed in
    rank: Tensor  # (windows, mentions) natural order, and who wins a tie: the lowest
    counts: Tensor  # (windows, mentions) bool: a window may stop when these are decided

    def to(self, device: torch.device | str) -> Question:
        """Return the question on a device."""
        return Question(*(getattr(self, name).to(device, non_blocking=True) for name in self.__dataclass_fields__))


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided for every mention of a batch, on the CPU."""

    choice: Tensor  # (windows, mentions) place in the mention's candidates; -1: not decided
    probabilities: Tensor  # (windows, mentions, candidates) at the time of the decision
    step: Tensor  # (windows, mentions) from 1; 0: not decided
    passes: Tensor  # (windows,) passes of the answer rows


# Told of every pass: the windows that run (windows,) as places in the batch, the step that the pass leads to
# (windows,), the mentions still open (windows, mentions), their probabilities (windows, mentions, candidates).
Observer = Callable[[Tensor, Tensor, Tensor, Tensor], None]


@dataclass(frozen=True, slots=True)
class _State:
    """The windows that still run; all tensors share the first dimension."""

    window: Tensor  # (windows,) the place in the whole batch
    static: Static
    rows: tuple[Tensor, Tensor]  # B* and b*_o of the candidates
    question: Question
    exists: Tensor  # (windows, mentions, candidates) bool
    entities: Tensor  # (windows, mentions) rows of B, or MASK
    open: Tensor  # (windows, mentions) bool: has candidates, not decided
    step: Tensor  # (windows,) the last step taken

    def select(self, windows: Tensor) -> _State:
        question = Question(*(getattr(self.question, name)[windows] for name in Question.__dataclass_fields__))
        return _State(
            self.window[windows],
            self.static.select(windows),
            (self.rows[0][windows], self.rows[1][windows]),
            question,
            *(tensor[windows] for tensor in (self.exists, self.entities, self.open, self.step)),
        )


@torch.inference_mode()
def decode(
    network: Network,
    batch: Batch,
    question: Question,
    order: Order,
    commit: Commit = "one",
    observe: Observer | None = None,
) -> Decisions:
    """Decide every mention that has a candidate.

    `commit="one"` is Algorithm 1; with a number, confidence order also commits every answer of at least that
    probability in the same step. `observe` is told of every pass.
    """
    check_order(order, commit)
    threshold = 2.0 if commit == "one" else float(commit)
    decisions = _Decided(question)
    state = _begin(network, batch, question)
    single = state.exists.sum(-1) == 1
    if order == "confidence":
        state = decisions.commit_single(state, single & state.open, at_once=commit != "one")
    while len(state.window):
        if order == "natural":
            waiting = torch.where(state.open & ~single[state.window], state.question.rank, _LAST).amin(1, keepdim=True)
            state = decisions.commit_single(state, single[state.window] & state.open & (state.question.rank < waiting))
        state = _running(state)
        if not len(state.window):
            break
        probabilities = _probabilities(network, state)
        if observe is not None:
            observe(state.window, state.step + 1, state.open, probabilities)
        if order == "local":
            chosen = state.open
        else:
            chosen = _chosen(state, probabilities, order, threshold)
        state = decisions.commit(state, probabilities, chosen)
    return decisions.result()


def parse_commit(text: str) -> Commit:
    """Read `one` or a probability."""
    if text == "one":
        return "one"
    try:
        return float(text)
    except ValueError:
        raise InputError(f"commit is {text!r}; expected 'one' or a probability above 0 and at most 1") from None


def check_order(order: str, commit: Commit) -> None:
    """Refuse an order or a commit that does not exist."""
    if order not in get_args(Order):
        raise InputError(f"order is {order!r}; expected one of {', '.join(get_args(Order))}")
    if commit != "one" and not (isinstance(commit, int | float) and 0.0 < commit <= 1.0):
        raise InputError(f"commit is {commit!r}; expected 'one' or a probability above 0 and at most 1")


_LAST = 1 << 30  # behind every rank


def _begin(network: Network, batch: Batch, question: Question) -> _State:
    exists = question.candidates != PAD
    device = question.candidates.device
    return _State(
        window=torch.arange(len(batch), device=device),
        static=network.read(batch),
        rows=network.candidate_rows(question.candidates),
        question=question,
        exists=exists,
        entities=question.initial,
        open=exists.any(-1),
        step=torch.zeros(len(batch), dtype=torch.long, device=device),
    )


def _running(state: _State) -> _State:
    """Let finished windows leave, several at a time."""
    running = (state.open & state.question.counts).any(1)
    left = int(running.sum())
    if left == 0 or left <= SHRINK * len(running):
        return state.select(running.nonzero().squeeze(1))
    # A finished window that stays decides nothing more.
    return replace(state, open=state.open & running.unsqueeze(1))


def _probabilities(network: Network, state: _State) -> Tensor:
    """Run one pass and return the softmax over each mention's own candidates (equation 3)."""
    logits = network.score(network.answer(state.static, state.entities), state.rows)
    logits = logits.masked_fill(state.question.zero, 0.0) + state.question.favour
    logits = logits.masked_fill(~state.exists, float("-inf"))
    # A mention without candidates has no distribution; zeros instead of NaN keep it out of every maximum.
    return torch.softmax(logits.float(), -1).nan_to_num(0.0)


def _chosen(state: _State, probabilities: Tensor, order: Order, threshold: float) -> Tensor:
    """Return which mentions (windows, mentions) are committed in this step."""
    rank = torch.where(state.open, state.question.rank, _LAST)
    if order == "natural":
        return state.open & (rank == rank.amin(1, keepdim=True))
    best = torch.where(state.open, probabilities.amax(-1), -1.0)
    tied = torch.where(best == best.amax(1, keepdim=True), rank, _LAST)
    return state.open & ((tied == tied.amin(1, keepdim=True)) | (best >= threshold))


class _Decided:
    """The decisions so far, over the whole batch."""

    def __init__(self, question: Question) -> None:
        self.choice = torch.full_like(question.rank, -1)
        self.step = torch.zeros_like(question.rank)
        self.probabilities = torch.zeros(question.candidates.shape, device=question.candidates.device)
        self.passes = torch.zeros(len(question.rank), dtype=torch.long, device=question.candidates.device)

    def commit_single(self, state: _State, chosen: Tensor, at_once: bool = False) -> _State:
        """Commit mentions of one candidate without a pass, in the order of their ranks."""
        rank = torch.where(chosen, state.question.rank, _LAST)
        # Which of the chosen a mention is, from 1.
        ordinal = (rank.unsqueeze(1) <= rank.unsqueeze(2)).sum(-1)
        taken = chosen.sum(1)
        step = state.step.unsqueeze(1) + (1 if at_once else ordinal)
        after = state.step + (taken.clamp_max(1) if at_once else taken)
        return self._write(state, state.exists.float(), chosen, step, after)

    def commit(self, state: _State, probabilities: Tensor, chosen: Tensor) -> _State:
        """Commit the chosen mentions to their most probable candidates, after a pass."""
        after = state.step + chosen.any(1)
        self.passes[state.window] += chosen.any(1).long()
        return self._write(state, probabilities, chosen, after.unsqueeze(1).expand_as(chosen), after)

    def _write(self, state: _State, probabilities: Tensor, chosen: Tensor, step: Tensor, after: Tensor) -> _State:
        width = probabilities.shape[-1]
        place = torch.arange(width, device=probabilities.device)
        # The first of equals, on every device.
        choice = torch.where(probabilities == probabilities.amax(-1, keepdim=True), place, width).amin(-1)
        at = state.window
        self.choice[at] = torch.where(chosen, choice, self.choice[at])
        self.step[at] = torch.where(chosen, step, self.step[at])
        self.probabilities[at] = torch.where(chosen.unsqueeze(-1), probabilities, self.probabilities[at])
        answers = state.question.inputs.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        entities = torch.where(chosen, answers, state.entities)
        return replace(state, entities=entities, open=state.open & ~chosen, step=after)

    def result(self) -> Decisions:
        return Decisions(self.choice.cpu(), self.probabilities.cpu(), self.step.cpu(), self.passes.cpu())
