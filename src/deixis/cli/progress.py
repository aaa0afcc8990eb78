"""Progress bars on stderr, only when it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

__all__ = ["bar", "track"]

T = TypeVar("T")


def bar(*columns: TextColumn) -> Progress:
    """Return a progress display; `columns` are added before the times."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *columns,
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
        transient=True,
    )


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and show how far it is."""
    with bar() as progress:
        task = progress.add_task(description, total=total)
        for item in items:
            yield item
            progress.advance(task)
