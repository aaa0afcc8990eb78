"""Arrays in parts: what travels to a GPU and back, compressed, in files of a size that fits.

A part is a run of records: the length of a header, the header in JSON, and a run of an array's numbers in xz.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import folder_aside

Arrays = dict[str, NDArray[Any]]

CHUNK = 14 << 20  # bytes of an array that are compressed together


def _filters(size: int) -> list[dict[str, int]]:
    """Return how xz is told that numbers have so many bytes."""
    bits = {1: 0, 2: 1, 4: 2}.get(size, 0)
    return [{"id": lzma.FILTER_LZMA2, "preset": 4, "lc": 3 - bits, "lp": bits, "pb": bits}]


def _packed(part: bytes, size: int) -> bytes:
    return lzma.compress(part, format=lzma.FORMAT_XZ, filters=_filters(size))


def write_arrays(arrays: Mapping[str, NDArray[Any]], out: Path, largest: int, cores: int = 2) -> None:
    """Write arrays into numbered files of at most `largest` bytes."""
    tasks = []
    for name, array in arrays.items():
        planes = array.dtype.kind == "f" or array.dtype.itemsize == 4  # bytes of the same weight lie together
        flat = np.ascontiguousarray(array).reshape(-1)
        step = CHUNK // array.dtype.itemsize
        for first in range(0, max(1, len(flat)), step):
            part = flat[first : first + step]
            raw = part.view(np.uint8).reshape(len(part), -1).T.tobytes() if planes else part.tobytes()
            told = {"name": name, "dtype": array.dtype.str, "shape": array.shape, "planes": planes}
            tasks.append((told, raw, 1 if planes else array.dtype.itemsize))
    number, room = 0, 0
    with folder_aside(out) as aside, ProcessPoolExecutor(cores) as pool:
        done = pool.map(_packed, [task[1] for task in tasks], [task[2] for task in tasks])
        for (told, _, _), content in zip(tasks, done, strict=True):
            header = json.dumps({**told, "size": len(content)}).encode()
            record = len(header).to_bytes(4, "big") + header + content
            if len(record) > room:
                number, room = number + 1, largest
            room -= len(record)
            with (aside / f"{number:02}.part").open("ab") as file:
                file.write(record)


def read_arrays(*folders: Path) -> Arrays:
    """Read what `write_arrays` wrote, from all its files together."""
    records = []
    for path in sorted((path for folder in folders for path in folder.rglob("*.part")), key=lambda path: path.name):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 4], "big")
            told = json.loads(raw[at + 4 : at + 4 + size])
            at += 4 + size + told["size"]
            records.append((told, raw[at - told["size"] : at]))

    def read(record: tuple[dict[str, Any], bytes]) -> NDArray[Any]:
        told, content = record
        kind, raw = np.dtype(told["dtype"]), lzma.decompress(content)
        if told["planes"]:
            raw = np.frombuffer(raw, np.uint8).reshape(kind.itemsize, -1).T.tobytes()
        return np.frombuffer(raw, kind)

    found: dict[str, list[NDArray[Any]]] = {}
    with ThreadPoolExecutor(16) as pool:
        for (told, _), part in zip(records, pool.map(read, records), strict=True):
            found.setdefault(told["name"], []).append(part)
    shapes = {told["name"]: told["shape"] for told, _ in records}
    return {name: np.concatenate(parts).reshape(shapes[name]) for name, parts in found.items()}


def pack_bits(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pack numbers (rows, columns) of 4 or 6 bits; columns are a multiple of four."""
    if bits == 4:
        return (numbers[:, ::2] | numbers[:, 1::2] << 4).astype(np.uint8)
    q = numbers.reshape(len(numbers), -1, 4).astype(np.uint32)
    whole = q[..., 0] | q[..., 1] << 6 | q[..., 2] << 12 | q[..., 3] << 18
    return np.stack([whole & 255, whole >> 8 & 255, whole >> 16], -1).astype(np.uint8).reshape(len(numbers), -1)


def unpack_bits(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Undo `pack_bits`."""
    if bits == 4:
        return np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
    three = packed.reshape(len(packed), -1, 3).astype(np.uint32)
    whole = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    return np.stack([whole >> shift & 63 for shift in (0, 6, 12, 18)], -1).astype(np.uint8).reshape(len(packed), -1)
