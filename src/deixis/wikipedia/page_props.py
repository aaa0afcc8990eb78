"""Page properties: the table `page_props` of a wiki's dumps, which has the Wikidata id of each page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import read_lines
from deixis.errors import InputError

__all__ = ["PageProps", "read_page_props"]

_VALUES = re.compile(rb"\(([0-9]+),'(?:(disambiguation)|wikibase_item)','(?:Q([0-9]+))?'")
_DATABASE = re.compile(rb"^-- Host: .*\bDatabase: *([^\s]+)")


@dataclass(frozen=True, slots=True)
class PageProps:
    """What a wiki's table says of its pages, by their numbers."""

    pages: NDArray[np.uint32]  # sorted
    items: NDArray[np.uint32]  # 615 for Q615
    disambiguation: frozenset[int]  # pages that list the meanings of a name

    def item(self, page: int | str | None) -> int:
        """Return the number of a page's Wikidata item, 0 where none is known."""
        at = int(np.searchsorted(self.pages, page)) if isinstance(page, int) else len(self.pages)
        return int(self.items[at]) if at < len(self.pages) and self.pages[at] == page else 0


def read_page_props(path: Path, database: str | None = None) -> PageProps:
    """Read `page_props.sql`, plain or compressed; the table of another wiki than that of the database is refused."""
    items: dict[int, int] = {}
    disambiguation: set[int] = set()
    found, last = False, b""
    for number, last in read_lines(path):
        if number < 40:
            named = _DATABASE.search(last)
            if named is not None and database is not None and named[1].decode("utf-8", "replace") != database:
                raise InputError(f"{path} is of {named[1].decode('utf-8', 'replace')}, the dump of {database}; "
                                 "give the page_props of the same wiki")  # fmt: skip
            found = found or b"page_props" in last
        if not found and number >= 40:
            break
        for page, is_disambiguation, item in _VALUES.findall(last):
            if is_disambiguation:
                disambiguation.add(int(page))
            elif item:
                items[int(page)] = int(item)
    if not found:
        raise InputError(f"{path} is not the table page_props; expected WIKI-DATE-page_props.sql.gz")
    if not (last.endswith(b";") or last.startswith(b"--")):
        raise InputError(f"{path} is cut off: its last line does not end with a semicolon; download it again")
    pages = np.fromiter(sorted(items), np.uint32, len(items))
    return PageProps(pages, np.fromiter((items[int(page)] for page in pages), np.uint32, len(pages)),
                     frozenset(disambiguation))  # fmt: skip
