"""Artefacts on disk: manifests that know their parents, writing aside and renaming, compressed text files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from deixis.errors import ArtefactError, InputError

__all__ = [
    "MANIFEST",
    "Manifest",
    "copy_or_link",
    "digest_file",
    "folder_aside",
    "manifest_path",
    "open_text",
    "raw_lines",
    "read_lines",
    "sample_file",
    "write_aside",
]

MANIFEST = "manifest.json"
LARGE = 128 << 20  # bytes of files that are not read whole each time they are opened
SAMPLE, SAMPLES = 16 << 10, 256  # of these: bytes of a sample, samples
VERSION = 1  # of the formats; raised when an older reader would misread a newer file


@dataclass(frozen=True, slots=True)
class Manifest:
    """What an artefact was made from, with which parameters, and the digests of its files."""

    kind: str  # "articles", "vocabulary", "candidates", "windows", "model"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    parents: Mapping[str, str] = field(default_factory=dict)  # name -> the parent's digest
    files: Mapping[str, str] = field(default_factory=dict)  # relative path -> sha256
    counts: Mapping[str, Any] = field(default_factory=dict)  # kept and dropped, by reason
    version: int = VERSION
    samples: Mapping[str, str] = field(default_factory=dict)  # of large files: `sample_file`; made when it is saved

    @property
    def digest(self) -> str:
        """The digest that children record of this artefact: over kind, parameters, parents and files."""
        told = {key: value for key, value in asdict(self).items() if key not in ("counts", "samples")}
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def save(self, path: Path) -> None:
        """Write the manifest as JSON."""
        record = asdict(replace(self, samples={}))
        if samples := {name: sample_file(path.parent / name) for name in self.files if _is_large(path.parent / name)}:
            record["samples"] = samples
        else:
            del record["samples"]
        with write_aside(path) as file:
            file.write((json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: Path, kind: str) -> Manifest:
        """Read a manifest of the given kind; anything else is refused in one sentence."""
        try:
            record = json.loads(path.read_bytes())
            manifest = cls(**record)
        except FileNotFoundError:
            raise ArtefactError(f"{path} does not exist; expected the manifest of a {kind} artefact") from None
        except (ValueError, TypeError):
            raise ArtefactError(f"{path} is no manifest of deixis; make the {kind} artefact again") from None
        if manifest.kind != kind:
            raise ArtefactError(f"{path} describes a {manifest.kind} artefact; expected {kind}")
        if manifest.version > VERSION:
            raise ArtefactError(f"{path} was written by a newer deixis (format {manifest.version}); upgrade deixis")
        return manifest

    def verify(self, folder: Path) -> None:
        """Check every file of the folder against its digest; of large ones their size and some parts are checked."""
        for name, expected in self.files.items():
            path = folder / name
            if not path.exists():
                raise ArtefactError(f"{path} is missing though {folder / MANIFEST} lists it; copy the folder again")
            sample = self.samples.get(name)
            if digest_file(path) != expected if sample is None else sample_file(path) != sample:
                raise ArtefactError(f"{path} is damaged: its sha256 is not the one in {folder / MANIFEST}")

    def check_parent(self, name: str, digest: str, where: Path) -> None:
        """Refuse a parent other than the one this artefact was made from."""
        expected = self.parents.get(name)
        if expected != digest:
            raise ArtefactError(
                f"{where} was made from the {name} {(expected or 'none')[:12]}, not from {digest[:12]}; "
                f"use that {name} or make {where.name} again"
            )


def manifest_path(output: Path) -> Path:
    """Return where the manifest of an artefact that is a single file is."""
    return output.with_name(output.name + ".manifest.json")


def digest_file(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sample_file(path: Path) -> str:
    """Return the sha256 of the size of a file and of parts of it, the first and the last among them.

    It tells a file that is cut off, of another artefact or partly overwritten; not a single bit that has changed.
    """
    size = path.stat().st_size
    summed = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        for number in range(SAMPLES):
            file.seek(max(0, size - SAMPLE) * number // (SAMPLES - 1))
            summed.update(file.read(SAMPLE))
    return summed.hexdigest()


def _is_large(path: Path) -> bool:
    return path.exists() and path.stat().st_size > LARGE


@contextmanager
def write_aside(path: Path) -> Iterator[BinaryIO]:
    """Open a file beside `path` and rename it there at the end, so that a kill leaves the old file whole."""
    aside = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


@contextmanager
def folder_aside(folder: Path) -> Iterator[Path]:
    """Make a folder beside `folder` and rename it there at the end; an artefact that was there is replaced."""
    if folder.exists() and not (folder / MANIFEST).exists() and any(folder.iterdir()):
        raise InputError(f"{folder} holds something that deixis did not write; give another folder or empty it")
    aside, old = folder.with_name(folder.name + ".part"), folder.with_name(folder.name + ".old")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        yield aside
        _let_others_read(aside)
        shutil.rmtree(old, ignore_errors=True)
        if folder.exists():
            folder.rename(old)
        aside.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        if (reason := _of_the_system(error)) is not None:
            raise InputError(f"cannot write {folder}: {reason}") from error
        raise


def _let_others_read(folder: Path) -> None:
    """Give files the mode that the folder has got: safetensors writes them for their owner alone."""
    mode = folder.stat().st_mode & 0o666
    for path in folder.rglob("*"):
        if path.is_file() and path.stat().st_nlink == 1:  # a linked one belongs to another folder, too
            path.chmod(mode)


def _of_the_system(error: BaseException) -> str | None:
    """Return what the system said when a file could not be written; libraries that write wrap it in their own."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if "MARISA_IO_ERROR" in str(error):  # which does not tell it
        return "a trie could not be written; is the disk full?"
    told = re.search(r"([^:]*) \(os error [0-9]+\)", str(error))  # of what is written in Rust
    return None if told is None else told[1].strip()


