"""`deixis candidates`: build, import, merge and look into a store of names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from deixis.cli.options import Redirects
from deixis.cli.terminal import print_counts

__all__ = ["candidates"]

candidates = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Which entities a name may mean: build a store, import lists, merge stores, look a name up.",
)

SMALL = 10_000_000  # bytes

Output = Annotated[Path, typer.Option("--output", "-o", help="The store to write: a folder.")]


@candidates.command()
def build(
    output: Output,
    articles: Annotated[
        list[Path] | None, typer.Argument(metavar="[ARTICLES]...", help="Article JSONL of Wikipedia pages.")
    ] = None,
    annotated: Annotated[
        list[Path] | None,
        typer.Option(help="Article JSONL whose own titles are no entities, as news: only its links count."),
    ] = None,
    redirects: Redirects = None,
    aliases: Annotated[list[Path] | None, typer.Option(help="Other names of entities, lines alias<TAB>title.")] = None,
    descriptions: Annotated[
        list[Path] | None,
        typer.Option(help="Lines title<TAB>description: the titles, and abbreviations in brackets, become names."),
    ] = None,
    occurrences: Annotated[
        bool,
        typer.Option(help="Also count how often names are linked where they occur, by which `deixis link` finds them."),
    ] = True,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that count; by default one a core, of small files one.")
    ] = None,
) -> None:
    """Build a store from link texts, titles, redirects, aliases and pages of meanings.

    Example: `deixis candidates build articles.jsonl.zst --aliases aliases.tsv.xz -o store`
    """
    from deixis.cli.progress import track
    from deixis.corpus.names import NameSources, build_store

    sources = NameSources(articles or [], annotated or [], redirects or [], aliases or [], descriptions or [])
    manifest = build_store(
        sources,
        output,
        occurrences=occurrences,
        workers=workers or _workers([*sources.articles, *sources.annotated]),
        report=lambda sentence: typer.echo(f"deixis: {sentence}", err=True),
        progress=lambda steps: track(steps, "candidates"),
    )
    print_counts(manifest.counts, output)


@candidates.command("import")
def import_(
    lists: Annotated[Path, typer.Argument(help="The file (PPRforNED: the folder) with candidate lists.")],
    output: Output,
    form: Annotated[
        Literal["ganea-hofmann", "pprforned", "titles", "tsv"],
        typer.Option("--format", help="titles: GENRE's JSONL; tsv: surface, title, count."),
    ] = "tsv",
    into: Annotated[Path | None, typer.Option(help="A store that the lists are added to; it stays as it is.")] = None,
    mass: Annotated[
        float, typer.Option(min=0, help="How many links a list without counts is worth, shared out by its priors.")
    ] = 10,
    redirects: Redirects = None,
) -> None:
    """Import published candidate lists, by themselves or on top of a store.

    Example: `deixis candidates import names.tsv --format tsv --into store -o bigger-store`
    """
    from deixis.corpus.counting import digests, gather_redirects
    from deixis.datasets import import_lists
    from deixis.knowledge.build import NamesBuilder
    from deixis.knowledge.names import Names

    builder = NamesBuilder(gather_redirects([], redirects or []))
    parents = digests(lists=[lists] if lists.is_file() else [], redirects=redirects or [])
    if into is not None:
        store = Names.open(into)
        builder.add_store(store)
        parents["candidates"] = store.digest
    import_lists(builder, lists, form, mass)
    print_counts(builder.save(output, {"format": form, "mass": mass}, parents).counts, output)


@candidates.command()
def merge(
    stores: Annotated[list[Path], typer.Argument(metavar="STORE...", help="The stores to add up.")],
    output: Output,
    redirects: Redirects = None,
) -> None:
    """Merge stores: counts are summed, priors follow from them.

    Example: `deixis candidates merge wikipedia company -o store`
    """
    from deixis.corpus.counting import digests, gather_redirects
    from deixis.knowledge.build import NamesBuilder
    from deixis.knowledge.names import Names

    builder = NamesBuilder(gather_redirects([], redirects or []))
    parents = digests(redirects=redirects or [])
    for number, folder in enumerate(stores, 1):
        store = Names.open(folder)
        builder.add_store(store)
        parents[f"candidates {number}"] = store.digest
    print_counts(builder.save(output, {}, parents).counts, output)


@candidates.command()
def show(
    store: Annotated[Path, typer.Argument(help="The store.")],
    surface: Annotated[str, typer.Argument(help="The name to look up.")],
    top: Annotated[int, typer.Option("--top", "-k", min=1, help="At most this many candidates.")] = 30,
) -> None:
    """Print what a name may mean: entity, prior, links with this name, links in all, and where it is from.

    Example: `deixis candidates show store "World Cup"`
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from deixis.knowledge.names import Names
    from deixis.knowledge.surfaces import key, variants

    opened = Names.open(store)
    name = key(surface)
    asked = next((found for found in (name, *variants(name)) if found in opened), name)
    entries = list(opened.entries(asked))
    total = sum(entry.weight for entry in entries)
    parts = opened.parts(name)[:10]
    console = Console()
    table = Table("entity", "prior", "links", "links in all", "from", box=box.SIMPLE)
    for column in table.columns[1:4]:
        column.justify = "right"
    for entry in entries[:top]:
        sources = ", ".join(kind.name.lower() for kind in entry.kind if kind.name)
        table.add_row(entry.entity, f"{entry.weight / total:.4f}", f"{entry.count:g}", f"{entry.popularity:,}", sources)
    if entries:
        console.print(f"{surface!r} is stored as {asked!r} and may mean {len(entries):,}:", highlight=False)
        console.print(table)
    else:
        console.print(f"{surface!r} is no name in {store}", highlight=False)
    number = opened.number(asked)
    counted = None if number is None else opened.occurrences(number)
    if counted is not None:
        console.print(
            "Linked in {1:,} of the {0:,} articles that write it as a name; in lower case in {2:,}".format(*counted)
        )
    if parts:
        console.print("Part of: " + "; ".join(title for title, _ in parts), highlight=False)


def _workers(paths: list[Path]) -> int:
    """Return how many processes are worth their start."""
    from deixis.wikipedia.parallel import cores

    size = sum(path.stat().st_size for path in paths if path.exists())
    return cores() if size > SMALL else 1
