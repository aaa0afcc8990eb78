"""Results as a table, one row a mention; and frames of pandas and polars made so.

Neither library is required: where a frame is given, its library is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from deixis.documents import Identity, Resolution, Resolutions
from deixis.errors import InputError, shown

__all__ = [
    "COLUMNS",
    "FIELDS",
    "Frame",
    "check_added",
    "check_columns",
    "linked_frame",
    "mention_columns",
    "nested_record",
]

Frame = TypeVar("Frame")
Link = Callable[[Iterable[str]], Iterator[Resolutions]]

# What tables tell of a mention, with its type. What a resolution gains is added here.
FIELDS: dict[str, type] = {
    "start": int,
    "end": int,
    "text": str,
    "entity": str,
    "probability": float,
    "step": int,
    "kind": str,
    "known_by": str,
    "reason": str,
    "url": str,
    "id": str,
    "wikidata": str,
}
# Their columns: beside those of a user's table, which often has a text, a URL and an id of its own.
COLUMNS = {name: {"text": "mention", "url": "entity_url", "id": "entity_id"}.get(name, name) for name in FIELDS}


def _told(resolution: Resolution) -> dict[str, Any]:
    own = (resolution.identity or Identity()).id
    return {name: own if name == "id" else getattr(resolution, name) for name in FIELDS}


def nested_record(resolution: Resolution) -> dict[str, Any]:
    """Return a mention as a record of its own, with all candidates that were scored."""
    alternatives = [{"entity": title, "probability": chance} for title, chance in resolution.alternatives]
    return _told(resolution) | {"alternatives": alternatives}


def mention_columns(results: Iterable[Sequence[Resolution]]) -> tuple[list[int], dict[str, list[Any]]]:
    """Return the columns of all mentions of some texts, and of which text each is, counted from 0."""
    places: list[int] = []
    columns: dict[str, list[Any]] = {column: [] for column in COLUMNS.values()}
    for place, resolutions in enumerate(results):
        for resolution in resolutions:
            places.append(place)
            for name, value in _told(resolution).items():
                columns[COLUMNS[name]].append(value)
    return places, columns


def check_columns(names: Sequence[str], text: str, where: str) -> None:
    """Refuse a table that has no such column of texts."""
    if text not in names:
        listed = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
        raise InputError(f"{where} has no column {text!r}; it has {listed or 'none'}")


def check_added(kept: Sequence[str], added: Iterable[str], where: str) -> None:
    """Refuse a table that has a column which results are told in."""
    if taken := [name for name in added if name in kept]:
        raise InputError(f"{where} has a column {taken[0]!r}, which the results have too; rename it")


def linked_frame(frame: Frame, column: str, link: Link) -> Frame:
    """Return a frame of pandas or polars with one row a mention; the columns of a text are repeated for each."""
    libraries = {base.__module__.split(".")[0] for base in type(frame).__mro__ if base.__name__ == "DataFrame"}
    given: Any = frame
    if not libraries & {"pandas", "polars"}:
        name = f"{type(frame).__module__.split('.')[0]}.{type(frame).__name__}"
        collect = "; collect() it first" if name == "polars.LazyFrame" else ""
        raise InputError(f"the frame is a {name}{collect}; expected a DataFrame of pandas or polars")
    check_columns(list(given.columns), column, "the frame")
    check_added(list(given.columns), COLUMNS.values(), "the frame")
    done: Frame = (_linked_pandas if "pandas" in libraries else _linked_polars)(given, column, link)
    return done


def _linked_pandas(frame: Any, column: str, link: Link) -> Any:
    import pandas

    if list(frame.columns).count(column) > 1:
        raise InputError(f"the frame has several columns {column!r}; rename all but one")
    missing = frame[column].isna()
    texts = _texts([None if none else text for text, none in zip(frame[column], missing, strict=True)], column)
    places, columns = mention_columns(link(texts))
    linked = frame.iloc[places]
    types = {int: "int64", float: "float64", str: "string"}
    return linked.assign(
        **{
            name: pandas.array(columns[name], dtype=types[kind])
            for name, kind in zip(COLUMNS.values(), FIELDS.values(), strict=True)
        }
    )


def _linked_polars(frame: Any, column: str, link: Link) -> Any:
    import polars

    places, columns = mention_columns(link(_texts(frame[column].to_list(), column)))
    types = {int: polars.Int64, float: polars.Float64, str: polars.String}
    return frame[places].with_columns(
        polars.Series(name, columns[name], types[kind])
        for name, kind in zip(COLUMNS.values(), FIELDS.values(), strict=True)
    )


def _texts(values: Sequence[Any], column: str) -> list[str]:
    """Return texts, "" where there is none: nothing is found in it."""
    for place, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise InputError(f"row {place} of the column {column!r} is {shown(value)}; expected a text, or nothing")
    return [value or "" for value in values]
