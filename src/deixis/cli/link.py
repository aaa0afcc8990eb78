"""`deixis link`: a text, files, a table or standard input in; mentions found and resolved out."""

from __future__ import annotations

import functools
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import Field

from deixis.cli.options import Machine, Model, Output, Wikidata, open_model, with_settings
from deixis.cli.progress import track
from deixis.cli.terminal import console, print_counts
from deixis.cli.writing import writing
from deixis.errors import InputError
from deixis.settings import Settings, SettingsModel

if TYPE_CHECKING:
    from deixis.documents import Document, Resolutions
    from deixis.inference import Disambiguator

__all__ = ["link"]

ADDRESS = re.compile(r"auto|local|[\w.-]+:\d+")  # of a Ray cluster
TABLES = (".csv", ".tsv", ".parquet")  # JSONL is one if its column is given
COMPRESSED = (".gz", ".xz", ".zst")
SUFFIXES = (".txt", ".text", ".md", ".jsonl", ".json", *TABLES, *COMPRESSED)  # of what is meant as a file

log = logging.getLogger(__name__)


class InTable(SettingsModel):
    """How the texts of a table are read, and what is written of them."""

    column: Annotated[
        str | None,
        Field(description="The column of a CSV, TSV, Parquet or JSONL table that has the texts; if not given, text."),
    ] = None
    nested: Annotated[
        bool, Field(description="Of a table: keep its rows and add a list of mentions, instead of a row a mention.")
    ] = False


class Cluster(SettingsModel):
    """Whether a Ray cluster does the work, and in which pieces."""

    ray: Annotated[
        bool,
        Field(
            description="Spread the work over a Ray cluster: at the ADDRESS (host:port) among the arguments, else "
            "RAY_ADDRESS, else this machine."
        ),
    ] = False
    workers: Annotated[
        Annotated[int, Field(ge=1)] | None,
        Field(description="With --ray: models at work; by default one a CPU or GPU."),
    ] = None
    block: Annotated[float, Field(ge=0.01, description="With --ray: MB of JSONL a worker takes at once.")] = 8.0


@with_settings
def link(
    settings: Settings,
    machine: Machine,
    table: InTable,
    cluster: Cluster,
    inputs: list[str] = typer.Argument(
        None, metavar="[TEXT | FILE...]", help="A text, or files: text, document JSONL, a table; else standard input."
    ),
    model: Model = None,
    json: bool = typer.Option(False, "--json", help="Write document JSONL; of many documents it is the default."),
    html: bool = typer.Option(False, "--html", help="Write a page: text, steps and links of every document."),
    output: Output = None,
    detection_threshold: float | None = typer.Option(
        None, min=0, max=1, help="The least link probability of a name that is taken as a mention; the model's own."
    ),
    wikidata: Wikidata = None,
) -> None:
    """Find the names of a text and decide which entity each means.

    Mentions are underlined and numbered in the order in which they were decided. A file ending in .jsonl (or
    .jsonl.zst, …) has one document a line, and mentions that it gives are kept. A .csv, .tsv or .parquet file is a
    table with a column of texts; so is a .jsonl file with --column. Any other file is one text in UTF-8.

    Examples:

        deixis link "Messi won the World Cup."

        deixis link notes/*.txt --model model -o linked.jsonl

        deixis link news.csv --column body -o mentions.parquet

        deixis link news.parquet --nested -o linked.parquet

        deixis link --ray head:6379 crawl/ --model model -o linked/

    Of a table one row a mention is written, with the other columns of its text; the suffix of the output says in which
    format. A row that cannot be read is reported with its number, the others are written, and the exit code is 1.

    With --ray, document JSONL and Parquet are linked block by block into a folder. Lines that are no document are kept
    with the reason. If it is interrupted, the same command goes on with the blocks that are not done.
    """
    if json and html:
        raise typer.BadParameter("--json and --html exclude each other")
    given = inputs or []
    if cluster.ray:
        options = {"device": machine.device, "settings": settings, "detection_threshold": detection_threshold}
        _over_ray(given, output, html, model, cluster, options)
        return
    paths = _paths(given)
    opening = functools.partial(open_model, model, machine, wikidata, detection_threshold=detection_threshold)
    opened = functools.cache(opening)  # for the first texts: what is wrong with a table is said before
    if table.column is not None or table.nested or any(map(_is_table, paths or ())):
        if json or html:
            raise typer.BadParameter("--json and --html are not for tables; the suffix of --output says the format")
        _link_table(paths, table, output, settings, opened)
    elif paths is None:
        _tell(opened().link_many(_texts(given), settings), output, json, html)
    else:
        _tell(opened().link_many(_files(paths), settings), output, json, html, paths)


def _tell(
    results: Iterable[Resolutions], output: Path | None, json: bool, html: bool, paths: Sequence[Path] = ()
) -> None:
    """Show one result in the terminal; write what goes elsewhere, and many."""
    lines = any(map(_is_jsonl, paths))
    if lines or json or html or output or len(paths) > 1:
        _write(results, output, html, None if lines or not paths else len(paths))
    else:
        _show(results)


