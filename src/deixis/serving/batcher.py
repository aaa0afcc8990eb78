"""Requests of concurrent clients, answered together: one thread runs the network over all that waits.

    clients   ──submit──▶  queue  ──collect (same settings, like length)──▶  network  ──▶  futures

While one batch runs the next gathers, so batches grow with the load and a lone request waits for nobody. The windows
of a batch advance together, each at its own step. A full queue refuses at once: waiting without end helps no client.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice

from deixis.documents import Document, Resolutions
from deixis.network.encoding import MAX_PIECES
from deixis.serving.http_errors import HttpError
from deixis.serving.metrics import Metrics
from deixis.settings import Settings

__all__ = ["Answer", "Batcher"]

Answer = Callable[[Iterable[Document], Settings], Iterator[Resolutions]]

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Job:
    documents: tuple[Document, ...]
    settings: Settings
    rows: int
    since: float
    future: Future[list[Resolutions]] = field(default_factory=Future)

    @property
    def length(self) -> float:
        """Rows of one of its documents."""
        return self.rows / max(1, len(self.documents))


class Batcher:
    """A queue of requests and the thread that answers them."""

    def __init__(self, answer: Answer, metrics: Metrics, *, queue: int, rows: int) -> None:
        self._answer, self._metrics, self._queue, self._rows = answer, metrics, queue, rows
        self._jobs: deque[_Job] = deque()
        self._waiting = 0  # documents in the queue
        self._pace = 0.1  # seconds a document, smoothed
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._work, name="deixis-batcher", daemon=True)
        self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether a document would be taken now."""
        return not self._closed and self._waiting < self._queue

    def submit(self, documents: Sequence[Document], settings: Settings) -> Future[list[Resolutions]]:
        """Queue a request; its future gets one result a document, in their order."""
        job = _Job(tuple(documents), settings, sum(_rows(d, settings) for d in documents), time.perf_counter())
        with self._changed:
            if self._closed:
                raise HttpError(503, "the server is stopping", 5)
            # An empty queue takes a request of any size, else one larger than the queue could never be answered.
            if self._waiting and self._waiting + len(documents) > self._queue:
                seconds = max(1, min(60, math.ceil(self._waiting * self._pace)))
                raise HttpError(503, f"the queue is full ({self._waiting} documents wait)", seconds)
            self._jobs.append(job)
            self._count(len(job.documents))
            self._changed.notify()
        return job.future

    def close(self) -> None:
        """Take no more, answer what waits, and stop."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _count(self, documents: int) -> None:
        self._waiting += documents
        self._metrics.waiting.set(self._waiting)

    def _work(self) -> None:
        while jobs := self._collect():
            self._run(jobs)

    def _collect(self) -> list[_Job]:
        """Wait for work; return the oldest request and, up to the row budget, others with its settings.

        Those of like length come first, as they have like numbers of mentions and so of steps, and all are answered
        when the last is; the oldest is always among them, so none waits for ever.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closed)
            if not self._jobs:
                return []
            oldest = self._jobs[0]
            alike = [job for job in self._jobs if job.settings == oldest.settings]
            taken: list[_Job] = []
            rows = 0
            for job in sorted(alike, key=lambda job: abs(job.length - oldest.length)):
                if taken and rows + job.rows > self._rows:
                    break
                taken.append(job)
                rows += job.rows
            gone = set(taken)
            self._jobs = deque(job for job in self._jobs if job not in gone)
            self._count(-sum(len(job.documents) for job in taken))
        return taken

    def _run(self, jobs: list[_Job]) -> None:
        jobs = [job for job in jobs if job.future.set_running_or_notify_cancel()]
        if not jobs:
            return
        begin = time.perf_counter()
        for job in jobs:
            self._metrics.queue_time.observe(begin - job.since)
        size = sum(len(job.documents) for job in jobs)
        try:
            self._resolve(jobs)
        except Exception:  # one document must not take the others of its batch down with it
            log.exception("a batch of %d documents failed; each request is tried by itself", size)
            for job in jobs:
                self._alone(job)
        seconds = time.perf_counter() - begin
        self._pace += 0.2 * (seconds / max(1, size) - self._pace)
        self._metrics.inference_time.observe(seconds)
        self._metrics.batch_size.observe(size)

    def _resolve(self, jobs: list[_Job]) -> None:
        results = self._answer((document for job in jobs for document in job.documents), jobs[0].settings)
        for job in jobs:
            job.future.set_result(list(islice(results, len(job.documents))))

    def _alone(self, job: _Job) -> None:
        if job.future.done():
            return
        try:
            job.future.set_result(list(self._answer(job.documents, job.settings)))
        except Exception as error:
            job.future.set_exception(error)


def _rows(document: Document, settings: Settings) -> int:
    """Estimate the rows of a document: a piece has about four characters, and a mention two rows."""
    pieces, mentions = len(document.text) // 4, len(document.mentions)
    if pieces > MAX_PIECES and settings.windows in (None, "per_mention"):
        return mentions * (MAX_PIECES + 2 * min(mentions, 16))  # a window a mention
    return pieces + 2 * mentions
