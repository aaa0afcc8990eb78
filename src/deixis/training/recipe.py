"""Recipes: every number of a training run, with the paper's two tables as presets (paper appendix A and B)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from deixis.errors import InputError

__all__ = ["PRESETS", "Recipe", "read_recipe"]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a network is trained; the defaults are what the paper's stages have in common."""

    # What is trained, on what.
    train: Literal["new", "all", "all-but-entities"] = "all"  # "new": what BERT does not have; the last: not B, b_o
    candidate_weight: float = 0.0  # 0: the loss of equation 1; 1: of equation 3, over candidates; between: mixed
    mask_rate: float = 0.3  # the part of a window's entities that become [MASK], at least one
    mask_rate_high: float | None = None  # each window draws its rate between mask_rate and this; None: mask_rate
    candidates: int = 30  # of a mention, by prior, take part in equation 3

    # How long, how fast. A step is one update, an epoch every window once.
    epochs: float = 1.0
    steps: int | None = None  # stop here all the same
    batch: int = 2048  # windows a step, over all processes
    pieces_at_once: int = 131_072  # of a process in one pass; a step takes as many passes as it needs
    learning_rate: float = 5e-5
    encoder_rate: float | None = None  # of what came from BERT; None: learning_rate
    entity_rate: float | None = None  # of B and b_o; None: learning_rate
    layer_decay: float = 1.0  # each layer's rate is this times that of the layer above
    warmup_steps: int = 0  # the rate rises from 0 over so many steps
    warmup_fraction: float = 0.0  # … and at least this part of all steps
    decay: Literal["none", "linear"] = "linear"  # after the warm-up

    # AdamW and regularisation.
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-6
    weight_decay: float = 0.01  # not of biases and layer norms
    clip: float = 1.0  # largest norm of the gradient; 0: any
    dropout: float = 0.1
    attention_dropout: float | None = None  # None: dropout
    word_dropout: float = 0.0  # the part of the word pieces that are read as [MASK]
    row_dropout: float = 0.0  # the part of the entities that have only their text in a pass; for rows from text

    # The machine.
    seed: int = 0
    precision: Literal["auto", "fp32", "bf16"] = "auto"  # auto: bf16 on a GPU
    compile: Literal["auto", "on", "off"] = "auto"  # auto: on a GPU

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(Recipe).items():
            _check(name, getattr(self, name), kind)
        for name, low, high in _RANGES:
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                raise InputError(f"{name} is {value}; expected {low} to {high}")

    def with_settings(self, settings: Mapping[str, Any]) -> Recipe:
        """Return the recipe with other values; texts are read as the field's type, unknown fields are refused."""
        hints = get_type_hints(Recipe)
        for name in settings:
            if name not in hints:
                raise InputError(f"a recipe has no field {name!r}; its fields are {', '.join(hints)}")
        return replace(self, **{name: _read(name, value, hints[name]) for name, value in settings.items()})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


_INFINITE = float("inf")
_RANGES: tuple[tuple[str, float, float], ...] = (
    ("candidate_weight", 0, 1),
    ("mask_rate", 0, 1),
    ("mask_rate_high", 0, 1),
    ("candidates", 1, _INFINITE),
    ("epochs", 0, _INFINITE),
    ("batch", 1, _INFINITE),
    ("pieces_at_once", 1, _INFINITE),
    ("layer_decay", 0, 1),
    ("warmup_steps", 0, _INFINITE),
    ("warmup_fraction", 0, 1),
    ("clip", 0, _INFINITE),
    ("dropout", 0, 0.99),
    ("attention_dropout", 0, 0.99),
    ("word_dropout", 0, 0.99),
    ("row_dropout", 0, 0.99),
)


def read_recipe(preset: str, file: Path | None = None, settings: Sequence[str] = ()) -> Recipe:
    """Take a preset, then a TOML file's fields, then settings of the form `field=value`."""
    if preset not in PRESETS:
        raise InputError(f"there is no recipe {preset!r}; choose one of {', '.join(PRESETS)}")
    recipe = PRESETS[preset]
    if file is not None:
        recipe = recipe.with_settings(_toml(file))
    given: dict[str, str] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"{setting!r} is no setting; expected field=value, such as learning_rate=1e-4")
        given[name.strip()] = value.strip()
    return recipe.with_settings(given)


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a recipe in TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None


def _choices(kind: Any) -> tuple[Any, ...]:
    """Return what a field may be: types, or the values of a Literal."""
    return get_args(kind) if get_origin(kind) in (Union, UnionType, Literal) else (kind,)


def _check(name: str, value: Any, kind: Any) -> None:
    choices = _choices(kind)
    if get_origin(kind) is Literal:
        if value not in choices:
            raise InputError(f"{name} is {value!r}; expected one of {', '.join(map(str, choices))}")
        return
    allowed = (*choices, int) if float in choices else choices
    if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in choices):
        raise InputError(f"{name} is {value!r}; expected {_named(choices)}")


def _named(choices: tuple[Any, ...]) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "none"}
    return " or ".join(names[choice] for choice in choices)


def _read(name: str, value: Any, kind: Any) -> Any:
    """Read a text as a field's type; what TOML has typed already passes."""
    choices = _choices(kind)
    if not isinstance(value, str) or str in choices or get_origin(kind) is Literal:
        return value
    if value.lower() == "none" and type(None) in choices:
        return None
    if bool in choices and value.lower() in ("true", "false"):
        return value.lower() == "true"
    for number in (int, float):
        if number in choices:
            try:
                return number(value)
            except ValueError:
                continue
    raise InputError(f"{name} is {value!r}; expected {_named(choices)}")


_LARGE = 32_768  # pieces at once: about 30 GiB with BERT-large
# A 12×384 encoder and about 3 M links. B learns ten times as fast as what reads the text: with few links an entity,
# a fast encoder forgets what it knew before the entities have found their places.
_SMALL = Recipe(batch=256, dropout=0.1, attention_dropout=0.0, warmup_steps=200)

PRESETS: Mapping[str, Recipe] = {
    "paper-stage1": Recipe(
        train="new", epochs=1, learning_rate=5e-4, warmup_steps=1000, decay="none", pieces_at_once=_LARGE
    ),
    "paper-stage2": Recipe(train="all", epochs=6, learning_rate=5e-5, warmup_steps=1000, pieces_at_once=_LARGE),
    "paper-finetune": Recipe(
        train="all-but-entities",
        candidate_weight=1.0,
        mask_rate=0.9,
        epochs=2,
        batch=16,
        learning_rate=2e-5,
        warmup_fraction=0.1,
        pieces_at_once=_LARGE,
    ),
    "small-stage1": replace(_SMALL, train="new", epochs=1, learning_rate=1e-3, decay="none"),
    "small-stage2": replace(
        _SMALL, train="all", epochs=6, learning_rate=5e-4, encoder_rate=1e-4, entity_rate=1e-3, layer_decay=0.9
    ),
}
