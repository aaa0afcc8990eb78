"""The island of Velm runs through everything, and global context resolves what words alone cannot."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from rich.console import Console
from typer.testing import CliRunner

from deixis.cli import app, demo
from deixis.corpus.windows import WindowSet
from deixis.documents import Document
from deixis.folder.model_folder import ModelFolder
from deixis.inference import Disambiguator
from deixis.knowledge.vocabulary import Vocabulary
from deixis.toy import DUMP, RECIPE, marked
from deixis.toy.__main__ import main, show
from deixis.training import evaluate

# Sentences without a word that belongs to either game; the first name leads to one entity and is in no page's text.
SUMMER = [
    "After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Lena Brandt (coach)].",
    "It was the time of the [Silver Oar|Velm Cup (rowing)]. The [Falcon|Falcon (boat)] and [Orrin|Orrin (lake)].",
    "The [Silver Oar|Velm Cup (rowing)] and the [Harbour Club|Harbour Club (rowing)] and [Quill|Tom Quill].",
]
WINTER = [
    "After the [Golden Rook|Velm Cup (chess)] came [Marlow|Ada Marlow (chess player)] and "
    "[Brandt|Lena Brandt (composer)].",
    "It was the time of the [Golden Rook|Velm Cup (chess)]. The [Falcon|Falcon (opening)] and [Orrin|Orrin (king)].",
    "The [Golden Rook|Velm Cup (chess)] and the [Harbour Club|Harbour Club (chess)] and [Quill|Quill (newspaper)].",
]
DOCUMENTS = [marked(text) for text in SUMMER + WINTER]


@pytest.mark.parametrize("run", [main, demo.main])
def test_demonstrations_say_what_they_do(run: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]) -> None:
    for given, code in (["--help"], 0), (["--fast"], 2):
        with pytest.raises(SystemExit, match=str(code)):
            run(given)
    assert "usage: python -m deixis." in capsys.readouterr().out


def right(nlp: Disambiguator, documents: list[Document], order: str) -> float:
    """Return the part of the ambiguous mentions that are right; the first of each document is not ambiguous."""
    pairs = [
        (resolution.entity, mention.entity)
        for result in nlp.disambiguate_many(documents, order=order)
        for resolution, mention in list(zip(result, result.document.mentions, strict=True))[1:]
    ]
    return sum(answer == gold for answer, gold in pairs) / len(pairs)


def test_the_island_is_learned(island: Path) -> None:
    vocabulary = Vocabulary.load(island / "vocabulary.jsonl")
    model = ModelFolder.load(island / "model").among(vocabulary)  # knowledge has an order of its own
    windows = WindowSet.open(island / "windows", "train", vocabulary)
    result = evaluate(model.network, model.tokenizer, windows, RECIPE)
    assert result.targets > 50
    assert result.accuracy == 1.0


def test_global_context_resolves_what_words_cannot(island: Path) -> None:
    nlp = Disambiguator.load(island / "model")
    local = right(nlp, DOCUMENTS, "local")
    assert local <= 0.7  # the words are the same for both games
    assert right(nlp, DOCUMENTS, "confidence") == 1.0
    for result in nlp.disambiguate_many(DOCUMENTS):
        assert result[0].step == 1 and result[0].probability == 1.0


def test_the_demo_shows_the_steps(island: Path) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    show(Disambiguator.load(island / "model"), console)
    shown = console.export_text()
    assert "1 ✓ Silver Oar → Velm Cup (rowing)" in shown and "12 of 12 right in confidence" in shown


def test_the_commands_make_the_same_island(island: Path, tmp_path: Path) -> None:
    """Every command in a row, as a user would run them, up to the training data; then the trained island answers."""

    def run(*arguments: object) -> str:
        done = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert done.exit_code == 0, (arguments, done.output, done.exception)
        return done.output

    articles, vocabulary, store = tmp_path / "articles.jsonl.zst", tmp_path / "vocabulary.jsonl", tmp_path / "store"
    windows = tmp_path / "windows"
    run("wikipedia", "articles", DUMP, "-o", articles, "--workers", 1)
    run("wikipedia", "vocabulary", articles, "-o", vocabulary)
    run("candidates", "build", articles, "-o", store)
    assert "Ada Marlow (rower)" in run("candidates", "show", store, "Marlow")
    run(
        *("wikipedia", "windows", articles, "--vocabulary", vocabulary, "--tokenizer", island, "-o", windows),
        *("--max-pieces", 24, "--held-out", 0, "--workers", 1),
    )
    for name in ("articles.jsonl.zst", "vocabulary.jsonl", "windows/train/pieces.npy", "windows/train/rows.npy"):
        assert (tmp_path / name).read_bytes() == (island / name).read_bytes()
    documents = tmp_path / "documents.jsonl"
    documents.write_bytes(b"".join(document.to_json() + b"\n" for document in DOCUMENTS))
    resolved = tmp_path / "resolved.jsonl"
    run("disambiguate", documents, "--model", island / "model", "-o", resolved)
    answers = [orjson.loads(line) for line in resolved.read_bytes().splitlines()]
    for answer in answers:
        assert all(mention["resolution"]["entity"] == mention["entity"] for mention in answer["mentions"])
