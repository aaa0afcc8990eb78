"""The recipe of the default model: its card tells its reports, its entities are those of the benchmarks' lists."""

from __future__ import annotations

import argparse
import importlib
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from deixis.corpus.windows import WindowSet
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


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RECIPE))
    return importlib.import_module("gpu")


@pytest.fixture
def parts_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RECIPE))
    return importlib.import_module("parts")


def test_arrays_travel_in_parts(parts_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts_of, "CHUNK", 1000)
    dice = np.random.default_rng(0)
    arrays: dict[str, Any] = {
        "pieces": dice.integers(0, 30_000, 2000).astype(np.uint16),
        "rows": dice.integers(0, 1 << 30, (70, 5)).astype(np.int32),
        "weights": dice.normal(size=(40, 7)).astype(np.float16),
        "none": np.zeros((0, 3), np.uint8),
    }
    parts_of.write_arrays(arrays, tmp_path / "parts", 3000)
    parts = sorted((tmp_path / "parts").iterdir())
    assert len(parts) > 2 and all(part.stat().st_size <= 3000 for part in parts)
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    for number, part in enumerate(parts):
        part.rename(tmp_path / ("here" if number % 2 else "there") / part.name)
    found = parts_of.read_arrays(tmp_path / "here", tmp_path / "there")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize("bits", [4, 6])
def test_rows_travel_in_few_bits(parts_of: Any, bits: int) -> None:
    numbers = np.random.default_rng(0).integers(0, 2**bits, (9, 16)).astype(np.uint8)
    packed = parts_of.pack_bits(numbers, bits)
    assert packed.shape == (9, 16 * bits // 8)
    np.testing.assert_array_equal(parts_of.unpack_bits(packed, bits), numbers)


def test_windows_are_read_once_more_with_short_names(gpu: Any) -> None:
    pieces = np.array([5, 10, 11, 12, 6, 7, 20, 21, 8], np.uint16)  # two windows: a name of three pieces, one of two
    windows = WindowSet(
        pieces,
        np.array([0, 5, 9]),
        np.array([0, 1, 2]),
        np.array([[1, 4], [1, 3]]),
        np.array([3, 4], np.int32),
        np.array([[3, 9], [4, 0]], np.int32),
    )
    sent = {
        "short/kept": np.array([[2, 3], [0, 0]], np.uint8),
        "short/lists": np.array([1, 0], np.int32),
        "lists": np.array([[0, 0], [3, 7]], np.int32),
    }
    both = gpu.with_short_names(windows, sent)
    assert both.pieces.tolist() == [*pieces.tolist(), 5, 12, 6]
    assert both.window_offsets.tolist() == [0, 5, 9, 12] and both.mention_offsets.tolist() == [0, 1, 2, 3]
    assert both.spans.tolist() == [[1, 4], [1, 3], [1, 2]]
    assert both.rows.tolist() == [3, 4, 3]
    assert both.candidates.tolist() == [[3, 9], [4, 0], [3, 7]]


@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("Chicago White Sox", ["Chicago", "Chicago White", "White Sox", "Sox"]),
        ("World War II", ["World", "World War"]),
        ("Bank of England", []),
        ("Derby", []),
    ],
)
def test_names_are_shortened_at_either_end(monkeypatch: pytest.MonkeyPatch, name: str, forms: list[str]) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    assert [name[start:end] for start, end in importlib.import_module("send").short_spans(name)] == forms


def test_the_recipe_has_fifteen_artefacts_and_says_what_goes_to_a_gpu(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(RECIPE))
    make = importlib.import_module("make")
    told = (RECIPE / "README.md").read_text()
    assert len([line for line in told.splitlines() if line.startswith("| ") and line[2].isdigit()]) == 15
    names = ("build", "data", "enwik8", "encoder", "benchmarks")
    making = make.Making(argparse.Namespace(**{name: tmp_path / name for name in names}))
    assert all(f"`{name}" in told for name in making.steps())
    (making.build / "parts").mkdir(parents=True)
    with pytest.raises(SystemExit) as stopped:
        making.trained(making.build / "back")
    assert str(making.build / "parts") in str(stopped.value) and "gpu.py train" in str(stopped.value)
