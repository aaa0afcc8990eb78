"""What is shown on standard output: tables and texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from deixis.rendering import Table

__all__ = ["console", "print_table"]


def console(width: int = 200) -> Console:
    """Return standard output; a file or a pipe has no width, and gets one at which tables and links are whole."""
    shown = Console(highlight=False)
    return shown if shown.is_terminal else Console(highlight=False, width=width)


def print_table(table: Table, *, markdown: bool) -> None:
    """Print a table for the terminal, or in Markdown."""
    if markdown:
        print(table.to_markdown())
    else:
        console().print(table.to_rich())
