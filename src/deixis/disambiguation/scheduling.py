"""Many documents at once: their windows are grouped, sorted by length and decided in batches of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, chain, groupby, islice

import numpy as np
import torch

from deixis.disambiguation.results import PendingDocument
from deixis.network.batching import batches_of, make_batch
from deixis.network.decoding import Observer, Question, decode
from deixis.network.encoding import Encoding, Tokenizer, Window, windows_of
from deixis.network.model import Network
from deixis.network.reading import Reading
from deixis.network.special import MASK, PAD
from deixis.settings import Settings

__all__ = ["Scheduler"]

TOKENISED = 64  # documents that are tokenised together


@dataclass(frozen=True, slots=True)
class _Task:
    """A window of a document."""

    pending: PendingDocument
    window: Window
    kept: Reading | None  # what was kept of the window's words


@dataclass(frozen=True, slots=True)
class Scheduler:
    """Decides the windows of a stream of documents."""

    network: Network
    tokenizer: Tokenizer
    batch_rows: int  # padded rows of a batch: bounds memory
    group: int  # windows sorted by length together
    device: torch.device
    arbitrary: torch.Tensor | None = None  # rows of B that answers are compared with, where evidence is asked for

    def decide(self, documents: Iterable[PendingDocument], settings: Settings) -> Iterator[PendingDocument]:
        """Yield the documents in their order, each when all of its windows are decided."""
        queue: deque[PendingDocument] = deque()
        group: list[_Task] = []
        kept = 0  # rows
        for task in self._tasks(documents, settings, queue):
            if task is not None:
                group.append(task)
                kept += 0 if task.kept is None else len(task.kept.under)
            if len(group) >= self.group or len(queue) >= 4 * self.group or kept >= self.batch_rows:
                self._decide_group(group, settings)
                group, kept = [], 0
                while queue and queue[0].is_read and queue[0].windows_left == 0:
                    yield queue.popleft()
        self._decide_group(group, settings)
        yield from queue

    def _tasks(
        self, documents: Iterable[PendingDocument], settings: Settings, queue: deque[PendingDocument]
    ) -> Iterator[_Task | None]:
        """Yield the windows of all documents, noting each document in the queue; None at the end of each."""
        for pending, encoding in self._encoded(documents):
            queue.append(pending)
            kept = {} if pending.kept is None else pending.kept.windows
            pending.kept = None  # its windows alone hold what was kept of them
            for window in windows_of(self.tokenizer, encoding, settings.windows or "per_mention"):
                if any(pending.choices[mention].rows for mention in _counting(window)):
                    pending.windows_left += 1
                    yield _Task(pending, window, kept.get(window.place))
            pending.is_read = True
            yield None

    def _encoded(self, documents: Iterable[PendingDocument]) -> Iterator[tuple[PendingDocument, Encoding]]:
        """Yield all documents with their pieces; those whose words were kept one by one, as these take memory."""
        for kept, run in groupby(documents, lambda pending: pending.kept is not None):
            while chunk := list(islice(run, 1 if kept else TOKENISED)):
                spans = [[(m.start, m.end) for m in p.document.mentions] for p in chunk]
                texts = [(p.document.text, found) for p, found in zip(chunk, spans, strict=True)]
                yield from (
                    ((p, p.kept.encode(found)) for p, found in zip(chunk, spans, strict=True) if p.kept is not None)
                    if kept
                    else zip(chunk, self.tokenizer.encode_many(texts), strict=True)
                )

    def _decide_group(self, group: list[_Task], settings: Settings) -> None:
        kept, unread = ([task for task in group if (task.kept is None) == is_unread] for is_unread in (False, True))
        for tasks in (kept, unread):
            for places in batches_of([task.window for task in tasks], self.batch_rows):
                self._decide_batch([tasks[place] for place in places], settings)

    def _decide_batch(self, tasks: list[_Task], settings: Settings) -> None:
        batch = make_batch([task.window for task in tasks]).to(self.device)
        question = _question(tasks, settings).to(self.device)
        observe = _tracing(tasks) if settings.trace else None
        words = [task.kept for task in tasks if task.kept is not None]  # all or none
        how = settings.order, settings.commit, observe, self.arbitrary
        decisions = decode(self.network, batch, question, *how, words)
        fits = None if decisions.fit is None else decisions.fit.tolist()
        passes, steps, choices = (x.tolist() for x in (decisions.passes, decisions.step, decisions.choice))
        probabilities = decisions.probabilities.numpy()
        first = 0
        for task, passed in zip(tasks, passes, strict=True):
            pending, window = task.pending, task.window
            pending.windows_left -= 1
            pending.passes += passed
            for mention, place in zip(_counting(window), _places(window), strict=True):
                at = first + place
                if choices[at] >= 0:
                    chances = probabilities[at, : len(pending.choices[mention].rows)].tolist()
                    pending.decide(mention, choices[at], chances, steps[at], None if fits is None else fits[at])
            first += len(window.mentions)


def _places(window: Window) -> list[int]:
    """Return the places of the mentions of a window whose answers count."""
    return list(range(len(window.mentions))) if window.counting is None else list(window.counting.tolist())


def _counting(window: Window) -> list[int]:
    """Return which mentions of the document those are."""
    return list((window.mentions if window.counting is None else window.mentions[window.counting]).tolist())


def _question(tasks: list[_Task], settings: Settings) -> Question:
    """Lay the candidates of the windows' mentions out as tensors."""
    numbers = np.array([len(task.window.mentions) for task in tasks])
    choices = [task.pending.choices[mention] for task in tasks for mention in task.window.mentions.tolist()]
    initial = np.full(len(choices), MASK, np.int64)
    sizes = np.array([len(choice.rows) for choice in choices])
    exists = np.arange(sizes.max(initial=1)) < sizes[:, None]
    if settings.released is not None:
        initial[sizes == 0] = PAD
    candidates = np.full(exists.shape, PAD, np.int64)
    candidates[exists] = np.fromiter(chain.from_iterable(choice.rows for choice in choices), np.int64, sizes.sum())
    prior_bias = None
    if settings.prior:
        prior_bias = np.zeros(exists.shape, np.float32)
        biases = chain.from_iterable(choice.prior_bias for choice in choices)
        prior_bias[exists] = np.fromiter(biases, np.float32, sizes.sum())
    counts = np.zeros(len(choices), bool)
    first = np.cumsum(numbers) - numbers
    counts[np.concatenate([start + _places(task.window) for start, task in zip(first, tasks, strict=True)])] = True
    # In natural order a centred mention comes in its turn, unless the released code's way is asked for (protocol 9).
    centred = counts & np.repeat([task.window.centred for task in tasks], numbers)
    if settings.order == "natural" and settings.released is None:
        centred[:] = False
    arrays = (candidates, prior_bias, initial, counts, centred, np.repeat(np.arange(len(tasks)), numbers))
    return Question(*(None if array is None else torch.from_numpy(array) for array in arrays))  # type: ignore[arg-type]


def _tracing(tasks: list[_Task]) -> Observer:
    """Return what notes the probabilities of every pass in the documents of the tasks."""
    firsts = accumulate((len(task.window.mentions) for task in tasks), initial=0)
    places = [
        (first + place, task.pending, mention)
        for first, task in zip(firsts, tasks, strict=False)
        for place, mention in zip(_places(task.window), _counting(task.window), strict=True)
    ]

    def observe(steps: torch.Tensor, is_open: torch.Tensor, probabilities: torch.Tensor) -> None:
        taken, opened, chances = steps.tolist(), is_open.tolist(), probabilities.cpu()
        for at, pending, mention in places:
            if opened[at]:
                size = len(pending.choices[mention].titles)
                pending.note_open(mention, chances[at, :size].tolist(), taken[at])

    return observe
