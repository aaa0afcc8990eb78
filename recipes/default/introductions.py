"""Introductions of entities that nothing else in the recipe describes, out of a public evaluation of language models.

    git clone https://github.com/yifding/In_Context_EL        # MIT; the texts are Wikipedia's, CC BY-SA
    python recipes/default/make.py … --introductions In_Context_EL

It keeps, for each mention of MSNBC, AQUAINT and ACE2004, up to ten candidates and how their articles begin: 150
characters with the title. Those texts alone are read, of right and wrong candidates alike: no gold, no text of a
benchmark, no answer.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import orjson

from deixis.documents import normalise_title
from deixis.errors import InputError

__all__ = ["read_introductions"]

FOLDER = Path("RUN_FILES/4_13_2023/rel_blink/evaluation_new_one_step")
SETS = ("msnbc", "aquaint", "ace2004")
LENGTH = 150  # characters of title and text together, where they are cut
LEAST = 15  # characters that a text must have to say anything


def read_introductions(folder: Path) -> dict[str, str]:
    """Return the texts by title, the first of each."""
    found: dict[str, str] = {}
    for name in SETS:
        for title, text in _pairs(folder / FOLDER / f"{name}.json"):
            if len(text) >= LEAST:
                found.setdefault(title, text)
    return found


def _pairs(path: Path) -> Iterator[tuple[str, str]]:
    """Yield titles and texts; an item is a title, an empty line and a text, which ends amid a word where it is cut."""
    try:
        documents = orjson.loads(path.read_bytes())
        lists = [document["entities"]["entity_candidates_descriptions"] for document in documents.values()]
    except (OSError, ValueError, KeyError):
        raise InputError(f"{path} cannot be read; expected a file of a checkout of yifding/In_Context_EL") from None
    for mentions in lists:
        for items in mentions:
            for item in items:
                title, _, text = item.partition("\n\n")
                whole = text if len(item) < LENGTH else text.rpartition(" ")[0]
                yield normalise_title(html.unescape(title)), " ".join(whole.split("\n\n")[0].split())
