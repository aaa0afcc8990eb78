"""Manifests, and files written aside: what is damaged is told, what cannot be written is one sentence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from deixis import artefacts
from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside
from deixis.errors import ArtefactError, InputError

SIZE = 50_000


def make(folder: Path) -> Manifest:
    """Write a large file and a small one, with their manifest."""
    folder.mkdir()
    (folder / "large").write_bytes(bytes(number % 251 for number in range(SIZE)))
    (folder / "small").write_bytes(b"small")
    files = {name: digest_file(folder / name) for name in ("large", "small")}
    Manifest("model", files=files).save(folder / MANIFEST)
    return Manifest.load(folder / MANIFEST, "model")


def test_large_files_are_not_read_whole_and_what_is_wrong_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not make(tmp_path / "plain").samples
    monkeypatch.setattr(artefacts, "LARGE", 1000)
    monkeypatch.setattr(artefacts, "SAMPLE", 16)
    manifest = make(tmp_path / "made")
    assert set(manifest.samples) == {"large"}
    assert manifest.digest == make(tmp_path / "again").digest
    read: list[Path] = []

    def noted(path: Path) -> str:
        read.append(path)
        return digest_file(path)

    monkeypatch.setattr(artefacts, "digest_file", noted)
    manifest.verify(tmp_path / "made")
    assert [path.name for path in read] == ["small"]
    large = tmp_path / "made" / "large"
    whole = large.read_bytes()
    for wrong in (whole[:-1], b"x" + whole[1:], whole[:-1] + b"x", whole + b"x", whole[:20_000] + bytes(30_000)):
        large.write_bytes(wrong)
        with pytest.raises(ArtefactError, match="large is damaged"):
            manifest.verify(tmp_path / "made")
    large.write_bytes(whole)
    manifest.verify(tmp_path / "made")


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(28, "No space left on device"), "No space left on device"),
        (RuntimeError("Error while serializing: I/O error: File too large (os error 27)"), "File too large"),
        (RuntimeError("writer.cc:129: MARISA_IO_ERROR: size_written <= 0"), "a trie could not be written"),
    ],
)
def test_what_libraries_make_of_a_full_disk_is_one_sentence(tmp_path: Path, error: Exception, told: str) -> None:
    with pytest.raises(InputError, match=f"cannot write {tmp_path}/new: {told}"), folder_aside(tmp_path / "new"):
        raise error
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="a fault of ours"), folder_aside(tmp_path / "new"):
        raise RuntimeError("a fault of ours")


def test_others_may_read_what_safetensors_wrote(tmp_path: Path) -> None:
    with folder_aside(tmp_path / "made") as aside:
        save_file({"numbers": np.zeros(3)}, aside / "numbers.safetensors")
        (aside / MANIFEST).write_text("{}")
    modes = {path.name: path.stat().st_mode for path in (tmp_path / "made").iterdir()}
    assert modes["numbers.safetensors"] == modes[MANIFEST]
