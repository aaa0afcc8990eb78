"""Tables of texts linked, streamed from file to file: CSV, TSV, JSONL, Parquet.

One row a mention, with the other columns of its text; or nested, one row a row with a list of its mentions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Literal, Protocol

from deixis.disambiguation.mention_table import COLUMNS, check_added, check_columns, mention_columns, nested_record
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.integrations.text_tables import DELIMITERS, Chunk, CsvTable, CsvWriter, JsonlTable, JsonlWriter

__all__ = ["Format", "link_table", "table_format"]

Format = Literal["csv", "tsv", "jsonl", "parquet"]
FORMATS: dict[str, Format] = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".parquet": "parquet"}
COMPRESSED = (".gz", ".xz", ".zst")
FLAT = ("row", *COLUMNS.values())  # the columns that a table of mentions has beside those of its texts
NESTED = ("resolutions", "reason")

Answer = Resolutions | InputError


class _Writer(Protocol):
    def write(self, rest: Any, columns: dict[str, list[Any]]) -> None: ...

    def close(self) -> None: ...


def table_format(path: Path, *, written: bool = False) -> Format:
    """Return the format of a file by its suffix; those that are read may be compressed."""
    suffixes = path.suffixes[:-1] if path.suffix in COMPRESSED and not written else path.suffixes
    found = FORMATS.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise InputError(f"{path} is not a table by its name; expected a name that ends in {', '.join(FORMATS)}")
    return found


def link_table(
    path: Path,
    column: str,
    file: BinaryIO,
    written: Format,
    link: Callable[[Iterable[str]], Iterator[Resolutions]],
    *,
    nested: bool = False,
) -> Iterator[Answer]:
    """Link the texts of a column into a file, and yield what is said of each row once it is written.

    A row that cannot be read yields what is wrong with it. It has no mentions; nested, its row has the reason.
    """
    table = _opened(path, column, as_records=written != "parquet")
    added = NESTED if nested else FLAT
    check_columns(table.names, column, str(path))
    kept = [name for name in table.names if nested or name != column]
    check_added(kept, added, str(path))
    writer = _writer(file, written, table, kept, added)
    try:
        for chunk in table.chunks(kept):
            answers = list(_answers(chunk, link))
            writer.write(*(_nested(chunk, answers) if nested else _flat(chunk, answers)))
            yield from answers
    finally:  # what an interrupted run has done is a whole file
        writer.close()


def _opened(path: Path, column: str, as_records: bool) -> Any:
    form = table_format(path)
    if form == "jsonl":
        return JsonlTable(path, column)
    if form in DELIMITERS:
        return CsvTable(path, column, DELIMITERS[form])
    from deixis.integrations.parquet import ParquetTable

    return ParquetTable(path, column, as_records)


def _writer(file: BinaryIO, written: Format, table: Any, kept: Sequence[str], added: Sequence[str]) -> _Writer:
    if written == "jsonl":
        return JsonlWriter(file)
    if written in DELIMITERS:
        return CsvWriter(file, [*kept, *added], DELIMITERS[written])
    from deixis.integrations.parquet import ParquetWriter

    return ParquetWriter(file, table, kept, added)


def _answers(chunk: Chunk, link: Callable[[Iterable[str]], Iterator[Resolutions]]) -> Iterator[Answer]:
    linked = link([text for text in chunk.texts if isinstance(text, str)])
    for text in chunk.texts:
        yield next(linked) if isinstance(text, str) else text


def _flat(chunk: Chunk, answers: Sequence[Answer]) -> tuple[Any, dict[str, list[Any]]]:
    """Return the rows of a chunk, each as often as it has mentions, and the columns of these."""
    places, columns = mention_columns(() if isinstance(answer, InputError) else answer for answer in answers)
    rest = [chunk.rest[place] for place in places] if isinstance(chunk.rest, list) else chunk.rest.take(places)
    return rest, {"row": [chunk.numbers[place] for place in places], **columns}


def _nested(chunk: Chunk, answers: Sequence[Answer]) -> tuple[Any, dict[str, list[Any]]]:
    """Return the rows of a chunk, and the columns with their mentions and reasons."""
    refused = [isinstance(answer, InputError) for answer in answers]
    resolutions = [None if isinstance(answer, InputError) else list(map(nested_record, answer)) for answer in answers]
    reasons = [str(answer) if wrong else None for answer, wrong in zip(answers, refused, strict=True)]
    return chunk.rest, {"resolutions": resolutions, "reason": reasons}
