"""The three attention patterns, trained alike on a GPU from two seeds, and measured in both orders.

    python recipes/default/patterns.py PARTS WORK       # writes WORK/patterns.json; after `gpu.py prepare`

Shorter than the recipe ([patterns] in recipe.toml), all else as there.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from gpu import SETTINGS, Given, window_set
from parts import read_arrays

from deixis.corpus.windows import WindowSet
from deixis.network.decoding import Question, decode
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.network.special import MASK
from deixis.training.descriptions import fold
from deixis.training.distributed import processes
from deixis.training.loop import evaluate, train
from deixis.training.recipe import Recipe
from deixis.training.steps import Plan

SHAPE: dict[str, Any] = SETTINGS["network"]
PATTERNS: dict[str, dict[str, Any]] = {
    "answers": {"words_see": "answers", "entity_size": SHAPE["entity_size"]},
    "placeholders": {**SHAPE, "words_see": "placeholders", "placeholder_layers": None},
    "words": SHAPE,
}
SEEDS = (0, 1)
ORDERS: tuple[Literal["local", "confidence"], ...] = ("local", "confidence")


def compare(parts: Path, work: Path, device: str) -> None:
    """Train and measure each."""
    given = Given(parts / "second", work)
    published = read_arrays(parts / "third")
    names = sorted(name.removesuffix("/pieces") for name in published if name.endswith("/pieces"))
    sets = {**given.sets, **{name: window_set(published, f"{name}/") for name in names}}
    told = []
    for seed in SEEDS:
        for pattern, shape in PATTERNS.items():
            begun = time.monotonic()
            network = given.network(shape, seed)
            recipe = Recipe().with_settings({**SETTINGS["train"], **SETTINGS["patterns"], "seed": seed})
            found: dict[str, Any] = {"pattern": pattern, "seed": seed}
            with processes(device) as group:
                *_, last = train(network, given.tokenizer, given.train, recipe, processes=group)
                found |= {"loss": last.loss, "seconds": time.monotonic() - begun}
                fold(network)
                network.precision = torch.bfloat16 if device == "cuda" else torch.float32
                for shown in (0.0, 0.5, 0.9):
                    asked = Recipe(mask_rate=1 - shown, batch=256)
                    right = evaluate(network, given.tokenizer, given.held_out, asked, group).accuracy
                    found[f"held-out, {shown:g} shown"] = right
            for order in ORDERS:
                begun = time.monotonic()
                found |= {f"{name}, {order}": decided(network, given.tokenizer, sets[name], order) for name in sets}
                found[f"{order}, seconds"] = time.monotonic() - begun
            told.append(found)
            print(found, flush=True)
            (work / "patterns.json").write_text(json.dumps(told, indent=1))


def decided(network: Network, tokenizer: Tokenizer, windows: WindowSet, order: Literal["local", "confidence"]) -> float:
    """Return the part of the mentions that an order decides rightly; each has its gold among its candidates."""
    device = network.entity_predictions.bias.device
    right = total = 0
    plan = Plan.of(windows, tokenizer, replace(Recipe(), mask_rate=1.0))  # nothing is shown: every mention is asked
    for step in plan.all(128):
        for one in step.passes:
            made = one.to(device)
            assert made.candidates is not None
            yes = torch.ones(len(made.labels), dtype=torch.bool, device=device)
            window = torch.arange(len(made.batch)).repeat_interleave(torch.from_numpy(made.batch.mention_counts))
            initial = torch.full_like(made.labels, MASK)
            question = Question(made.candidates, None, initial, yes, ~yes, window.to(device))
            choice = decode(network, made.batch, question, order).choice.clamp_min(0)
            answers = made.candidates.cpu().gather(1, choice.unsqueeze(1)).squeeze(1)
            right += int((answers == made.labels.cpu()).sum())
            total += len(answers)
    return right / max(1, total)


def main() -> int:
    """Compare."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    compare(Path(sys.argv[1]), Path(sys.argv[2]), "cuda" if torch.cuda.is_available() else "cpu")
    return 0


if __name__ == "__main__":
    sys.exit(main())
