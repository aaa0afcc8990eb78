"""`deixis train detector`: teach a model to find names in texts like yours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["detector"]


def detector(
    model: Annotated[Path, typer.Argument(help="The model folder, whose encoder stays as it is.")],
    data: Annotated[
        list[Path],
        typer.Argument(help="JSONL: texts with their spans, or documents with mentions; see docs/training.md."),
    ],
    out: Annotated[Path, typer.Option("--output", "-o", help="The model folder to write.")],
    epochs: Annotated[float, typer.Option(min=0, help="How often each text is read.")] = 12.0,
    batch: Annotated[int, typer.Option(min=1, help="Word pieces of a step.")] = 4096,
    rate: Annotated[float, typer.Option(min=0, help="The highest learning rate.")] = 2e-3,
    seed: Annotated[int, typer.Option(help="What chance starts from.")] = 0,
    device: Annotated[str, typer.Option(help="Where the network runs, e.g. cpu or cuda.")] = "cpu",
) -> None:
    """Train the detector of a model: a small head that finds names, with the kind of each.

    Only the head is trained, so that a few thousand sentences take minutes. Texts whose "split" is not "train" are
    held out; their spans are measured at the end.

    Examples:

        deixis train detector model names.jsonl -o model-2

        deixis train detector model ner/*.jsonl.xz mine.jsonl -o model-2 --epochs 4 --device cuda
    """
    from deixis.artefacts import digest_file
    from deixis.folder.model_folder import ModelFolder, with_detector
    from deixis.network.detector import LearnedDetector
    from deixis.training.detector import DetectorRecipe, read_marked_texts, score_detector, train_detector

    parts, texts = ModelFolder.load(model), list(read_marked_texts(data))
    network = parts.network.to(device).eval()
    recipe = DetectorRecipe(epochs=epochs, batch_pieces=batch, rate=rate, seed=seed)
    head = train_detector(network, parts.tokenizer, texts, recipe)
    for score in score_detector(LearnedDetector(network, parts.tokenizer, head), texts):
        typer.echo(str(score))
    told = {"epochs": epochs, "batch": batch, "rate": rate, "seed": seed}
    manifest = with_detector(model, out, head, {**told, "data": {path.name: digest_file(path) for path in data}})
    typer.echo(f"written: {out}, digest {manifest.digest[:12]}", err=True)
