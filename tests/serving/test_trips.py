"""What users of a server trip over gets the right status and one sentence."""

from __future__ import annotations

import gzip
import socket
from dataclasses import replace
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from typer.testing import CliRunner

from deixis.cli import app
from deixis.documents import Candidate, Document
from deixis.errors import InputError
from deixis.serving.limits import Limits
from tests.serving.world import Store, make_model, serving

pytestmark = pytest.mark.slow

TEXT = "messi won the cup of the city"


def error(answer: httpx.Response, status: int) -> str:
    """Return the sentence of an error, after checking that it is one."""
    assert answer.status_code == status and answer.headers["content-type"] == "application/json"
    message = answer.json()
    assert list(message) == ["error"] and "\n" not in message["error"] and "pydantic" not in message["error"]
    return str(message["error"])


def test_a_compressed_body_and_a_form(client: httpx.Client) -> None:
    body = orjson.dumps({"text": TEXT})
    packed = client.post("/link", content=gzip.compress(body), headers={"content-encoding": "gzip"})
    assert error(packed, 415) == "content-encoding is 'gzip'; send the body uncompressed"
    assert "multipart form" in error(client.post("/link", files={"text": body}), 415)


def test_curl_sends_json_as_a_form_and_windows_sends_a_mark(client: httpx.Client) -> None:
    body = orjson.dumps({"text": TEXT})
    form = client.post("/link", content=body, headers={"content-type": "application/x-www-form-urlencoded"})
    assert form.status_code == 200
    marked = client.post("/link", content=b"\xef\xbb\xbf" + body)
    assert marked.json() == form.json()


def test_text_in_place_of_json(client: httpx.Client) -> None:
    assert error(client.post("/link", content=TEXT.encode()), 422).startswith("the body is not JSON")
    assert error(client.post("/link", content=b" \n"), 422).startswith("the body is empty")
    assert error(client.post("/nif", content=b'{"text": "a"}'), 422).startswith("body, line 1: not Turtle")


def test_unknown_fields(client: httpx.Client) -> None:
    kept = client.post("/link", json={"text": TEXT, "source": "kept"}).json()
    assert kept["source"] == "kept"
    assert error(client.post("/link", json={"text": TEXT, "ordr": "local"}), 422) == (
        "there is no field 'ordr'; did you mean 'order'?"
    )
    listed = {"documents": [{"text": TEXT, "ordr": "kept"}], "source": "x"}
    assert error(client.post("/link", json=listed), 422) == "there is no field 'source' here"
    assert error(client.get("/candidates?surface=messi&top=3"), 422) == "there is no field 'top' here"


def test_nul_characters(client: httpx.Client) -> None:
    text = "\x00messi\x00 won the cup"
    answer = client.post("/disambiguate", json={"text": text, "mentions": [{"start": 1, "end": 6}]})
    assert answer.status_code == 200 and answer.json()["text"] == text
    assert client.post("/link", json={"text": "\x00"}).json()["mentions"] == []
    assert client.get("/candidates", params={"surface": "\x00"}).json()["candidates"] == []


def test_what_is_nested_too_deeply_cannot_be_written_back(client: httpx.Client) -> None:
    body = b'{"text": "a", "more": ' + b"[" * 300 + b"]" * 300 + b"}"
    assert "recursion limit" in error(client.post("/disambiguate", content=body), 422)


def test_candidates_in_a_text(client: httpx.Client) -> None:
    alone = client.get("/candidates", params={"surface": "cup"}).json()
    assert client.get("/candidates", params={"surface": "cup", "text": TEXT}).json() == alone
    elsewhere = client.get("/candidates", params={"surface": "Rome", "text": TEXT})
    assert error(elsewhere, 422) == "surface does not occur in text; expected a text that has it"
    assert error(client.get("/candidates", params={"surface": "a" * 1001}), 422).endswith("at most 1000 characters")


class Helped(Store):
    """Knows one more meaning of each name for each other name of the document."""

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        more = tuple(Candidate(f"Entity {40 + place}", 0.01) for place in range(len(document.mentions) - 1))
        return [(*found, *more) for found in super().candidates(document)]


def test_candidates_in_a_text_are_those_that_linking_considers() -> None:
    with serving(replace(make_model(), candidates=Helped())) as address:
        linked = httpx.post(f"{address}/link", json={"text": TEXT, "answer_threshold": 0}).json()["mentions"]
        for mention in linked:
            surface = TEXT[mention["start"] : mention["end"]]
            listed = httpx.get(f"{address}/candidates", params={"surface": surface, "text": TEXT}).json()["candidates"]
            considered = {title for title, _ in mention["resolution"]["alternatives"]}
            assert {title for title, _ in listed} == considered and "Entity 41" in considered


def test_a_client_that_is_too_slow() -> None:
    with serving(make_model(), Limits(max_seconds=1)) as address:
        place = urlsplit(address)
        with socket.create_connection((str(place.hostname), int(place.port or 0)), timeout=20) as slow:
            slow.sendall(b"POST /link HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
            head = slow.recv(4096)
            assert head.startswith(b"HTTP/1.1 408 ")
        assert httpx.post(f"{address}/link", json={"text": TEXT}).status_code == 200  # nobody else waits


def test_limits_are_options_that_are_checked() -> None:
    result = CliRunner().invoke(app, ["serve", "--queue", "0"])
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == "queue is 0; expected a whole number of at least 1"
