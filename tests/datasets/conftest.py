"""The real benchmark files, unpacked once a session from `shared/` above the checkout or from $DEIXIS_SHARED."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def benchmarks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    places = [Path(os.environ["DEIXIS_SHARED"])] if "DEIXIS_SHARED" in os.environ else []
    places += [parent / "shared" for parent in ROOT.parents]
    for place in places:
        archives = sorted((place / "data" / "benchmarks").glob("*.tar.xz"))
        if archives:
            folder = tmp_path_factory.mktemp("benchmarks")
            for archive in archives:
                with tarfile.open(archive) as packed:
                    packed.extractall(folder, filter="data")
            return folder
    pytest.skip("the benchmark archives are not here; set DEIXIS_SHARED to the folder with data/benchmarks")
