"""`deixis disambiguate`: documents with mentions in, the same with resolutions out."""

from __future__ import annotations

from pathlib import Path

import typer

from deixis.cli.options import Machine, Model, Output, Wikidata, open_model, with_settings
from deixis.cli.progress import track
from deixis.cli.writing import writing
from deixis.errors import InputError
from deixis.settings import Settings

__all__ = ["disambiguate"]


@with_settings
def disambiguate(
    settings: Settings,
    machine: Machine,
    documents: Path = typer.Argument(help="Document JSONL, plain, .gz, .xz or .zst; '-' is standard input."),
    model: Model = None,
    output: Output = None,
    strict: bool = typer.Option(False, "--strict", help="Stop at the first line that cannot be read."),
    wikidata: Wikidata = None,
) -> None:
    """Decide which candidate each given mention means.

    One JSON document a line: `{"text": …, "mentions": [{"start", "end", "candidates": [[title, prior], …]}]}`.
    Each mention gains a `resolution`, or `null` and a `reason`. A line that cannot be read is reported with its
    number, the others are written, and the exit code is 1.

        deixis disambiguate documents.jsonl -o resolved.jsonl

        deixis disambiguate documents.jsonl --model model --order natural
    """
    from deixis.datasets.dataset import Report
    from deixis.datasets.jsonl import stream_documents

    nlp = open_model(model, machine, wikidata)
    report = Report()
    path = Path("/dev/stdin") if str(documents) == "-" else documents
    stream = stream_documents(path, strict=strict, report=report)
    with writing(output) as file:
        for result in track(nlp.disambiguate_many(stream, settings), "documents"):
            file.write(result.to_json() + b"\n")
    if bad := report.unmatched.total():
        raise InputError(f"{bad} line{'s' if bad > 1 else ''} of {documents} could not be read; the others are done")
