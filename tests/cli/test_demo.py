"""The demonstration: with a model its decisions, without one a sentence and the toy world."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from deixis.cli import demo
from deixis.folder import model_folder as checkpoints
from deixis.inference import Disambiguator


def test_it_shows_the_decisions_and_what_the_order_changed(island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "TEXT", "After the Golden Rook came Marlow and Brandt.")
    console = Console(record=True, width=200, file=io.StringIO())
    demo.show(Disambiguator.load(island / "model"), console)
    shown = console.export_text()
    assert "Golden Rook[1]" in shown and "Velm Cup (chess)" in shown
    assert "of 3 would be another" in shown


def test_without_a_model_the_toy_world_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checkpoints, "PACKAGED", tmp_path)
    monkeypatch.setattr(demo, "toy", lambda _: print("the island"))
    demo.main([])
    shown = capsys.readouterr().out
    assert "comes without a model" in shown and "the island" in shown
