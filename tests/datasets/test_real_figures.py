"""Baselines on the real files; and the order in which PPRforNED lists candidates changes no figure (protocol 4)."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from deixis.datasets.pprforned import PARTS
from deixis.evaluation.plan import Plan, carry_out
from deixis.evaluation.reporting import analyse

from ..evaluation.fakes import Scripted


@pytest.mark.parametrize(
    ("name", "candidates", "expected"),
    [
        ("aida-b", "ppr", 0.802),
        ("msnbc", "kb+yago", 0.893),
        ("aquaint", "kb+yago", 0.831),
        ("ace2004", "kb+yago", 0.844),
    ],
)
def test_most_frequent_baselines(benchmarks: Path, name: str, candidates: str, expected: float) -> None:
    outcome = carry_out(Plan(benchmarks, ((name, candidates),)), None)
    assert outcome.results[0].runs[0].tally.accuracy == pytest.approx(expected, abs=0.005)


def shuffled(benchmarks: Path, folder: Path) -> Path:
    """Copy AIDA testb and PPRforNED with the CANDIDATE lines of every mention shuffled."""
    dice = random.Random(13)
    for part in ("aida", "conll2003"):
        shutil.copytree(benchmarks / part, folder / part)
    target = folder / "PPRforNED" / "AIDA_candidates" / PARTS[1]
    target.mkdir(parents=True)
    for number in range(1163, 1394):
        blocks: list[list[str]] = []
        path = benchmarks / "PPRforNED" / "AIDA_candidates" / PARTS[1] / str(number)
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            if line.startswith("ENTITY"):
                blocks.append([])
            blocks[-1].append(line)
        for block in blocks:
            listed = block[1:]
            dice.shuffle(listed)
            block[1:] = listed
        (target / str(number)).write_text("".join(line for block in blocks for line in block), encoding="utf-8")
    return folder


def test_shuffling_ppr_changes_no_figure(benchmarks: Path, tmp_path: Path) -> None:
    given, mixed = ([figures(data, **case) for case in CASES] for data in (benchmarks, shuffled(benchmarks, tmp_path)))
    assert given == mixed
    tied = given[1][0]["runs"][1]["accuracy"]
    assert tied < 0.85  # the file's own order would give 1.0


CASES: list[dict[str, Any]] = [
    {"model": Scripted(), "orders": ("local", "natural", "confidence")},
    # All scores are equal, so the candidate given first answers: where a leak by position or by the cut would show.
    {"model": Scripted(score=lambda order, title: 1.0), "orders": ("local",), "top": 10},
]


def figures(data: Path, model: Scripted, orders: tuple[str, ...], top: int | None = None) -> tuple[Any, ...]:
    """Return all that is printed of AIDA testb with PPRforNED, but for the seconds, and every judgement."""
    plan = Plan(data, (("aida-b", "ppr"),), orders, top=top, cut_ppr=top is not None)
    result = carry_out(plan, model).results[0]
    record = result.to_record()
    for run in record["runs"]:
        del run["seconds"]
    return record, [run.judgements for run in result.runs], analyse(result, None).to_record()
