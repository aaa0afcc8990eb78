"""Sentences of plain text, by punctuation and capitals; good enough to decide where a window may be cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from deixis.languages.english import ABBREVIATED

__all__ = ["sentences"]

# A full stop, question or exclamation mark, closing quotes and brackets, white space; then no lower-case letter.
_END = re.compile(r"""[.!?。！？]["'”’»)\]]*\s+(?=[^\W_a-z]|["'“‘«(\[])|[。！？]|\n+""")
_WORD_BEFORE = re.compile(r"[^\s(\[]*\Z")


def sentences(text: str, spans: Sequence[tuple[int, int]] = ()) -> Iterator[tuple[int, int]]:
    """Yield `[start, end)` of each sentence, without white space around; lines are sentences, spans are never cut."""
    cuts = [0]
    inside = iter(sorted(spans))
    span = next(inside, None)
    for match in _END.finditer(text):
        at = match.end()
        while span is not None and span[1] <= at:
            span = next(inside, None)
        crosses = span is not None and span[0] < at < span[1]
        if not crosses and ("\n" in match[0] or not _abbreviated(text, match.start())):
            cuts.append(at)
    cuts.append(len(text))
    for left, right in pairwise(cuts):
        part = text[left:right]
        stripped = part.strip()
        if stripped:
            start = left + len(part) - len(part.lstrip())
            yield start, start + len(stripped)


def _abbreviated(text: str, stop: int) -> bool:
    """Tell whether the full stop at `stop` ends an initial or a known abbreviation."""
    if text[stop] != ".":
        return False
    found = _WORD_BEFORE.search(text, max(0, stop - 12), stop)
    word = found[0] if found else ""
    return (len(word) == 1 and word.isupper()) or word.lower() in ABBREVIATED
