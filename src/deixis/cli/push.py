"""`deixis push`: a model folder into a repository of a hub."""

from __future__ import annotations

from pathlib import Path

import typer

__all__ = ["push"]


def push(
    folder: Path = typer.Argument(..., help="The model folder."),
    repository: str = typer.Argument(..., metavar="hf://OWNER/NAME", help="Where to; made if there is none."),
    private: bool = typer.Option(False, "--private", help="Show a new repository to nobody else."),
) -> None:
    """Put a model folder into a repository of a hub, for `deixis.load("hf://owner/name")`.

    deixis push model hf://owner/name --private
    """
    from deixis.folder.hub import push as put

    typer.echo(f"pushed: {put(folder, repository, private=private)}")