def copy_or_link(source: Path, target: Path) -> None:
    """Put a file of an artefact into another one: linked where that is possible, as neither is ever written to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    source = source.resolve()  # the files of a hub are links themselves, which lead nowhere from another folder
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def open_text(path: Path) -> IO[bytes]:
    """Open a plain, .gz, .xz or .zst file for reading bytes."""
    try:
        if path.suffix == ".gz":
            return cast(IO[bytes], gzip.open(path))
        if path.suffix == ".xz":
            return lzma.open(path)
        if path.suffix == ".zst":
            import zstandard  # only where it is needed: training runs without it

            reader = _ZstandardReader(path.open("rb"), lambda: zstandard.ZstdDecompressor().decompressobj())
            return io.BufferedReader(reader, 1 << 20)
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None


class _ZstandardReader(io.RawIOBase):
    """Reads zstandard frames one after the other; unlike the library's reader it says when the last one is cut off."""

    def __init__(self, file: BinaryIO, begin: Callable[[], Any]) -> None:
        self._file = file
        self._begin = begin
        self._frame = begin()
        self._begun = False  # a frame that has not ended
        self._compressed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            compressed = self._compressed or self._file.read(1 << 17)
            if not compressed:
                if self._begun:
                    raise EOFError("its last zstandard frame has no end")
                return 0
            self._ready = memoryview(self._frame.decompress(compressed))
            self._compressed, self._begun = self._frame.unused_data, not self._frame.eof
            if self._frame.eof:
                self._frame = self._begin()
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield `(line number, line)` of a plain or compressed text file, from 1, without newlines or blank lines."""
    for number, line in enumerate(raw_lines(path), 1):
        if stripped := line.strip(b" \r\n"):  # a last field may be empty
            yield number, stripped


def raw_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or compressed text file as they are."""
    with open_text(path) as file:
        try:
            yield from file
        except (EOFError, OSError, lzma.LZMAError) as error:
            raise InputError(f"{path} is cut off or damaged: {error}") from None
        except Exception as error:
            if type(error).__name__ != "ZstdError":  # zstandard's, which may not be installed
                raise
            raise InputError(f"{path} is cut off or damaged: {error}") from None
