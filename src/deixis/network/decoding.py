"""The three orders of inference: local, natural, confidence (paper 3.3, Algorithm 1; protocol 10).

    local        one pass; every mention is read off it
    natural      one pass a mention, from left to right; each answer is an input of the next pass
    confidence   one pass a mention; each time the most probable answer is committed, wherever it stands

A mention with one candidate has probability 1 by definition and needs no pass: confidence order commits such
mentions first, natural order when their turn comes. Windows advance together, one step a pass each, and leave the
batch when the last of their mentions that counts is decided.

Windows that would differ only in the mention they are centred on are one window here. In its own window a centred
mention wins every tie, and nothing after its decision counts. So each is read at the first step in which its answer is
among the most probable, and the order goes on as if none were centred.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from deixis.network.batching import Batch
from deixis.network.model import Network
from deixis.network.reading import Reading, Static
from deixis.network.special import MASK, PAD

if TYPE_CHECKING:
    from deixis.settings import Order

__all__ = ["Commit", "Decisions", "Observer", "Question", "decode"]

Commit = Literal["one"] | float

SHRINK = 0.75  # drop rows of decided candidates when at most this share is still asked for; it copies the rest
STEPS_UNSEEN = 8  # on a GPU; asking it who is finished makes it wait, and finished windows cost little


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a batch of windows: the candidates of each mention, and which mention goes first."""

    candidates: Tensor  # (mentions, candidates) rows of B; PAD: none; MASK: scored 0, not by the network (protocol 7)
    prior_bias: Tensor | None  # (mentions, candidates) added to the score, where priors are mixed in
    initial: Tensor  # (mentions,) the row that a mention is before it is decided: MASK
    counts: Tensor  # (mentions,) bool: a window may stop when these are decided
    centred: Tensor  # (mentions,) bool: counts, and is read as if its window were centred on it alone
    window: Tensor  # (mentions,) which of the batch's; mentions lie window by window, from left to right

    def to(self, device: torch.device | str) -> Question:
        tensors = (getattr(self, name) for name in self.__dataclass_fields__)
        return Question(*(None if x is None else x.to(device, non_blocking=True) for x in tensors))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Decisions:
    """What was decided for every mention of a batch, on the CPU."""

    choice: Tensor  # (mentions,) place in the mention's candidates; -1: not decided
    probabilities: Tensor  # (mentions, candidates) at the time of the decision
    step: Tensor  # (mentions,) from 1; 0: not decided
    passes: Tensor  # (windows,) passes of the answer rows
    fit: Tensor | None = None  # (mentions,) of what was chosen, where it was asked for (`decode`)


# Told of every pass: the step of each mention's window that the pass leads to (mentions,), which mentions are not yet
# decided (mentions,), and their probabilities (mentions, candidates).
Observer = Callable[[Tensor, Tensor, Tensor], None]


@torch.inference_mode()
def decode(
    network: Network,
    batch: Batch,
    question: Question,
    order: Order,
    commit: Commit = "one",
    observe: Observer | None = None,
    arbitrary: Tensor | None = None,
    words: Sequence[Reading] = (),
) -> Decisions:
    """Decide every mention that has a candidate.

    `commit="one"` is Algorithm 1; with a number, confidence order also commits every answer of at least that
    probability in the same step. `observe` is told of every pass. With some `arbitrary` rows of B, it is measured how
    well each choice fits where nothing is decided yet: by how many standard deviations it scores above these. `words`
    is what was kept of the words of each window, if they were read before.
    """
    threshold = 2.0 if commit == "one" else float(commit)
    run = _Run(network, batch, question, words)
    if order == "confidence":
        run.commit_single(run.single & run.open, at_once=commit != "one")
    while run.goes_on(order):
        probabilities = run.probabilities()
        if observe is not None:
            observe((run.step + 1)[question.window], run.live() & (run.choice == -1), probabilities)
        run.commit(probabilities, order, threshold)
    decisions = run.decisions()
    return decisions if arbitrary is None else replace(decisions, fit=run.fit(arbitrary).cpu())


_LAST = 1 << 30  # behind every mention


