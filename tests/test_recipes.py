"""The recipe of the default model: its card tells its reports, its entities are those of the benchmarks' lists."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest

from deixis.datasets.catalogue import SETS
from deixis.documents import Candidate, Document, Mention
from deixis.errors import ArtefactError
from deixis.folder import model_folder as checkpoints
from tests.folder.test_model_folder import parts

RECIPE = Path(__file__).parents[1] / "recipes" / "default"


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RECIPE))
    return importlib.import_module("card")


def test_the_card_of_the_packaged_model_is_what_its_reports_say(card: Any) -> None:
    reports = [orjson.loads(path.read_bytes()) for path in sorted((RECIPE / "reports").glob("*.json"))]
    assert reports, "keep the reports that the card was made from in recipes/default/reports"
    told = (checkpoints.PACKAGED / "README.md").read_text(encoding="utf-8")
    assert told == card.render(checkpoints.PACKAGED, reports)


def test_reports_of_another_model_are_refused(card: Any, tmp_path: Path) -> None:
    report = orjson.loads((RECIPE / "reports" / "aida.json").read_bytes())
    parts().save(tmp_path / "other")
    with pytest.raises(ArtefactError, match="evaluate this folder"):
        card.render(tmp_path / "other", [report])


def test_titles_of_included_lists_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    listed = (Candidate("Velm Cup (rowing)"), Candidate("Ada Marlow (rower)"))
    document = Document("Marlow rowed.", (Mention(0, 6, "Ada Marlow (rower)", listed), Mention(7, 12, "Velm")))
    (tmp_path / "velm.jsonl").write_bytes(document.to_json() + b"\n")
    include = importlib.import_module("include")
    assert include.write_titles(tmp_path, {str(tmp_path / "velm.jsonl"): "none"}, tmp_path / "include.txt") == 2
    assert (tmp_path / "include.txt").read_text() == "Ada Marlow (rower)\nVelm Cup (rowing)\n"


def test_included_are_lists_that_there_are() -> None:
    included = tomllib.loads((RECIPE / "recipe.toml").read_text())["include"]
    assert set(included) <= set(SETS) and set(included.values()) <= {"ppr", "kb+yago"}
