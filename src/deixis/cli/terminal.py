"""What is shown on standard output: tables and texts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from deixis.artefacts import Manifest
    from deixis.rendering import Table

__all__ = ["console", "print_counts", "print_table", "size_and_digest"]


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


def print_counts(counts: Mapping[str, Any], output: Path, more: str = "") -> None:
    """Print what a command counted, and where it wrote."""
    for what, count in counts.items():
        print(f"{count:>12,}  {what}")
    print(f"written: {output}{more}")


def size_and_digest(folder: Path, manifest: Manifest) -> str:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f", {size / 1e6:.1f} MB, digest {manifest.digest[:12]}"
