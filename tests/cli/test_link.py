"""`deixis link` as a user runs it, over the island of Velm."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner, Result

from deixis.cli import app
from deixis.errors import DeixisError
from deixis.folder.model_folder import ModelFolder
from tests.worlds import make_network, make_tokenizer, make_vocabulary

TEXT = "After the Silver Oar came Marlow and Brandt."
ENTITIES = ["Velm Cup (rowing)", "Ada Marlow (rower)", "Lena Brandt (coach)"]


@pytest.fixture(scope="module")
def model(island: Path) -> Path:
    return island / "model"


def run(*arguments: object, stdin: bytes = b"") -> Result:
    return CliRunner().invoke(app, ["link", *map(str, arguments)], input=stdin)


def refusal(*arguments: object, stdin: bytes = b"") -> str:
    done = run(*arguments, stdin=stdin)
    assert done.exit_code == 1 and isinstance(done.exception, DeixisError)  # `main` prints it as one line
    said = str(done.exception)
    assert "\n" not in said
    return said


def entities(line: bytes | str) -> list[str | None]:
    mentions = orjson.loads(line)["mentions"]
    return [mention["resolution"] and mention["resolution"]["entity"] for mention in mentions]


def test_a_text_is_shown_with_its_links(model: Path) -> None:
    done = run(TEXT, "--model", model)
    assert done.exit_code == 0, done.exception
    assert "After the Silver Oar[1] came Marlow[" in done.output
    assert "https://en.wikipedia.org/wiki/Velm_Cup_(rowing)" in done.output
    shown = [line.split()[0] for line in done.output.splitlines() if "wikipedia.org" in line]
    assert shown == ["1", "2", "3"]
    assert "no mention was found" in run("nothing to see here", "--model", model).output


def test_standard_input_and_json(model: Path) -> None:
    for arguments in ([], ["-"]):
        done = run(*arguments, "--json", "--model", model, stdin=TEXT.encode())
        assert entities(done.stdout_bytes) == ENTITIES


def test_many_files_make_one_jsonl(model: Path, tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(TEXT if number else "", encoding="utf-8")
    paths = sorted(tmp_path.glob("*.txt"))
    done = run(*paths, "--model", model, "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.exception
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert [entities(line) for line in lines] == [[], ENTITIES, ENTITIES]
    assert [orjson.loads(line)["id"] for line in lines] == list(map(str, paths))
    again = run(tmp_path / "out.jsonl", "--model", model)  # documents keep their mentions, here with resolutions
    assert [entities(line) for line in again.stdout_bytes.splitlines()] == [[], ENTITIES, ENTITIES]


def test_a_page(model: Path, tmp_path: Path) -> None:
    done = run(TEXT + " <b>", "--model", model, "--html", "-o", tmp_path / "page.html")
    assert done.exit_code == 0, done.exception
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and "&lt;b&gt;" in page and "<b>" not in page
    assert 'href="https://en.wikipedia.org/wiki/Ada_Marlow_(rower)"' in page


def test_thresholds(model: Path) -> None:
    unsure = orjson.loads(run(TEXT, "--json", "--answer-threshold", 1, "--model", model).stdout_bytes)["mentions"]
    assert unsure[0]["resolution"]["entity"] == "Velm Cup (rowing)"  # its only candidate
    assert unsure[1]["resolution"] is None and unsure[1]["reason"] == "none fits"
    assert unsure[1]["alternatives"][0][0] == "Ada Marlow (rower)"
    nothing = run(TEXT, "--json", "--detection-threshold", 1, "--model", model)
    assert orjson.loads(nothing.stdout_bytes)["mentions"] == []


def test_bad_input_is_said_in_one_sentence(model: Path, tmp_path: Path) -> None:
    (tmp_path / "latin.txt").write_bytes("Zürich".encode("latin-1"))
    assert "latin.txt is not UTF-8: byte 1" in refusal(tmp_path / "latin.txt", "--model", model)
    assert "standard input is not UTF-8" in refusal("--model", model, stdin=b"\xff")
    assert "the text is not UTF-8: byte 1 is 0xff" in refusal("a\udcff b", "--model", model)
    assert "nowhere.txt does not exist" in refusal("nowhere.txt", "--model", model)
    assert "nowhere does not exist" in refusal(tmp_path / "latin.txt", "nowhere", "--model", model)
    assert "is a folder" in refusal(tmp_path, "--model", model)
    assert run(TEXT, "--order", "best", "--model", model).exit_code == 2
    ModelFolder(make_network(4), make_tokenizer(), make_vocabulary()).save(tmp_path / "bare")
    assert "no names to find mentions by" in refusal(TEXT, "--model", tmp_path / "bare")
