"""`python -m deixis.training`: pretraining and fine-tuning where only torch and its kin are installed; for torchrun.

python -m deixis.training pretrain bert/ windows/ model/ --vocabulary vocabulary.jsonl --recipe small-stage1
torchrun --nproc-per-node 8 -m deixis.training pretrain model-1/ windows/ model-2/ --recipe paper-stage2
python -m deixis.training finetune model/ aida-train.jsonl tuned/ --set epochs=3
python -m deixis.training describe bert/ vocabulary.jsonl descriptions.tsv.xz vectors.npy
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from deixis.errors import DeixisError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import WordsSee
from deixis.training.descriptions import describe, read_descriptions, save_vectors
from deixis.training.distributed import Processes, processes
from deixis.training.loop import Step
from deixis.training.recipe import PRESETS, read_recipe
from deixis.training.runs import Output, Start, finetune, pretrain, read_documents


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    given = _parser().parse_args(arguments)
    try:
        with processes(given.device) as group:
            if given.command == "describe":
                vectors = describe(
                    given.encoder,
                    Vocabulary.load(given.vocabulary),
                    read_descriptions(given.descriptions),
                    group.device,
                    prefix=given.prefix,
                    titles_alone=given.titles_alone,
                    centre=given.centre,
                )
                save_vectors(vectors, given.out)
                return 0
            for _ in _steps(given, group):
                pass
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("deixis: interrupted; run the same command again to go on from the last checkpoint", file=sys.stderr)
        return 130
    return 0


def _steps(given: argparse.Namespace, group: Processes) -> Iterator[Step]:
    recipe = read_recipe(given.recipe, given.recipe_file, given.set)
    output = Output(given.out, given.table, given.save_every, given.keep, given.report_every)
    if given.command == "finetune":
        held_out = None if given.held_out is None else read_documents(given.held_out)
        return finetune(Start(given.start), read_documents(given.data), held_out, recipe, output, group)
    layers = given.answer_layers, given.entity_size, given.placeholder_layers
    start = Start(given.start, given.vocabulary, given.words_see, *layers)
    return pretrain(start, given.data, recipe, output, group, given.descriptions, given.prefix)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deixis.training", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, preset in (("pretrain", "small-stage1"), ("finetune", "paper-finetune")):
        command = commands.add_parser(name)
        command.add_argument("start", type=Path, help="a BERT folder or a model folder")
        command.add_argument("data", type=Path, help="folder of windows, or document JSONL")
        command.add_argument("out", type=Path, help="the model folder to write")
        command.add_argument("--recipe", default=preset, help=", ".join(PRESETS))
        command.add_argument("--recipe-file", type=Path, help="TOML with fields of the recipe")
        command.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
        command.add_argument("--table", default="fp32", choices=["fp32", "fp16", "int8"])
        command.add_argument("--save-every", type=int, help="steps; also at the end of each epoch")
        command.add_argument("--keep", type=int, default=2, help="checkpoints that stay")
        command.add_argument("--report-every", type=int, default=20, help="steps")
        command.add_argument("--device")
        if name == "finetune":
            command.add_argument("--held-out", type=Path, help="document JSONL")
            continue
        command.add_argument("--vocabulary", type=Path, help="with a BERT folder")
        command.add_argument("--words-see", default="answers", choices=get_args(WordsSee))
        command.add_argument("--placeholder-layers", type=int)
        command.add_argument("--answer-layers", type=int)
        command.add_argument("--entity-size", type=int)
        command.add_argument("--descriptions", type=Path, action="append", help="TSV files, or one .npy of vectors")
        command.add_argument("--prefix", default="", help="what the encoder wants before a text")
    command = commands.add_parser("describe")
    command.add_argument("encoder", type=Path, help="a BERT folder")
    command.add_argument("vocabulary", type=Path)
    command.add_argument("descriptions", type=Path, nargs="+", help="TSV: title, description")
    command.add_argument("out", type=Path, help="the .npy to write")
    command.add_argument("--prefix", default="")
    command.add_argument("--titles-alone", action="store_true", help="read the title where there is no description")
    command.add_argument("--centre", action="store_true", help="subtract the mean of all vectors")
    command.add_argument("--device")
    return parser


if __name__ == "__main__":
    sys.exit(main())
