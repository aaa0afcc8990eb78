"""Arrays and tries that are mapped into memory: opened in milliseconds, whatever their size.

Arrays lie in one safetensors file and are read as memoryviews: slices of these cost a third of those of arrays, and
look-ups are many and small. Lists of different lengths are stored as `Lists`, amounts as single bytes:

    exact        code * unit for the first 64 codes
    logarithmic  10 codes an octave above, so at most 3.5 % off
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import marisa_trie
import numpy as np
import orjson
from numpy.typing import NDArray
from safetensors.numpy import save_file

from deixis.errors import ArtefactError

__all__ = ["Arrays", "Lists", "amounts", "damaged", "map_arrays", "map_trie", "to_bytes", "write_arrays"]

Arrays = dict[str, NDArray[Any]]

BLOCK = 64  # lists that share a start
MOST = 255  # entries of a list
EXACT, PER_OCTAVE = 64, 10
FORMATS = {"U8": "B", "U32": "I"}


class Lists(NamedTuple):
    """Lists of whole numbers behind each other: one byte a list for its length, and a start for every 64 lists."""

    counts: memoryview[int]
    starts: memoryview[int]
    entries: memoryview[int]

    def range(self, number: int) -> tuple[int, int]:
        """Return where a list starts and ends among the entries."""
        block = number // BLOCK
        start = self.starts[block] + sum(self.counts[block * BLOCK : number])
        return start, start + self.counts[number]

    @staticmethod
    def arrays(name: str, owners: NDArray[Any], entries: NDArray[Any], size: int) -> Arrays:
        """Lay out entries, sorted by their owners, for `size` lists; of longer lists the first entries are kept."""
        starts = np.searchsorted(owners, np.arange(size, dtype=owners.dtype))
        kept = np.arange(len(owners)) - starts[owners] < MOST
        counts = np.bincount(owners[kept], minlength=size).astype(np.uint8)
        before = np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))
        return {
            f"{name}.counts": counts,
            f"{name}.starts": before[:-1:BLOCK].astype(np.uint32),
            f"{name}.entries": entries[kept].astype(np.uint32),
        }

    @classmethod
    def of(cls, arrays: Mapping[str, memoryview[int]], name: str) -> Lists:
        """Take lists that `arrays` laid out from mapped arrays."""
        return cls(*(arrays[f"{name}.{part}"] for part in ("counts", "starts", "entries")))


def to_bytes(values: NDArray[Any], unit: float = 1.0) -> NDArray[np.uint8]:
    """Return amounts as bytes; what is not nothing has at least the code 1."""
    scaled = np.asarray(values, np.float64) / unit
    high = EXACT + PER_OCTAVE * np.log2(np.maximum(scaled, EXACT) / EXACT)
    codes = np.where(scaled < EXACT, scaled, high).round().clip(0, 255)
    return np.where((scaled > 0) & (codes < 1), 1, codes).astype(np.uint8)


def amounts(unit: float = 1.0) -> tuple[float, ...]:
    """Return the amount of each byte.

    Examples:
        >>> [round(amounts()[code]) for code in (0, 1, 63, 74, 255)]
        [0, 1, 63, 128, 35962750]
    """
    codes = np.arange(256)
    return tuple((np.where(codes < EXACT, codes, EXACT * 2 ** ((codes - EXACT) / PER_OCTAVE)) * unit).tolist())


def write_arrays(path: Path, arrays: Arrays) -> None:
    """Write arrays that `map_arrays` can map."""
    save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


def map_arrays(path: Path) -> dict[str, memoryview[int]]:
    """Map the arrays of a safetensors file; a file that is cut off is refused."""
    try:
        with path.open("rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        size = int.from_bytes(data[:8], "little")
        header = orjson.loads(data[8 : 8 + size])
        found = {}
        for name, told in header.items():
            if name != "__metadata__":
                start, end = (8 + size + offset for offset in told["data_offsets"])
                if end > len(data):
                    raise ValueError("cut off")
                found[name] = data[start:end].cast(FORMATS[told["dtype"]])  # type: ignore[call-overload]  # no literal
    except (OSError, ValueError, KeyError, TypeError):
        raise damaged(path) from None
    return found


def map_trie(path: Path) -> Any:
    try:
        return marisa_trie.Trie().mmap(str(path))
    except (OSError, RuntimeError):
        raise damaged(path) from None


def damaged(path: Path) -> ArtefactError:
    """Return the error of a file that is missing, cut off or not what it should be."""
    what = "is damaged or cut off" if path.exists() else "is missing"
    return ArtefactError(f"{path} {what}; copy the folder again, or make it again")
