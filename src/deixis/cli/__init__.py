"""The `deixis` command: one file a subcommand; each parses, calls and prints."""

from __future__ import annotations

import logging
import sys

import typer

from deixis.cli.articles import articles
from deixis.cli.assemble import assemble
from deixis.cli.calibrate import calibrate
from deixis.cli.candidates import candidates
from deixis.cli.convert_luke import convert_luke
from deixis.cli.disambiguate import disambiguate
from deixis.cli.entities import entities
from deixis.cli.evaluate import evaluate
from deixis.cli.link import link
from deixis.cli.mcp import mcp
from deixis.cli.push import push
from deixis.cli.quantise import quantise
from deixis.cli.redirects import redirects
from deixis.cli.serve import serve
from deixis.cli.train import train
from deixis.cli.vocabulary import vocabulary
from deixis.cli.wikipedia import wikipedia
from deixis.cli.windows import windows
from deixis.errors import DeixisError

__all__ = ["app", "main"]

app = typer.Typer(
    name="deixis",
    help="Decide which Wikipedia entity each name in a text refers to.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


app.command()(link)
app.command()(disambiguate)
app.command()(serve)
app.command()(mcp)
app.add_typer(wikipedia, name="wikipedia")
for step in (articles, redirects, vocabulary, windows):
    app.command(hidden=True)(step)  # as `deixis wikipedia articles` and so on
app.add_typer(candidates, name="candidates")
app.add_typer(entities, name="entities")
app.command()(convert_luke)
app.add_typer(evaluate, name="evaluate")
app.command()(calibrate)
app.command()(assemble)
app.command()(push)
app.command()(quantise)
app.add_typer(train, name="train")


def main() -> None:
    """Run the command; a DeixisError becomes one line on stderr and exit code 1, Ctrl-C exit code 130."""
    logging.basicConfig(format="deixis: %(message)s", stream=sys.stderr)
    try:
        app(standalone_mode=True)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("deixis: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our stdout has gone, e.g. `| head`
        sys.stderr.close()
        sys.exit(0)
