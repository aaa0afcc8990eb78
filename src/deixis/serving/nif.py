"""NIF requests as GERBIL sends them: Turtle in, the same contexts with links out.

Phrases given are disambiguated (D2KB); a context without any is linked from its text alone (A2KB). The answer is
pure ASCII, as GERBIL reads it in whatever encoding its machine has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from deixis.datasets.nif import NIF_PREFIXES, parse_nif, to_turtle
from deixis.documents import Document, Resolutions
from deixis.errors import InputError
from deixis.serving.http_errors import HttpError
from deixis.serving.limits import Limits

__all__ = ["read_nif_call", "write_nif"]


def read_nif_call(body: bytes, limits: Limits) -> list[Document]:
    """Read the contexts of a request, each with its phrases."""
    try:
        documents, _ = parse_nif(body, Path("body"), asked=True)
    except InputError as error:
        raise HttpError(422, str(error)) from None
    count = sum(len(document.mentions) for document in documents)
    longest = max(len(document.text) for document in documents)
    for what, size, limit in (
        ("nif:Context", len(documents), limits.max_documents),
        ("nif:Phrase", count, limits.max_mentions),
        ("nif:isString", longest, limits.max_text),
    ):
        if size > limit:
            raise HttpError(422, f"{what} is over the limit: {size:,}; this server takes at most {limit:,}")
    return documents


def write_nif(results: Iterable[Resolutions]) -> str:
    """Return the answers as Turtle, under the URIs of the request."""
    parts = (
        part for result in results for part in to_turtle(result, result.document.id or "", **result.document.extra)
    )
    return re.sub(r"[^\x00-\x7f]", _escaped, NIF_PREFIXES + "".join(parts))


def _escaped(match: re.Match[str]) -> str:
    point = ord(match[0])
    return f"\\u{point:04X}" if point < 0x10000 else f"\\U{point:08X}"
