"""`deixis serve` with the packaged model under a thousand requests at once, large ones, and clients that go away."""

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
from pathlib import Path
from typing import Any

import httpx
import pytest

import deixis

REQUESTS = 1000
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(deixis.__file__).parents[1])}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's account of memory"),
]


def text_of(number: int) -> str:
    """Return a text that tells by its offsets which one it is."""
    return f"{'x' * number} said that Angela Merkel met Barack Obama in Berlin."


async def ask(port: int, number: int) -> tuple[int, Any]:
    """Send a request by a connection of its own; return the status and the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = json.dumps({"text": text_of(number)}).encode()
    head = f"POST /link HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-length: {len(body)}\r\n"
    writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
    told, _, answer = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    return int(told.split()[1]), json.loads(answer)


async def ask_all(port: int, requests: int = REQUESTS) -> list[tuple[int, Any]]:
    return await asyncio.gather(*(ask(port, number) for number in range(1, requests + 1)))


def is_answered_again(port: int) -> bool:
    """Ask until the queue has room."""
    for _ in range(100):
        if asyncio.run(ask(port, 5))[0] == 200:
            return True
        time.sleep(0.1)
    return False


def test_nothing_is_mixed_up_and_memory_comes_back() -> None:
    command = [sys.executable, "-m", "deixis.cli", "serve", "--port", "0", "--queue", "16"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT) as process:
        try:
            assert process.stderr is not None
            address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stderr.readline())
            assert address
            port = int(address[1])

            def resident() -> int:
                return int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])

            asyncio.run(ask_all(port, REQUESTS // 10))
            before = resident()
            answers = asyncio.run(ask_all(port))
            assert {status for status, _ in answers} == {200, 503}
            for number, (status, answer) in enumerate(answers, 1):
                if status == 200:
                    found = {(m["start"], m["resolution"]["entity"]) for m in answer["mentions"] if m["resolution"]}
                    text = text_of(number)
                    assert {(text.index(name), name) for name in ("Angela Merkel", "Barack Obama", "Berlin")} <= found

            large = httpx.post(f"{address[0]}/link", json={"text": "a" * 10_000_000})
            assert large.status_code == 413
            for _ in range(20):
                with socket.create_connection(("127.0.0.1", port)) as gone:  # asks, and goes without the answer
                    body = json.dumps({"text": text_of(1)})
                    head = f"POST /link HTTP/1.1\r\nhost: a\r\ncontent-length: {len(body)}\r\n"
                    gone.sendall(f"{head}content-type: application/json\r\n\r\n{body}".encode())
            assert is_answered_again(port)
            assert resident() <= 1.15 * before
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0 and process.stderr.read() == ""
        finally:
            process.kill()
