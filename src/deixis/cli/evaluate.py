"""`deixis evaluate`: the paper's tables, from the real data, with the paper's own figures beside ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from deixis.cli.terminal import console, print_table

if TYPE_CHECKING:
    from deixis.documents import Resolutions
    from deixis.evaluation.plan import Outcome, Plan
    from deixis.evaluation.reporting import Analysis
    from deixis.inference import Disambiguator
    from deixis.knowledge.detection import Detector
    from deixis.knowledge.source import CandidateSource

__all__ = ["evaluate"]


def evaluate(
    data: Annotated[Path, typer.Option(help="The folder with the benchmarks: unpacked, or the published folder.")],
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="aida-train, aida-a, aida-b, msnbc, aquaint, ace2004, cweb, wiki, zelda-…, or a file."
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="The six test sets of the paper's two tables.")] = False,
    model: Annotated[Path | None, typer.Option(help="The model folder; the packaged model if not given.")] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="No model: only counts, candidate recall and most frequent candidates.")
    ] = False,
    candidates: Annotated[
        list[str] | None,
        typer.Option(help="kb+yago, ppr, model (its own store), given (with the mentions), or the folder of a store."),
    ] = None,
    order: Annotated[list[str] | None, typer.Option(help="local, natural, confidence; all three if not given.")] = None,
    windows: Annotated[str, typer.Option(help="Documents over 510 pieces: simple, overlapping, per_mention.")] = (
        "per_mention"
    ),
    commit: Annotated[str, typer.Option(help="'one' mention a step, or all of at least this probability.")] = "one",
    prior: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            help="Add this weight times log p(e|m) to the scores, in rows of their own; several, 0 is the paper.",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Candidates a mention, by prior: 30, but PPRforNED's lists whole, if not given."),
    ] = None,
    redirects: Annotated[
        Path | None, typer.Option(help="Old to new titles, for golds, lists and answers: lines old TAB new, or JSON.")
    ] = None,
    titles: Annotated[Path | None, typer.Option(help="Valid titles, one a line; other golds are removed.")] = None,
    coreference: Annotated[
        str,
        typer.Option(help="Persons in the published lists: original (in_place with --released 2021), none."),
    ] = "original",
    end_to_end: Annotated[
        bool,
        typer.Option(
            "--end-to-end",
            help="Find the mentions too: strict span and entity, beside the gold mentions; candidates are the model's.",
        ),
    ] = False,
    spacy: Annotated[
        str | None, typer.Option(help="With --end-to-end also the entities of this spaCy pipeline as mentions.")
    ] = None,
    released: Annotated[
        str | None,
        typer.Option(
            help="As the released code of 2021 or 2022: golds without a title dropped before aligning, the centred "
            "mention first in natural order, [PAD] for mentions without candidates, its ways with unknown candidates."
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first documents of each set.")] = None,
    analyses: Annotated[
        bool, typer.Option("--analyses", help="Also rare entities, disagreements of the orders, and calibration.")
    ] = False,
    document: Annotated[
        list[str] | None,
        typer.Option(help="Also the inference sequence of documents whose id starts so; steps are of a window."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write tables, analyses and sequences as one HTML page.")] = None,
    predictions: Annotated[Path | None, typer.Option(help="Write the answers of every run into this folder.")] = None,
    form: Annotated[
        list[str] | None, typer.Option("--format", help="Of the answers: jsonl, nif (GERBIL), elevant; several.")
    ] = None,
    qids: Annotated[Path | None, typer.Option(help="Titles to Wikidata ids for ELEVANT, lines title TAB id.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    device: Annotated[str, typer.Option(help="Where the network runs, e.g. cpu or cuda.")] = "cpu",
    precision: Annotated[
        str | None,
        typer.Option(
            help="What the network computes in: fp32, bf16, int8 (CPUs only); on a GPU bf16 if not given, else fp32."
        ),
    ] = None,
) -> None:
    """Measure a model on the benchmarks, as the paper does.

    Examples:

        deixis evaluate --data benchmarks --all

        deixis evaluate --data benchmarks --all --baseline

        deixis evaluate --data benchmarks --model model --set aida-b --candidates ppr --order confidence

        deixis evaluate --data benchmarks --model model --all --analyses --html report.html --predictions answers

        deixis evaluate --data benchmarks --model model --set aida-b --set msnbc --end-to-end

        deixis evaluate --data benchmarks --model model --set aida-a --candidates ppr --prior 0 --prior 0.2 --prior 0.5

    Every count that differs from the files' has a line that says why. Candidates that the data does not have are
    said in one sentence. Precision, recall, F1 and accuracy are of the in-KB mentions; intervals are over documents.
    """
    import orjson

    from deixis.artefacts import write_aside
    from deixis.datasets import read_redirects, read_titles
    from deixis.errors import InputError
    from deixis.evaluation.plan import PAPER_SETS, Plan, carry_out, pairs_of
    from deixis.evaluation.reporting import analyse, report_page, report_record, sequences

    forms = _checked(form or ["jsonl"], ("jsonl", "nif", "elevant"), "--format")
    _checked([coreference], ("original", "none"), "--coreference")
    _checked([] if released is None else [released], ("2021", "2022"), "--released")
    _checked(order or [], ("local", "natural", "confidence"), "--order")
    if json and markdown:
        raise typer.BadParameter("--json and --markdown exclude each other")
    if baseline and model is not None:
        raise typer.BadParameter("--baseline is without a model; leave --model out")
    folder = None if baseline else model or _packaged()
    chosen = [*(sets or []), *(PAPER_SETS if everything else ())]
    given = ["none"] if end_to_end else candidates or (["kb+yago", "ppr"] if everything else ["kb+yago"])
    pairs = pairs_of(chosen, given)
    nlp = None if folder is None else _load(folder, device, precision)
    table = read_redirects(redirects) if redirects else {}
    plan = Plan(
        data=data,
        pairs=pairs,
        orders=tuple(order or ("local", "natural", "confidence")),
        priors=tuple(prior or (nlp.prior if end_to_end and nlp is not None else 0.0,)),
        settings=_settings(windows, commit, released) if folder is not None else {},
        stores={} if end_to_end else _stores(given, nlp, top or 30),
        top=top or 30,
        cut_ppr=top is not None,
        redirects=table if nlp is None else nlp.vocabulary.lead(table),
        titles=frozenset(read_titles(titles)) if titles else None,
        coreference="in_place" if (coreference, released) == ("original", "2021") else coreference,  # type: ignore[arg-type]
        drop_first=released is not None,
        limit=limit,
    )
    if end_to_end:
        _print_end_to_end(nlp, plan, spacy, json=json, markdown=markdown)
        return
    outcome = carry_out(plan, nlp, _watch)
    annotations = None if nlp is None else dict(zip(nlp.vocabulary.titles, nlp.vocabulary.counts, strict=True))
    analysed = [analyse(result, annotations) for result in outcome.results] if analyses and nlp is not None else []
    shown = sequences(outcome, document or [])
    if document and not shown:
        raise InputError(f"no answered document has an id that starts with {' or '.join(document)}")
    # What is asked for in files comes first: a closed pipe must not cost it.
    if html is not None:
        with write_aside(html) as file:
            file.write(report_page(outcome, analysed, shown).encode())
    if predictions is not None:
        _write_predictions(predictions, outcome, forms, read_redirects(qids) if qids else {})
    if json:
        print(
            orjson.dumps(report_record(outcome, analysed, shown, _digest(folder)), option=orjson.OPT_INDENT_2).decode()
        )
    elif markdown:
        _print_markdown(outcome, analysed, paper=everything)
    else:
        _print_terminal(outcome, analysed, shown, paper=everything)


def _checked(values: list[str], allowed: tuple[str, ...], option: str) -> list[str]:
    for value in values:
        if value not in allowed:
            raise typer.BadParameter(f"{option} {value}: expected one of {', '.join(allowed)}")
    return values


def _packaged() -> Path:
    from deixis.folder.model_folder import packaged_model

    return packaged_model()


def _load(folder: Path, device: str, precision: str | None) -> Disambiguator:
    from deixis.inference import Disambiguator

    return Disambiguator.load(folder, device, precision=precision)  # type: ignore[arg-type]  # checked there


def _digest(model: Path | None) -> str | None:
    from deixis.artefacts import MANIFEST, Manifest

    return None if model is None else Manifest.load(model / MANIFEST, "model").digest


def _settings(windows: str, commit: str, released: str | None) -> dict[str, Any]:
    from deixis.settings import Settings

    return {"windows": windows, "commit": Settings.parse("commit", commit), "released": released}


def _stores(names: list[str], nlp: Disambiguator | None, top: int) -> dict[str, CandidateSource]:
    """Open the stores among the candidates: the model's own, or folders."""
    from deixis.errors import InputError
    from deixis.evaluation.plan import LISTS
    from deixis.knowledge.names import Names

    stores: dict[str, CandidateSource] = {}
    for name in names:
        if name in LISTS or name == "given":
            continue
        if name == "model":
            if nlp is None or nlp.candidates is None:
                raise InputError("--candidates model needs a model with a candidate store")
            stores[name] = nlp.candidates
        elif Path(name).is_dir():
            stores[name] = Names.open(Path(name), k=top)
        else:
            raise InputError(f"--candidates {name}: expected kb+yago, ppr, model, given or the folder of a store")
    return stores


