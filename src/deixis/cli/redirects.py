"""`deixis wikipedia redirects`: one table of where titles lead, drifted titles included."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["redirects"]


def redirects(
    articles: Annotated[list[Path], typer.Argument(metavar="ARTICLES...", help="Article JSONL of Wikipedia pages.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The table to write, lines from<TAB>to.")],
    annotated: Annotated[
        list[Path] | None, typer.Option(help="Article JSONL whose own titles are no entities, as news.")
    ] = None,
    tables: Annotated[
        list[Path] | None, typer.Option("--redirects", help="A redirect table of your own, lines from<TAB>to.")
    ] = None,
    aliases: Annotated[list[Path] | None, typer.Option(help="Other names of entities, lines alias<TAB>title.")] = None,
    descriptions: Annotated[
        list[Path] | None, typer.Option(help="Lines title<TAB>description: titles with one of their own are entities.")
    ] = None,
) -> None:
    """Gather redirects, and lead link targets that no page has any more to the entity that an alias names.

    Example: `deixis wikipedia redirects articles.jsonl.zst --aliases aliases.tsv -o redirects.tsv`

    Give the table with `--redirects` to `vocabulary`, `windows` and `deixis candidates build`.
    """
    from deixis.cli.terminal import print_counts
    from deixis.corpus.drift import build_redirects
    from deixis.corpus.names import NameSources

    sources = NameSources(articles, annotated or [], tables or [], aliases or [], descriptions or [])
    manifest = build_redirects(sources, output)
    print_counts(manifest.counts, output)
