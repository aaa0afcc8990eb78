"""Windows: what is read back is what was packed; strangers are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest
from deixis.errors import ArtefactError
from deixis.vocabulary import Vocabulary
from deixis.wikipedia.windows import SPLITS, WindowSet


def test_arrays_are_cut_at_their_offsets(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(["Bonn", "Köln"])
    arrays: dict[str, NDArray[Any]] = {
        "pieces": np.arange(10, dtype=np.uint16),
        "window_offsets": np.array([0, 4, 10], np.int64),
        "mention_offsets": np.array([0, 1, 3], np.int64),
        "spans": np.array([[0, 2], [0, 1], [3, 6]], np.uint16),
        "rows": np.array([3, 4, 1], np.int32),
    }
    for split in SPLITS:
        (tmp_path / split).mkdir()
        for name, array in arrays.items():
            np.save(tmp_path / split / f"{name}.npy", array)
    Manifest("windows", {"candidates": 0}, {"vocabulary": vocabulary.digest}).save(tmp_path / MANIFEST)
    windows = WindowSet.open(tmp_path, "train", vocabulary)
    assert len(windows) == 2
    window = windows.window(1)
    assert window.pieces.tolist() == [4, 5, 6, 7, 8, 9]
    assert window.spans.tolist() == [[0, 1], [3, 6]]
    assert window.rows.tolist() == [4, 1]
    assert window.candidates is None
    with pytest.raises(IndexError):
        windows.window(2)
    with pytest.raises(ArtefactError, match="was made from the vocabulary"):
        WindowSet.open(tmp_path, "train", Vocabulary.of(["Bonn"]))
    (tmp_path / "train" / "rows.npy").unlink()
    with pytest.raises(ArtefactError, match="is missing"):
        WindowSet.open(tmp_path)
