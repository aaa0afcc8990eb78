"""The report of the paper's sets, from invented texts in every format: tables, Markdown, a page and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import NotInFolder
from deixis.errors import InputError
from deixis.evaluation.plan import LISTS, PAPER_SETS, Plan, carry_out, pairs_of
from deixis.evaluation.reporting import SetsReport
from deixis.evaluation.settings import SetsSettings

from ..datasets.synthetic import make_sets, write_benchmarks
from .fakes import Scripted


def test_the_papers_tables(tmp_path: Path) -> None:
    sets = make_sets(5)
    folder = write_benchmarks(tmp_path, sets)
    pairs = tuple((name, lists) for name in PAPER_SETS for lists in LISTS if lists != "ppr" or name == "aida-b")
    outcome = carry_out(Plan(folder, pairs), Scripted())
    report = SetsReport.build(outcome, paper=True, analysed=True, documents=["1163testb"])
    for (name, _), result in zip(pairs, outcome.results, strict=True):
        in_kb = [a for text in sets[name] for a in text.annotations if a.title is not None]
        assert result.dataset.mentions == len(in_kb)
        assert result.recall == pytest.approx(sum(a.title in dict(a.candidates) for a in in_kb) / len(in_kb))
        best = sum(bool(a.candidates) and a.candidates[0][0] == a.title for a in in_kb)
        assert result.runs[0].tally.correct == best
    one, two = report.tables(paper=True)[-2:]
    assert one.columns == ("", "KB+YAGO", "PPRforNED") and two.columns[-1] == "average"
    assert [row[0] for row in one.rows[:5]] == ["candidate recall", "most frequent", "local", "natural", "confidence"]
    assert one.rows[5] == ("paper, zero-shot, confidence", "92.4", "94.6")
    for shown in (report.to_markdown(), report.to_html()):
        assert "Table 1" in shown and "Where the orders disagree" in shown and "Calibration" in shown
    assert "<svg" in report.to_html() and "1163testb" in report.to_html()
    record = report.to_record()
    assert [len(r["runs"]) for r in record["results"]] == [4] * len(pairs) and len(record["analyses"]) == len(pairs)
    assert [s["heading"].split(",")[0] for s in record["sequences"]] == ["1163testb NEWS"] * 6


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    folder = write_benchmarks(tmp_path, make_sets(1))
    (folder / "published" / "wned-wikipedia.csv").unlink()
    outcome = carry_out(Plan(folder, pairs_of([], ["kb+yago"]), SetsSettings(limit=1)), None)
    report = SetsReport.build(outcome, paper=True)
    assert [line for line in report.reasons() if line.startswith("missing: no KB+YAGO candidates for wiki")]
    assert any("in documents after the first 1" in line for line in report.reasons())
    assert "no kb+yago" in report.to_markdown()  # its counts are still told
    with pytest.raises(NotInFolder, match="no KB"):
        carry_out(Plan(folder, (("wiki", "kb+yago"),)), None)
    with pytest.raises(InputError, match="no answered document has an id that starts with 7"):
        SetsReport.build(outcome, documents=["7"])


def test_sets_are_paired_with_candidates() -> None:
    paper = pairs_of([], [])
    assert paper[:3] == (("aida-b", "kb+yago"), ("aida-b", "ppr"), ("msnbc", "kb+yago")) and len(paper) == 7
    assert pairs_of(["msnbc", "aida-a"], ["ppr", "model"]) == (
        *(("msnbc", "model"), ("aida-a", "ppr"), ("aida-a", "model")),
    )
    assert pairs_of(["msnbc"], ["ppr"]) == (("msnbc", "ppr"),)  # which says that there are none


def test_settings_reach_the_data_and_the_report(tmp_path: Path) -> None:
    sets = make_sets(2)
    folder = write_benchmarks(tmp_path / "data", sets)
    titles = tmp_path / "titles.txt"
    titles.write_text("Zürich\nBern\n", encoding="utf-8")
    redirects = tmp_path / "redirects.tsv"
    redirects.write_text("Berne\tBern\n", encoding="utf-8")
    settings = SetsSettings(titles=titles, redirects=redirects, top=1, order=("local",), released="2021")
    plan = Plan.read(folder, (("aida-b", "ppr"),), settings, {})
    (result,) = carry_out(plan, Scripted()).results
    golds = [a.title for text in sets["aida-b"] for a in text.annotations if a.title in ("Bern", "Zürich")]
    mentions = [m for d in result.dataset.documents for m in d.mentions]
    assert [m.entity for m in mentions] == golds
    assert all(len(m.candidates or ()) <= 1 for m in mentions)
    assert plan.to_record() == {
        "orders": ["local"],
        "priors": [0.0],
        "windows": "per_mention",
        "commit": "one",
        "released": "2021",
        "top": 1,
        "cut_ppr": True,
        "redirects": 1,
        "titles": 2,
        "coreference": "in_place",
        "drop_first": True,
        "limit": None,
    }
