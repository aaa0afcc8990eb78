"""`deixis wikipedia vocabulary`: from articles to the entities that the model knows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.options import Articles, Redirects

__all__ = ["vocabulary"]


def vocabulary(
    articles: Articles,
    output: Annotated[Path, typer.Option("--output", "-o", help="The vocabulary to write, ending in .jsonl.")],
    min_count: Annotated[int, typer.Option(min=1, help="Links that an entity needs to get a row.")] = 1,
    include: Annotated[
        list[Path] | None, typer.Option(help="A white list, one title a line: these get a row whatever their count.")
    ] = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most this many entities, the most linked ones; special rows extra.")
    ] = None,
    redirects: Redirects = None,
) -> None:
    """Count the entities that articles link to and give each a row.

    Example: `deixis wikipedia vocabulary articles.jsonl.zst --min-count 2 -o vocabulary.jsonl`

    Rows 0 to 2 are [PAD], [UNK] and [MASK]; the others go by count, ties by title.
    """
    from deixis.cli.progress import track
    from deixis.cli.terminal import print_counts
    from deixis.corpus.counting import build_vocabulary

    manifest = build_vocabulary(
        articles,
        output,
        tables=redirects or [],
        min_count=min_count,
        include=include or [],
        limit=limit,
        report=lambda sentence: typer.echo(f"deixis: {sentence}", err=True),
        progress=lambda paths: track(paths, "vocabulary", len(articles)),
    )
    print_counts(manifest.counts, output)
