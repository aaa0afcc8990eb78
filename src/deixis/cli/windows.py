"""`deixis wikipedia windows`: from articles to tokenised training windows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.options import Articles, Redirects, with_settings
from deixis.corpus.settings import PackingConfig

__all__ = ["windows"]


@with_settings
def windows(
    articles: Articles,
    vocabulary: Annotated[Path, typer.Option(help="The vocabulary that gives entities their rows.")],
    tokenizer: Annotated[Path, typer.Option(help="A BERT folder with tokenizer.json or vocab.txt.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    config: PackingConfig,
    descriptions: Annotated[
        list[Path] | None, typer.Option(help="Lines title<TAB>description: windows whose subject is annotated.")
    ] = None,
    redirects: Redirects = None,
    store: Annotated[Path | None, typer.Option(help="The store that candidate rows are looked up in.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default one a core.")] = None,
) -> None:
    """Tokenise articles and pack them into windows that training maps into memory.

    Example: `deixis wikipedia windows articles.jsonl.zst --vocabulary vocabulary.jsonl --tokenizer bert -o windows`

    If it is interrupted, the same command goes on where it was; the result is the same to the byte.
    """
    from deixis.cli.progress import track
    from deixis.cli.terminal import print_counts
    from deixis.corpus.counting import gather_redirects
    from deixis.corpus.shards import build_windows
    from deixis.wikipedia.parallel import cores

    manifest = build_windows(
        articles,
        vocabulary,
        tokenizer,
        output,
        config,
        descriptions=descriptions or [],
        redirects=gather_redirects(articles, redirects or []),
        store=store,
        workers=workers or cores(),
        report=lambda sentence: typer.echo(f"deixis: {sentence}", err=True),
        progress=lambda parts: track(parts, "windows"),
    )
    print_counts(manifest.counts, output)
