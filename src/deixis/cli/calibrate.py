"""`deixis calibrate`: the probability under which a mention is left open, chosen on held-out data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.options import with_settings
from deixis.evaluation.settings import CalibrationSettings

if TYPE_CHECKING:
    from deixis.datasets import Dataset
    from deixis.inference import Disambiguator
    from deixis.settings import Settings

__all__ = ["calibrate"]


@with_settings
def calibrate(
    model: Annotated[Path, typer.Argument(help="The model folder; it is not changed.")],
    chosen_by: CalibrationSettings,
    data: Annotated[Path, typer.Option(help="The folder with the benchmarks, if a set is named.")] = Path(),
    name: Annotated[str, typer.Option("--set", help="The held-out texts: a set, or a file of documents.")] = "aida-a",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model folder to write; without it nothing is written.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    device: Annotated[str, typer.Option(help="Where the network runs, e.g. cpu or cuda.")] = "cpu",
) -> None:
    """Choose the answer threshold of a model for plain texts, and write it into a copy of the model.

    First the probabilities of answers are fitted, so that they also tell where none of the candidates is meant: gold
    mentions are answered, the right entity taken out of a part of the lists; and it is counted how often a name is
    right of which nothing but its title is known. Then the texts of the set are linked, and precision, recall and
    coverage of the answers are printed by threshold.
    `deixis link`, the server's /link and spaCy use the chosen threshold; `deixis disambiguate` always answers.

    Examples:

        deixis calibrate model --data benchmarks --set aida-a -o calibrated

        deixis calibrate model --set mine.jsonl --precision 0.9 --prior 0 --prior 0.5 -o calibrated
    """
    from deixis.cli.progress import track
    from deixis.cli.terminal import print_table
    from deixis.datasets import open_dataset, read_redirects
    from deixis.evaluation.choose_thresholds import calibrate as run
    from deixis.evaluation.choose_thresholds import choose, curve_table
    from deixis.folder.model_folder import relink
    from deixis.inference import Disambiguator
    from deixis.settings import Settings

    settings = Settings(order=chosen_by.order)
    nlp = Disambiguator.load(model, device)
    table = read_redirects(chosen_by.redirects) if chosen_by.redirects else {}
    dataset = open_dataset(data, name).redirected(table)
    dataset = dataset if chosen_by.limit is None else dataset.first(chosen_by.limit)
    _fit_probabilities(nlp, dataset, settings, table)
    _measure_titles(nlp, dataset, table)
    points = run(
        nlp,
        dataset,
        settings,
        names=chosen_by.detection_threshold,
        priors=chosen_by.prior,
        redirects=table,
        watch=lambda label, total, results: track(results, label, total),
    )
    chosen = choose(points, chosen_by.precision)
    print_table(curve_table(points, chosen), markdown=markdown)
    if output is not None:
        linking = replace(chosen.linking, rule=nlp.answer_rule, title_probability=nlp.title_probability)
        manifest = relink(model, output, linking, chosen.to_record())
        typer.echo(f"written: {output}, digest {manifest.digest[:12]}", err=True)


def _fit_probabilities(nlp: Disambiguator, dataset: Dataset, settings: Settings, table: Mapping[str, str]) -> None:
    """Give the model a rule that makes probabilities of its answers, and tell how far they are off before and after."""
    from deixis.evaluation.none_of_these import fit_answer_rule, judge_answers
    from deixis.evaluation.reliability import reliability

    nlp.answer_rule = None
    judged = list(judge_answers(nlp, dataset, nlp.for_texts(settings), redirects=table))
    nlp.answer_rule = rule = fit_answer_rule(judged)
    error = reliability((one.probability, one.right) for one in judged).error
    told = f"probabilities of {len(judged):,} answers: expected calibration error {error:.3f}"
    if rule is None:
        told += "; too few to fit a rule on"
    else:
        after = reliability((rule.probability(one.evidence), one.right) for one in judged).error
        told += f", {after:.3f} after fitting"
    typer.echo(told, err=True)


def _measure_titles(nlp: Disambiguator, dataset: Dataset, table: Mapping[str, str]) -> None:
    """Give the model the probability of a name that is only a title, where the set has enough of them to tell."""
    from deixis.evaluation.known_by_title import LEAST_TITLES, judge_titles

    titles = judge_titles(nlp, dataset, nlp.knowledge.lead(table))
    enough = len(titles) >= LEAST_TITLES
    if enough:
        nlp.title_probability = round(sum(right for *_, right in titles) / len(titles), 3)
    measured = f"measured on {len(titles):,}" + ("" if enough else ": too few, it stays as it was")
    typer.echo(f"probability of a name that is only a title: {nlp.title_probability:g}, {measured}", err=True)
