"""`deixis finetune`: train a model on annotated documents with candidates."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["finetune"]


def finetune(
    model: Annotated[Path, typer.Argument(help="The model folder to start from.")],
    documents: Annotated[
        str, typer.Argument(help="Document JSONL, every mention with its entity and candidates; or a set, aida-train.")
    ],
    out: Annotated[Path, typer.Argument(help="The model folder to write; checkpoints go into OUT.run beside it.")],
    held_out: Annotated[
        str | None, typer.Option(help="Documents that are measured at the end of each epoch; a file or a set.")
    ] = None,
    data: Annotated[Path, typer.Option(help="The folder with the benchmarks, where a set is named.")] = Path(),
    candidates: Annotated[
        str, typer.Option(help="Of a set: kb+yago (the published lists), ppr, or none: those given with the mentions.")
    ] = "none",
    redirects: Annotated[
        Path | None,
        typer.Option(help="Old to new titles, for golds and lists, as the model's are: lines old TAB new, or JSON."),
    ] = None,
    recipe: Annotated[str, typer.Option(help="The recipe to start from.")] = "paper-finetune",
    recipe_file: Annotated[Path | None, typer.Option(help="TOML with fields of the recipe to change.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="field=value of the recipe to change; several.")
    ] = None,
    table: Annotated[str, typer.Option(help="Precision of the entity table on disk: fp32, fp16, int8.")] = "fp32",
    save_every: Annotated[
        int | None, typer.Option(min=1, help="Steps between checkpoints; besides one at the end of each epoch.")
    ] = None,
    keep: Annotated[int, typer.Option(min=1, help="Checkpoints that stay.")] = 2,
    device: Annotated[str | None, typer.Option(help="cpu or cuda; cuda where there is one if not given.")] = None,
) -> None:
    """Train a model to choose among candidates; mentions whose entity is not among them are left out.

    deixis finetune model/ aida-train tuned/ --data benchmarks/ --candidates kb+yago

    deixis finetune model/ mine.jsonl tuned/ --set epochs=5 --set learning_rate=1e-5
    """
    from deixis.datasets import open_dataset, read_redirects
    from deixis.folder.model_folder import check_precision
    from deixis.knowledge.vocabulary import Vocabulary
    from deixis.training import processes, read_recipe
    from deixis.training.runs import Output, Start
    from deixis.training.runs import finetune as run

    chosen = read_recipe(recipe, recipe_file, settings or [])
    output = Output(out, check_precision(table), save_every, keep)
    start = Start(model)
    moved = read_redirects(redirects) if redirects else {}
    if moved and start.is_model:  # another folder is refused below
        moved = Vocabulary.load(model / "vocabulary.jsonl").lead(moved)
    with processes(device) as group:
        texts = open_dataset(data, documents, candidates).redirected(moved).documents
        other = None if held_out is None else open_dataset(data, held_out, candidates).redirected(moved).documents
        for _ in run(start, texts, other, chosen, output, group):
            pass
    typer.echo(f"wrote {out}")
