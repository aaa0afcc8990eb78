"""The recipe of the default model: its file fits the commands, it runs on a toy world, its card tells its reports."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer

from deixis.cli import app
from deixis.documents import Document, Mention
from deixis.errors import ArtefactError
from deixis.folder import model_folder as checkpoints
from deixis.folder.model_folder import ModelFolder
from deixis.toy import DUMP
from deixis.training import PRESETS
from deixis.wikipedia.articles import read_articles
from tests.folder.test_model_folder import bert_folder, parts

RECIPE = Path(__file__).parents[1] / "recipes" / "default"
TABLES = tomllib.loads((RECIPE / "recipe.toml").read_text())
TRAINED = ["stage1", "stage2", "stage3", "named1", "named2", "pupil1", "pupil2"]
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
        *((f"reports.{name}", "evaluate sets") for name in TABLES["reports"]),
    ],
)
def test_options_are_those_of_the_command(table: str, command: str) -> None:
    found: Any = TABLES
    for name in table.split("."):
        found = found[name]
    named: Any = typer.main.get_command(app)
    for word in command.split():
        named = named.commands[word]
    known = {name for option in named.params for name in option.opts}
    arguments = ("documents", "sets")
    given = {f"--{name}" for name, value in found.items() if not isinstance(value, dict) and name not in arguments}
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
[fitted]
[quantised]
encoder = "int8"
entities = 15
[model]
set = "DOCUMENTS"
[reports.velm]
sets = ["DOCUMENTS"]
candidates = "model"
order = "confidence"
"""


MARLOW = "Ada Marlow (rower)"


def test_a_toy_world_goes_all_the_way_and_is_not_made_twice(
    tmp_path: Path, modules: tuple[Any, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    make, card = modules
    document = Document("Marlow rowed.", (Mention(0, 6, "Ada Marlow (rower)"),), "d")
    (tmp_path / "velm.jsonl").write_bytes(document.to_json() + b"\n")
    (tmp_path / "recipe.toml").write_text(TOY.replace("DOCUMENTS", str(tmp_path / "velm.jsonl")))
    bert, out = bert_folder(tmp_path / "bert"), tmp_path / "out"
    given = ["--wikipedia", tmp_path, "--enwik8", DUMP, "--bert", bert, "--benchmarks", tmp_path]
    arguments = [str(word) for word in (out, *given, "--recipe", tmp_path / "recipe.toml")]
    assert make.main([*arguments, "--until", "enwik8"]) == 0
    pages = [page for page in read_articles(out / "enwik8.jsonl.zst") if page.text and page.title != MARLOW]
    lines = [f"{page.title}\t{page.text[:100]}".replace("\n", " ") for page in pages]
    (tmp_path / "descriptions.tsv").write_text("\n".join(lines) + "\n")
    assert make.main([*arguments, "--until", "windows"]) == 0
    assert (out / "windows").is_dir() and not (out / "stage1").exists()
    assert make.main(arguments) == 0
    model = ModelFolder.load(out / "model")
    assert len(model.vocabulary.entities) == 15 and model.names is not None
    report = orjson.loads((out / "reports" / "velm.json").read_bytes())
    card_told = (out / "model" / "README.md").read_text()
    assert f"`{report['model']}`" in card_told and "| confidence |" in card_told
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
