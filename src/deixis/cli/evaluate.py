"""`deixis evaluate`: measure a model on sets with given mentions, on plain texts, or candidate lists alone."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer
from pydantic import Field

from deixis.cli.options import Machine, Model, open_model, with_settings
from deixis.cli.terminal import console, print_table
from deixis.evaluation.settings import DataSettings, SetsSettings
from deixis.settings import Settings, SettingsModel

if TYPE_CHECKING:
    from deixis.documents import Resolutions
    from deixis.evaluation.plan import Outcome
    from deixis.evaluation.reporting import SetsReport
    from deixis.evaluation.texts import TextScores
    from deixis.inference import Disambiguator

__all__ = ["evaluate"]

evaluate = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Measure a model on sets with given mentions (the paper's tables), on plain texts, or candidate lists alone.",
)

Data = Annotated[Path, typer.Option(help="The folder with the benchmarks: unpacked, or the published folder.")]
Sets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SET]...",
        help="aida-train, aida-a, aida-b, msnbc, aquaint, ace2004, cweb, wiki, zelda-…, or a file; without any the six "
        "test sets of the paper.",
    ),
]
Candidates = Annotated[
    list[str] | None,
    typer.Option(
        help="kb+yago, ppr, model (the model's own names), given (with the mentions), or a folder with names; may be "
        "repeated (default kb+yago; for the paper's sets also ppr)."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.")]


class ReportSettings(SettingsModel):
    """What is reported beside the tables, and which files are written."""

    analyses: Annotated[
        bool, Field(description="Also report rare entities, disagreements of the orders, and calibration.")
    ] = False
    document: Annotated[
        tuple[str, ...],
        Field(description="Also show the inference sequence of documents whose id starts so; may be repeated."),
    ] = ()
    html: Annotated[Path | None, Field(description="Write tables, analyses and sequences as one HTML page.")] = None
    predictions: Annotated[Path | None, Field(description="Write the answers of every run into this folder.")] = None
    format: Annotated[
        tuple[Literal["jsonl", "nif", "elevant"], ...],
        Field(description="Format of the answers: jsonl (our documents), nif (for GERBIL), elevant; may be repeated."),
    ] = ("jsonl",)
    wikidata: Annotated[
        Path | None, Field(description="Wikidata ids for ELEVANT beside the model's own; lines of title TAB id.")
    ] = None


@evaluate.command()
@with_settings
def sets(
    data: Data,
    settings: SetsSettings,
    report: ReportSettings,
    machine: Machine,
    sets: Sets = None,
    model: Model = None,
    candidates: Candidates = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Disambiguate the given mentions of sets, as the paper does, with the paper's figures beside ours.

    Examples:

        deixis evaluate sets --data benchmarks

        deixis evaluate sets aida-b --data benchmarks --model model --candidates ppr --order confidence

        deixis evaluate sets --data benchmarks --model model --analyses --html report.html --predictions answers

        deixis evaluate sets aida-a --data benchmarks --candidates ppr --prior 0 --prior 0.2 --prior 0.5

    Every count that differs from the files' has a line that says why. Precision, recall, F1 and accuracy are of the
    in-KB mentions; intervals are over documents.
    """
    from deixis.evaluation.plan import Plan, carry_out, open_stores, pairs_of

    _check_form(json, markdown)
    pairs = pairs_of(sets or [], candidates or [])
    nlp = open_model(model, machine)
    stores = open_stores({name for _, name in pairs}, nlp.candidates, settings.top)
    outcome = carry_out(Plan.read(data, pairs, settings, stores, nlp.knowledge.lead), nlp, _watch)
    links = dict(zip(nlp.vocabulary.titles, nlp.vocabulary.counts, strict=True))
    ids = _wikidata(report.wikidata, nlp)
    made = _report(outcome, report, _digest(model), paper=not sets, links=links, wikidata=ids)
    _show(made, json=json, markdown=markdown)


