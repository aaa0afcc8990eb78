"""`deixis train detector`: from marked texts to a model folder that finds names."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from deixis.cli import app
from deixis.folder.model_folder import ModelFolder
from tests.worlds import make_network, make_tokenizer, make_vocabulary


def test_a_model_gets_a_detector(tmp_path: Path) -> None:
    ModelFolder(make_network(), make_tokenizer(), make_vocabulary()).save(tmp_path / "model")
    marked = {"text": "the Messi won.", "spans": [[4, 9, "person"]]}
    lines = [marked, {"text": "a goal", "mentions": []}, {**marked, "split": "test"}]
    (tmp_path / "marked.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = [str(tmp_path / "model"), str(tmp_path / "marked.jsonl"), "-o", str(tmp_path / "out"), "--epochs", "2"]
    result = CliRunner().invoke(app, ["train", "detector", *arguments])
    assert result.exit_code == 0, result.output
    assert "marked" in result.output and "recall" in result.output
    assert ModelFolder.load(tmp_path / "model").detector is None
    assert ModelFolder.load(tmp_path / "out").detector is not None
