"""Training: masking, objectives, stages, the loop (paper 3.4, appendix A and B)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from deixis.training.recipe import PRESETS, Recipe, read_recipe

if TYPE_CHECKING:
    from deixis.training.checkpoints import Saving
    from deixis.training.distributed import Processes, processes
    from deixis.training.loop import Diverged, HeldOut, Step, evaluate, train
    from deixis.training.objectives import AddedLoss

__all__ = [
    "PRESETS",
    "AddedLoss",
    "Diverged",
    "HeldOut",
    "Processes",
    "Recipe",
    "Saving",
    "Step",
    "evaluate",
    "processes",
    "read_recipe",
    "train",
]

_HOMES = {
    "checkpoints": ("Saving",),
    "distributed": ("Processes", "processes"),
    "loop": ("Diverged", "HeldOut", "Step", "evaluate", "train"),
    "objectives": ("AddedLoss",),
}


def __getattr__(name: str) -> Any:
    # These need torch, which is imported when it is first needed: the settings alone make the options of a command.
    for home, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"deixis.training.{home}"), name)
    raise AttributeError(f"module 'deixis.training' has no attribute {name!r}")
