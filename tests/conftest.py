"""What all tests share: one thread a process, the island of Velm, and the markers that follow from fixtures."""

from __future__ import annotations

import os
from pathlib import Path

# Before torch is imported, here and in every process that a test starts: networks this small only wait for one another
# on many threads, and their waiting counts as work.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from hypothesis import settings

# How long an example takes says what else the machine does.
settings.register_profile("deixis", deadline=None)
settings.load_profile("deixis")

# A test that uses one of these fixtures gets its marker; the markers are declared in pyproject.toml.
MARKERS = {"island": "slow", "benchmarks": "slow", "browser": "browser", "running": "ray"}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by their fixtures; skip what needs a GPU where there is none."""
    for item in items:
        for fixture in MARKERS.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKERS[fixture])
        if item.get_closest_marker("gpu"):
            import torch

            if not torch.cuda.is_available():
                item.add_marker(pytest.mark.skip(reason="needs a GPU with CUDA"))


@pytest.fixture(scope="session")
def island(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the toy world, its trained model in `model`; half a minute the first time."""
    from deixis.toy import build

    folder = tmp_path_factory.mktemp("velm")
    for _ in build(folder):
        pass
    return folder
