"""`deixis wikipedia vocabulary` and `deixis candidates`: options to calls, results to people."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from deixis.cli import app
from deixis.errors import InputError
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.wikipedia.articles import Article, Link

runner = CliRunner()


def run(*words: str | Path) -> str:
    result = runner.invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    page = Article("Rhine", "Bonn and Köln", (Link(0, 4, "Bonn"), Link(9, 13, "Cologne")))
    (tmp_path / "articles.jsonl").write_bytes(page.to_json() + b"\n")
    (tmp_path / "names.tsv").write_text("Bonn\tBonn (album)\t3\nBundesstadt\tBonn\t2\n")
    run("candidates", "build", tmp_path / "articles.jsonl", "-o", tmp_path / "store")
    return tmp_path


def test_a_store_is_built_and_shown(folder: Path) -> None:
    shown = run("candidates", "show", folder / "store", "Köln")
    assert "'Köln' is stored as 'koln'" in shown
    assert "Cologne" in shown
    assert "link" in shown
    assert "is no name in" in run("candidates", "show", folder / "store", "Nowhere")


def test_lists_are_imported_into_a_store_and_stores_merged(folder: Path) -> None:
    store, bigger, merged = folder / "store", folder / "bigger", folder / "merged"
    run("candidates", "import", folder / "names.tsv", "--into", store, "-o", bigger)
    found = Names.open(bigger)
    assert [candidate.entity for candidate in found.lookup("Bonn")] == ["Bonn (album)", "Bonn"]
    assert [candidate.entity for candidate in found.lookup("Bundesstadt")] == ["Bonn"]
    assert found.manifest.parents["candidates"] == Names.open(store).digest
    run("candidates", "merge", store, bigger, "-o", merged)
    assert {entry.entity: entry.count for entry in Names.open(merged).entries("bonn")} == {
        "Bonn": 2,
        "Bonn (album)": 3,
    }
    refused = runner.invoke(app, ["candidates", "import", str(folder / "names.tsv"), "--format", "csv", "-o", "out"])
    said = " ".join(refused.output.replace("│", " ").split())
    assert refused.exit_code == 2
    assert "'--format': Value error, 'csv' is not one of 'ganea-hofmann', 'pprforned', 'titles', 'tsv'." in said


def test_nothing_that_is_not_a_store_is_overwritten(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("all my work")
    with pytest.raises(InputError, match="mine"):
        run("candidates", "build", folder / "articles.jsonl", "-o", folder / "mine")
    assert (folder / "mine" / "thesis.txt").read_text() == "all my work"


def test_a_vocabulary_is_counted(folder: Path) -> None:
    output = run(
        "wikipedia", "vocabulary", folder / "articles.jsonl", "--limit", "1", "-o", folder / "vocabulary.jsonl"
    )
    assert "1  entities dropped: over the limit" in output
    assert Vocabulary.load(folder / "vocabulary.jsonl").titles[3:] == ["Bonn"]
