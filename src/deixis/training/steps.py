"""Steps made of training data: vectorised, ahead of the network, in a thread of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.corpus.windows import WindowSet
from deixis.errors import InputError
from deixis.network.batching import Batch, pack
from deixis.network.encoding import Tokenizer
from deixis.network.special import MASK, PAD
from deixis.training.masking import choose, choose_masked, mix
from deixis.training.recipe import Recipe

__all__ = ["Pass", "Plan", "StepData", "ahead", "ranges"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Pass:
    """What one process reads at once: packed windows, what their answers hold, and what is to be predicted."""

    batch: Batch
    entities: Tensor  # (mentions,) rows of B, MASK where masked
    targets: Tensor  # (targets,) which answers are predicted
    labels: Tensor  # (targets,) their rows of B
    candidates: Tensor | None  # (targets, k) rows of B, PAD behind

    def to(self, device: torch.device) -> Pass:
        """Return the pass on a device; from pinned memory this does not wait."""

        def moved(value: Any) -> Any:
            if isinstance(value, Batch):
                return value.to(device)
            return value.to(device, non_blocking=True) if isinstance(value, Tensor) else value

        return Pass(*(moved(getattr(self, name)) for name in Pass.__dataclass_fields__))

    def pinned(self) -> Pass:
        """Return the pass in memory that a GPU can fetch by itself."""

        def pin(value: Any) -> Any:
            if isinstance(value, Tensor):
                return value.pin_memory()
            if hasattr(value, "__dataclass_fields__"):
                return replace(value, **{name: pin(getattr(value, name)) for name in value.__dataclass_fields__})
            return value

        pinned: Pass = pin(self)
        return pinned


@dataclass(frozen=True, slots=True)
class StepData:
    """One process's share of a step."""

    step: int  # from 0
    epoch: int  # from 0
    passes: tuple[Pass, ...]
    targets: int  # of all processes together
    pieces: int  # of all processes together
    windows: int  # of all processes together


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Which windows make which step; the same for every process, and a function of the recipe and the data alone."""

    data: WindowSet
    tokenizer: Tokenizer
    recipe: Recipe
    windows: Ints  # those that have something to predict

    @classmethod
    def of(cls, data: WindowSet, tokenizer: Tokenizer, recipe: Recipe) -> Plan:
        """Plan a run; data without anything to predict are refused."""
        windows = data.usable()
        if not len(windows):
            raise InputError("no window has an entity of the vocabulary; build the windows with this vocabulary")
        if recipe.candidate_weight > 0 and data.candidates is None:
            raise InputError(
                "candidate_weight is above 0 but the data have no candidates; give documents or windows with "
                "candidates, or set candidate_weight=0"
            )
        return cls(data, tokenizer, recipe, windows)

    @property
    def steps_per_epoch(self) -> int:
        """Steps an epoch; the last of an epoch may be smaller."""
        return -(-len(self.windows) // self.recipe.batch)

    @property
    def steps(self) -> int:
        """Steps of the whole run."""
        steps = max(1, round(self.recipe.epochs * self.steps_per_epoch))
        return steps if self.recipe.steps is None else min(steps, self.recipe.steps)

    def run(self, first: int = 0, rank: int = 0, size: int = 1) -> Iterator[StepData]:
        """Make one process's share of every step from `first` on."""
        epoch, order = -1, self.windows
        for step in range(first, self.steps):
            if step // self.steps_per_epoch != epoch:
                epoch = step // self.steps_per_epoch
                order = np.random.default_rng((self.recipe.seed, epoch)).permutation(self.windows)
            at = (step - epoch * self.steps_per_epoch) * self.recipe.batch
            yield self.make(step, epoch, order[at : at + self.recipe.batch], rank, size)

    def all(self, at_once: int, rank: int = 0, size: int = 1) -> Iterator[StepData]:
        """Make steps of all windows, as they lie, with the masks of epoch 0: for held-out data."""
        for number, first in enumerate(range(0, len(self.windows), at_once)):
            yield self.make(number, 0, self.windows[first : first + at_once], rank, size)

    def make(self, step: int, epoch: int, chosen: Ints, rank: int, size: int) -> StepData:
        """Make one process's share of the chosen windows: every `size`-th of them."""
        counts = self.data.window_offsets[chosen + 1] - self.data.window_offsets[chosen] + 2
        mentions, window, masked = self._masks(chosen, epoch)
        targets = int(masked.sum())
        if size > 1:
            mine = window % size == rank
            mentions, window, masked = mentions[mine], window[mine] // size, masked[mine]
        share, lengths = chosen[rank::size], counts[rank::size]
        passes = []
        for part in _split(lengths, self.recipe.pieces_at_once):
            inside = slice(*np.searchsorted(window, (part.start, part.stop)))
            passes.append(self._pass(share[part], lengths[part], mentions[inside], masked[inside], epoch))
        return StepData(step, epoch, tuple(passes), targets, int(counts.sum()), len(chosen))

    def _masks(self, chosen: Ints, epoch: int) -> tuple[Ints, Ints, Bools]:
        """Return the mentions of windows, the window of each, and whether it is masked."""
        offsets = self.data.mention_offsets
        mentions, window = ranges(offsets[chosen], offsets[chosen + 1])
        recipe = self.recipe
        can = self.data.rows[mentions] > MASK
        rates = (recipe.mask_rate, recipe.mask_rate if recipe.mask_rate_high is None else recipe.mask_rate_high)
        return mentions, window, choose_masked(mentions, window, can, rates, recipe.seed, epoch)

    def _pass(self, chosen: Ints, lengths: Ints, mentions: Ints, masked: Bools, epoch: int) -> Pass:
        data, recipe = self.data, self.recipe
        pieces = np.empty(lengths.sum(), np.int64)
        ends = np.cumsum(lengths)
        inside = np.ones(len(pieces), bool)
        inside[ends - lengths] = inside[ends - 1] = False
        pieces[ends - lengths], pieces[ends - 1] = self.tokenizer.cls, self.tokenizer.sep
        places = ranges(data.window_offsets[chosen], data.window_offsets[chosen + 1])[0]
        pieces[inside] = data.pieces[places]
        if recipe.word_dropout > 0:
            dropped = np.flatnonzero(inside)[choose(places, recipe.word_dropout, recipe.seed, epoch, 2)]
            pieces[dropped] = self.tokenizer.mask
        counts = data.mention_offsets[chosen + 1] - data.mention_offsets[chosen]
        rows = data.rows[mentions].astype(np.int64)
        batch = pack(pieces, lengths, data.spans[mentions].astype(np.int64) + 1, counts)  # 1: behind [CLS]
        candidates = None
        if data.candidates is not None:
            candidates = torch.from_numpy(data.candidates[mentions[masked], : recipe.candidates].astype(np.int64))
        return Pass(
            batch,
            torch.from_numpy(np.where(masked, MASK, self._shown(mentions, rows, epoch))),
            torch.from_numpy(np.flatnonzero(masked)),
            torch.from_numpy(rows[masked]),
            candidates,
        )

    def _shown(self, mentions: Ints, rows: Ints, epoch: int) -> Ints:
        """Return the entities that mentions show, some of them wrong."""
        recipe, listed = self.recipe, self.data.candidates
        if recipe.wrong_rate == 0 or listed is None:
            return rows
        wrong = np.flatnonzero(choose(mentions, recipe.wrong_rate, recipe.seed, epoch, 3))
        others = np.asarray(listed[mentions[wrong]], np.int64)  # (wrong, k)
        counts = (others != PAD).sum(1)
        drawn = mix(mentions[wrong], recipe.seed, epoch, 4) % np.maximum(counts, 1).astype(np.uint64)
        shown = rows.copy()
        shown[wrong] = np.where(counts > 0, others[np.arange(len(wrong)), drawn.astype(np.int64)], rows[wrong])
        return shown