@dataclass(frozen=True, slots=True)
class _Asked:
    """The candidates whose scores are still asked for, end to end."""

    mention: Tensor  # (candidates,)
    cell: Tensor  # (candidates,): which of the question's cells, counted along its rows
    rows: tuple[Tensor, Tensor]  # B* and b*_o

    def select(self, mentions: Tensor) -> _Asked:
        """Drop the candidates of all but some mentions (mentions,), where that is worth it."""
        kept = mentions[self.mention].nonzero().squeeze(1)
        if len(kept) > SHRINK * len(self.mention):
            return self
        weight, bias = self.rows
        return _Asked(self.mention[kept], self.cell[kept], (weight[kept], bias[kept]))


class _Run:
    """A batch under way: what its answers hold, what is open, what was decided."""

    def __init__(self, network: Network, batch: Batch, question: Question, words: Sequence[Reading]) -> None:
        self.network, self.batch, self.question, self.words = network, batch, question, words
        candidates = question.candidates
        self.exists = candidates != PAD  # (mentions, candidates)
        self.single = self.exists.sum(-1) == 1  # (mentions,)
        self.place = torch.arange(len(candidates), device=candidates.device)  # (mentions,): from left to right
        self.entities = question.initial  # (mentions,)
        self.open = self.exists.any(-1)  # (mentions,): has candidates, not committed
        self.step = question.window.new_zeros(len(batch))  # (windows,): the last one taken
        self.passes = torch.zeros_like(self.step)
        # What was decided, as in Decisions.
        self.choice = torch.full_like(self.place, -1)
        self.decided = torch.zeros_like(self.place)
        self.chances = torch.zeros(candidates.shape, device=candidates.device)
        # What the passes need; made when the first is due.
        self.whole: Static | None = None
        self.static: Static | None = None
        self.asked: _Asked | None = None
        self.slot = self.place  # (mentions,): the row of a mention among the wanted answers
        self.steps_unseen = 0

    def goes_on(self, order: Order) -> bool:
        """Commit what needs no pass, and look which windows still run: on a GPU only now and then."""
        if order == "natural":
            waiting = self._first(self.live() & ~self.single)
            alone = ~self._any(self.question.centred)  # a centred mention comes first of all
            self.commit_single(self.single & self.live() & alone & (self.place < waiting))
        if self.steps_unseen > 0:
            self.steps_unseen -= 1
            return True
        live = self.live()
        wanted = live.cpu().numpy()
        if not wanted.any():
            return False
        if self.whole is None or self.asked is None:
            self.whole = self.network.open(self.batch, self.words)
            cell = (self.exists & live.unsqueeze(-1)).flatten().nonzero().squeeze(1)
            rows = self.network.candidate_rows(self.question.candidates.flatten()[cell])
            self.asked = _Asked(cell // self.exists.shape[1], cell, rows)
        self.static = self.whole.select(wanted)
        self.asked = self.asked.select(live)
        self.slot = (live.cumsum(0) - 1).clamp_min(0)
        self.steps_unseen = STEPS_UNSEEN - 1 if live.is_cuda else 0
        return True

    def probabilities(self) -> Tensor:
        """Run one pass and return the softmax over each open mention's own candidates (equation 3)."""
        assert self.static is not None and self.asked is not None, "goes_on comes first"
        hidden = self.network.answer(self.static, self.entities)
        scores = self.network.score(hidden, self.asked.rows, self.slot[self.asked.mention])
        logits = scores.new_full(self.exists.shape, float("-inf"))
        logits.view(-1).index_copy_(0, self.asked.cell, scores)
        logits = torch.where(self.question.candidates == MASK, 0.0, logits)
        if self.question.prior_bias is not None:
            logits = logits + self.question.prior_bias
        # A mention that is not asked for has no distribution; zeros instead of NaN keep it out of every maximum.
        return torch.softmax(logits, -1).nan_to_num(0.0)

    def commit_single(self, chosen: Tensor, at_once: bool = False) -> None:
        """Commit mentions of one candidate without a pass, from left to right."""
        so_far = chosen.cumsum(0)
        ordinal = so_far - self._spread(so_far - chosen.long(), "amin")  # which of its window's chosen it is, from 1
        if at_once:
            ordinal = chosen.long()
        step = self.step[self.question.window]
        # A centred one goes before the others.
        self._write(self.exists.float(), chosen, chosen, step + torch.where(self.question.centred, 1, ordinal))
        self.step = self.step.scatter_reduce(
            0, self.question.window, step + torch.where(chosen, ordinal, 0), "amax", include_self=True
        )

    def commit(self, probabilities: Tensor, order: Order, threshold: float) -> None:
        """Commit what the order says to its most probable candidate, after a pass."""
        live, centred = self.live(), self.question.centred
        if order == "local":
            chosen = read = live
        elif order == "natural":
            chosen = live & (self.place == self._first(live))
            read = chosen | (live & centred)
        else:
            best = torch.where(live, probabilities.amax(-1), -1.0)
            tied = live & (best == self._spread(best, "amax"))
            chosen = (tied & (self.place == self._first(tied))) | (live & (best >= threshold))
            read = chosen | (tied & centred)
        taken = torch.zeros_like(self.step).scatter_reduce(0, self.question.window, chosen.long(), "amax")
        self.step = self.step + taken
        self.passes = self.passes + taken
        self._write(probabilities, chosen, read, self.step[self.question.window])

    def _write(self, probabilities: Tensor, chosen: Tensor, read: Tensor, step: Tensor) -> None:
        """Let chosen mentions be what later passes see, and note the decisions that are read."""
        width = probabilities.shape[-1]
        place = torch.arange(width, device=probabilities.device)
        # The first of equals, on every device.
        choice = torch.where(probabilities == probabilities.amax(-1, keepdim=True), place, width).amin(-1)
        read = read & (self.choice == -1)
        self.choice = torch.where(read, choice, self.choice)
        self.decided = torch.where(read, step, self.decided)
        self.chances = torch.where(read.unsqueeze(-1), probabilities, self.chances)
        answers = self.question.candidates.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
        self.entities = torch.where(chosen, answers, self.entities)
        self.open = self.open & ~chosen

    def live(self) -> Tensor:
        """Return which mentions (mentions,) are open in windows that run: that still have to decide one that counts."""
        needed = self.open & self.question.counts & (self.choice == -1)
        return self.open & self._any(needed)

    def _any(self, mentions: Tensor) -> Tensor:
        """Return for each mention (mentions,) whether any of its window is one of these."""
        return self._spread(mentions.long(), "amax") > 0

    def _first(self, mentions: Tensor) -> Tensor:
        """Return for each mention (mentions,) the place of the first of its window that is one of these."""
        return self._spread(torch.where(mentions, self.place, _LAST), "amin")

    def _spread(self, values: Tensor, reduce: str) -> Tensor:
        """Give every mention (mentions,) the greatest or least value of its window."""
        window = self.question.window
        reduced = values.new_zeros(len(self.batch)).scatter_reduce(0, window, values, reduce, include_self=False)
        return reduced[window]

    def fit(self, arbitrary: Tensor) -> Tensor:
        """Compare the scores of what was chosen with those of arbitrary entities, every mention as if not decided."""
        whole = self.whole or self.network.open(self.batch, self.words)
        states = self.network.entity_predictions(self.network.answer(whole, self.question.initial).float())
        weight, bias = self.network.candidate_rows(arbitrary.to(states.device))
        others = states @ weight.T + bias  # (mentions, arbitrary)
        rows = self.question.candidates.gather(-1, self.choice.clamp_min(0).unsqueeze(-1)).squeeze(-1)
        weight, bias = self.network.candidate_rows(rows)
        if len(arbitrary) < 2:  # nothing to compare with
            return torch.zeros_like(bias)
        fit: Tensor = (torch.linalg.vecdot(weight, states) + bias - others.mean(-1)) / others.std(-1)
        return fit

    def decisions(self) -> Decisions:
        """Return what was decided, on the CPU."""
        return Decisions(self.choice.cpu(), self.chances.cpu(), self.decided.cpu(), self.passes.cpu())
