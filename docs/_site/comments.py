"""The comment behind a field is its description in the reference: `step: int  # from 1`."""

from __future__ import annotations

import io
import tokenize
from typing import Any

import griffe


class Comments(griffe.Extension):
    """Gives attributes without a docstring the comment that ends their line."""

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        if attr.docstring is None and attr.lineno is not None and isinstance(attr.parent, griffe.Class):
            comment = comment_of(attr.lines[-1] if attr.lines else "")
            if comment:
                attr.docstring = griffe.Docstring(comment, parent=attr)


def comment_of(line: str) -> str:
    """Return the comment of a line of code as a sentence."""
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(line.strip()).readline))
    except (tokenize.TokenError, IndentationError):
        return ""
    found = [token.string.removeprefix("#").strip() for token in tokens if token.type == tokenize.COMMENT]
    text = found[-1] if found else ""
    return "" if text.startswith(("type:", "noqa")) else text[:1].upper() + text[1:]