def _link_table(
    paths: list[Path] | None,
    table: InTable,
    output: Path | None,
    settings: Settings,
    opened: Callable[[], Disambiguator],
) -> None:
    """Write a table of the mentions of a table's texts."""
    from deixis.integrations.tables import link_table, table_format

    if paths is None or len(paths) != 1:
        raise InputError("tables are linked one at a time; give one file that ends in .csv, .tsv, .jsonl or .parquet")
    if output is not None and _exists(output) and output.samefile(paths[0]):
        raise InputError(f"{output} is the table that is read; give another file to write")
    written = "jsonl" if output is None else table_format(output, written=True)
    table_format(paths[0])
    bad = 0
    with writing(output) as file:
        column = "text" if table.column is None else table.column
        answers = link_table(
            paths[0], column, file, written, lambda texts: opened().link_many(texts, settings), nested=table.nested
        )
        for answer in track(answers, "rows"):
            if isinstance(answer, InputError):
                log.warning("%s", answer)
                bad += 1
    if bad:
        rows = "1 row" if bad == 1 else f"{bad:,} rows"
        raise InputError(f"{rows} of {paths[0]} could not be read; the others are done")


def _write(results: Iterable[Resolutions], output: Path | None, html: bool, total: int | None) -> None:
    with writing(output) as file:
        watched = track(results, "documents", total)
        if html:
            file.write(_page(watched).encode())
        else:
            file.writelines(result.to_json() + b"\n" for result in watched)


def _over_ray(
    inputs: list[str], output: Path | None, html: bool, model: Path | None, over: Cluster, options: dict[str, Any]
) -> None:
    import time

    from deixis.integrations.ray import cluster, link_files

    if html or output is None:
        raise typer.BadParameter("--ray writes JSONL and Parquet into a folder; give it with -o, and no --html")
    address, rest = address_of(inputs)
    with cluster(address):
        begun = time.monotonic()
        size = int(over.block * (1 << 20))
        counts = link_files([Path(given) for given in rest], output, model, workers=over.workers, size=size, **options)
        seconds = time.monotonic() - begun
    print_counts(counts, output, f", {counts.get('documents', 0) / seconds:,.1f} documents/s")


def address_of(inputs: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the address of a cluster among the inputs, where there is one, and the rest."""
    addresses = [given for given in inputs if ADDRESS.fullmatch(given) and not Path(given).exists()]
    rest = [given for given in inputs if given not in addresses[:1]]
    if not rest:
        raise InputError("there is nothing to read; give files behind --ray and its address")
    return addresses[0] if addresses else None, rest


def _paths(inputs: list[str]) -> list[Path] | None:
    """Return the files that are meant, None where a text or standard input is."""
    if inputs in ([], ["-"]):
        return None
    paths = [Path(given) for given in inputs]
    alone = inputs[0]
    if len(inputs) == 1 and not _exists(paths[0]) and (" " in alone or not alone.lower().endswith(SUFFIXES)):
        return None
    for path in paths:
        if not _exists(path):
            raise InputError(f"{path} does not exist; give files, or one text in quotes")
        if path.is_dir():
            raise InputError(f"{path} is a folder; give its files, as {path}/*.txt")
    return paths


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text too long for a name, or one with a NUL
        return False


def _is_jsonl(path: Path) -> bool:
    return ".jsonl" in path.suffixes


def _is_table(path: Path) -> bool:
    return (Path(path.stem) if path.suffix in COMPRESSED else path).suffix in TABLES


def _texts(inputs: list[str]) -> Iterator[Document]:
    from deixis.documents import Document

    if inputs in ([], ["-"]):
        yield Document(_decoded(sys.stdin.buffer.read(), "standard input"))
    else:
        # What was no UTF-8 in the shell comes with surrogates, which nothing behind this can read.
        yield Document(_decoded(inputs[0].encode(errors="surrogateescape"), "the text"))


def _files(paths: list[Path]) -> Iterator[Document]:
    from deixis.artefacts import open_text
    from deixis.datasets.jsonl import stream_documents
    from deixis.documents import Document

    for path in paths:
        if _is_jsonl(path):
            yield from stream_documents(path)
        else:
            with open_text(path) as file:
                yield Document(_decoded(file.read(), str(path)), id=str(path))


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8: byte {error.start} is {raw[error.start]:#04x}") from None


def _page(results: Iterable[Resolutions]) -> str:
    from deixis.rendering import linked_html, page, sequence_html

    sections = []
    for number, result in enumerate(results, 1):
        sections += [sequence_html(result, result.document.id or f"Text {number}"), linked_html(result)]
    return page("deixis link", sections)


def _show(results: Iterable[Resolutions]) -> None:
    from deixis.rendering import linked_text

    shell = console(width=160)
    for result in results:
        shell.print(linked_text(result))
