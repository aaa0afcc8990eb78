"""`deixis wikipedia`: from a MediaWiki dump to a model folder, and the steps on the way by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer.core import TyperGroup

from deixis.cli.articles import Dumps, ReadingBar, Workers, articles
from deixis.cli.options import ModelOutput
from deixis.cli.redirects import redirects
from deixis.cli.terminal import print_counts
from deixis.cli.vocabulary import vocabulary
from deixis.cli.windows import windows

if TYPE_CHECKING:
    from deixis.folder.wiki import Wiki

__all__ = ["wikipedia"]


class _DumpsFirst(TyperGroup):
    """A group with a command that is meant where none is named."""

    default = "build"

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [self.default, *args]
        return super().parse_args(ctx, args)


wikipedia = typer.Typer(
    cls=_DumpsFirst,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Make a model folder from any MediaWiki dump: `deixis wikipedia DUMP -o FOLDER`; or one step of it.",
)

PageProps = Annotated[
    Path | None, typer.Option(help="The wiki's page_props.sql.gz: Wikidata ids, and which pages only list meanings.")
]
Device = Annotated[str, typer.Option(help="Where leads are read, e.g. cpu or cuda.")]


@wikipedia.command()
def build(
    dumps: Dumps,
    output: ModelOutput,
    page_props: PageProps = None,
    base: Annotated[
        Path | None, typer.Option(help="The model folder whose encoder reads; the packaged one if not given.")
    ] = None,
    device: Device = "cpu",
    workers: Workers = None,
) -> None:
    """Make a model folder from a dump; nothing is trained.

    Example: `deixis wikipedia enwiki-latest-pages-articles-multistream.xml.bz2 -o today`

    Every article is an entity: its names are its title, its redirects and what links call it; its row is what the
    encoder reads in its first sentence. Rows of the base stay where it is of the same wiki. If it is interrupted, the
    same command goes on where it was; the result is the same to the byte.
    """
    from deixis.folder.wiki import Wiki

    _make(Wiki(dumps, page_props, base), output, device, workers)


@wikipedia.command()
def update(
    folder: Annotated[Path, typer.Argument(help="A folder that `deixis wikipedia` made; it stays as it is.")],
    dumps: Dumps,
    output: ModelOutput,
    page_props: PageProps = None,
    device: Device = "cpu",
    workers: Workers = None,
) -> None:
    """Make the folder of a newer dump; rows are made only of pages that are new or begin differently.

    Example: `deixis wikipedia update today enwiki-20270101-pages-articles.xml.bz2 -o tomorrow`
    """
    from deixis.errors import InputError
    from deixis.folder.wiki import LEADS, Wiki

    if not (folder / LEADS).exists():
        raise InputError(f"{folder} was not made by `deixis wikipedia`; give it to the first build as --base")
    _make(Wiki(dumps, page_props, folder), output, device, workers)


wikipedia.command()(articles)
wikipedia.command()(redirects)
wikipedia.command()(vocabulary)
wikipedia.command()(windows)


def _make(wiki: Wiki, output: Path, device: str, workers: int | None) -> None:
    from deixis.cli.progress import track
    from deixis.folder.wiki import build_wiki

    with ReadingBar() as reading:
        manifest = build_wiki(
            wiki,
            output,
            device=device,
            workers=workers,
            reading=reading,
            track=track,
            report=lambda sentence: typer.echo(f"deixis: {sentence}", err=True),
        )
    parameters = manifest.parameters
    typer.echo(f"{parameters['domain']}, {parameters['date']}, {parameters['licence']}")
    print_counts({**manifest.counts, **parameters["rows"]}, output)
