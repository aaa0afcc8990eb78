"""Baselines on the real files; and the order in which PPRforNED lists candidates changes no figure (protocol 4)."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from deixis.datasets import open_dataset
from deixis.datasets.dataset import Dataset
from deixis.datasets.pprforned import PARTS
from deixis.datasets.published import read_published
from deixis.evaluation import describe
from deixis.evaluation.plan import Plan, carry_out
from deixis.evaluation.reporting import analyse
from deixis.evaluation.settings import SetsSettings
from deixis.settings import Order

from ..evaluation.fakes import Scripted

pytestmark = pytest.mark.slow


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


def figures(data: Path, model: Scripted, orders: tuple[Order, ...], top: int | None = None) -> tuple[Any, ...]:
    """Return all that is printed of AIDA testb with PPRforNED, but for the seconds, and every judgement."""
    plan = Plan(data, (("aida-b", "ppr"),), SetsSettings(order=orders, top=top))
    result = carry_out(plan, model).results[0]
    record = result.to_record()
    for run in record["runs"]:
        del run["seconds"]
    return record, [run.judgements for run in result.runs], analyse(result, None).to_record()


def write_published(dataset: Dataset, folder: Path) -> None:
    """Write MSNBC as the published folder has it: tokens one a line, candidates by falling prior."""
    rows, lines = [], []
    for document in dataset.documents:
        lines += [f"-DOCSTART- ({document.id}", ""]
        position = 0
        for mention in document.mentions:
            surface = document.surface(mention)
            listed = [f"7,{1 / (k + 1):.3f},{c.entity}" for k, c in enumerate(mention.candidates or ())]
            fields = [f"{document.id} x", f"{document.id} x", surface, "", "", "CANDIDATES", *(listed or ["EMPTYCAND"])]
            rows.append("\t".join([*fields, "GT:", f"-1,7,{mention.entity}"]))
            lines += re.findall(r"\w+|[^\w\s]", document.text[position : mention.start])
            marked = enumerate(re.findall(r"\w+|[^\w\s]", surface))
            lines += [f"{token}\t{'I' if k else 'B'}\t{surface}\tx\tx\t7" for k, token in marked]
            position = mention.end
        lines += re.findall(r"\w+|[^\w\s]", document.text[position:])
    (folder / "wned-msnbc.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "msnbc.conll").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_published_folder_of_real_size(benchmarks: Path, tmp_path: Path) -> None:
    given = open_dataset(benchmarks, "msnbc", "kb+yago")
    write_published(given, tmp_path)
    read = read_published(tmp_path, "msnbc", coreference="none")
    assert read.candidates == "KB+YAGO (published)"
    told = [
        [(m.entity, [c.entity for c in m.candidates or ()]) for d in dataset.documents for m in d.mentions]
        for dataset in (given, read)
    ]
    assert told[0] == told[1]
    assert describe(read.top(30))[0] == pytest.approx(0.986, abs=0.005)
    assert describe(read.top(30))[1].tally.accuracy == pytest.approx(0.893, abs=0.005)