def ranges(starts: Ints, ends: Ints) -> tuple[Ints, Ints]:
    """Return the numbers of all ranges [start, end), end to end, and the range each belongs to."""
    counts = ends - starts
    owner = np.repeat(np.arange(len(starts)), counts)
    return np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts), owner


def _split(lengths: Ints, budget: int) -> list[slice]:
    """Cut windows into nearly equal parts of about `budget` pieces."""
    total = int(lengths.sum())
    parts = -(-total // budget)
    middles = np.cumsum(lengths) - lengths / 2
    cuts = np.searchsorted(middles, np.arange(1, parts) * total / max(parts, 1))
    borders = [0, *cuts.tolist(), len(lengths)]
    return [slice(left, right) for left, right in pairwise(borders) if right > left]


def ahead(steps: Iterable[StepData], pin: bool, depth: int = 2) -> Iterator[StepData]:
    """Yield steps that a thread makes ahead, so that the network never waits for its data."""
    ready: queue.Queue[StepData | BaseException | None] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: StepData | BaseException | None) -> None:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for step in steps:
                put(replace(step, passes=tuple(one.pinned() for one in step.passes)) if pin else step)
                if stop.is_set():
                    return
            put(None)
        except BaseException as error:  # told to the one who waits, not lost in the thread
            put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
