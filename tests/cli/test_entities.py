"""`deixis entities` as a user runs it, over the island of Velm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from deixis.cli import app
from deixis.errors import DeixisError
from deixis.wikipedia.articles import read_articles

NEW: dict[str, Any] = {
    "title": "Tilda Brandt (rower)",
    "description": "rower from Velm who won the Silver Oar in a boat",
    "names": ["Tilda", ["Brandt", 0.5]],
    "url": "https://example.org/tilda",
    "examples": ["[[Tilda]] rowed the boat on the lake."],
}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["entities", *map(str, arguments)])


def done(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def refusal(*arguments: object) -> str:
    result = run(*arguments)
    assert result.exit_code == 1 and isinstance(result.exception, DeixisError), result.output
    said = str(result.exception)
    assert "\n" not in said
    return said


@pytest.fixture(scope="module")
def able(island: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The island's model with a map of descriptions: the first sentences of its own articles."""
    folder = tmp_path_factory.mktemp("able")
    pages = [page for page in read_articles(island / "articles.jsonl.zst") if page.text]
    lines = [f"{page.title}\t{page.text[:100]}".replace("\n", " ") for page in pages]
    (folder / "descriptions.tsv").write_text("\n".join(lines) + "\n")
    said = done("fit", island / "model", folder / "descriptions.tsv", "-o", folder / "model")
    assert "of the variance of rows not fitted on is explained" in said
    return folder / "model"


def write(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_add_show_update_list_remove(able: Path, tmp_path: Path) -> None:
    new = write(tmp_path / "new.jsonl", NEW)
    assert "1 added; " in done("add", able, new, "-o", tmp_path / "more")
    shown = done("show", tmp_path / "more", "Tilda Brandt (rower)")
    assert ", added\n" in shown and "https://example.org/tilda" in shown and "like " in shown
    assert "known by links, " in done("show", tmp_path / "more", "Ada Marlow (rower)")
    assert "Tilda, Brandt" in done("list", tmp_path / "more")
    changes = write(tmp_path / "changes.jsonl", {"title": NEW["title"], "url": "https://example.org/new"})
    assert "1 updated" in done("update", tmp_path / "more", changes, "-o", tmp_path / "changed")
    record = json.loads(done("list", tmp_path / "changed", "--json"))
    assert record["url"] == "https://example.org/new" and record["names"] == NEW["names"]
    done("remove", tmp_path / "changed", NEW["title"], "-o", tmp_path / "less")
    assert "no entity beside those it was trained with" in done("list", tmp_path / "less")


def test_a_linked_text_names_the_new_entity(able: Path, tmp_path: Path) -> None:
    done("add", able, write(tmp_path / "new.jsonl", NEW), "-o", tmp_path / "more")
    (tmp_path / "ids.tsv").write_text("Velm Cup (rowing)\tQ42\n")
    text = "After the Silver Oar came Tilda."
    linking = ["link", text, "--model", str(tmp_path / "more"), "--json", "--wikidata", str(tmp_path / "ids.tsv")]
    result = CliRunner().invoke(app, linking)
    assert result.exit_code == 0, result.exception
    oar, tilda = (mention["resolution"] for mention in json.loads(result.stdout_bytes)["mentions"])
    assert oar["wikidata"] == "Q42" and oar["url"] == "https://en.wikipedia.org/wiki/Velm_Cup_(rowing)"
    assert (tilda["entity"], tilda["url"]) == (NEW["title"], NEW["url"])


def test_build_knows_only_what_it_was_given(able: Path, tmp_path: Path) -> None:
    other = {"title": "Tilda (boat)", "description": "a boat", "names": ["Tilda"]}
    own = write(tmp_path / "own.jsonl", NEW, other)
    assert "2 entities; 2 entities in all" in done("build", own, "--base", able, "-o", tmp_path / "own")
    assert len(done("list", tmp_path / "own", "--json").splitlines()) == 2
    assert "is not an entity of" in refusal("show", tmp_path / "own", "Ada Marlow (rower)")


def test_what_is_wrong_is_one_sentence_with_its_line(able: Path, island: Path, tmp_path: Path) -> None:
    more = tmp_path / "more"
    twice = write(tmp_path / "twice.jsonl", NEW, NEW)
    assert "twice.jsonl:2: title is" in refusal("add", able, twice, "-o", more)
    empty = write(tmp_path / "empty.jsonl", NEW | {"description": " "})
    assert "empty.jsonl:1: description is empty" in refusal("add", able, empty, "-o", more)
    endless = write(tmp_path / "endless.jsonl", NEW, NEW | {"title": "Tilda", "names": ["x" * 10_000_000]})
    said = refusal("add", able, endless, "-o", more)
    assert "endless.jsonl:2: names[0] has 10,000,000 characters; at most 200 are taken" in said
    (tmp_path / "latin.jsonl").write_bytes(json.dumps(NEW).encode() + b'\n\n{"title": "Tild\xe9"}\n')
    assert "latin.jsonl:3: not UTF-8: byte 15 of the line is 0xe9" in refusal(
        "add", able, tmp_path / "latin.jsonl", "-o", more
    )
    clash = write(tmp_path / "clash.jsonl", NEW | {"title": "Ada Marlow (rower)"})
    assert "is an entity of the model already" in refusal("add", able, clash, "-o", more)
    assert not more.exists()
    done("add", able, clash, "--replace", "-o", more)
    assert ", added\n" in done("show", more, "Ada Marlow (rower)")
    assert "has no map" in refusal("add", island / "model", write(tmp_path / "new.jsonl", NEW), "-o", tmp_path / "x")
    assert "is not an entity of" in refusal("update", able, tmp_path / "new.jsonl", "-o", tmp_path / "x")
    assert "'Nobody' is not an entity of the model" in refusal("remove", able, "Nobody", "-o", tmp_path / "x")
    assert "there is no title to remove" in refusal("remove", able, "-o", tmp_path / "x")
    (tmp_path / "nothing.jsonl").write_text("\n")
    assert "has no entity" in refusal("build", tmp_path / "nothing.jsonl", "--base", able, "-o", tmp_path / "x")
    assert "manifest.json does not exist; expected the manifest of a model artefact" in refusal("list", tmp_path)