def _print_end_to_end(nlp: Disambiguator | None, plan: Plan, spacy: str | None, *, json: bool, markdown: bool) -> None:
    import orjson

    from deixis.errors import InputError
    from deixis.evaluation.end_to_end import link_set, linking_table
    from deixis.evaluation.plan import prepared

    if nlp is None or nlp.detector is None:
        raise InputError("--end-to-end needs a model with a candidate store")
    ways: list[tuple[str, Detector | Literal["gold"]]] = [("deixis", nlp.detector), ("gold", "gold")]
    if spacy is not None:
        from deixis.integrations.spacy import SpacyDetector

        ways.insert(1, (spacy, SpacyDetector.load(spacy)))
    results = []
    for name in dict.fromkeys(name for name, _ in plan.pairs):
        dataset = prepared(plan, name, "none")
        for label, detector in ways:
            for order, prior in product(plan.orders, plan.priors):
                named = f"{label}, {order}" + (f", prior {prior:g}" if prior else "")
                watch = partial(_watch, f"{name} {named}", len(dataset.documents))
                settings = {**plan.settings, "order": order, "prior": prior, "top": plan.top}
                results.append(
                    link_set(nlp, dataset, detector, named, redirects=plan.redirects, watch=watch, **settings)
                )
    if json:
        print(orjson.dumps([result.to_record() for result in results], option=orjson.OPT_INDENT_2).decode())
    else:
        print_table(linking_table(results), markdown=markdown)


