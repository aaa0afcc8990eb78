"""`deixis train` where only torch, tokenizers, safetensors and numpy are installed, and for torchrun.

python -m deixis.training pretrain bert windows stage1 --vocabulary vocabulary.jsonl --recipe small-stage1
torchrun --nproc-per-node 8 -m deixis.training pretrain stage1 windows stage2 --recipe paper-stage2
"""

from __future__ import annotations

import argparse
import inspect
import logging
import sys
from dataclasses import MISSING
from typing import Any

from deixis.errors import DeixisError
from deixis.training.commands import COMMANDS
from deixis.training.fields import Field, Fields, fields_of
from deixis.training.runs import carry_out


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    given = vars(_parser().parse_args(arguments))
    logging.basicConfig(format="%(message)s", stream=sys.stderr, level=logging.INFO)
    try:
        for line in carry_out(_read(COMMANDS[given.pop("command")], given)):
            print(line, flush=True)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("deixis: interrupted; run the same command again to go on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


def _read(settings: type[Fields], given: dict[str, Any]) -> Fields:
    known = {field.name: field for field in fields_of(settings)}
    return settings(**{name: known[name].read(value) for name, value in given.items()})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deixis.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, settings in COMMANDS.items():
        told = inspect.cleandoc(settings.__doc__ or "")
        command = commands.add_parser(
            name,
            help=told.splitlines()[0],
            description=told,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            argument_default=argparse.SUPPRESS,
        )
        for field in fields_of(settings):
            _add(command, field)
    return parser


def _add(command: argparse.ArgumentParser, field: Field) -> None:
    about = field.about
    told = about.help.replace("%", "%%")
    if about.positional:
        name = about.metavar or field.name.upper()
        command.add_argument(field.name, nargs="+" if field.many else None, metavar=name, help=told)
        return
    if field.kind is bool:
        command.add_argument(*field.flags, dest=field.name, action="store_true", help=told)
        return
    if field.default not in (MISSING, None, "", ()):
        told += f" [default: {field.default}]"
    action = "append" if field.many else "store"
    required, name = field.default is MISSING, about.metavar or field.name.upper()
    command.add_argument(*field.flags, dest=field.name, action=action, required=required, metavar=name, help=told)


if __name__ == "__main__":
    sys.exit(main())
