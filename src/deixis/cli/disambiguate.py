"""`deixis disambiguate`: documents with mentions in, the same with resolutions out."""

from __future__ import annotations

from pathlib import Path

import typer

from deixis.cli.options import Machine, Model, Output, Wikidata, open_model, with_settings
from deixis.cli.progress import track
from deixis.cli.writing import writing
from deixis.errors import InputError

__all__ = ["disambiguate"]


@with_settings
def disambiguate(
    machine: Machine,
    documents: Path = typer.Argument(help="Document JSONL, plain, .gz, .xz or .zst; '-' is standard input."),
    model: Model = None,
    output: Output = None,
    order: str = typer.Option("confidence", help="In which order mentions are decided: local, natural, confidence."),
    windows: str = typer.Option(
        "per_mention", help="How a document over 510 pieces is split: simple, overlapping, per_mention."
    ),
    commit: str = typer.Option("one", help="'one' mention a step, or also all of at least this probability."),
    released: str | None = typer.Option(None, help="As the released code of this year: 2021, 2022."),
    top: int = typer.Option(30, help="How many candidates of a mention take part, by prior; 0 is all."),
    prior: float = typer.Option(0.0, min=0, help="Add this weight times log p(e|m) to the scores; 0 is the paper."),
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
    from deixis.settings import Settings

    settings = Settings(
        order=order,  # type: ignore[arg-type]  # checked by Settings
        windows=windows,  # type: ignore[arg-type]
        released=released,  # type: ignore[arg-type]
        commit=Settings.parse("commit", commit),
        top=top or None,
        prior=prior,
    )
    nlp = open_model(model, machine, wikidata)
    report = Report()
    path = Path("/dev/stdin") if str(documents) == "-" else documents
    stream = stream_documents(path, strict=strict, report=report)
    with writing(output) as file:
        for result in track(nlp.disambiguate_many(stream, settings), "documents"):
            file.write(result.to_json() + b"\n")
    if bad := report.unmatched.total():
        raise InputError(f"{bad} line{'s' if bad > 1 else ''} of {documents} could not be read; the others are done")
