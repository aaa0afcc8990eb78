"""The recipes that the repository keeps are recipes."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.training import PRESETS, read_recipe

FILES = sorted((Path(__file__).parents[1] / "recipes").rglob("*.toml"))


@pytest.mark.parametrize("path", FILES, ids=[f"{path.parent.name}/{path.name}" for path in FILES])
def test_a_recipe_file_changes_its_preset(path: Path) -> None:
    preset = f"small-{path.stem}"
    assert read_recipe(preset, path) != PRESETS[preset]
