"""The tools for agents, asked by the SDK's own client over both transports; what is wrong is one sentence."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

import deixis
from deixis.cli import app
from deixis.errors import InputError, MissingExtra
from deixis.folder.model_folder import ModelFolder
from deixis.inference import Disambiguator
from deixis.knowledge.entities import Entity
from deixis.serving.limits import Limits
from deixis.serving.tools import TOOLS
from deixis.settings import Settings
from tests.serving.world import make_model, running
from tests.worlds import make_disambiguator, make_document, make_network, make_tokenizer, make_vocabulary

mcp = pytest.importorskip("mcp", reason="mcp is not installed: pip install 'deixis[mcp]'")

from deixis.serving.mcp import PATH, create_mcp_app  # noqa: E402 - after the test for mcp above

pytestmark = pytest.mark.slow

TEXT = "messi won the cup of the city"
SOURCE = str(Path(deixis.__file__).parents[1])


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(create_mcp_app(make_model())) as address:
        yield address + PATH


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("offered") / "model"
    ModelFolder(make_network(1), make_tokenizer(), make_vocabulary()).save(folder)
    return folder


def asked(server: Any, ask: Callable[[Any], Awaitable[Any]], **options: Any) -> Any:
    """Connect the SDK's client to a server, and return what is learnt there."""

    async def connected() -> Any:
        async with mcp.Client(server, **options) as client:
            return await ask(client)

    return asyncio.run(connected())


