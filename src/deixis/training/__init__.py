"""Training: masking, objectives, stages, the loop (paper 3.4, appendix A and B)."""

from __future__ import annotations

from deixis.training.checkpoints import Saving
from deixis.training.data import TrainingData
from deixis.training.distributed import Processes, processes
from deixis.training.loop import Diverged, HeldOut, Step, evaluate, train
from deixis.training.recipe import PRESETS, Recipe, read_recipe

__all__ = [
    "PRESETS",
    "Diverged",
    "HeldOut",
    "Processes",
    "Recipe",
    "Saving",
    "Step",
    "TrainingData",
    "evaluate",
    "processes",
    "read_recipe",
    "train",
]
