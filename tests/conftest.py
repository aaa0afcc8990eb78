"""What all tests share: the island of Velm, trained once."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def island(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the toy world, its trained model in `model`; half a minute the first time."""
    from deixis.toy import build

    folder = tmp_path_factory.mktemp("velm")
    for _ in build(folder):
        pass
    return folder
