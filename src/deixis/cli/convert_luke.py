"""`deixis convert-luke`: the checkpoint that the paper's authors released, as a model folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

__all__ = ["convert_luke"]


def convert_luke(
    source: Path = typer.Argument(help="Folder with config.json, entity_vocab.jsonl, a tokenizer and the weights."),
    target: Path = typer.Argument(help="The model folder to write."),
    table: Literal["fp32", "fp16", "int8"] = typer.Option("fp32", help="Precision of the entity table on disk."),
) -> None:
    """Convert a LUKE checkpoint for entity disambiguation into a model folder.

    The weights are read from model.safetensors or, tensors alone and no code, from pytorch_model.bin.

        deixis convert-luke luke-ed/ model/
    """
    from deixis.folder.model_folder import convert_luke as convert

    manifest = convert(source, target, table)
    typer.echo(f"wrote {target}: {len(manifest.files)} files, digest {manifest.digest[:12]}")
