"""Settings of training: fields of frozen dataclasses with help and limits, checked wherever they come from.

`deixis.settings` does the same with pydantic. Training also runs where only torch, tokenizers, safetensors and numpy
are installed, so this needs the standard library alone. Python, TOML, `deixis train` and `python -m deixis.training`
read the same fields.
"""

from __future__ import annotations

import contextlib
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Annotated, Any, Literal, Self, Union

from deixis.errors import InputError

__all__ = ["About", "Field", "Fields", "fields_of"]

_KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", Path: "a path"}


@dataclass(frozen=True, slots=True)
class About:
    """What a field means, which numbers it takes, and how a command line names it."""

    help: str
    low: float | None = None
    high: float | None = None
    flags: tuple[str, ...] = ()  # none given: --name
    positional: bool = False
    metavar: str | None = None


@dataclass(frozen=True, slots=True)
class Field:
    """A field of some settings."""

    name: str
    kind: Any  # a type, a Literal, a union with None, or a tuple[type, ...]
    about: About
    default: Any  # MISSING where one must be given

    @property
    def many(self) -> bool:
        """Whether the field holds several values."""
        return typing.get_origin(self.kind) is tuple

    @property
    def kinds(self) -> tuple[Any, ...]:
        """The types, or the values of a Literal, that one value may be of."""
        kind = typing.get_args(self.kind)[0] if self.many else self.kind
        parts = typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,)
        return tuple(
            one for part in parts for one in (typing.get_args(part) if typing.get_origin(part) is Literal else (part,))
        )

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its option on a command line."""
        return self.about.flags or ("--" + self.name.replace("_", "-"),)

    def check(self, value: Any) -> None:
        """Refuse a value that the field cannot have."""
        for one in value if self.many and isinstance(value, tuple) else (value,):
            if (self.many and not isinstance(value, tuple)) or not self._is_one(one):
                shown = repr(one) if isinstance(one, str) else str(one)
                raise InputError(f"{self.name} is {shown}; expected {self.expected}")

    def _is_one(self, value: Any) -> bool:
        if value in [kind for kind in self.kinds if isinstance(kind, str)]:
            return True
        kinds = tuple(kind for kind in self.kinds if isinstance(kind, type))
        allowed = (*kinds, int) if float in kinds else kinds
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in kinds):
            return False
        low, high = self.about.low, self.about.high
        if not isinstance(value, int | float):
            return True
        return (low is None or value >= low) and (high is None or value <= high) and value == value  # no NaN

    def read(self, value: Any) -> Any:
        """Read texts, as a command line and `name=value` give them; what TOML has typed already passes."""
        if isinstance(value, list):
            return tuple(map(self._read_one, value))
        return self._read_one(value) if isinstance(value, str) else value

    def _read_one(self, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if value.lower() == "none" and type(None) in self.kinds:
            return None
        if value.lower() in ("true", "false") and bool in self.kinds:
            return value.lower() == "true"
        for kind in (int, float, Path):
            if kind in self.kinds:
                with contextlib.suppress(ValueError):
                    return kind(value)
        if not self._is_one(value):
            self.check((value,) if self.many else value)
        return value

    @property
    def expected(self) -> str:
        """What the field takes, in words."""
        choices = [kind for kind in self.kinds if isinstance(kind, str)]
        words = [f"one of {', '.join(choices)}"] if choices else []
        words += [_KINDS[kind] + self._limits for kind in self.kinds if kind in _KINDS]
        told = " or ".join([*words, *(["nothing"] if type(None) in self.kinds else [])])
        return f"a list, each {told}" if self.many else told

    @property
    def _limits(self) -> str:
        low, high = self.about.low, self.about.high
        if low is not None and high is not None:
            return f" from {low:g} to {high:g}"
        return f" of at least {low:g}" if low is not None else f" of at most {high:g}" if high is not None else ""


class Fields:
    """What frozen dataclasses of settings inherit: every value is checked, also those of copies."""

    def __post_init__(self) -> None:
        for field in fields_of(type(self)):
            field.check(getattr(self, field.name))

    def with_settings(self, settings: Mapping[str, Any]) -> Self:
        """Return a copy with other values; texts are read as the field's type, unknown fields are refused."""
        known = {field.name: field for field in fields_of(type(self))}
        for name in settings:
            if name not in known:
                raise InputError(f"there is no field {name!r}; expected one of {', '.join(known)}")
        read = {name: known[name].read(value) for name, value in settings.items()}
        return replace(self, **read)  # type: ignore[type-var]  # every subclass is a dataclass

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]


def fields_of(settings: type[Fields]) -> tuple[Field, ...]:
    """Return the fields of settings, in the order in which they are declared."""
    hints = typing.get_type_hints(settings, include_extras=True)
    found = []
    for field in dataclass_fields(settings):  # type: ignore[arg-type]
        hint = hints[field.name]
        assert typing.get_origin(hint) is Annotated, f"{settings.__name__}.{field.name} is without About"
        kind, about = typing.get_args(hint)
        found.append(Field(field.name, kind, about, field.default))
    return tuple(found)
