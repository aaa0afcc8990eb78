"""A field of the settings is an option of the command, with its help, choices and limits."""

from __future__ import annotations

import typer
from typer.testing import CliRunner

from deixis.cli.options import with_settings
from deixis.errors import InputError
from deixis.settings import Settings

app = typer.Typer()
seen: list[tuple[str, Settings, int]] = []


@app.command()
@with_settings
def link(text: str, settings: Settings, workers: int = typer.Option(1, help="Processes.")) -> None:
    """Link a text."""
    seen.append((text, settings, workers))


def test_options_become_settings() -> None:
    options = ["--order", "local", "--commit", "0.5", "--trace", "--workers", "2"]
    assert CliRunner().invoke(app, ["a text", *options]).exit_code == 0
    assert seen.pop() == ("a text", Settings(order="local", commit=0.5, trace=True), 2)


def test_what_is_not_given_is_the_default() -> None:
    assert CliRunner().invoke(app, ["a text"]).exit_code == 0
    assert seen.pop() == ("a text", Settings(), 1)


def test_help_tells_the_choices_and_the_default() -> None:
    told = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "local|natural|confidence" in told
    assert "Candidates of a mention that take part" in told
    assert "30" in told


def test_a_wrong_value_is_one_sentence() -> None:
    assert CliRunner().invoke(app, ["a text", "--order", "sideways"]).exit_code == 2
    error = CliRunner().invoke(app, ["a text", "--top", "0"]).exception
    assert isinstance(error, InputError)
    assert str(error) == "top is 0; expected a whole number of at least 1 or nothing"
