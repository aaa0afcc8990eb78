"""The model that deixis comes with: what is done without it, and what it must do where it is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import deixis
from deixis.cli import app
from deixis.errors import ArtefactError
from deixis.folder import model_folder as checkpoints

LIMIT = 98.5e6  # bytes in a wheel: a package index takes 100 MB


@pytest.fixture
def nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PACKAGED", tmp_path / "nothing")


@pytest.mark.parametrize(
    "arguments",
    [
        ["link", "Messi won the World Cup."],
        ["disambiguate", "documents.jsonl"],
        ["serve", "--port", "0"],
        ["evaluate", "sets", "msnbc", "--data", "."],
    ],
)
def test_a_checkout_without_it_says_so(nothing: None, arguments: list[str]) -> None:
    done = CliRunner().invoke(app, arguments)
    assert isinstance(done.exception, ArtefactError)
    assert "comes without a model" in str(done.exception) and "give a model folder" in str(done.exception)


def test_no_path_is_the_packaged_one(island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "PACKAGED", island / "model")
    text = "After the Silver Oar came Marlow."
    assert [found.entity for found in deixis.load()(text)] == [
        found.entity for found in deixis.load(island / "model")(text)
    ]
    assert "Ada Marlow (rower)" in CliRunner().invoke(app, ["link", text]).stdout


@pytest.mark.slow
def test_it_is_whole_small_and_has_a_card() -> None:
    folder = checkpoints.PACKAGED
    model = checkpoints.ModelFolder.load(folder)
    assert model.names is not None and model.knowledge.number("Berlin") is not None
    assert sum(len(zlib.compress(path.read_bytes())) for path in folder.rglob("*") if path.is_file()) <= LIMIT
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert all(word in card for word in ("CC BY-SA", "MIT", "Wikipedia", "aida-b"))


def test_it_links_a_text() -> None:
    found = {r.text: r.entity for r in deixis.load()("Angela Merkel met Barack Obama in Berlin.")}
    assert found == {"Angela Merkel": "Angela Merkel", "Barack Obama": "Barack Obama", "Berlin": "Berlin"}


MEASURE = """
import json, torch, deixis
nlp = deixis.load()
print(json.dumps(int(open("/proc/self/statm").read().split()[1]) * 4096))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory")
def test_it_fits_in_500_megabytes() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(deixis.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, check=True, env=environment)
    assert json.loads(done.stdout) <= 500e6