def answer(server: Any, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool; return what it answers, which its text says too."""

    async def ask(client: Any) -> Any:
        await client.list_tools()  # the client then checks the answer against the tool's schema
        return await client.call_tool(tool, arguments)

    result = asked(server, ask)
    assert not result.is_error, result.content[0].text
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


def refusal(server: Any, tool: str, arguments: dict[str, Any]) -> str:
    result = asked(server, lambda client: client.call_tool(tool, arguments))
    assert result.is_error and result.structured_content is None
    text: str = result.content[0].text
    return text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_tools_are_listed_with_the_settings_beside_a_text(url: str, mode: str) -> None:
    tools = {tool.name: tool for tool in asked(url, lambda client: client.list_tools(), mode=mode).tools}
    assert list(tools) == ["link_text", "disambiguate_mentions", "find_candidates", "entity"]
    for name in ("link_text", "disambiguate_mentions"):
        shown = tools[name].input_schema["properties"]
        for field, described in Settings.model_json_schema()["properties"].items():
            assert {key: shown[field].get(key) for key in described} == described, field
        assert "100,000 characters" in tools[name].description
    assert tools["disambiguate_mentions"].input_schema["required"] == ["text", "mentions"]
    assert all(tool.annotations.read_only_hint and tool.output_schema["type"] == "object" for tool in tools.values())


def test_a_text_is_linked_as_the_library_does(url: str) -> None:
    expected = make_model().link(TEXT, answer_threshold=0.1)
    mentions = answer(url, "link_text", {"text": TEXT, "answer_threshold": 0.1})["mentions"]
    assert [(m["surface"], m["start"], m["end"]) for m in mentions] == [(r.text, r.start, r.end) for r in expected]
    for mention, resolution in zip(mentions, expected, strict=True):
        told = mention["resolution"]
        assert told["entity"] == resolution.entity and told["url"] == resolution.url and told["step"] == resolution.step
        assert told["probability"] == pytest.approx(resolution.probability, abs=1e-4)
        assert [title for title, _ in told["alternatives"]] == [title for title, _ in resolution.alternatives[:5]]
    assert answer(url, "link_text", {"text": "nothing here"}) == {"mentions": []}
    traced = answer(url, "link_text", {"text": TEXT, "trace": True})["trace"]
    assert [step["step"] for step in traced] == list(range(1, len(traced) + 1))


def test_a_mention_that_is_left_open_says_why(url: str) -> None:
    mentions = answer(url, "link_text", {"text": TEXT, "answer_threshold": 1})["mentions"]
    left = [mention for mention in mentions if mention["resolution"] is None]
    assert left and all(mention["reason"] == "none fits" for mention in left)


def test_mentions_are_given_by_name_or_by_place(url: str) -> None:
    text = "messi and messi won the cup"
    named = [{"surface": "messi"}, {"surface": "cup"}, {"surface": "messi"}]
    placed = [{"start": 0, "end": 5}, {"start": 24, "end": 27}, {"start": 10, "end": 15}]
    by_name = answer(url, "disambiguate_mentions", {"text": text, "mentions": named})
    by_place = answer(url, "disambiguate_mentions", {"text": text, "mentions": placed})
    assert by_name == by_place
    assert [(m["start"], m["end"]) for m in by_name["mentions"]] == [(0, 5), (24, 27), (10, 15)]
    given = [{"surface": "cup", "candidates": ["Entity 1", ["Entity 2", 0.7]]}]
    (mention,) = answer(url, "disambiguate_mentions", {"text": text, "mentions": given})["mentions"]
    assert {title for title, _ in mention["resolution"]["alternatives"]} == {"Entity 1", "Entity 2"}


def test_candidates_and_entities(url: str) -> None:
    found = answer(url, "find_candidates", {"surface": "messi"})
    assert [one["entity"] for one in found["candidates"]] == ["Entity 5", "Entity 6"]
    assert found["candidates"][0]["prior"] == pytest.approx(2 / 3, abs=1e-4)
    assert found["candidates"][0]["url"] == "https://en.wikipedia.org/wiki/Entity_5"
    assert answer(url, "find_candidates", {"surface": "messi", "text": TEXT})["candidates"] == found["candidates"]
    assert answer(url, "find_candidates", {"surface": "atlantis"})["candidates"] == []
    known = answer(url, "entity", {"title": "entity_5"})
    assert known["entity"] == "Entity 5" and known["url"] == "https://en.wikipedia.org/wiki/Entity_5"


def test_ids_and_what_an_added_entity_says() -> None:
    record = {"title": "Entity 7", "description": "a boat", "names": ["the Seven"], "id": "7", "url": "https://e.org/7"}
    nlp = replace(make_model(), wikidata={"Entity 5": "Q5"}, added=(Entity.from_record(record).to_json(),))
    with running(create_mcp_app(nlp)) as address:
        own = answer(address + PATH, "entity", {"title": "Entity 7"})
        linked = answer(address + PATH, "link_text", {"text": "messi", "answer_threshold": 0})
        candidates = answer(address + PATH, "find_candidates", {"surface": "messi"})["candidates"]
    assert own == {
        "entity": "Entity 7",
        "url": "https://e.org/7",
        "id": "7",
        "links": 0,
        "description": "a boat",
        "names": ["the Seven"],
    }
    assert [one.get("wikidata") for one in candidates] == ["Q5", None]
    decided = linked["mentions"][0]["resolution"]
    assert decided.get("wikidata") == ("Q5" if decided["entity"] == "Entity 5" else None)


MALFORMED: list[tuple[str, dict[str, Any], str]] = [
    ("nothing", {}, "there is no tool 'nothing'; expected one of link_text, disambiguate_mentions"),
    ("link_text", {}, "text is missing"),
    ("link_text", {"text": 5}, "text is 5; expected a text"),
    ("link_text", {"text": None}, "text is null; expected a text"),
    ("link_text", {"text": ["a"]}, 'text is ["a"]; expected a text'),
    ("link_text", {"text": "a", "mentions": []}, "there is no field 'mentions' here"),
    ("link_text", {"text": "a", "ordr": "local"}, "there is no field 'ordr' here"),
    ("link_text", {"text": "a", "order": "sideways"}, 'order is "sideways"; expected one of local'),
    ("link_text", {"text": "a", "top": 0}, "top is 0; expected a whole number of at least 1"),
    ("link_text", {"text": "a", "top": "3"}, 'top is "3"; expected a whole number'),
    ("link_text", {"text": "a", "answer_threshold": 2}, "answer_threshold is 2; expected a number from 0 to 1"),
    ("link_text", {"text": "a", "trace": "yes"}, 'trace is "yes"; expected true or false'),
    ("link_text", {"text": "a" * 100_001}, "text has 100,001 characters; this server takes at most 100,000 a document"),
    ("link_text", {"text": "messi " * 1001}, "the request has 1,001 mentions; this server takes at most 1,000"),
    ("link_text", {"text": "messi " * 101, "trace": True}, "the request has 101 mentions; this server takes at most"),
    ("disambiguate_mentions", {"text": "a"}, "mentions is missing"),
    ("disambiguate_mentions", {"text": "a", "mentions": []}, "mentions is []; expected at least 1 item"),
    ("disambiguate_mentions", {"text": "a", "mentions": ["a"]}, 'mentions[0] is "a"; expected an object'),
    ("disambiguate_mentions", {"text": "a", "mentions": [{}]}, "mentions[0] has no surface; expected it, or start"),
    ("disambiguate_mentions", {"text": "a", "mentions": [{"surface": "b"}]}, "mentions[0].surface is 'b', which text"),
    (
        "disambiguate_mentions",
        {"text": "a", "mentions": [{"surface": "a"}, {"surface": "a"}]},
        "mentions[1].surface is 'a', which text does not have so often",
    ),
    (
        "disambiguate_mentions",
        {"text": "a", "mentions": [{"surface": "a", "start": 0, "end": 1}]},
        "mentions[0] has a surface and a place; give one of both",
    ),
    ("disambiguate_mentions", {"text": "a", "mentions": [{"start": 0, "end": 2}]}, "mentions[0] is [0, 2) but the"),
    (
        "disambiguate_mentions",
        {"text": "a", "mentions": [{"start": -1, "end": 1}]},
        "mentions[0].start is -1; expected",
    ),
    (
        "disambiguate_mentions",
        {"text": "a", "mentions": [{"surface": "a", "candidates": [3]}]},
        "mentions[0].candidates[0] is 3; expected a title or [title, prior]",
    ),
    (
        "disambiguate_mentions",
        {"text": "a", "mentions": [{"surface": "a", "candidates": ["b"] * 101}]},
        "mentions[0].candidates has 101 items; this server takes at most 100 a mention",
    ),
    ("find_candidates", {}, "surface is missing"),
    ("find_candidates", {"surface": ""}, 'surface is ""; expected at least 1 character'),
    ("find_candidates", {"surface": "a", "text": "b"}, "surface does not occur in text"),
    ("entity", {"title": ""}, 'title is ""; expected at least 1 character'),
    ("entity", {"title": "Atlantis"}, "title is 'Atlantis', which no entity here has; find_candidates lists"),
    ("entity", {"name": "Entity 5"}, "title is missing"),
]


def test_what_is_wrong_is_said_in_one_sentence(url: str) -> None:
    async def ask(client: Any) -> list[Any]:
        return [await client.call_tool(tool, arguments) for tool, arguments, _ in MALFORMED]

    for (tool, arguments, expected), result in zip(MALFORMED, asked(url, ask), strict=True):
        assert result.is_error and len(result.content) == 1
        said = result.content[0].text
        assert said.startswith(expected) and "\n" not in said, (tool, str(arguments)[:100], said)


def test_a_model_without_names_decides_what_it_is_given() -> None:
    with running(create_mcp_app(make_disambiguator(2))) as address:
        found = answer(address + PATH, "disambiguate_mentions", given_mentions(3))
        for tool, arguments in (("link_text", {"text": TEXT}), ("find_candidates", {"surface": "messi"})):
            assert "no names to find mentions by" in refusal(address + PATH, tool, arguments)
    expected = make_disambiguator(2).disambiguate(make_document(3, 100, 8))
    assert [m["resolution"]["entity"] for m in found["mentions"]] == [r.entity for r in expected]


def test_a_fault_is_logged_and_not_told(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: Any) -> Any:
        raise RuntimeError("a secret")

    monkeypatch.setitem(TOOLS, "entity", replace(TOOLS["entity"], answer=broken))
    with running(create_mcp_app(make_model())) as address:
        said = refusal(address + PATH, "entity", {"title": "Entity 5"})
    assert said == "something went wrong in the server; its log has the details" and "a secret" in caplog.text


def call_body(text: str) -> dict[str, Any]:
    params = {"name": "link_text", "arguments": {"text": text}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


def request(body: dict[str, Any]) -> bytes:
    """Return a call as it goes over the wire."""
    raw = json.dumps(body).encode()
    headers = {**HEADERS, "host": "127.0.0.1:1", "content-length": str(len(raw)), "connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"POST {PATH} HTTP/1.1\r\n{lines}\r\n".encode() + raw


def test_a_thousand_calls_at_once_are_answered_each_with_its_own_or_refused() -> None:
    texts = [f"{'the ' * (number % 50)}messi won the cup of city {number}" for number in range(1000)]

    async def ask(port: int, text: str) -> tuple[int, Any]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request(call_body(text)))
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        writer.close()
        return int(head.split()[1]), json.loads(body)["result"]

    async def ask_all(port: int) -> list[tuple[int, Any]]:
        return await asyncio.gather(*(ask(port, text) for text in texts))

    with running(create_mcp_app(make_model(), Limits(queue=16))) as address:
        answers = asyncio.run(ask_all(int(address.rpartition(":")[2])))
        assert answer(address + PATH, "link_text", {"text": TEXT})["mentions"]
    refused = [result["content"][0]["text"] for _, result in answers if result["isError"]]
    assert all(said.startswith("the queue is full") and "try again in" in said for said in refused)
    assert len(refused) < 1000
    for text, (status, result) in zip(texts, answers, strict=True):
        assert status == 200
        if not result["isError"]:
            places = [mention["start"] for mention in result["structuredContent"]["mentions"]]
            assert places == [text.index(name) for name in ("messi", "cup", "city")]


def test_large_slow_and_strange_clients() -> None:
    with running(create_mcp_app(make_model(), Limits(max_seconds=1))) as address:
        large = httpx.post(address + PATH, json=call_body("a" * 10_000_000), headers=HEADERS)
        assert large.status_code == 413
        port = int(address.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:1\r\ncontent-length: 100\r\n")
            slow.sendall(b"content-type: application/json\r\naccept: application/json, text/event-stream\r\n\r\n{")
            slow.settimeout(10)
            assert b" 408 " in slow.recv(100)
        with socket.create_connection(("127.0.0.1", port)) as gone:  # asks, and goes without the answer
            gone.sendall(request(call_body(TEXT)))
        elsewhere = httpx.post(address + PATH, json=call_body(TEXT), headers=HEADERS | {"host": "evil.example"})
        assert elsewhere.status_code == 421  # a page that has its name lead to this machine
        assert httpx.post(address + PATH, content=b"{", headers=HEADERS).status_code == 400
        assert answer(address + PATH, "link_text", {"text": TEXT})["mentions"]


def started(*arguments: str) -> tuple[subprocess.Popen[str], str]:
    """Start `deixis mcp --port 0` and return it with its address."""
    command = [sys.executable, "-m", "deixis.cli", "mcp", "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": SOURCE})
    assert process.stderr is not None
    address = re.search(r"http://127\.0\.0\.1:\d+/mcp", process.stderr.readline())
    assert address
    return process, address[0]


def given_mentions(seed: int, words: int = 100, mentions: int = 8) -> dict[str, Any]:
    document = make_document(seed, words, mentions)
    listed = [
        {"start": m.start, "end": m.end, "candidates": [list(one) for one in m.candidates or ()]}
        for m in document.mentions
    ]
    return {"text": document.text, "mentions": listed}


def test_the_command_answers_what_it_took_before_it_stops(model: Path) -> None:
    process, address = started("--model", str(model))

    async def ask(client: Any) -> list[Any]:
        documents = [given_mentions(seed, words=300, mentions=40) for seed in range(24)]
        calls = [asyncio.ensure_future(client.call_tool("disambiguate_mentions", one)) for one in documents]
        await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        process.send_signal(signal.SIGTERM)
        return await asyncio.gather(*calls, return_exceptions=True)

    with process:
        results = asked(address, ask)
        process.wait(20)
        assert process.stderr is not None and process.stderr.read() == ""
    answered = [result for result in results if not isinstance(result, BaseException)]
    assert answered
    for result in answered:
        assert not result.is_error or "the server is stopping" in result.content[0].text


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory")
def test_memory_comes_back(model: Path) -> None:
    process, address = started("--model", str(model), "--queue", "64")

    async def ask(client: Any) -> list[Any]:
        documents = [given_mentions(seed % 8) for seed in range(80)]
        return await asyncio.gather(*(client.call_tool("disambiguate_mentions", one) for one in documents))

    def resident() -> int:
        return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])

    with process:
        asked(address, ask)
        before = resident()
        for _ in range(3):
            asked(address, ask)
        time.sleep(0.5)
        assert resident() <= 1.15 * before
        process.send_signal(signal.SIGTERM)


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_over_standard_input_and_output(island: Path, mode: str) -> None:
    command = ["-m", "deixis.cli", "mcp", "--model", str(island / "model")]
    server = mcp.StdioServerParameters(command=sys.executable, args=command, env={"PYTHONPATH": SOURCE})
    text = "After the Silver Oar came Marlow."

    async def ask(client: Any) -> Any:
        await client.list_tools()
        calls = [("link_text", {"text": text}), ("entity", {"title": "Ada Marlow (rower)"}), ("link_text", {"text": 5})]
        return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    linked, entity, wrong = asked(server, ask, mode=mode)
    expected = Disambiguator.load(island / "model").link(text)
    found = [(m["surface"], m["resolution"]["entity"]) for m in linked.structured_content["mentions"]]
    assert found == [(r.text, r.entity) for r in expected] and len(found) == 2
    assert entity.structured_content["known_by"] == "links" and entity.structured_content["links"] > 0
    assert wrong.is_error and wrong.content[0].text == "text is 5; expected a text"


def test_a_client_that_closes_the_pipe_ends_it(model: Path) -> None:
    command = [sys.executable, "-m", "deixis.cli", "mcp", "--model", str(model)]
    done = subprocess.run(
        command,
        input="no JSON\n",
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )
    assert done.returncode == 0 and "Traceback" not in done.stderr


def test_a_port_that_is_taken(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["mcp", "--model", str(model), "--port", str(port)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"cannot listen on 127.0.0.1, port {port}:")


def test_without_the_extra_it_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "mcp" or name == "deixis.serving.mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    result = CliRunner().invoke(app, ["mcp"])
    assert isinstance(result.exception, MissingExtra) and "deixis[mcp]" in str(result.exception)
