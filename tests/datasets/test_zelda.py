"""ZELDA: every split is read, and bad lines are named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.datasets import SETS, read_set
from deixis.datasets.zelda import read_zelda
from deixis.errors import InputError


def test_zelda(tmp_path: Path) -> None:
    record = {"id": "d", "text": "Bern", "index": [[0, 4]], "wikipedia_ids": [5], "wikipedia_titles": ["Bern"]}
    (tmp_path / "z.jsonl").write_text(json.dumps(record) + "\n")
    (mention,) = read_zelda(tmp_path / "z.jsonl").documents[0].mentions
    assert (mention.entity, mention.extra) == ("Bern", {"page": 5})
    changes: list[dict[str, object]] = [{"wikipedia_ids": []}, {"text": None}, {"index": [[0, "9"]]}]
    for change in changes:
        (tmp_path / "z.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | change) + "\n")
        with pytest.raises(InputError, match=r"z.jsonl, line 2: "):
            read_zelda(tmp_path / "z.jsonl")


@pytest.mark.parametrize("name", [name for name in SETS if name.startswith("zelda-")])
def test_every_split_of_zelda(tmp_path: Path, name: str) -> None:
    record = {"id": "d", "text": "Bern", "index": [[0, 4]], "wikipedia_ids": [5], "wikipedia_titles": ["Bern"]}
    split = name.removeprefix("zelda-").replace("wiki", "wned-wiki")
    path = tmp_path / "zelda" / f"test_{split}.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(record) + "\n")
    dataset = read_set(tmp_path, name)
    assert (dataset.name, dataset.mentions) == (name, 1)
    assert read_set(tmp_path, str(path)).documents == dataset.documents  # the first line tells the format
