"""A server on loopback over a tiny random network, with a store and a detector that know a few words."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx
import uvicorn
from starlette.types import ASGIApp

from deixis.documents import Candidate, Document
from deixis.inference import Disambiguator
from deixis.serving.app import create_app
from deixis.serving.limits import Limits
from tests.worlds import make_disambiguator

NAMES = {
    name: tuple(Candidate(f"Entity {5 * place + number}", 1 / (number + 1.5)) for number in range(1 + place % 4))
    for place, name in enumerate(("rugby", "messi", "cup", "world", "city", "team", "qatar"))
}


class Store:
    """Knows seven names, of one to four meanings."""

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        return [NAMES.get(document.surface(mention).lower(), ()) for mention in document.mentions]


class ScriptedDetector:
    """Finds the words that the store knows."""

    def detect(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\w+", text) if match[0].lower() in NAMES]


def make_model() -> Disambiguator:
    return replace(
        make_disambiguator(2, words_see="placeholders"),
        candidates=Store(),
        detector=ScriptedDetector(),
        answer_threshold=0.5,
    )


@contextmanager
def serving(nlp: Disambiguator, limits: Limits | None = None) -> Iterator[str]:
    """Run a server in a thread; yield its address; stop it gracefully."""
    with running(create_app(nlp, limits)) as address:
        assert httpx.get(f"{address}/ready").status_code == 200
        yield address


@contextmanager
def running(app: ASGIApp) -> Iterator[str]:
    """Run an application in a thread; yield its address; stop it gracefully."""
    sock = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{sock.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    thread = threading.Thread(target=server.run, args=([sock],), daemon=True)
    thread.start()
    for _ in range(200):
        if server.started:
            break
        time.sleep(0.02)
    try:
        assert server.started, "the server did not start"
        yield address
    finally:
        server.should_exit = True
        thread.join(timeout=20)
        assert not thread.is_alive(), "the server did not stop"