def _watch(label: str, total: int, results: Iterator[Resolutions]) -> Iterable[Resolutions]:
    from deixis.cli.progress import track

    return track(results, label, total)


def _print_terminal(
    outcome: Outcome, analyses: list[Analysis], shown: list[tuple[str, Resolutions]], *, paper: bool
) -> None:
    from deixis.evaluation.reporting import main_tables, reasons
    from deixis.rendering import sequence_text

    shell = console()
    for table in main_tables(outcome, paper=paper):
        shell.print(table.to_rich())
    for line in reasons(outcome):
        shell.print(line, markup=False)
    for analysis in analyses:
        for table in analysis.tables():
            shell.print(table.to_rich())
        for heading, diagram in analysis.diagrams():
            shell.print(f"\n{heading}\n{diagram}", markup=False)
    for heading, resolutions in shown:
        shell.print(f"\n{heading}\n", markup=False, style="bold")
        shell.print(sequence_text(resolutions), soft_wrap=True)


def _print_markdown(outcome: Outcome, analyses: list[Analysis], *, paper: bool) -> None:
    from deixis.evaluation.reporting import main_tables, reasons

    for table in main_tables(outcome, paper=paper):
        print(table.to_markdown())
    print("\n".join(f"- {line}" for line in reasons(outcome)))
    for analysis in analyses:
        for table in analysis.tables():
            print("\n" + table.to_markdown())
        for heading, diagram in analysis.diagrams():
            print(f"\n{heading}\n\n```\n{diagram}\n```")


def _write_predictions(folder: Path, outcome: Outcome, forms: list[str], qids: dict[str, str]) -> None:
    from deixis.evaluation.exports import write_answers

    for result in outcome.results:
        for run in result.runs:
            if run.resolutions:
                candidates = Path(result.candidates).name.replace("+", "-")
                name = f"{Path(result.name).stem}.{candidates}.{run.label.replace(', ', '-').replace(' ', '-')}"
                for form in forms:
                    path = write_answers(folder, name, run.resolutions, form, qids)  # type: ignore[arg-type]
                    typer.echo(f"wrote {path}", err=True)
