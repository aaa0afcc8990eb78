"""End to end: what counts as right, and the command that prints it."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from deixis.cli import app
from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Document, Mention
from deixis.errors import InputError
from deixis.evaluation.end_to_end import EndToEnd, link_set, linking_table
from deixis.inference import Disambiguator
from deixis.toy import marked

DOCUMENTS = (
    marked("After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Elsewhere]."),
    Document("It was the time of the Golden Rook.", (Mention(0, 2, "Ada Marlow (rower)"),)),
    Document("Nothing."),
)


def test_strict_spans_and_entities(island: Path) -> None:
    nlp = Disambiguator.load(island / "model")
    assert nlp.detector is not None
    dataset = Dataset("velm", DOCUMENTS, Report(4))
    found = link_set(nlp, dataset, nlp.detector, "deixis")
    assert found == EndToEnd("velm", "deixis", golds=4, found=4, placed=3, answers=4, right=2)
    assert (found.precision, found.recall, found.f1) == (0.5, 0.5, 0.5)
    renamed = link_set(nlp, dataset, nlp.detector, "deixis", redirects={"Lena Brandt (coach)": "Elsewhere"})
    assert renamed.right == 3
    gold = link_set(nlp, dataset, "gold", "gold", answer_threshold=1)
    assert (gold.found, gold.placed, gold.answers, gold.right) == (4, 4, 1, 1)  # the sure one is right
    assert linking_table([found]).rows[0][-3:] == ("50.0", "50.0", "50.0")


def test_the_command(island: Path, tmp_path: Path) -> None:
    path = tmp_path / "velm.jsonl"
    path.write_bytes(b"".join(document.to_json() + b"\n" for document in DOCUMENTS))
    arguments = ["evaluate", "--data", str(tmp_path), "--set", str(path), "--end-to-end", "--order", "confidence"]
    done = CliRunner().invoke(app, [*arguments, "--model", str(island / "model"), "--json"])
    assert done.exit_code == 0, done.exception
    records = {record["mentions"]: record for record in orjson.loads(done.stdout)}
    assert records["deixis, confidence"]["right"] == 2
    assert records["gold, confidence"]["found"] == 4
    with pytest.raises(InputError, match="needs a model with"):
        CliRunner().invoke(app, [*arguments, "--baseline"], catch_exceptions=False)
