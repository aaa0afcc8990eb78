"""`deixis quantise`: a model folder made small enough to travel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from deixis.cli.options import ModelOutput

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["quantise"]

LINKS = 4000  # 2,000 are nearly as good, 12,000 hardly better
BEGINNING = 2000  # characters


def quantise(
    model: Annotated[Path, typer.Argument(help="The model folder; it stays as it is.")],
    output: ModelOutput,
    encoder: Annotated[
        Literal["fp32", "fp16", "int12", "int8"], typer.Option(help="Precision of the encoder on disk.")
    ] = "int8",
    table: Annotated[
        Literal["fp32", "fp16", "int8", "mixed"],
        typer.Option(help="Precision of the entity table on disk; mixed: as it is."),
    ] = "int8",
    entities: Annotated[
        int | None,
        typer.Option(min=1, help="Keep at most this many entities, the most annotated; for a model without names."),
    ] = None,
    keep: Annotated[
        list[Path] | None, typer.Option(help="Titles, one a line, that stay before any other; needs --entities.")
    ] = None,
    articles: Annotated[
        Path | None, typer.Option(help="Article JSONL: an int8 table is rounded for the links at the start of some.")
    ] = None,
) -> None:
    """Write a model folder with its matrices in fewer bits, and with fewer entities where asked.

    The network computes in fp32 all the same: the encoder is turned back when it is loaded, rows of the table when
    they are read.

    Examples:

        deixis quantise model -o small

        deixis quantise model -o small --entities 150000 --keep titles.txt

        deixis quantise model -o small --articles articles.jsonl.zst
    """
    from deixis.artefacts import digest_file
    from deixis.cli.terminal import print_counts, size_and_digest
    from deixis.datasets import read_titles
    from deixis.errors import InputError
    from deixis.folder.model_folder import quantise_folder

    if keep and entities is None:
        raise InputError("--keep names what stays when entities are cut; give --entities too")
    if articles is not None and table != "int8":
        raise InputError(f"--articles is for rounding a table to int8; this one is to be {table}")
    manifest = quantise_folder(
        model,
        output,
        encoder=encoder,
        table=table,
        entities=entities,
        keep=frozenset().union(*map(read_titles, keep or [])),
        seen=None if articles is None else _see(model, articles),
        parents=None if articles is None else {"articles": digest_file(articles)},
    )
    print_counts(manifest.counts, output, size_and_digest(output, manifest))


def _see(model: Path, path: Path) -> Tensor:
    """Return m_e (links, entity_size) of the links at the beginnings of articles, until there are enough of these."""
    from deixis.documents import Document, Mention
    from deixis.errors import InputError
    from deixis.folder.model_folder import ModelFolder
    from deixis.folder.sharpen import read_mentions
    from deixis.wikipedia.articles import read_articles

    documents, left = [], LINKS
    for article in read_articles(path, strict=True):
        mentions = tuple(Mention(link.start, link.end) for link in article.links if link.end <= BEGINNING)
        if mentions:
            documents.append(Document(article.text[:BEGINNING], mentions))
            left -= len(mentions)
        if left <= 0:
            break
    if not documents:
        raise InputError(f"{path} has no article with links at its start; expected article JSONL")
    whole = ModelFolder.load(model)
    return read_mentions(whole.network.eval(), whole.tokenizer, documents)
