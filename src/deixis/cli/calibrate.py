"""`deixis calibrate`: when a model answers "none of these", chosen on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["calibrate"]


def calibrate(
    model: Annotated[Path, typer.Argument(help="The model folder, with a candidate store; it stays as it is.")],
    data: Annotated[Path, typer.Option(help="The folder with the benchmarks, where a set is named.")] = Path(),
    name: Annotated[str, typer.Option("--set", help="The held-out texts: a set, or document JSONL.")] = "aida-a",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model folder to write; none is written if not given.")
    ] = None,
    precision: Annotated[
        float | None, typer.Option(min=0, max=1, help="The most recall at this precision; by F1 if not given.")
    ] = None,
    names: Annotated[
        list[float] | None,
        typer.Option(min=0, max=1, help="Least link probabilities of a mention to try; the model's if not given."),
    ] = None,
    prior: Annotated[
        list[float] | None, typer.Option(min=0, help="Weights of log p(e|m) to try; the model's own if not given.")
    ] = None,
    order: Annotated[str, typer.Option(help="The order of the decisions: local, natural, confidence.")] = "confidence",
    redirects: Annotated[
        Path | None, typer.Option(help="Old to new titles, for golds and answers: lines old TAB new, or JSON.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first documents.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    device: Annotated[str, typer.Option(help="Where the network runs, e.g. cpu or cuda.")] = "cpu",
) -> None:
    """Choose the probability under which a mention is left unresolved, and write it into a copy of the model.

    Texts are linked from plain text, and precision, recall and coverage of the answers are printed by threshold.
    `deixis link`, the server's /link and spaCy go by what was chosen; `deixis disambiguate` answers always.

    Examples:

        deixis calibrate model --data benchmarks --set aida-a -o calibrated

        deixis calibrate model --set mine.jsonl --precision 0.9 --prior 0 --prior 0.5 -o calibrated
    """
    from deixis.cli.progress import track
    from deixis.cli.terminal import print_table
    from deixis.datasets import open_dataset, read_redirects
    from deixis.errors import InputError
    from deixis.evaluation.choose_thresholds import calibrate as run
    from deixis.evaluation.choose_thresholds import choose, curve_table
    from deixis.folder.model_folder import relink
    from deixis.inference import Disambiguator
    from deixis.knowledge.detection import NameDetector
    from deixis.settings import Settings

    settings = Settings(order=order)  # type: ignore[arg-type]  # checked by Settings
    nlp = Disambiguator.load(model, device)
    if not isinstance(nlp.detector, NameDetector):
        raise InputError(
            f"{model} has no candidate store to find mentions by; give it one: deixis quantise --candidates STORE"
        )
    table = read_redirects(redirects) if redirects else {}
    dataset = open_dataset(data, name)
    if limit is not None:
        dataset = dataset.first(limit)
    points = run(
        nlp,
        dataset.redirected(table) if table else dataset,
        nlp.detector,
        names=names or [nlp.detector.threshold],
        priors=prior or [nlp.prior],
        redirects=table,
        watch=lambda label, total, results: track(results, label, total),
        settings=settings,
    )
    chosen = choose(points, precision)
    print_table(curve_table(points, chosen), markdown=markdown)
    if output is not None:
        manifest = relink(model, output, chosen.linking, chosen.counts.to_record())
        typer.echo(f"written: {output}, digest {manifest.digest[:12]}", err=True)
