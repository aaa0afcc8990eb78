"""What can go wrong, each said in one sentence: what, where, and what to do.

DeixisError
├── InputError      data that was given cannot be used (a line, a field, a span)
├── ArtefactError   a model folder, vocabulary, store or window file is missing, damaged or belongs to another
└── MissingExtra    an optional dependency is not installed
"""

from __future__ import annotations

__all__ = ["ArtefactError", "DeixisError", "InputError", "MissingExtra"]


class DeixisError(Exception):
    """The parent of every error that deixis raises on purpose; its text is meant for the user."""


class InputError(DeixisError):
    """Data that was given cannot be used."""


class ArtefactError(DeixisError):
    """Something that deixis wrote earlier is missing, damaged, or does not belong with the rest."""


class MissingExtra(DeixisError):  # noqa: N818 - a state of the installation, not a fault
    """An optional dependency is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; run: pip install 'deixis[{extra}]'")
