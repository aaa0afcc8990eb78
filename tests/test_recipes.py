"""The recipe of the default model: its file fits the commands, it runs on a toy world, its card tells its reports."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from deixis import checkpoints
from deixis.candidates import CandidateStore
from deixis.checkpoints import ModelFolder
from deixis.cli import app
from deixis.documents import Document, Mention
from deixis.errors import ArtefactError
from deixis.toy import DUMP
from deixis.training import PRESETS
from tests.test_checkpoints import bert_folder, parts

RECIPE = Path(__file__).parents[1] / "recipes" / "default"
TABLES = tomllib.loads((RECIPE / "recipe.toml").read_text())
TRAINED = [
    "stage1",
    "stage2",
    "stage3",
    "named1",
    "named2",
    "pupil1",
    "pupil2",
    "paper1",
    "paper2",
    "paper3",
    "cached1",
    "cached2",
    "pupil3",
    "pupil4",
]
STAGES = [*TRAINED, "finetune"]


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """`make.py` and `card.py`."""
    monkeypatch.syspath_prepend(str(RECIPE))
    return importlib.import_module("make"), importlib.import_module("card")


@pytest.mark.parametrize("stage", STAGES)
def test_fields_change_their_preset(stage: str) -> None:
    preset = PRESETS[TABLES[stage]["recipe"]]
    assert preset.with_settings(TABLES[stage]["fields"]) != preset


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("vocabulary", "vocabulary"),
        ("windows", "windows"),
        *((name, "pretrain") for name in TRAINED),
        *((name, "quantise") for name in ("cut", "named-cut")),
        *((name, "windows") for name in ("shortened", "named", "unlinked")),
        ("quantised", "quantise"),
        ("model", "calibrate"),
        ("finetune", "finetune"),
        *((f"reports.{name}", "evaluate") for name in TABLES["reports"]),
    ],
)
def test_options_are_those_of_the_command(table: str, command: str) -> None:
    found: Any = TABLES
    for name in table.split("."):
        found = found[name]
    root: Any = typer.main.get_command(app)
    known = {name for option in root.commands[command].params for name in option.opts}
    given = {f"--{name}" for name, value in found.items() if not isinstance(value, dict) and name != "documents"}
    assert given <= known


@pytest.mark.parametrize("kind", ["models", "teachers"])
def test_means_and_lessons_are_of_what_the_recipe_makes_with_weights_of_one(kind: str) -> None:
    mixed = [table[kind] for table in TABLES.values() if kind in table]
    assert mixed
    for parts_of in mixed:
        assert set(parts_of) <= set(TABLES) and sum(parts_of.values()) == pytest.approx(1)


TOY = """
[inputs]
pages = []
annotated = []
descriptions = ["descriptions.tsv"]
aliases = []
redirects = []
[include]
[vocabulary]
[windows]
candidates = 3
held-out = 0
workers = 1
[describe]
titles-alone = true
[stage1]
recipe = "small-stage1"
words-see = "placeholders"
fields = { steps = 2, batch = 4, compile = "off" }
[stage2]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off" }
[cut]
encoder = "fp32"
table = "fp32"
entities = 16
[shortened]
shortened = 0.5
[stage3]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", row_dropout = 0.1 }
[mean]
start = 0.1
models = { cut = 0.5, stage3 = 0.5 }
[named]
shortened = 0.5
[named1]
recipe = "small-stage1"
words-see = "placeholders"
entity-size = 8
fields = { steps = 2, batch = 4, compile = "off", seed = 2 }
[named2]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", seed = 2 }
[named-cut]
encoder = "fp32"
table = "fp32"
entities = 15
[named-mean]
start = 0.1
models = { named-cut = 1 }
[unlinked]
unlinked = true
[pupil1]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", teacher_weight = 0.9, word_prior = 0.5, candidates = 3 }
teachers = { mean = 0.5, named-mean = 0.5 }
[pupil2]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", teacher_weight = 0.9, rivals = 2, candidates = 3 }
teachers = { mean = 0.5, named-mean = 0.5 }
[taught]
start = 0.1
trust = 0.7
models = { pupil2 = 1 }
[paper1]
recipe = "small-stage1"
words-see = "answers"
entity-size = 8
fields = { steps = 2, batch = 4, compile = "off" }
[paper2]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off" }
[paper3]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off" }
[paper-mean]
start = 0.1
trust = 0.7
models = { paper3 = 1 }
[cached1]
recipe = "small-stage1"
words-see = "placeholders"
answer-layers = 1
entity-size = 8
fields = { steps = 2, batch = 4, compile = "off" }
[cached2]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off" }
[cached-mean]
start = 0.1
trust = 0.7
models = { cached2 = 1 }
[cached-back]
start = 0.1
models = { cached2 = 1 }
[pupil3]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", teacher_weight = 0.9, rivals = 2, candidates = 3 }
teachers = { taught = 0.4, paper-mean = 0.3, cached-mean = 0.3 }
[pupil4]
recipe = "small-stage2"
fields = { steps = 2, batch = 4, compile = "off", teacher_weight = 0.9, rivals = 2, candidates = 3 }
teachers = { taught = 0.4, paper-mean = 0.3, cached-mean = 0.3 }
[taught-again]
trust = 0.7
models = { pupil3 = 0.5, pupil4 = 0.5 }
[quantised]
encoder = "int8"
entities = 15
[model]
set = "DOCUMENTS"
[reports.velm]
set = ["DOCUMENTS"]
candidates = "model"
order = "confidence"
"""


def test_a_toy_world_goes_all_the_way_and_is_not_made_twice(
    tmp_path: Path, modules: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    make, card = modules
    document = Document("Marlow rowed.", (Mention(0, 6, "Ada Marlow (rower)"),), "d")
    (tmp_path / "velm.jsonl").write_bytes(document.to_json() + b"\n")
    (tmp_path / "descriptions.tsv").write_text("Ada Marlow (rower)\tA rower of the island.\n")
    (tmp_path / "recipe.toml").write_text(TOY.replace("DOCUMENTS", str(tmp_path / "velm.jsonl")))
    bert, out = bert_folder(tmp_path / "bert"), tmp_path / "out"
    given = ["--wikipedia", tmp_path, "--enwik8", DUMP, "--bert", bert, "--benchmarks", tmp_path]
    arguments = [str(word) for word in (out, *given, "--recipe", tmp_path / "recipe.toml")]
    assert make.main([*arguments, "--until", "windows"]) == 0
    assert (out / "windows").is_dir() and not (out / "stage1").exists()
    assert make.main(arguments) == 0
    model = ModelFolder.load(out / "model")
    assert len(model.vocabulary.entities) == 15 and model.store is not None
    assert len(CandidateStore.open(out / "store")) > len(model.store)
    report = orjson.loads((out / "reports" / "velm.json").read_bytes())
    told = (out / "model" / "README.md").read_text()
    assert f"`{report['model']}`" in told and "| confidence |" in told
    capsys.readouterr()
    assert make.main(arguments) == 0  # everything is there
    assert all(line.endswith("is there") for line in capsys.readouterr().err.splitlines())
    parts().save(out / "other")
    with pytest.raises(ArtefactError, match="evaluate this folder"):
        card.render(out / "other", [report])


def test_the_card_of_the_packaged_model_is_what_its_reports_say(modules: tuple[Any, Any]) -> None:
    reports = [orjson.loads(path.read_bytes()) for path in sorted((RECIPE / "reports").glob("*.json"))]
    assert reports, "keep the reports that the card was made from in recipes/default/reports"
    card = (checkpoints.PACKAGED / "README.md").read_text(encoding="utf-8")
    assert card == modules[1].render(checkpoints.PACKAGED, reports)
