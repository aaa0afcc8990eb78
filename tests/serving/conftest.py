"""One server and one client for all tests of the server that need no limits of their own."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
import torch

from tests.serving.world import make_model, serving


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> Iterator[None]:
    """Networks this small only wait for one another on many threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serving(make_model()) as url:
        yield url


@pytest.fixture(scope="session")
def client(address: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=address, timeout=30) as opened:
        yield opened
