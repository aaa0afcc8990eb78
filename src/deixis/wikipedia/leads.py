"""Leads: the sentence of a page that says what its subject is."""

from __future__ import annotations

import re

from deixis.wikipedia.sentences import sentences

__all__ = ["lead_of"]

LINES = 8  # of a page, among which its first sentence is: captions and notes may stand before it
LONG = 40  # characters of a line that is a sentence though no full stop ends it
AHEAD = 15  # characters before the subject: "The", "In Greek mythology,"
MOST = 400  # characters of a lead
_BRACKET = re.compile(r"\s*\([^()]*\)\Z")


def lead_of(title: str, text: str) -> str:
    """Return the first sentence of a page's text that names its subject, else its first sentence; "" of no text.

    Examples:
        >>> lead_of("Orrin (lake)", "Boats near the shore\\nOrrin is a lake of Velm. It is deep.")
        'Orrin is a lake of Velm.'
    """
    lines = [line for line in text.split("\n", LINES)[:LINES] if line.strip()]
    prose = [line for line in lines if len(line) >= LONG or line.rstrip().endswith((".", "。"))] or lines
    name = _BRACKET.sub("", title).casefold()
    for wanted in (name, name.split(" ")[0]):
        for line in prose:
            if line[: AHEAD + len(wanted)].casefold().find(wanted) >= 0:
                return _first_sentence(line)
    return _first_sentence(prose[0]) if prose else ""


def _first_sentence(line: str) -> str:
    start, end = next(sentences(line), (0, 0))
    return line[start : min(end, start + MOST)]
