"""Sets by name: what is said where one does not exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import read_set
from deixis.errors import InputError


def test_unknown_sets_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no set is called 'aida'"):
        read_set(tmp_path, "aida")
    with pytest.raises(InputError, match="msnbc does not exist; point --data"):
        read_set(tmp_path, "msnbc")
