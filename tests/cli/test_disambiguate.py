"""The commands `disambiguate` and `convert-luke`, run as a user runs them."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from deixis.folder.model_folder import ModelFolder
from tests.worlds import make_disambiguator, make_document, make_network, make_tokenizer, make_vocabulary


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    ModelFolder(make_network(4), make_tokenizer(), make_vocabulary()).save(folder)
    return folder


def run(*arguments: object, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "deixis.cli", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, input=stdin, check=False)


@pytest.mark.slow
def test_documents_come_out_with_resolutions(tmp_path: Path, model: Path) -> None:
    documents = [make_document(seed) for seed in range(5)]
    lines = b"".join(document.to_json() + b"\n" for document in documents)
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(lines))
    done = run("disambiguate", tmp_path / "in.jsonl.gz", "--model", model, "-o", tmp_path / "out.jsonl")
    assert (done.returncode, done.stderr) == (0, b"")
    expected = [result.to_json() for result in make_disambiguator(4).disambiguate_many(documents)]
    assert (tmp_path / "out.jsonl").read_bytes().splitlines() == expected
    piped = run("disambiguate", "-", "--model", model, stdin=lines)
    assert piped.stdout.splitlines() == expected


@pytest.mark.slow
def test_a_bad_line_is_reported_and_the_others_are_done(tmp_path: Path, model: Path) -> None:
    good = make_document(1).to_json()
    path = tmp_path / "in.jsonl"
    path.write_bytes(good + b'\n{"text": 5}\n' + good + b"\n")
    done = run("disambiguate", path, "--model", model, "-o", tmp_path / "out.jsonl")
    assert done.returncode == 1
    assert b"line 2" in done.stderr and b"text is 5" in done.stderr and b"1 line of" in done.stderr
    assert len((tmp_path / "out.jsonl").read_bytes().splitlines()) == 2
    strict = run("disambiguate", path, "--model", model, "--strict", "-o", tmp_path / "strict.jsonl")
    assert strict.returncode == 1 and b"line 2" in strict.stderr
    assert not (tmp_path / "strict.jsonl").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["disambiguate", "nowhere.jsonl"], b"nowhere.jsonl does not exist"),
        (["disambiguate", "-", "--top", "0"], b"top is 0"),
        (["disambiguate", "-", "--commit", "x"], b"commit is 'x'"),
    ],
)
def test_wrong_input_is_one_sentence(model: Path, arguments: list[str], said: bytes) -> None:
    done = run(*arguments, "--model", model)
    assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_wrong_usage_and_wrong_folders(tmp_path: Path) -> None:
    assert run("disambiguate").returncode == 2
    done = run("disambiguate", "-", "--model", tmp_path)
    assert done.returncode == 1 and b"manifest" in done.stderr
    for command, option, given, choices in (
        (("convert-luke", tmp_path, tmp_path / "out"), "--table", "int4", "'fp32', 'fp16', 'int8'"),
        (("disambiguate", "-"), "--order", "best", "'local', 'natural', 'confidence'"),
    ):
        done = run(*command, option, given)
        said = " ".join(done.stderr.decode().replace("│", " ").split())
        assert done.returncode == 2 and f"'{option}': Value error, '{given}' is not one of {choices}." in said
    done = run("convert-luke", tmp_path, tmp_path / "out")
    assert done.returncode == 1 and b"config.json does not exist" in done.stderr


def test_help_is_there_without_torch() -> None:
    code = "import sys; from deixis.cli import app; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    done = run("disambiguate", "--help")
    assert done.returncode == 0 and b"deixis disambiguate documents.jsonl" in done.stdout


@pytest.mark.slow
def test_unknown_keys_pass_through(model: Path) -> None:
    line = orjson.dumps({"text": "messi", "mentions": [{"start": 0, "end": 5, "candidates": [], "x": 1}], "y": [2]})
    record = orjson.loads(run("disambiguate", "-", "--model", model, stdin=line + b"\n").stdout)
    assert record["y"] == [2] and record["mentions"][0]["x"] == 1 and record["mentions"][0]["reason"] == "no candidates"
