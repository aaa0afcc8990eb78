"""Tables of titles: redirects (`old<TAB>new` or one JSON object) and lists of valid titles, for comparing golds."""

from __future__ import annotations

from pathlib import Path

import orjson

from deixis.artefacts import open_text, read_lines
from deixis.datasets.dataset import complaint, decoded
from deixis.documents import normalise_title

__all__ = ["read_redirects", "read_titles"]


def read_redirects(path: Path) -> dict[str, str]:
    """Read a redirect table: a `.json` object old → new, or lines `old<TAB>new`, plain or compressed."""
    if ".json" in path.suffixes:
        pairs = _json_pairs(path)
    else:
        pairs = [_pair(raw, path, line) for line, raw in read_lines(path)]
    table = {normalise_title(old): normalise_title(new) for old, new in pairs}
    return {old: new for old, new in table.items() if old != new}  # the two may differ only in spelling of spaces


def read_titles(path: Path) -> frozenset[str]:
    """Read a list of valid titles, one a line."""
    return frozenset(normalise_title(decoded(raw, path, line)) for line, raw in read_lines(path))


def _json_pairs(path: Path) -> list[tuple[str, str]]:
    with open_text(path) as file:
        try:
            record = orjson.loads(file.read())
        except orjson.JSONDecodeError as error:
            raise complaint(path, None, f"not JSON ({error})") from None
    if not isinstance(record, dict) or not all(isinstance(value, str) for value in record.values()):
        raise complaint(path, None, "expected one object of old title: new title")
    return list(record.items())


def _pair(raw: bytes, path: Path, line: int) -> tuple[str, str]:
    fields = decoded(raw, path, line).split("\t")
    if len(fields) != 2:
        raise complaint(path, line, f"{len(fields)} fields; expected old title, a tab and new title")
    return fields[0], fields[1]
