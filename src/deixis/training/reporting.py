"""What a run tells: a line on stderr, and metrics as JSON lines."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deixis.training.loop import Step

__all__ = ["report"]


def report(steps: Iterable[Step], folder: Path | None, every: int = 20, quiet: bool = False) -> Iterator[Step]:
    """Pass steps on and tell of every n-th, of the last, and of those with held-out accuracy."""
    metrics = None if folder is None else (folder / "metrics.jsonl").open("a")
    begun, pieces = time.perf_counter(), 0
    since = 0  # steps since the last line
    try:
        for step in steps:
            pieces, since = pieces + step.pieces, since + 1
            if step.step % every == 0 or step.step == step.steps or step.held_out is not None:
                record = _record(step, pieces, since, begun)
                if metrics is not None:
                    print(json.dumps(record), file=metrics, flush=True)
                if not quiet:
                    _line(record)
                begun, pieces, since = time.perf_counter(), 0, 0
            yield step
    finally:
        if not quiet and sys.stderr.isatty():
            print(file=sys.stderr)
        if metrics is not None:
            metrics.close()


def _record(step: Step, pieces: int, since: int, begun: float) -> dict[str, Any]:
    loss, accuracy, norm = step.loss, step.accuracy, float(step.norm)  # waits for the step: the clock comes after
    seconds = max(1e-9, time.perf_counter() - begun)
    record: dict[str, Any] = {
        "step": step.step,
        "steps": step.steps,
        "epoch": step.epoch,
        "epochs": step.epochs,
        "loss": loss,
        "accuracy": accuracy,
        "gradient_norm": norm,
        "pieces_per_s": pieces / seconds,
        "seconds_left": (step.steps - step.step) * seconds / since,
    }
    if step.held_out is not None:
        record |= {"held_out_loss": step.held_out.loss, "held_out_accuracy": step.held_out.accuracy}
    return record


def _line(record: dict[str, Any]) -> None:
    left = int(record["seconds_left"])
    held_out = f"  held out {record['held_out_accuracy']:.1%}" if "held_out_accuracy" in record else ""
    text = (
        f"epoch {record['epoch']}/{record['epochs']:g}  step {record['step']}/{record['steps']}  "
        f"loss {record['loss']:.4f}  accuracy {record['accuracy']:.1%}  {record['pieces_per_s']:,.0f} pieces/s  "
        f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02} left{held_out}"
    )
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="\n" if held_out else "", file=sys.stderr, flush=True)
    else:
        print(text, file=sys.stderr, flush=True)
