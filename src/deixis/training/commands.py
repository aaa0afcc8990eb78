"""What can be trained, each command a class of settings: `deixis train` and `python -m deixis.training` read these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from deixis.training.fields import About, Fields
from deixis.training.recipe import PRESETS, DetectorRecipe

__all__ = ["COMMANDS", "Describing", "DetectorTraining", "Finetuning", "Pretraining", "Run"]

_CHOICES = ", ".join(PRESETS)
_OUT = About("The model folder to write; checkpoints go into OUT.run beside it.", positional=True)
_DEVICE = About("Where it runs, e.g. cpu or cuda; if not given, cuda where there is one.")


@dataclass(frozen=True, kw_only=True)
class Run(Fields):
    """What all runs with checkpoints have in common."""

    recipe: Annotated[str, About(f"The recipe to start from: {_CHOICES}.")] = "small-stage1"
    recipe_file: Annotated[Path | None, About("TOML with fields of the recipe to change.")] = None
    settings: Annotated[
        tuple[str, ...],
        About("A field of the recipe to change; may be repeated.", flags=("--set",), metavar="FIELD=VALUE"),
    ] = ()
    table: Annotated[Literal["fp32", "fp16", "int8"], About("Precision of the entity table on disk.")] = "fp32"
    save_every: Annotated[int | None, About("Steps between checkpoints, besides one at the end of each epoch.", 1)] = (
        None
    )
    keep: Annotated[int, About("Checkpoints that stay.", 1)] = 2
    report_every: Annotated[int, About("Steps between two lines of progress.", 1)] = 20
    device: Annotated[str | None, _DEVICE] = None


@dataclass(frozen=True, kw_only=True)
class Pretraining(Run):
    """Train a network on windows; a run that was killed goes on from its last checkpoint.

        deixis train pretrain bert windows stage1 --vocabulary vocabulary.jsonl --recipe paper-stage1

        deixis train pretrain stage1 windows stage2 --recipe paper-stage2 --set epochs=3 --set batch=512

    On several GPUs, with the same arguments: torchrun --nproc-per-node 8 -m deixis.training pretrain …
    """

    start: Annotated[Path, About("A BERT folder, or a model folder of an earlier stage.", positional=True)]
    windows: Annotated[Path, About("The folder that `deixis wikipedia windows` wrote.", positional=True)]
    out: Annotated[Path, _OUT]
    vocabulary: Annotated[Path | None, About("The entities, where START is a BERT folder.")] = None
    words_see: Annotated[
        Literal["answers", "placeholders", "words"],
        About("What words see where START is a BERT folder: answers (the paper), placeholders, or words alone."),
    ] = "answers"
    placeholder_layers: Annotated[
        int | None, About("With words: layers from the top in which placeholders exist; all if not given.", 1)
    ] = None
    answer_layers: Annotated[
        int | None, About("But with answers: layers from the top in which answers exist; all if not given.", 1)
    ] = None
    entity_size: Annotated[int | None, About("Columns of B; the hidden size if not given.", 1)] = None
    descriptions: Annotated[
        tuple[Path, ...],
        About("Rows of B from text: TSV of title and description (repeatable), or one .npy of vectors."),
    ] = ()
    prefix: Annotated[str, About("What the encoder wants before a description, e.g. 'query: '.")] = ""
    own_links: Annotated[
        int | None,
        About(
            "With descriptions: entities with fewer links have a row from their text alone; if not given, none.",
            1,
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class Finetuning(Run):
    """Train a model to choose among candidates; mentions whose entity is not among them are left out.

    deixis train finetune model aida-train tuned --data benchmarks --candidates kb+yago

    deixis train finetune model mine.jsonl tuned --set epochs=5 --set learning_rate=1e-5
    """

    start: Annotated[Path, About("The model folder to start from.", positional=True, metavar="MODEL")]
    documents: Annotated[
        str,
        About("Document JSONL, every mention with its entity and candidates; or a set, aida-train.", positional=True),
    ]
    out: Annotated[Path, _OUT]
    recipe: Annotated[str, About(f"The recipe to start from: {_CHOICES}.")] = "paper-finetune"
    held_out: Annotated[str | None, About("Documents that are measured at the end of each epoch; a file or a set.")] = (
        None
    )
    data: Annotated[Path, About("The folder with the benchmarks, where a set is named.")] = Path()
    candidates: Annotated[
        Literal["kb+yago", "ppr", "none"],
        About("Of a set: kb+yago (the published lists), ppr, or none: those given with the mentions."),
    ] = "none"
    redirects: Annotated[
        Path | None, About("Redirect table for golds and lists, as the model's is: lines of old title TAB new title.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class DetectorTraining(DetectorRecipe):
    """Train the detector of a model: a small head that finds names, with the kind of each.

    Only the head is trained, so that a few thousand sentences take minutes. Texts whose "split" is not "train" are
    held out; their spans are measured at the end.

        deixis train detector model names.jsonl -o model-2

        deixis train detector model ner/*.jsonl.xz mine.jsonl -o model-2 --epochs 4 --device cuda
    """

    start: Annotated[Path, About("The model folder, whose encoder stays as it is.", positional=True, metavar="MODEL")]
    data: Annotated[
        tuple[Path, ...],
        About(
            "JSONL: texts with their spans, or documents with mentions; see docs/howto/detector.md.", positional=True
        ),
    ]
    output: Annotated[Path, About("The model folder to write.", flags=("--output", "-o"))]
    device: Annotated[str | None, _DEVICE] = None


@dataclass(frozen=True, kw_only=True)
class Describing(Fields):
    """Read what is written about entities, for `pretrain --descriptions`: a vector for each row.

    deixis train describe bert vocabulary.jsonl descriptions.tsv -o vectors.npy
    """

    encoder: Annotated[Path, About("A BERT folder.", positional=True)]
    vocabulary: Annotated[Path, About("The entities.", positional=True)]
    descriptions: Annotated[tuple[Path, ...], About("TSV of title and description.", positional=True)]
    output: Annotated[Path, About("The .npy to write.", flags=("--output", "-o"))]
    prefix: Annotated[str, About("What the encoder wants before a text, e.g. 'query: '.")] = ""
    titles_alone: Annotated[bool, About("Read the title where there is no description.")] = False
    centre: Annotated[bool, About("Subtract the mean of all vectors.")] = False
    device: Annotated[str | None, _DEVICE] = None


COMMANDS: Mapping[str, type[Fields]] = {
    "pretrain": Pretraining,
    "finetune": Finetuning,
    "detector": DetectorTraining,
    "describe": Describing,
}
