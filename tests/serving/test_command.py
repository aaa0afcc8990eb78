"""`deixis serve` as a user starts it: on loopback, said in one line, and gone when it has answered."""

from __future__ import annotations

import builtins
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from deixis.cli import app
from deixis.errors import InputError, MissingExtra
from deixis.folder.model_folder import ModelFolder
from tests.worlds import make_document, make_network, make_tokenizer, make_vocabulary


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served") / "model"
    ModelFolder(make_network(1), make_tokenizer(), make_vocabulary()).save(folder)
    return folder


@pytest.mark.slow
def test_it_answers_what_it_took_before_it_stops(model: Path) -> None:
    command = [sys.executable, "-m", "deixis.cli", "serve", "--model", str(model), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        address = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
        assert address
        documents = [make_document(seed, words=300, mentions=40).to_record() for seed in range(24)]
        answers: list[httpx.Response] = []

        def ask() -> None:
            answers.append(httpx.post(f"{address[0]}/disambiguate", json=documents, timeout=60))

        thread = threading.Thread(target=ask)
        thread.start()
        for _ in range(500):  # until it runs: taken from the queue, and not answered
            if re.search(r"^deixis_queue_seconds_count 1", httpx.get(f"{address[0]}/metrics").text, re.M):
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        thread.join(60)
        assert answers[0].status_code == 200 and len(answers[0].json()) == 24
        process.wait(20)
        assert process.stderr.read() == ""  # no stack trace


def test_a_port_that_is_taken(model: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = CliRunner().invoke(app, ["serve", "--model", str(model), "--port", str(port)])
    assert isinstance(result.exception, InputError)
    assert str(result.exception).startswith(f"cannot listen on 127.0.0.1, port {port}:")


def test_without_the_extra_it_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name == "uvicorn":
            raise ImportError("No module named 'uvicorn'", name="uvicorn")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    result = CliRunner().invoke(app, ["serve", "--model", "model"])
    assert isinstance(result.exception, MissingExtra) and "deixis[serve]" in str(result.exception)
