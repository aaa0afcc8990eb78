"""The recipe of the default model: its card tells its reports, its entities are those of the benchmarks' lists."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest

from deixis.datasets.catalogue import SETS
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


def test_included_are_lists_that_there_are() -> None:
    included = tomllib.loads((RECIPE / "recipe.toml").read_text())["include"]
    assert set(included) <= set(SETS) and set(included.values()) <= {"ppr", "kb+yago"}
