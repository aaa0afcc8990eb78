"""Whole runs, from folders to a model folder: pretraining on windows, fine-tuning on documents (paper 3.4, 4.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch

from deixis.artefacts import MANIFEST, Manifest, digest_file, read_lines
from deixis.corpus.windows import SPLITS, WindowSet
from deixis.documents import Document
from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder, Precision, network_from_bert
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import WordsSee
from deixis.network.encoding import Tokenizer
from deixis.training.checkpoints import Saving
from deixis.training.descriptions import describe, describe_table, fold, load_vectors, read_descriptions, save_vectors
from deixis.training.distributed import Processes
from deixis.training.loop import Step, train
from deixis.training.objectives import AddedLoss
from deixis.training.recipe import Recipe
from deixis.training.reporting import report

__all__ = ["Output", "Start", "finetune", "pretrain", "read_documents"]


@dataclass(frozen=True, slots=True)
class Start:
    """What a run starts from: a BERT folder and a vocabulary, or a model folder, which has its own."""

    folder: Path
    vocabulary: Path | None = None
    words_see: WordsSee = "answers"  # of a network that starts from BERT; a model folder knows its own
    answer_layers: int | None = None
    entity_size: int | None = None
    placeholder_layers: int | None = None

    @property
    def is_model(self) -> bool:
        """Whether the folder is one of deixis."""
        return (self.folder / MANIFEST).exists()

    def load(self, seed: int) -> ModelFolder:
        """Open the model, or make one from BERT."""
        if self.is_model:
            model = ModelFolder.load(self.folder)
            entities = model.network.entity_embeddings
            entities.entity_embeddings = entities.entity_embeddings.quantised("fp32")  # only fp32 can be trained
            return model
        if self.vocabulary is None:
            raise InputError(f"{self.folder} is a BERT folder; give the vocabulary too, with --vocabulary")
        vocabulary = Vocabulary.load(self.vocabulary)
        layers = {"placeholder_layers": self.placeholder_layers, "answer_layers": self.answer_layers}
        settings = {"words_see": self.words_see, **layers}
        if self.entity_size is not None:
            settings["entity_size"] = self.entity_size
        generator = torch.Generator().manual_seed(seed)
        network = network_from_bert(self.folder, len(vocabulary), generator, **settings)
        return ModelFolder(network, Tokenizer.load(self.folder), vocabulary)

    def digest(self) -> str:
        """Return a digest of the weights a run starts from."""
        if self.is_model:
            return Manifest.load(self.folder / MANIFEST, "model").digest
        return digest_file(self.folder / "model.safetensors")


@dataclass(frozen=True, slots=True)
class Output:
    """Where a run writes its model, and its checkpoints and metrics beside it."""

    folder: Path
    table: Precision = "fp32"
    save_every: int | None = None
    keep: int = 2
    every: int = 20  # steps between two lines
    quiet: bool = False

    @property
    def work(self) -> Path:
        """The folder of checkpoints and metrics."""
        return self.folder.with_name(self.folder.name + ".run")


def pretrain(
    start: Start,
    windows: Path,
    recipe: Recipe,
    output: Output,
    processes: Processes,
    descriptions: list[Path] | None = None,
    prefix: str = "",
    added: AddedLoss | None = None,
) -> Iterator[Step]:
    """Train on windows and write a model folder; `descriptions` are TSV files, or one .npy that `describe` made.

    What `added` returns is added to the loss of each pass.
    """
    model = start.load(recipe.seed)
    parents = {"start": start.digest(), "windows": Manifest.load(windows / MANIFEST, "windows").digest}
    data, held_out = (WindowSet.open(windows, split, model.vocabulary) for split in SPLITS)
    if descriptions:
        _describe(model, start, descriptions, prefix, output, processes, recipe.seed)
        parents["descriptions"] = _digest_of(descriptions)
    other = held_out if len(held_out) else None
    yield from _run(model, data, other, recipe, output, processes, parents, added)


def finetune(
    start: Start,
    documents: Iterable[Document],
    held_out: Iterable[Document] | None,
    recipe: Recipe,
    output: Output,
    processes: Processes,
) -> Iterator[Step]:
    """Train on annotated documents, with gold entities and candidates, and write a model folder."""
    if not start.is_model:
        raise InputError(f"{start.folder} is no model folder; fine-tuning starts from what `deixis pretrain` wrote")
    model = start.load(recipe.seed)

    def data(given: Iterable[Document]) -> WindowSet:
        return WindowSet.of_documents(given, model.tokenizer, model.vocabulary, recipe.candidates)

    train_on = data(documents)
    other = None if held_out is None else data(held_out)
    parents = {"start": start.digest(), "documents": train_on.digest}
    yield from _run(model, train_on, other, recipe, output, processes, parents)


def read_documents(path: Path) -> Iterator[Document]:
    """Read document JSONL with the standard library alone; errors name the line."""
    for number, line in read_lines(path):
        try:
            yield Document.from_record(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{number} is not JSON: {error}") from None
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None


def _run(
    model: ModelFolder,
    data: WindowSet,
    held_out: WindowSet | None,
    recipe: Recipe,
    output: Output,
    processes: Processes,
    parents: dict[str, str],
    added: AddedLoss | None = None,
) -> Iterator[Step]:
    """Train, tell, and write the model when done."""
    output.work.mkdir(parents=True, exist_ok=True)
    saving = Saving(output.work / "checkpoints", output.save_every, output.keep, tuple(parents.items()))
    steps = train(
        model.network, model.tokenizer, data, recipe, held_out=held_out, processes=processes, saving=saving, added=added
    )
    if processes.leads:
        steps = report(steps, output.work, output.every, output.quiet)
    yield from steps
    if processes.leads:
        fold(model.network)
        model.network.cpu()
        model.save(output.folder, table=output.table, parents=parents)
    processes.wait()


def _describe(
    model: ModelFolder, start: Start, paths: list[Path], prefix: str, output: Output, processes: Processes, seed: int
) -> None:
    """Give the network rows from text; vectors are made once, by the process that leads."""
    if [path.suffix for path in paths] == [".npy"]:
        made = paths[0]
    else:
        if start.is_model:
            raise InputError("descriptions are read with the starting BERT encoder; give the .npy of the first stage")
        made = output.work / "descriptions.npy"
        if processes.leads and not made.exists():
            texts = read_descriptions(paths)
            save_vectors(describe(start.folder, model.vocabulary, texts, processes.device, prefix=prefix), made)
        processes.wait()
    generator = None if start.is_model else torch.Generator().manual_seed(seed + 1)
    describe_table(model.network, load_vectors(made), generator)


def _digest_of(paths: list[Path]) -> str:
    return "+".join(digest_file(path)[:16] for path in paths)
