"""Whole runs, from folders to a model folder: pretraining, fine-tuning, a detector (paper 3.4, 4.2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from deixis.artefacts import MANIFEST, Manifest, digest_file, read_lines
from deixis.corpus.windows import SPLITS, WindowSet
from deixis.documents import Candidate, Document, Mention, normalise_title
from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder, located, network_from_bert, with_detector
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.detector import LearnedDetector
from deixis.network.encoding import Tokenizer
from deixis.network.precision import compute_in
from deixis.training.checkpoints import Saving
from deixis.training.commands import Describing, DetectorTraining, Finetuning, Pretraining
from deixis.training.descriptions import (
    describe,
    describe_table,
    fold,
    load_vectors,
    own_rows,
    read_descriptions,
    save_vectors,
)
from deixis.training.detector import lessons_of, read_marked_texts, score_detector, train_detector
from deixis.training.distributed import Processes, processes
from deixis.training.fields import Fields, fields_of
from deixis.training.loop import Step, train
from deixis.training.objectives import AddedLoss
from deixis.training.recipe import DetectorRecipe, Recipe, read_recipe
from deixis.training.reporting import report

__all__ = ["carry_out", "finetune", "pretrain", "read_documents"]


def carry_out(given: Fields) -> Iterator[str]:
    """Run what settings ask for; yield what there is to say."""
    if isinstance(given, DetectorTraining):
        yield from _train_detector(given)
    elif isinstance(given, Describing):
        yield _describe(given)
    elif isinstance(given, Pretraining | Finetuning):
        with processes(given.device) as group:
            steps = pretrain(given, group) if isinstance(given, Pretraining) else finetune(given, group)
            for _ in steps:
                pass
            if group.leads:
                yield f"written: {given.out}"
    else:
        raise TypeError(f"{type(given).__name__} are settings of no command")


def pretrain(given: Pretraining, group: Processes, added: AddedLoss | None = None) -> Iterator[Step]:
    """Train on windows and write a model folder; what `added` returns is added to the loss of each pass."""
    job = _Job.of(given)
    model = _started(given, job.recipe.seed) if job.model is None else job.model
    parents = {"start": job.digest, "windows": Manifest.load(given.windows / MANIFEST, "windows").digest}
    data, held_out = (WindowSet.open(given.windows, split, model.vocabulary) for split in SPLITS)
    if given.descriptions:
        _describe_rows(model, given, job, group)
        parents["descriptions"] = "+".join(digest_file(path)[:16] for path in given.descriptions)
    yield from job.run(model, data, held_out if len(held_out) else None, parents, group, added)


def finetune(given: Finetuning, group: Processes, added: AddedLoss | None = None) -> Iterator[Step]:
    """Train on annotated documents, with gold entities and candidates, and write a model folder."""
    job = _Job.of(given)
    model = job.model
    if model is None:
        raise InputError(
            f"{given.start} is not a model folder; fine-tuning starts from what `deixis train pretrain` wrote"
        )

    def data(name: str) -> WindowSet:
        documents = _documents(given, name, model.vocabulary)
        return WindowSet.of_documents(documents, model.tokenizer, model.vocabulary, job.recipe.candidates)

    train_on = data(given.documents)
    held_out = None if given.held_out is None else data(given.held_out)
    yield from job.run(model, train_on, held_out, {"start": job.digest, "documents": train_on.digest}, group, added)


@dataclass(frozen=True, slots=True)
class _Job:
    """A run with its recipe, what it starts from, and what its model's manifest will tell."""

    given: Pretraining | Finetuning
    recipe: Recipe
    model: ModelFolder | None  # None: it starts from a BERT folder
    digest: str  # of the weights it starts from
    stages: tuple[Mapping[str, Any], ...]  # of training so far

    @classmethod
    def of(cls, given: Pretraining | Finetuning) -> _Job:
        recipe = read_recipe(given.recipe, given.recipe_file, given.settings)
        start = located(given.start)
        if not (start / MANIFEST).exists():
            return cls(given, recipe, None, digest_file(start / "model.safetensors"), ())
        made = Manifest.load(start / MANIFEST, "model")
        model = ModelFolder.load(start)
        entities = model.network.entity_embeddings
        entities.entity_embeddings = entities.entity_embeddings.quantised("fp32")  # only fp32 can be trained
        return cls(given, recipe, model, made.digest, tuple(made.parameters.get("training", ())))

    @property
    def work(self) -> Path:
        """The folder of checkpoints and metrics."""
        return self.given.out.with_name(self.given.out.name + ".run")

    def run(
        self,
        model: ModelFolder,
        data: WindowSet,
        held_out: WindowSet | None,
        parents: dict[str, str],
        group: Processes,
        added: AddedLoss | None,
    ) -> Iterator[Step]:
        """Train, tell, and write the model when done."""
        given = self.given
        self.work.mkdir(parents=True, exist_ok=True)
        saving = Saving(self.work / "checkpoints", given.save_every, given.keep, tuple(parents.items()))
        trained = (model.network, model.tokenizer, data, self.recipe)
        steps = train(*trained, held_out=held_out, processes=group, saving=saving, added=added)
        if group.leads:
            steps = report(steps, self.work, given.report_every)
        yield from steps
        if group.leads:
            fold(model.network)
            model.network.cpu()
            command = "pretrain" if isinstance(given, Pretraining) else "finetune"
            stage = {"command": command, "start": given.recipe, "recipe": self.recipe.to_json(), "parents": parents}
            told = {"training": [*self.stages, stage]}
            model.save(given.out, table=given.table, parents=parents, parameters=told)
        group.wait()


