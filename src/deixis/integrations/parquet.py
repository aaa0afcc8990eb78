"""Tables as Parquet, and results as columns of Arrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from deixis.disambiguation.mention_table import COLUMNS, FIELDS
from deixis.errors import InputError, MissingExtra
from deixis.integrations.text_tables import CHUNK, Chunk, CsvTable, JsonlTable, read_text

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError as error:
    if (error.name or "").split(".")[0] == "pyarrow":
        raise MissingExtra("pyarrow", "tables") from None
    raise

__all__ = ["RESOLUTIONS", "ParquetTable", "ParquetWriter", "open_parquet"]

TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string()}
ALTERNATIVES = pa.list_(pa.struct([("entity", pa.string()), ("probability", pa.float64())]))
# The mentions of a text; alternatives are every candidate scored, most probable first.
RESOLUTIONS = pa.list_(
    pa.struct([*((name, TYPES[kind]) for name, kind in FIELDS.items()), ("alternatives", ALTERNATIVES)])
)
ADDED = {"row": pa.int64(), "resolutions": RESOLUTIONS, **{COLUMNS[name]: TYPES[kind] for name, kind in FIELDS.items()}}


def open_parquet(path: Path) -> pq.ParquetFile:
    """Open a file; what is no Parquet is refused."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} is no Parquet file: {error}") from None


@dataclass
class ParquetTable:
    """A Parquet file; its rows are tables of Arrow, or records where another format is written."""

    path: Path
    column: str
    as_records: bool = False
    names: list[str] = field(init=False)
    schema: pa.Schema = field(init=False)

    def __post_init__(self) -> None:
        # What pandas notes of its frame would not be true of the rows that are written.
        self.schema = open_parquet(self.path).schema_arrow.remove_metadata()
        self.names = list(self.schema.names)
        if len(set(self.names)) < len(self.names):
            raise InputError(f"{self.path} has several columns of one name; rename all but one")
        kind = self.schema.field(self.column).type if self.column in self.names else pa.string()
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        if kind not in (pa.string(), pa.large_string(), pa.string_view()):
            raise InputError(f"{self.path}: {self.column} is a column of {kind}; expected texts")

    def chunks(self, kept: Sequence[str]) -> Iterator[Chunk]:
        """Yield the rows with the columns that are kept."""
        first = 1
        try:
            for batch in open_parquet(self.path).iter_batches(CHUNK):
                numbers = list(range(first, first + len(batch)))
                texts = [self._text(value, n) for value, n in zip(batch[self.column], numbers, strict=True)]
                rest = pa.Table.from_batches([batch]).replace_schema_metadata(None).select(list(kept))
                yield Chunk(numbers, texts, _records(rest) if self.as_records else rest)
                first += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise InputError(f"{self.path} is damaged behind row {first - 1}: {error}") from None

    def _text(self, value: pa.Scalar, number: int) -> str | InputError:
        where = f"{self.path}, row {number}"
        try:
            return read_text(value.as_py(), where, self.column)
        except UnicodeDecodeError:
            return InputError(f"{where}: {self.column} is not UTF-8")


def _records(table: pa.Table) -> list[dict[str, Any]]:
    """Return rows as records; Python's times have no nanoseconds."""
    for place, one in enumerate(table.schema):
        kind = one.type
        if pa.types.is_temporal(kind) and getattr(kind, "unit", "") == "ns":
            coarse = {pa.time64("ns"): pa.time64("us"), pa.duration("ns"): pa.duration("us")}
            wanted = coarse.get(kind) or pa.timestamp("us", kind.tz)
            table = table.set_column(place, one.name, table[one.name].cast(wanted, safe=False))
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


class ParquetWriter:
    """Writes the rows of a table with columns of results; a chunk is a row group."""

    def __init__(
        self, file: BinaryIO, table: CsvTable | JsonlTable | ParquetTable, kept: Sequence[str], added: Sequence[str]
    ) -> None:
        if isinstance(table, ParquetTable):
            found = {name: table.schema.field(name) for name in kept}
        elif isinstance(table, JsonlTable):
            found = {name: pa.field(name, kind) for name, kind in _column_types(table, kept).items()}
        else:
            found = {name: pa.field(name, pa.string()) for name in kept}
        self._kept = pa.schema(list(found.values()))
        self._added = {name: ADDED.get(name, pa.string()) for name in added}
        self._schema = pa.schema([*self._kept, *(pa.field(name, kind) for name, kind in self._added.items())])
        self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")

    def write(self, rest: Any, columns: Mapping[str, list[Any]]) -> None:
        """Write rows with their further columns."""
        kept = rest.columns if isinstance(rest, pa.Table) else [_array(rest, one) for one in self._kept]
        added = [pa.array(values, self._added[name]) for name, values in columns.items()]
        table = pa.table([*kept, *added], schema=self._schema)
        if len(table):
            self._writer.write_table(table)

    def close(self) -> None:
        """Write the end of the file, without which it is none."""
        self._writer.close()


def _column_types(table: JsonlTable, kept: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the types of the columns of JSONL: what fits all values, or a text for JSON where nothing does."""
    types: dict[str, pa.DataType | None] = dict.fromkeys(kept, pa.null())
    for chunk in table.chunks(kept):
        for name, so_far in types.items():
            if so_far is not None:
                types[name] = _common(so_far, [record.get(name) for record in chunk.rest])
    return {name: pa.string() if kind in (None, pa.null()) else kind for name, kind in types.items()}


def _common(kind: pa.DataType, values: list[Any]) -> pa.DataType | None:
    """Return a type for values of a type and more values, None where there is none in a file of Parquet."""
    try:
        pair = [pa.schema([("values", one)]) for one in (kind, pa.array(values).type)]
        found = pa.unify_schemas(pair, promote_options="permissive").field(0).type
    except (pa.ArrowException, OverflowError):
        return None
    return None if "struct" in str(found) else found


def _array(records: Sequence[dict[str, Any]], one: pa.Field) -> pa.Array:
    values = [record.get(one.name) for record in records]
    if one.type == pa.string():
        values = [v if v is None or isinstance(v, str) else orjson.dumps(v).decode() for v in values]
    return pa.array(values, one.type)
