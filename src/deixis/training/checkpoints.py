"""Checkpoints of a run: weights, optimiser and the number of steps taken; no pickle.

    step-00001200/state.safetensors    weight/…, exp_avg/…, exp_avg_sq/…, step/…
                  manifest.json        the recipe and the step

Random states and the place in the data need no file: both are functions of the recipe's seed and the step.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from deixis.artefacts import MANIFEST, Manifest, folder_aside
from deixis.errors import ArtefactError, InputError
from deixis.training.recipe import Recipe

__all__ = ["Saving"]

STATE = "state.safetensors"
FREE = ("precision", "compile", "pieces_at_once", "steps")  # fields that may change between a run and its resumption


@dataclass(frozen=True, slots=True)
class Saving:
    """Where checkpoints go, how often, and how many stay."""

    folder: Path
    every: int | None = None  # steps; None: at the end of each epoch only
    keep: int = 2
    parents: tuple[tuple[str, str], ...] = ()  # name, digest: what a resumed run must be given again

    def is_due(self, step: int) -> bool:
        """Whether a checkpoint is to be written after this step, from 1."""
        return self.every is not None and step % self.every == 0

    def save(self, saved: dict[str, Tensor], step: int, recipe: Recipe) -> None:
        """Write a checkpoint aside and rename it, then remove the oldest; a failure leaves the others whole."""
        parameters = {"recipe": recipe.to_json(), "step": step}
        with folder_aside(self.folder / f"step-{step:08}") as aside:
            try:
                save_file({name: x.contiguous().cpu() for name, x in saved.items()}, aside / STATE)
            except SafetensorError as error:  # its name for every failure to write
                raise InputError(
                    f"cannot write a checkpoint to {self.folder} ({error}); free space there and run again: it goes on "
                    "from the last checkpoint"
                ) from None
            Manifest("checkpoint", parameters, dict(self.parents)).save(aside / MANIFEST)
        for old in self._all()[: -self.keep]:
            shutil.rmtree(old, ignore_errors=True)

    def newest(self, recipe: Recipe) -> tuple[int, dict[str, Tensor]] | None:
        """Read the newest checkpoint; one of another recipe is refused."""
        found = self._all()
        if not found:
            return None
        manifest = Manifest.load(found[-1] / MANIFEST, "checkpoint")
        self._check(manifest, recipe, found[-1])
        try:
            return int(manifest.parameters["step"]), load_file(found[-1] / STATE)
        except (SafetensorError, OSError) as error:
            raise ArtefactError(f"{found[-1] / STATE} is damaged ({error}); remove {found[-1]} to go on") from None

    def _check(self, manifest: Manifest, recipe: Recipe, where: Path) -> None:
        theirs: dict[str, Any] = manifest.parameters["recipe"]
        for name, value in recipe.to_json().items():
            if name not in FREE and theirs.get(name) != value:
                raise ArtefactError(
                    f"{where} was made with {name}={theirs.get(name)}, not {value}; set that, or remove "
                    f"{self.folder} to start again"
                )
        for name, digest in self.parents:
            manifest.check_parent(name, digest, where)

    def _all(self) -> list[Path]:
        """Return the whole checkpoints, oldest first."""
        return sorted(path for path in self.folder.glob("step-*") if (path / MANIFEST).exists() and path.suffix == "")