def _started(given: Pretraining, seed: int) -> ModelFolder:
    """Make a model from a BERT folder and a vocabulary."""
    if given.vocabulary is None:
        raise InputError(f"{given.start} is a BERT folder; give the vocabulary too, with --vocabulary")
    vocabulary = Vocabulary.load(given.vocabulary)
    wanted = {name: getattr(given, name) for name in ("words_see", "placeholder_layers", "answer_layers")}
    if given.entity_size is not None:
        wanted["entity_size"] = given.entity_size
    network = network_from_bert(given.start, len(vocabulary), torch.Generator().manual_seed(seed), **wanted)
    return ModelFolder(network, Tokenizer.load(given.start), vocabulary)


def _describe_rows(model: ModelFolder, given: Pretraining, job: _Job, group: Processes) -> None:
    """Give the network rows from text; vectors are made once, by the process that leads."""
    if [path.suffix for path in given.descriptions] == [".npy"]:
        made = given.descriptions[0]
    else:
        if job.model is not None:
            raise InputError("descriptions are read with the starting BERT encoder; give the .npy of the first stage")
        made = job.work / "descriptions.npy"
        if group.leads and not made.exists():
            texts = read_descriptions(given.descriptions)
            save_vectors(describe(given.start, model.vocabulary, texts, group.device, prefix=given.prefix), made)
        group.wait()
    generator = torch.Generator().manual_seed(job.recipe.seed + 1) if job.model is None else None
    own = None if given.own_links is None else own_rows(model.vocabulary.counts, given.own_links)
    describe_table(model.network, load_vectors(made), generator, own)


def _describe(given: Describing) -> str:
    with processes(given.device) as group:
        vectors = describe(
            given.encoder,
            Vocabulary.load(given.vocabulary),
            read_descriptions(given.descriptions),
            group.device,
            prefix=given.prefix,
            titles_alone=given.titles_alone,
            centre=given.centre,
        )
    save_vectors(vectors, given.output)
    return f"written: {given.output}"


def _train_detector(given: DetectorTraining) -> Iterator[str]:
    """Train a head on the encoder of a model, measure it, and write the model with it."""
    model, texts = ModelFolder.load(given.start), list(read_marked_texts(given.data))
    with processes(given.device) as group:
        if group.device.type == "cuda":
            compute_in(model.network, "bf16")
        network = model.network.to(group.device).eval()
        head = train_detector(network, model.tokenizer, lessons_of(model.tokenizer, texts), given)
        for score in score_detector(LearnedDetector(network, model.tokenizer, head), texts):
            yield str(score)
    recipe = {field.name: getattr(given, field.name) for field in fields_of(DetectorRecipe)}
    data = {path.name: digest_file(path) for path in given.data}
    manifest = with_detector(given.start, given.output, head, {"recipe": recipe, "data": data})
    yield f"written: {given.output}, digest {manifest.digest[:12]}"


def _documents(given: Finetuning, name: str, vocabulary: Vocabulary) -> Iterable[Document]:
    """Read a set or a file under the titles that the model has."""
    try:
        from deixis.datasets import open_dataset, read_redirects
    except ModuleNotFoundError as error:
        if ".jsonl" not in Path(name).suffixes or given.redirects is not None or given.candidates != "none":
            raise InputError(
                f"{name} is read with {error.name}, which is not installed; give document JSONL under the model's "
                "own titles, with the candidates in it"
            ) from None
        return read_documents(Path(name))
    moved = vocabulary.lead(read_redirects(given.redirects)) if given.redirects else {}
    return open_dataset(given.data, name, given.candidates).redirected(moved).documents


def read_documents(path: Path) -> Iterator[Document]:
    """Read document JSONL with the standard library alone, titles normalised; errors name the line."""
    for number, line in read_lines(path):
        try:
            document = Document.from_record(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(f"{path}:{number} is not JSON: {error}") from None
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        yield replace(document, mentions=tuple(map(_normalised, document.mentions)))


def _normalised(mention: Mention) -> Mention:
    listed = mention.candidates
    if listed is not None:
        listed = tuple(Candidate(normalise_title(one.entity), one.prior) for one in listed)
    return replace(mention, entity=mention.entity and normalise_title(mention.entity), candidates=listed)
