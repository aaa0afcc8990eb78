"""What can go wrong, each said in one sentence: what, where, and what to do.

DeixisError
├── InputError      data that was given cannot be used (a line, a field, a span)
├── ArtefactError   a model folder, vocabulary, store or window file is missing, damaged or belongs to another
└── MissingExtra    an optional dependency is not installed
"""

from __future__ import annotations

from typing import Any

__all__ = ["ArtefactError", "DeixisError", "InputError", "MissingExtra", "shown"]


class DeixisError(Exception):
    """The parent of every error that deixis raises on purpose; its text is meant for the user.

    Examples:
        >>> import deixis
        >>> try:
        ...     deixis.load("nowhere")
        ... except deixis.DeixisError as error:
        ...     print(error)
        nowhere is not a directory; expected a deixis model folder
    """


class InputError(DeixisError):
    """Data that was given cannot be used.

    Examples:
        >>> import deixis
        >>> deixis.Settings(top=0)
        Traceback (most recent call last):
        deixis.errors.InputError: top is 0; expected a whole number of at least 1 or nothing
    """


class ArtefactError(DeixisError):
    """Something that deixis wrote earlier is missing, damaged, or does not belong with the rest.

    Examples:
        >>> import deixis
        >>> deixis.load("velm/store")
        Traceback (most recent call last):
        deixis.errors.ArtefactError: velm/store/manifest.json describes a candidates artefact; expected model
    """


class MissingExtra(DeixisError):  # noqa: N818 - a state of the installation, not a fault
    """An optional dependency is not installed.

    Examples:
        >>> raise MissingExtra("spaCy", "spacy")
        Traceback (most recent call last):
        deixis.errors.MissingExtra: spaCy is not installed; run: pip install 'deixis[spacy]'
    """

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed; run: pip install 'deixis[{extra}]'")


def shown(value: Any) -> str:
    """Return a value of somebody's data as a sentence tells it, at most 60 characters.

    Examples:
        >>> shown(None), shown("x" * 80)[-6:]
        ('missing or null', 'xxx...')
    """
    text = "missing or null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
