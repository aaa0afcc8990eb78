"""What cannot be read, over the command, tables and the server: one sentence that says what and where, and the status.

Every line of the lists is one malformed input, what is said of it, and how the command ends or the server answers.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette")
pa = pytest.importorskip("pyarrow")

import pyarrow.parquet as pq  # noqa: E402 - after the test for pyarrow above
from starlette.testclient import TestClient  # noqa: E402

from deixis.cli import main  # noqa: E402
from deixis.serving.app import create_app  # noqa: E402
from tests.serving.world import make_model  # noqa: E402

FILES = {
    "latin.txt": b"Z\xfcrich",
    "no.jsonl": b'{"text": "Marlow won."}\n{"text": \n',
    "span.jsonl": b'{"text": "Marlow", "mentions": [{"start": 0, "end": 9}]}\n',
    "number.jsonl": b'{"text": 5}\n',
    "cut.jsonl.gz": gzip.compress(b'{"text": "Marlow won."}\n' * 99)[:-9],
    "good.csv": b"id,text\n1,Marlow won.\n",
    "empty.csv": b"",
    "twice.csv": b"text,id,id\na,1,2\n",
    "latin.csv": b"text,stra\xdfe\na,b\n",
    "taken.csv": b"text,entity\nMarlow,rower\n",
    "ragged.csv": b"id,text\n1,Marlow won.\n2\n3,a,b\n",
    "open.csv": b'id,text\n1,Marlow won.\n2,"Brandt\n3,c\n',
    "cut.csv.gz": gzip.compress(b"text\n" + b"Marlow won.\n" * 99)[:-9],
    "keys.jsonl": b'{"body": "Marlow won."}\n',
    "rows.jsonl": b'{"text": "Marlow won."}\n[]\nx\n{"text": null}\n',
    "no.parquet": b"PAR1 and no more",
}
# What is typed after `deixis link`, what is said, and the exit code; {} is the folder of the files.
COMMANDS: list[tuple[list[str], str, int]] = [
    (["{}/nowhere.txt"], "{}/nowhere.txt does not exist; give files, or one text in quotes", 1),
    (["{}"], "{} is a folder; give its files", 1),
    (["{}/latin.txt"], "{}/latin.txt is not UTF-8: byte 1 is 0xfc", 1),
    (["{}/no.jsonl"], "{}/no.jsonl, line 2: not JSON", 1),
    (["{}/span.jsonl"], "{}/span.jsonl, line 1: mentions[0] is [0, 9) but the text has 6 characters", 1),
    (["{}/number.jsonl"], "{}/number.jsonl, line 1: text is 5; expected a string", 1),
    (["{}/cut.jsonl.gz"], "{}/cut.jsonl.gz is cut off or damaged", 1),
    (["Marlow won.", "-m", "{}/none"], "{}/none is not a directory; expected a deixis model folder", 1),
    (["Marlow won.", "--answer-threshold", "2"], "answer_threshold is 2.0; expected a number from 0 to 1", 1),
    (["Marlow won.", "-o", "{}/none/out.jsonl"], "cannot write {}/none/out.jsonl: No such file", 1),
    (["Marlow won.", "--order", "best"], "'best'", 2),
    (["Marlow won.", "--json", "--html"], "exclude each other", 2),
]
TABLES: list[tuple[list[str], str, int]] = [
    (["{}/nowhere.csv"], "{}/nowhere.csv does not exist", 1),
    (["{}/empty.csv"], "{}/empty.csv is empty; expected a header, and rows under it", 1),
    (["{}/good.csv", "--column", "body"], "{}/good.csv has no column 'body'; it has 'id', 'text'", 1),
    (["{}/twice.csv"], "{}/twice.csv has the header 'id'; expected names in UTF-8, each once", 1),
    (["{}/latin.csv"], "{}/latin.csv has the header 'stra\\udcdfe'; expected names in UTF-8, each once", 1),
    (["{}/taken.csv"], "{}/taken.csv has a column 'entity', which the results have too; rename it", 1),
    (["{}/ragged.csv"], "2 rows of {}/ragged.csv could not be read; the others are done", 1),
    (["{}/open.csv"], "1 row of {}/open.csv could not be read; the others are done", 1),
    (["{}/cut.csv.gz"], "{}/cut.csv.gz is cut off or damaged", 1),
    (["{}/keys.jsonl", "--column", "text"], "no line of {}/keys.jsonl has a 'text'", 1),
    (["{}/rows.jsonl", "--nested"], "3 rows of {}/rows.jsonl could not be read; the others are done", 1),
    (["{}/no.parquet"], "{}/no.parquet is no Parquet file", 1),
    (["{}/cut.parquet"], "{}/cut.parquet is no Parquet file", 1),
    (["{}/numbers.parquet"], "{}/numbers.parquet: text is a column of int64; expected texts", 1),
    (["{}/nulls.parquet"], "1 row of {}/nulls.parquet could not be read; the others are done", 1),
    (["{}/good.csv", "-o", "{}/out.xlsx"], "{}/out.xlsx is not a table by its name; expected a name that ends", 1),
    (["{}/good.csv", "-o", "{}/good.csv"], "{}/good.csv is the table that is read", 1),
    (["{}/good.csv", "-o", "{}/none/out.csv"], "cannot write {}/none/out.csv", 1),
    (["{}/good.csv", "{}/ragged.csv"], "tables are linked one at a time", 1),
    (["Marlow won.", "--column", "text"], "tables are linked one at a time", 1),
    (["{}/latin.txt", "--column", "text"], "{}/latin.txt is not a table by its name", 1),
    (["{}/good.csv", "--json"], "--json and --html are not for tables", 2),
]
BIG = b'{"text": "' + b"a" * (8 << 20) + b'"}'
# A request, what the server says, and its status.
REQUESTS: list[tuple[str, str, dict[str, Any], str, int]] = [
    ("POST", "/link", {"content": b""}, "the body is empty; expected JSON", 422),
    ("POST", "/link", {"content": b"{"}, "the body is not JSON", 422),
    ("POST", "/link", {"content": b'{"text": "\xff"}'}, "the body is not UTF-8: byte 10 is 0xff", 422),
    ("POST", "/link", {"json": "messi"}, 'the body is "messi"; expected a document', 422),
    ("POST", "/link", {"json": {}}, "text is missing", 422),
    ("POST", "/link", {"json": {"text": 5}}, "text is 5; expected a text", 422),
    ("POST", "/link", {"json": {"text": "messi", "top": 0}}, "top is 0; expected a whole number", 422),
    ("POST", "/link", {"json": {"text": "messi", "ordr": 1}}, "there is no field 'ordr'; did you mean 'order'?", 422),
    ("POST", "/link", {"json": {"text": "a" * 100_001}}, "text has 100,001 characters; this server takes", 422),
    ("POST", "/link", {"json": [{"text": "a"}] * 65}, "documents has 65 items; this server takes at most 64", 422),
    ("POST", "/link", {"content": BIG}, "the body is over 8,388,608 bytes, the most this server takes", 413),
    ("POST", "/link", {"content": b"x", "headers": {"content-encoding": "gzip"}}, "content-encoding is 'gzip'", 415),
    ("POST", "/link", {"files": {"text": b"messi"}}, "the body is a multipart form", 415),
    (
        "POST",
        "/disambiguate",
        {"json": {"text": "messi", "mentions": [{"start": 0, "end": 9}]}},
        "mentions[0] is [0, 9) but the text has 5 characters",
        422,
    ),
    ("POST", "/nif", {"content": b"@prefix"}, "body, line 1: not Turtle", 422),
    ("GET", "/candidates", {}, "surface is missing", 422),
    ("GET", "/candidates", {"params": {"surface": "a", "text": "b"}}, "surface does not occur in text", 422),
    ("GET", "/link", {}, "GET /link: method not allowed; GET /docs lists the endpoints", 405),
    ("GET", "/nothing", {}, "GET /nothing: not found; GET /docs lists the endpoints", 404),
]


def is_one_sentence(said: str) -> bool:
    return bool(said) and "\n" not in said and len(said) < 400 and "Traceback" not in said and "Error:" not in said


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("malformed")
    for name, content in FILES.items():
        (made / name).write_bytes(content)
    pq.write_table(pa.table({"text": [1, 2]}), made / "numbers.parquet")
    pq.write_table(pa.table({"text": ["Marlow won.", None]}), made / "nulls.parquet")
    (made / "cut.parquet").write_bytes((made / "nulls.parquet").read_bytes()[:-9])
    return made


@pytest.mark.parametrize(("words", "said", "code"), COMMANDS + TABLES, ids=lambda value: str(value)[:60])
def test_commands(
    words: list[str],
    said: str,
    code: int,
    island: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word.replace("{}", str(folder)) for word in words]
    model = [] if "-m" in words else ["-m", str(island / "model")]
    monkeypatch.setattr(sys, "argv", ["deixis", "link", *words, *model])
    with pytest.raises(SystemExit) as done:
        main()
    told = capsys.readouterr().err
    assert done.value.code == code, told
    if code == 1:
        last = told.splitlines()[-1]
        assert last.startswith("deixis: " + said.replace("{}", str(folder))) and is_one_sentence(last)
    else:  # a box with how the command is called
        assert said in " ".join(told.split())
    assert not (folder / "none").exists()


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(make_model())) as opened:
        yield opened


@pytest.mark.parametrize(("method", "path", "given", "said", "status"), REQUESTS, ids=lambda value: str(value)[:40])
def test_requests(client: TestClient, method: str, path: str, given: dict[str, Any], said: str, status: int) -> None:
    answer = client.request(method, path, **given)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"].startswith(said) and is_one_sentence(answer.json()["error"])


def test_a_server_without_names_says_so() -> None:
    with TestClient(create_app(replace(make_model(), candidates=None))) as client:
        answer = client.post("/link", json={"text": "messi"})
    assert answer.status_code == 501 and "has no names to find mentions by" in answer.json()["error"]


def test_there_are_enough() -> None:
    assert len(COMMANDS) + len(TABLES) + len(REQUESTS) >= 50
