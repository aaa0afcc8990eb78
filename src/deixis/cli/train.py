"""`deixis train`: pretraining, fine-tuning, the detector; the settings of each stand in training/commands.py."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import typer

from deixis.cli.options import with_settings
from deixis.training.commands import COMMANDS
from deixis.training.fields import Fields

__all__ = ["train"]

train = typer.Typer(help="Train a model, or parts of one.", no_args_is_help=True)


def _command(settings: type[Fields]) -> Callable[..., None]:
    def run(given: Fields) -> None:
        from deixis.training.runs import carry_out

        for line in carry_out(given):
            typer.echo(line)

    run.__annotations__ = {"given": settings, "return": None}
    return with_settings(run)


for name, settings in COMMANDS.items():
    train.command(name, help=inspect.cleandoc(settings.__doc__ or ""))(_command(settings))
