"""What somebody new does first, with what README.md shows: real commands on the packaged model, nothing mocked."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import deixis

ROOT = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(deixis.__file__).parents[1])}
TEXT = "Angela Merkel met Barack Obama in Berlin."
GOLDS = [("Angela Merkel", "Angela Merkel"), ("Barack Obama", "Barack Obama"), ("Berlin", "Berlin")]
CLUB = {"title": "Velm Rovers", "description": "football club of the island of Velm", "names": ["Rovers"]}

pytestmark = pytest.mark.slow


def shown(*words: str) -> list[str]:
    """Return a command as it is started here: README.md shows it, its subcommand perhaps on a page that it links."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\((docs/[^)#]+\.md)\)", readme)
    pages = [readme, *((ROOT / page).read_text(encoding="utf-8") for page in linked)]
    assert f"deixis {words[0]}" in readme, words
    whole = " ".join(["deixis", *itertools.takewhile(str.isalpha, words)])
    assert any(whole in page for page in pages), whole
    return [sys.executable, "-m", "deixis.cli", *words]


def run(folder: Path, *words: str) -> str:
    """Run a command in a folder; return what it prints."""
    done = subprocess.run(shown(*words), cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def posted(address: str, body: Any) -> Any:
    """Return what a server answers, asked as docs/howto/serve.md shows it."""
    data = json.dumps(body)
    if shutil.which("curl"):
        command = ["curl", "-s", "--fail", "--noproxy", "*", address, "-d", data]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)
    with urllib.request.urlopen(address, data.encode(), timeout=60) as answer:
        return json.loads(answer.read())


def found(document: Any) -> list[tuple[str, str]]:
    """Return the names and the entities that a record of a linked document has."""
    text = document["text"]
    return [(text[m["start"] : m["end"]], m["resolution"]["entity"]) for m in document["mentions"] if m["resolution"]]


def write_lines(path: Path, records: Iterable[Any]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def test_a_folder_of_texts_is_linked(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    paths = [f"notes/{number}.txt" for number in range(10)]
    for number, path in enumerate(paths):
        (tmp_path / path).write_text(f"Note {number}. {TEXT}\n", encoding="utf-8")
    run(tmp_path, "link", *paths, "-o", "linked.jsonl")
    linked = [json.loads(line) for line in (tmp_path / "linked.jsonl").read_bytes().splitlines()]
    assert [document["id"] for document in linked] == paths
    assert all(set(GOLDS) <= set(found(document)) for document in linked)


def test_an_entity_of_ones_own_is_found(tmp_path: Path) -> None:
    write_lines(tmp_path / "new.jsonl", [CLUB])
    text = "Rovers lost on the island of Velm."
    before = json.loads(run(tmp_path, "link", text, "--json"))
    assert "Velm Rovers" not in dict(found(before)).values()
    assert "1 added" in run(tmp_path, "entities", "add", "default", "new.jsonl", "-o", "mine")
    after = json.loads(run(tmp_path, "link", text, "--model", "mine", "--json"))
    assert dict(found(after))["Rovers"] == "Velm Rovers"


def test_a_server_answers_and_stops(tmp_path: Path) -> None:
    command = shown("serve", "--port", "0")
    with subprocess.Popen(command, cwd=tmp_path, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
            assert address
            assert found({"text": TEXT, **posted(f"{address[0]}/link", {"text": TEXT})}) == GOLDS
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0 and process.stderr.read() == ""
        finally:
            process.kill()


def test_an_agent_is_answered() -> None:
    mcp = pytest.importorskip("mcp", reason="mcp is not installed: pip install 'deixis[mcp]'")
    command, *arguments = shown("mcp")
    server = mcp.StdioServerParameters(command=command, args=arguments, env=ENVIRONMENT)

    async def ask() -> Any:
        async with mcp.Client(server) as client:
            return await client.call_tool("link_text", {"text": TEXT})

    linked = asyncio.run(ask())
    assert not linked.is_error
    mentions: Sequence[Any] = linked.structured_content["mentions"]
    assert [(mention["surface"], mention["resolution"]["entity"]) for mention in mentions] == GOLDS


def test_texts_of_ones_own_are_measured(tmp_path: Path) -> None:
    mentions = [
        {"start": TEXT.index(name), "end": TEXT.index(name) + len(name), "entity": entity} for name, entity in GOLDS
    ]
    mentions[0]["entity"] = "Angela Carter"  # no model should say so
    write_lines(tmp_path / "mine.jsonl", [{"id": "one", "text": TEXT, "mentions": mentions}])
    told = json.loads(run(tmp_path, "evaluate", "texts", "mine.jsonl", "--json"))
    by_mentions = {result["mentions"]: result for result in told["results"]}
    assert set(by_mentions) == {"found", "gold"}
    for result in by_mentions.values():
        assert (result["golds"], result["right"]) == (3, 2) and result["f1"] == pytest.approx(2 / 3)
