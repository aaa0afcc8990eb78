"""Blocks of document files: the pieces that a cluster takes one at a time, and finishes or does again.

A block is a range of bytes of plain JSONL (it owns the lines that start there), a row group of Parquet, or a whole
compressed file, which nobody can enter in the middle. Its output has the format of its input and one row a row: a
document with its resolutions, or what was no document with the reason. It is written aside and renamed, so that a
block whose output exists is finished.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from deixis.artefacts import read_lines, write_aside
from deixis.disambiguation.mention_table import nested_record
from deixis.documents import Document, Resolutions
from deixis.errors import InputError
from deixis.integrations.parquet import RESOLUTIONS, open_parquet

__all__ = ["Answers", "Block", "Row", "cut", "files_of", "link_block", "linked_table"]

Answers = Callable[[Sequence[Document | InputError]], Iterable[Resolutions | InputError]]

CHUNK = 4096  # lines that are in memory at once, of files of any size


class Row(NamedTuple):
    """What is told of a row that was done."""

    mentions: int
    refused: bool  # it is no document; its output says why


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a document file, and the file that its answers go to."""

    path: Path
    start: int  # a byte of plain JSONL, a row group of Parquet
    end: int
    output: Path

    @property
    def is_finished(self) -> bool:
        """Whether its output is there."""
        return self.output.exists()


def files_of(inputs: Sequence[Path]) -> list[Path]:
    """Return the files that are meant: those given, and those of folders; what is no document file is refused."""
    files: list[Path] = []
    for path in inputs:
        if not path.exists():
            raise InputError(f"{path} does not exist; give document JSONL, Parquet or folders of them")
        found = sorted(filter(_is_documents, path.iterdir())) if path.is_dir() else [path]
        if not found or not _is_documents(found[0]):
            raise InputError(f"{path} is not what a cluster reads; give document JSONL, Parquet or folders of them")
        files += found
    return files


def cut(files: Sequence[Path], folder: Path, size: int) -> list[Block]:
    """Cut files into blocks of about `size` bytes; their outputs are numbered files of the folder."""
    blocks: list[Block] = []
    for path in files:
        if _is_parquet(path):
            suffix, ranges = "parquet", [(group, group + 1) for group in range(open_parquet(path).num_row_groups)]
        else:
            bytes_of = path.stat().st_size
            step = size if path.suffix == ".jsonl" else max(bytes_of, 1)
            suffix, ranges = "jsonl", [(start, min(start + step, bytes_of)) for start in range(0, bytes_of, step)]
        blocks += [
            Block(path, *of_file, folder / f"{number:07}.{suffix}")
            for number, of_file in enumerate(ranges, len(blocks))
        ]
    return blocks


def link_block(block: Block, answers: Answers) -> list[Row]:
    """Write the answers to a block, and tell what was done."""
    if _is_parquet(block.path):
        table, rows = linked_table(open_parquet(block.path).read_row_group(block.start), answers)
        with write_aside(block.output) as file:
            pq.write_table(table, file, compression="zstd")
        return rows
    lines, rows = _lines(block), []
    with write_aside(block.output) as file:
        while chunk := list(islice(lines, CHUNK)):
            for (raw, _), answer in zip(chunk, answers([given for _, given in chunk]), strict=True):
                file.write((_refused(raw, answer) if isinstance(answer, InputError) else answer.to_json()) + b"\n")
                rows.append(_row(answer))
    return rows


def linked_table(table: pa.Table, answers: Answers) -> tuple[pa.Table, list[Row]]:
    """Return the table with a column of resolutions and one of reasons, and what was done; its columns stay."""
    found = list(answers([_document(row) for row in _texts(table)]))
    resolutions = [None if isinstance(answer, InputError) else list(map(nested_record, answer)) for answer in found]
    reasons = [str(answer) if isinstance(answer, InputError) else None for answer in found]
    for name, column in (
        ("resolutions", pa.array(resolutions, RESOLUTIONS)),
        ("reason", pa.array(reasons, pa.string())),
    ):
        at = table.schema.get_field_index(name)
        table = table.append_column(name, column) if at < 0 else table.set_column(at, name, column)
    return table, [_row(answer) for answer in found]


def _row(answer: Resolutions | InputError) -> Row:
    return Row(0, True) if isinstance(answer, InputError) else Row(len(answer), False)


# --- JSONL ----------------------------------------------------------------------------------------------------------


def _is_documents(path: Path) -> bool:
    return ".jsonl" in path.suffixes or _is_parquet(path)


def _lines(block: Block) -> Iterator[tuple[bytes, Document | InputError]]:
    """Yield the lines of a block with what they say; a file that breaks off ends with that."""
    whole = ((f"line {number}", line) for number, line in read_lines(block.path))
    try:
        for place, line in whole if block.path.suffix != ".jsonl" else _between(block):
            try:
                yield line, Document.from_json(line)
            except InputError as error:
                yield line, InputError(f"{block.path}, {place}: {error}")
    except InputError as error:
        yield b"", error


def _between(block: Block) -> Iterator[tuple[str, bytes]]:
    """Yield the lines that start in the block, and at which byte; the last one may end behind it."""
    with block.path.open("rb") as file:
        if block.start:
            file.seek(block.start - 1)
            file.readline()  # of the block before, or its newline alone
        while (position := file.tell()) < block.end:
            if stripped := file.readline().strip():
                yield f"byte {position}", stripped


def _refused(line: bytes, reason: InputError) -> bytes:
    """Return a line for what is no document: its own keys where it is an object, and the reason."""
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        record = None
    kept = record if isinstance(record, dict) else {"line": line.decode(errors="replace")}
    return orjson.dumps(kept | {"reason": str(reason)})


# --- Parquet --------------------------------------------------------------------------------------------------------


def _is_parquet(path: Path) -> bool:
    return path.suffix == ".parquet"


def _texts(table: pa.Table) -> list[dict[str, Any]]:
    """Return what documents are made of; the other columns are not looked at."""
    columns = [name for name in ("text", "mentions") if name in table.column_names]
    return table.select(columns).to_pylist() if columns else [{}] * len(table)


def _document(row: dict[str, Any]) -> Document | InputError:
    """Read a row; a table has nulls where JSON has nothing, and structs where it has pairs."""
    try:
        text, mentions = row.get("text"), row.get("mentions") or []
        return Document.from_record({"text": text, "mentions": [_mention(mention) for mention in mentions]})
    except InputError as error:
        return error


def _mention(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    record = {name: value[name] for name in ("start", "end", "candidates") if value.get(name) is not None}
    if isinstance(record.get("candidates"), list):
        record["candidates"] = [
            [given.get("entity"), given.get("prior")] if isinstance(given, dict) else given
            for given in record["candidates"]
        ]
    return record
