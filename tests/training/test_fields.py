"""Settings of training: one definition for Python, TOML and both command lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
import typer

from deixis.cli import app
from deixis.errors import InputError
from deixis.training.__main__ import _parser
from deixis.training.commands import COMMANDS
from deixis.training.fields import About, Fields, fields_of


@dataclass(frozen=True, kw_only=True)
class Baking(Fields):
    flour: Annotated[Path, About("The sack.", positional=True)]
    kind: Annotated[Literal["rye", "none"], About("The kind.")] = "rye"
    hours: Annotated[float | None, About("How long.", 0, 9)] = None
    at: Annotated[tuple[int, ...], About("When.", 1)] = ()
    salt: Annotated[bool, About("Whether.")] = False


def test_texts_are_read_as_the_fields_kind() -> None:
    given = Baking(flour=Path("sack")).with_settings({"hours": "2.5", "kind": "none", "salt": "true", "flour": "bag"})
    assert given == Baking(flour=Path("bag"), kind="none", hours=2.5, salt=True)
    assert given.with_settings({"hours": "none"}).hours is None
    assert given.with_settings({"at": [1, 2]}).at == (1, 2), "as TOML has it"
    assert Baking(flour=Path("sack"), hours=1, at=(1, 2)).to_json()["at"] == (1, 2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"kind": "oat"}, "kind is 'oat'; expected one of rye, none"),
        ({"hours": 10}, "hours is 10; expected a number from 0 to 9 or nothing"),
        ({"hours": float("nan")}, "hours is nan; expected a number"),
        ({"hours": True}, "hours is True; expected a number"),
        ({"hours": "long"}, "hours is 'long'; expected a number"),
        ({"at": (3, 0)}, "at is 0; expected a list, each a whole number of at least 1"),
        ({"at": 3}, "at is 3; expected a list, each a whole number of at least 1"),
        ({"salt": 1}, "salt is 1; expected true or false"),
        ({"sugar": 1}, "there is no field 'sugar'; expected one of flour, kind"),
    ],
)
def test_wrong_values_are_one_sentence(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        Baking(flour=Path("sack")).with_settings(wrong)


@pytest.mark.parametrize("name", COMMANDS)
def test_both_command_lines_have_every_field(name: str) -> None:
    """One is typer's, the other argparse's; what differs is only who says --help."""
    command = typer.main.get_command(app).commands["train"].commands[name]  # type: ignore[attr-defined]
    plain = _parser()._subparsers._group_actions[0].choices[name]  # type: ignore[union-attr,index]
    ours = {flag for option in command.params for flag in option.opts if flag.startswith("-")} - {"--help"}
    theirs = {flag for action in plain._actions for flag in action.option_strings} - {"-h", "--help"}
    assert ours == theirs == {flag for f in fields_of(COMMANDS[name]) if not f.about.positional for flag in f.flags}
    places = [option.name for option in command.params if option.param_type_name == "argument"]
    assert places == [action.dest for action in plain._actions if not action.option_strings]
