"""Work spread over processes, results in the order of the items, nothing left behind when a process is killed."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import connection
from typing import Any, TypeVar

from deixis.errors import InputError

__all__ = ["cores", "in_order"]

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(
    task: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    prepare: Callable[[Any], None],
    shared: Any,
    *,
    fork: bool = False,
) -> Iterator[R]:
    """Yield the task's results in the order of the items; each process calls `prepare(shared)` first.

    A few items a worker are under way and no more: reading is faster than the work, and memory is not for queues.
    With `fork`, where the system has it, `shared` is not copied: for what is large. Otherwise processes start anew,
    as forking one that has threads (the tokenizer's) can hang.
    """
    if workers <= 1:
        prepare(shared)
        yield from map(task, items)
        return
    method = "fork" if fork and "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    pool = ProcessPoolExecutor(workers, context, _begin, (prepare, shared))
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(task, item))
            if len(waiting) > 2 * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise InputError(
            "a worker process was killed, perhaps for lack of memory; run the same command with fewer workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(prepare: Callable[[Any], None], shared: Any) -> None:
    """Prepare a worker: Ctrl-C is the parent's to handle, and the worker ends when the parent is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()
    prepare(shared)


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)
