"""Tables as text: CSV, TSV and JSONL, streamed; plain or compressed where they are read.

A row that cannot be read does not stop the others: in place of its text it has what is wrong with it.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson

from deixis.artefacts import raw_lines, read_lines
from deixis.errors import InputError, shown

__all__ = ["CHUNK", "DELIMITERS", "Chunk", "CsvTable", "CsvWriter", "JsonlTable", "JsonlWriter", "read_text"]

CHUNK = 512  # rows that are in memory, and linked together
DELIMITERS = {"csv": ",", "tsv": "\t"}


class Chunk(NamedTuple):
    """Some rows of a table, in their order."""

    numbers: list[int]  # of the rows, from 1
    texts: list[str | InputError]
    rest: Any  # their columns: a list of records, or a table of Arrow


class _Row(NamedTuple):
    number: int
    text: str | InputError
    record: dict[str, Any]  # empty where it could not be read


def _chunks(rows: Iterator[_Row], kept: Sequence[str]) -> Iterator[Chunk]:
    while some := list(islice(rows, CHUNK)):
        records = [{name: row.record[name] for name in kept if name in row.record} for row in some]
        yield Chunk([row.number for row in some], [row.text for row in some], records)


def read_text(value: Any, where: str, column: str) -> str | InputError:
    """Return the text of a row, or what is wrong with it."""
    if isinstance(value, str):
        return value
    return InputError(f"{where}: {column} is {shown(value)}; expected a text")


# --- CSV and TSV ------------------------------------------------------------------------------------------------------


@dataclass
class CsvTable:
    """A table with a header, its rows in the quotes of RFC 4180."""

    path: Path
    column: str
    delimiter: str = ","
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        csv.field_size_limit(sys.maxsize)  # a text may be longer than 128 KiB
        self.names = next(self._cells())[2]
        if wrong := [name for name in self.names if self.names.count(name) > 1 or not name.isprintable()]:
            raise InputError(f"{self.path} has the header {wrong[0]!r}; expected names in UTF-8, each once")

    def chunks(self, kept: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows with the columns that are kept."""
        return _chunks(self._rows(), kept)

    def _rows(self) -> Iterator[_Row]:
        for number, (line, wrong, cells) in enumerate(islice(self._cells(), 1, None), 1):
            where = f"{self.path}, row {number} (line {line})"
            if not wrong and len(cells) != len(self.names):
                wrong = f"it has {len(cells)} columns, the header has {len(self.names)}"
            if not wrong and any(not cell.isascii() and _has_bytes(cell) for cell in cells):
                wrong = "it is not UTF-8"
            if wrong:
                yield _Row(number, InputError(f"{where}: {wrong}"), {})
            else:
                record = dict(zip(self.names, cells, strict=True))
                yield _Row(number, record[self.column], record)

    def _cells(self) -> Iterator[tuple[int, str, list[str]]]:
        """Yield each row: the line on which it begins, what is wrong with it, its cells."""
        lines = (line.decode(errors="surrogateescape") for line in raw_lines(self.path))
        reader, empty = csv.reader(_without_mark(lines), delimiter=self.delimiter, strict=True), True
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error as error:
                if empty:
                    raise InputError(f"{self.path}, line {line}: {error}; expected the names of columns") from None
                yield line, f"{error}; a cell with quotes is in quotes, and its own are doubled", []
                continue
            if cells:  # not a blank line
                yield line, "", cells
                empty = False
        if empty:
            raise InputError(f"{self.path} is empty; expected a header, and rows under it")


def _without_mark(lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        yield line if number else line.removeprefix("\ufeff")


def _has_bytes(cell: str) -> bool:
    return any("\udc80" <= letter <= "\udcff" for letter in cell)


class CsvWriter:
    """Writes CSV or TSV; what is no text or number is written as JSON."""

    def __init__(self, file: BinaryIO, names: Sequence[str], delimiter: str = ",") -> None:
        self._file, self._names = file, list(names)
        self._delimiter = delimiter
        self._write([dict(zip(names, names, strict=True))])

    def write(self, rest: Sequence[dict[str, Any]], columns: dict[str, list[Any]]) -> None:
        """Write rows with their further columns."""
        self._write(_joined(rest, columns))

    def close(self) -> None:
        """Nothing is left to be written."""

    def _write(self, records: Iterable[dict[str, Any]]) -> None:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=self._delimiter, lineterminator="\n")
        writer.writerows([_cell(record.get(name)) for name in self._names] for record in records)
        self._file.write(text.getvalue().encode())


def _cell(value: Any) -> str | int | float:
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return value
    return "" if value is None else _json(value).decode().strip('"')


# --- JSONL ------------------------------------------------------------------------------------------------------------


@dataclass
class JsonlTable:
    """A JSON object a line; its columns are the keys of all of them, so it is read twice."""

    path: Path
    column: str
    names: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = list(dict.fromkeys(name for row in self._rows() for name in row.record))
        if self.column not in self.names:  # each line would be reported for it
            raise InputError(f"no line of {self.path} has a {self.column!r}; expected objects with this key")

    def chunks(self, kept: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows with the columns that are kept."""
        return _chunks(self._rows(), kept)

    def _rows(self) -> Iterator[_Row]:
        for number, line in read_lines(self.path):
            where = f"{self.path}, line {number}"
            try:
                record = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                yield _Row(number, InputError(f"{where}: not JSON ({error}); expected an object"), {})
                continue
            if isinstance(record, dict):
                yield _Row(number, read_text(record.get(self.column), where, self.column), record)
            else:
                yield _Row(number, InputError(f"{where}: {line[:60].decode()} is no object"), {})


class JsonlWriter:
    """Writes a JSON object a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def write(self, rest: Sequence[dict[str, Any]], columns: dict[str, list[Any]]) -> None:
        """Write rows with their further columns."""
        self._file.writelines(_json(record) + b"\n" for record in _joined(rest, columns))

    def close(self) -> None:
        """Nothing is left to be written."""


def _joined(rest: Sequence[dict[str, Any]], columns: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for place, record in enumerate(rest):
        yield record | {name: values[place] for name, values in columns.items()}


def _json(value: Any) -> bytes:
    return orjson.dumps(value, default=_plain)


def _plain(value: Any) -> str:
    """Return what JSON has no form for, as a table of Arrow may have it: decimals, bytes, durations."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)
