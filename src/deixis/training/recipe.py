"""Recipes: every number of a training run, with the paper's two tables as presets (paper appendix A and B)."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from deixis.errors import InputError
from deixis.training.fields import About, Fields

__all__ = ["PRESETS", "DetectorRecipe", "Recipe", "read_recipe"]


@dataclass(frozen=True)
class Recipe(Fields):
    """How a network is trained; the defaults are what the paper's stages have in common."""

    # What is trained, on what.
    train: Annotated[
        Literal["new", "all", "all-but-entities"],
        About("What is trained: new: what BERT does not have; all-but-entities: not B and b_o."),
    ] = "all"
    candidate_weight: Annotated[
        float, About("0: the loss of equation 1; 1: of equation 3, over candidates; between: mixed.", 0, 1)
    ] = 0.0
    mask_rate: Annotated[
        float, About("The part of a window's entities that become [MASK], at least one entity.", 0, 1)
    ] = 0.3
    mask_rate_high: Annotated[
        float | None, About("Each window draws its rate between mask_rate and this; none: mask_rate.", 0, 1)
    ] = None
    candidates: Annotated[int, About("Candidates of a mention, by prior, that take part in equation 3.", 1)] = 30
    wrong_rate: Annotated[
        float,
        About(
            "The part of the visible entities shown as another candidate, as answers are wrong now and then.",
            0,
            1,
        ),
    ] = 0.0

    # How long, how fast. A step is one update, an epoch every window once.
    epochs: Annotated[float, About("How often each window is read.", 0)] = 1.0
    steps: Annotated[int | None, About("Stop after this many steps all the same.", 1)] = None
    batch: Annotated[int, About("Windows a step, over all processes.", 1)] = 2048
    pieces_at_once: Annotated[
        int, About("Word pieces of a process in one pass; a step takes as many passes as it needs.", 1)
    ] = 131_072
    learning_rate: Annotated[float, About("The highest learning rate.", 0)] = 5e-5
    encoder_rate: Annotated[float | None, About("That of what came from BERT; none: learning_rate.", 0)] = None
    encoder_from: Annotated[int, About("The step from which what came from BERT is trained.", 0)] = 0
    entity_rate: Annotated[float | None, About("That of B and b_o; none: learning_rate.", 0)] = None
    layer_decay: Annotated[float, About("Each layer's rate is this times that of the layer above.", 0, 1)] = 1.0
    warmup_steps: Annotated[int, About("The rate rises from 0 over so many steps.", 0)] = 0
    warmup_fraction: Annotated[float, About("… and over at least this part of all steps.", 0, 1)] = 0.0
    decay: Annotated[Literal["none", "linear"], About("What the rate does after the warm-up.")] = "linear"

    # AdamW and regularisation.
    beta1: Annotated[float, About("AdamW's first decay.", 0, 1)] = 0.9
    beta2: Annotated[float, About("AdamW's second decay.", 0, 1)] = 0.999
    epsilon: Annotated[float, About("AdamW's epsilon.", 0)] = 1e-6
    weight_decay: Annotated[float, About("Weight decay, but of biases and layer norms.", 0)] = 0.01
    clip: Annotated[float, About("The largest norm of the gradient; 0: any.", 0)] = 1.0
    dropout: Annotated[float, About("Dropout.", 0, 0.99)] = 0.1
    attention_dropout: Annotated[float | None, About("Dropout of attention; none: dropout.", 0, 0.99)] = None
    word_dropout: Annotated[float, About("The part of the word pieces that are read as [MASK].", 0, 0.99)] = 0.0
    row_dropout: Annotated[
        float, About("For rows from text: the part of the entities that have only their text in a pass.", 0, 0.99)
    ] = 0.0

    # The machine.
    seed: Annotated[int, About("What chance starts from.")] = 0
    precision: Annotated[
        Literal["auto", "fp32", "bf16"], About("What the network computes in; auto: bf16 on a GPU.")
    ] = "auto"
    compile: Annotated[Literal["auto", "on", "off"], About("Compile the layers; auto: on a GPU.")] = "auto"


@dataclass(frozen=True, kw_only=True)
class DetectorRecipe(Fields):
    """How the head of a detector is trained."""

    epochs: Annotated[float, About("How often each text is read.", 0)] = 12.0
    batch_pieces: Annotated[int, About("Word pieces of a step.", 1)] = 4096
    rate: Annotated[float, About("The highest learning rate.", 0)] = 2e-3
    weight_decay: Annotated[float, About("Weight decay.", 0)] = 0.01
    size: Annotated[int, About("Width of the head.", 1)] = 160
    layers: Annotated[
        tuple[int, ...],
        About("Layers whose states the head reads; if not given, a third of the way up, two thirds, and the last.", 1),
    ] = ()
    cases: Annotated[float, About("The part of the windows that are learned with other capitals.", 0, 1)] = 0.4
    seed: Annotated[int, About("What chance starts from.")] = 0


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
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected a recipe in TOML") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is no TOML: {error}") from None


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
