"""`deixis wikipedia articles`: from a Wikipedia dump to articles with links."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deixis.cli.terminal import print_counts

__all__ = ["Dumps", "ReadingBar", "Workers", "articles"]

Dumps = Annotated[
    list[Path],
    typer.Argument(
        metavar="DUMP...",
        help="MediaWiki XML: .xml, .xml.bz2, multistream .bz2 with or without its index, any number of part files.",
    ),
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes that read wikitext; by default one a core.")]


def articles(
    dumps: Dumps,
    output: Annotated[Path, typer.Option("--output", "-o", help="The article file to write, ending in .jsonl.zst.")],
    redirects: Annotated[
        Path | None,
        typer.Option(
            help="A redirect table of your own, a line a redirect: from, tab, to; it goes before the dump's redirects."
        ),
    ] = None,
    workers: Workers = None,
) -> None:
    """Read a Wikipedia dump as plain text with links at character offsets.

    Example: `deixis wikipedia articles enwiki-latest-pages-articles-multistream.xml.bz2 -o articles.jsonl.zst`

    Only pages of the main namespace are kept; redirects are followed, disambiguation pages marked. If it is
    interrupted, the same command goes on where it was; the result is the same to the byte.
    """
    from deixis.wikipedia.extraction import build_articles

    with ReadingBar() as reading:
        extraction = build_articles(dumps, output, redirects=redirects, workers=workers, progress=reading)
    for cut in extraction.cuts:
        typer.echo(f"deixis: {cut}; all before that was read", err=True)
    told = extraction.counts.items()
    print_counts({f"{group}: {reason}": n for group, reasons in told for reason, n in reasons.items()}, output)


class ReadingBar:
    """Shows how far dumps are read: MB, pages, the time that is left; gone when the last is read."""

    def __init__(self) -> None:
        from rich.progress import TextColumn

        from deixis.cli.progress import bar

        self._bar = bar(TextColumn("MB  {task.fields[pages]:,} pages, {task.fields[speed]:,.0f}/s"))

    def __enter__(self) -> ReadingBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int, pages: int) -> None:
        """Show a state of the work."""
        if not self._bar.tasks:
            self._bar.start()
            self._bar.add_task("articles", total=total >> 20, speed=0.0, pages=0)
        task = self._bar.tasks[0]
        self._bar.update(task.id, completed=done >> 20, pages=pages, speed=pages / (task.elapsed or 1e-9))
        if done >= total:
            self._bar.stop()