@evaluate.command()
@with_settings
def candidates(
    data: Data,
    settings: DataSettings,
    sets: Sets = None,
    model: Model = None,
    candidates: Candidates = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Measure candidate lists without a network: counts, recall, and how often the most frequent candidate is right.

    Examples:

        deixis evaluate candidates --data benchmarks

        deixis evaluate candidates aida-a msnbc mine.jsonl --data benchmarks --candidates model

    Recall is the share of mentions whose gold is among the candidates: no answer can be right without.
    """
    from deixis.evaluation.plan import Plan, carry_out, open_stores, pairs_of
    from deixis.evaluation.reporting import SetsReport
    from deixis.folder.model_folder import ModelFolder

    _check_form(json, markdown)
    pairs = pairs_of(sets or [], candidates or [])
    own = ModelFolder.load(_folder(model)).names if "model" in {name for _, name in pairs} else None
    stores = open_stores({name for _, name in pairs}, own, settings.top)
    outcome = carry_out(Plan.read(data, pairs, settings, stores), None)
    _show(SetsReport.build(outcome, paper=not sets), json=json, markdown=markdown)


class TextsSettings(SettingsModel):
    """How texts and golds are read."""

    redirects: Annotated[Path | None, Field(description=DataSettings.model_fields["redirects"].description)] = None
    wikidata: Annotated[
        Path | None,
        Field(description="Wikidata ids to read ELEVANT's golds by, beside the model's own; lines of title TAB id."),
    ] = None
    limit: Annotated[
        Annotated[int, Field(ge=1)] | None, Field(description=DataSettings.model_fields["limit"].description)
    ] = None


@evaluate.command()
@with_settings
def texts(
    sets: Annotated[list[str], typer.Argument(metavar="SET...", help="Sets as for `sets`, or files with golds.")],
    reading: TextsSettings,
    settings: Settings,
    machine: Machine,
    data: Data = Path(),
    model: Model = None,
    mentions: Annotated[
        list[str] | None,
        typer.Option(
            help="found (by the model), gold, or the name of a spaCy pipeline; may be repeated (default: found, gold)."
        ),
    ] = None,
    json: Json = False,
    markdown: Markdown = False,
) -> None:
    """Link plain texts and compare with gold spans and entities, strict and weak, with and without NIL.

    Examples:

        deixis evaluate texts aida-b msnbc --data benchmarks

        deixis evaluate texts mine.jsonl --model model --mentions found --mentions en_core_web_sm --json

    Windows, prior and answer threshold are the model's own for plain texts if not given, as in `deixis link`.
    """
    from deixis.datasets import read_redirects, read_texts
    from deixis.evaluation.texts import score_ways
    from deixis.evaluation.texts_report import TextsReport

    _check_form(json, markdown)
    nlp = open_model(model, machine)
    redirects = nlp.knowledge.lead({} if reading.redirects is None else read_redirects(reading.redirects))
    wikidata = _wikidata(reading.wikidata, nlp)
    scores: list[TextScores] = []
    for name in dict.fromkeys(sets):
        dataset = read_texts(data, name, wikidata)
        dataset = dataset if reading.limit is None else dataset.first(reading.limit)
        scores += score_ways(nlp, dataset, mentions or ["found", "gold"], settings, redirects=redirects, watch=_watch)
    report = TextsReport(tuple(scores), nlp.for_texts(settings), _digest(model))
    if json:
        _print_json(report.to_record())
        return
    for table in report.tables():
        print_table(table, markdown=markdown)


def _check_form(json: bool, markdown: bool) -> None:
    if json and markdown:
        raise typer.BadParameter("--json and --markdown exclude each other")


def _folder(model: Path | None) -> Path:
    from deixis.folder.model_folder import packaged_model

    return packaged_model() if model is None else model


def _wikidata(path: Path | None, nlp: Disambiguator) -> Mapping[str, str]:
    """Return the Wikidata ids of titles that are given, before those that the model knows."""
    from deixis.knowledge.entities import read_wikidata
    from deixis.knowledge.knowledge import Knowledge

    given = {} if path is None else dict(read_wikidata(path))
    if not isinstance(nlp.knowledge, Knowledge):
        return given
    return ChainMap(given, cast(dict[str, str], nlp.knowledge.wikidata_ids))


def _digest(model: Path | None) -> str:
    from deixis.folder.model_folder import opened

    return opened(_folder(model))[1].digest


def _watch(label: str, total: int, results: Iterator[Resolutions]) -> Iterable[Resolutions]:
    from deixis.cli.progress import track

    return track(results, label, total)


def _report(
    outcome: Outcome,
    wanted: ReportSettings,
    model: str,
    *,
    paper: bool,
    links: Mapping[str, int],
    wikidata: Mapping[str, str],
) -> SetsReport:
    """Build the report, and write the files that are asked for: a pipe that is closed later must not cost them."""
    from deixis.artefacts import write_aside
    from deixis.evaluation.exports import write_predictions
    from deixis.evaluation.reporting import SetsReport

    report = SetsReport.build(
        outcome, model, paper=paper, analysed=wanted.analyses, links=links, documents=wanted.document
    )
    if wanted.html is not None:
        with write_aside(wanted.html) as file:
            file.write(report.to_html().encode())
    if wanted.predictions is not None:
        for path in write_predictions(wanted.predictions, outcome, wanted.format, wikidata):
            typer.echo(f"wrote {path}", err=True)
    return report


def _show(report: SetsReport, *, json: bool, markdown: bool) -> None:
    if json:
        _print_json(report.to_record())
    elif markdown:
        print(report.to_markdown())
    else:
        console().print(report.to_rich(), soft_wrap=True)


def _print_json(record: Mapping[str, Any]) -> None:
    import orjson

    print(orjson.dumps(record, option=orjson.OPT_INDENT_2).decode())
