"""`deixis pretrain`: train a network on windows of Wikipedia."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, get_args

import typer

__all__ = ["pretrain"]


def pretrain(
    start: Annotated[Path, typer.Argument(help="A BERT folder, or a model folder of an earlier stage.")],
    windows: Annotated[Path, typer.Argument(help="The folder that `deixis windows` wrote.")],
    out: Annotated[Path, typer.Argument(help="The model folder to write; checkpoints go into OUT.run beside it.")],
    vocabulary: Annotated[Path | None, typer.Option(help="The entities, where START is a BERT folder.")] = None,
    recipe: Annotated[
        str, typer.Option(help="paper-stage1, paper-stage2, small-stage1, small-stage2.")
    ] = "small-stage1",
    recipe_file: Annotated[Path | None, typer.Option(help="TOML with fields of the recipe to change.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="field=value of the recipe to change; several.")
    ] = None,
    words_see: Annotated[
        str,
        typer.Option(
            help="What words see of mentions: answers (the paper), placeholders (one pass to cache), or words alone "
            "(plain BERT, which finds names too)."
        ),
    ] = "answers",
    placeholder_layers: Annotated[
        int | None,
        typer.Option(help="With words: layers from the top in which placeholders exist; all if not given."),
    ] = None,
    answer_layers: Annotated[
        int | None,
        typer.Option(help="With placeholders or words: layers from the top in which answers exist; all if not given."),
    ] = None,
    entity_size: Annotated[int | None, typer.Option(help="Columns of B; the hidden size if not given.")] = None,
    descriptions: Annotated[
        list[Path] | None,
        typer.Option(help="Rows of B from text: TSV of title and description (several), or one .npy of vectors."),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What the encoder wants before a description, e.g. 'query: '.")] = "",
    table: Annotated[str, typer.Option(help="Precision of the entity table on disk: fp32, fp16, int8.")] = "fp32",
    save_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between checkpoints; besides one at the end of each epoch.")
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="Checkpoints that stay.")] = 2,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; cuda where there is one if not given.")] = None,
) -> None:
    """Train a network on windows; a run that was killed goes on from its last checkpoint.

        deixis pretrain bert/ windows/ stage1/ --vocabulary vocabulary.jsonl --recipe paper-stage1

        deixis pretrain stage1/ windows/ stage2/ --recipe paper-stage2 --set epochs=3 --set batch=512

    On several GPUs: torchrun --nproc-per-node 8 -m deixis.training pretrain … with the same arguments.
    """
    from deixis.folder.model_folder import check_precision
    from deixis.network.config import WordsSee
    from deixis.training import processes, read_recipe
    from deixis.training.runs import Output, Start
    from deixis.training.runs import pretrain as run

    chosen = read_recipe(recipe, recipe_file, settings or [])
    if words_see not in get_args(WordsSee):
        raise typer.BadParameter(f"--words-see is {words_see!r}; expected one of {', '.join(get_args(WordsSee))}")
    layers = answer_layers, entity_size, placeholder_layers
    begin = Start(start, vocabulary, words_see, *layers)  # type: ignore[arg-type]  # checked above
    output = Output(out, check_precision(table), save_every, keep)
    with processes(device) as group:
        for _ in run(begin, windows, chosen, output, group, descriptions, prefix):
            pass
    typer.echo(f"wrote {out}")
