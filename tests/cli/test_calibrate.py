"""`deixis calibrate`: a copy of the model with the chosen threshold, which is heeded by what links texts."""

from __future__ import annotations

from pathlib import Path

import orjson
from typer.testing import CliRunner

from deixis.cli import app
from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Document
from deixis.folder.model_folder import ModelFolder
from deixis.inference import Disambiguator
from deixis.toy import marked

DOCUMENTS = (
    marked(
        "After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Lena Brandt (coach)]."
    ),
    Document("Brandt was praised."),
)
DATASET = Dataset("velm", DOCUMENTS, Report(3))


def test_the_command_writes_a_model_that_heeds_it(island: Path, tmp_path: Path) -> None:
    mine, target = tmp_path / "mine.jsonl", tmp_path / "calibrated"
    mine.write_bytes(b"".join(document.to_json() + b"\n" for document in DOCUMENTS))
    arguments = ["calibrate", str(island / "model"), "--set", str(mine), "--precision", "0.99", "--prior", "0.5"]
    done = CliRunner().invoke(app, [*arguments, "-o", str(target), "--markdown"])
    assert done.exit_code == 0, done.exception
    assert "| → 0.1 | 0.5 |" in done.stdout
    linking = ModelFolder.load(target).linking
    assert linking.prior == 0.5 and linking.answers > 0.5
    nlp, plain = Disambiguator.load(target), Disambiguator.load(island / "model")
    text = DOCUMENTS[1].text
    assert nlp(text)[0].entity is None and nlp(text)[0].reason == "none fits"
    assert plain(text)[0].entity is not None
    assert all(resolution.entity for resolution in nlp.disambiguate(nlp.find(text)))  # the paper answers always
    assert nlp.disambiguate(nlp.find(text)) == plain.disambiguate(plain.find(text))
    manifest = orjson.loads((target / "manifest.json").read_bytes())
    assert manifest["parameters"]["linking"]["set"] == "mine.jsonl"
    bad = CliRunner().invoke(app, [*arguments, "--order", "sideways"])
    assert bad.exit_code == 2 and "sideways" in bad.output
