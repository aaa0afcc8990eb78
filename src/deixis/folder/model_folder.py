"""Model folders: save, load, verify; starting from a BERT folder; the layout of LUKE's checkpoints (protocol 13).

config.json            the shape of the network
encoder.safetensors    every tensor but those of the next, in fp32, fp16, int12 or int8 (quantisation.py)
entities.safetensors   the entity table (fp32, fp16, int8, or mixed: entity_table.py) and its biases
vocabulary.jsonl       entities in the order of their rows
tokenizer.json
candidates/            the store, where the folder has one
linking.json           how plain texts are linked, where it is not as by default
descriptions.safetensors  the map from descriptions to rows, where one was fitted (describing.py)
entities.jsonl         the entities that were added, as they were described (knowledge.py)
detector.safetensors   the learned detector, where one was trained for this encoder
README.md              the model card, where somebody wrote one
manifest.json          digests of all but the card, parents
"""

from __future__ import annotations

import copy
import json
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside
from deixis.disambiguation.answer_rule import AnswerRule
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.describe import Describer
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import Config
from deixis.network.detector import DetectorHead
from deixis.network.encoding import Tokenizer
from deixis.network.entity_table import EntityTable, TablePrecision
from deixis.network.model import Network
from deixis.network.quantisation import dequantise, quantise
from deixis.network.special import MASK, SPECIAL

if TYPE_CHECKING:
    from deixis.knowledge.names import Names

__all__ = [
    "Linking",
    "ModelFolder",
    "Precision",
    "convert_luke",
    "network_from_bert",
    "packaged_model",
    "quantise_folder",
    "relink",
    "with_detector",
]

_Module = TypeVar("_Module", bound=nn.Module)

Precision = TablePrecision  # "mixed": a table that is mixed already, as it is
EncoderPrecision = Literal["fp32", "fp16", "int12", "int8"]

CONFIG, ENCODER, ENTITIES, VOCABULARY = "config.json", "encoder.safetensors", "entities.safetensors", "vocabulary.jsonl"
CANDIDATES, LINKING, CARD = "candidates", "linking.json", "README.md"
PACKAGED = Path(__file__).parents[1] / "models" / "default"  # the model that deixis comes with
DETECTOR = "detector.safetensors"
DESCRIBER, KNOWN = "descriptions.safetensors", "entities.jsonl"
TABLE = "entity_embeddings.entity_embeddings."  # what the names of its tensors begin with
BIAS = "entity_predictions.bias"


def packaged_model() -> Path:
    """Return the folder of the model that deixis comes with."""
    if not (PACKAGED / MANIFEST).exists():
        raise ArtefactError(
            f"this copy of deixis comes without a model ({PACKAGED} is missing): give a model folder or install a wheel"
        )
    return PACKAGED


def check_precision(name: str) -> Precision:
    """Refuse a precision that an entity table cannot have."""
    if name not in get_args(Precision):
        raise InputError(f"the precision is {name!r}; expected one of {', '.join(get_args(Precision))}")
    return cast(Precision, name)


def check_encoder_precision(name: str) -> EncoderPrecision:
    """Refuse a precision that an encoder cannot have."""
    if name not in get_args(EncoderPrecision):
        raise InputError(f"the precision is {name!r}; expected one of {', '.join(get_args(EncoderPrecision))}")
    return cast(EncoderPrecision, name)


@dataclass(frozen=True, slots=True)
class Linking:
    """How a model links plain texts; chosen on held-out data by `deixis calibrate`."""

    names: float | None = None  # the least link probability of a mention; None: detection.py's own
    answers: float = 0.0  # the least probability of an answer; under it a mention is left unresolved
    prior: float = 0.0  # the weight of log p(e|m) in the scores
    rule: AnswerRule | None = None  # makes probabilities of the evidence for answers

    def __post_init__(self) -> None:
        if isinstance(self.rule, list):  # as JSON has it
            object.__setattr__(self, "rule", AnswerRule(*self.rule))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object; a rule that there is not is left out."""
        return {name: value for name, value in asdict(self).items() if name != "rule" or value is not None}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """All that is needed to disambiguate, as a folder holds it.

    Examples:
        >>> parts = ModelFolder.load(Path("velm/model"))
        >>> parts.network.config.words_see, parts.linking
        ('placeholders', Linking(names=None, answers=0.0, prior=0.0))
        >>> manifest = parts.save(Path("small"), table="int8", candidates=Path("velm/store"))
        >>> sorted(manifest.files)[-1]
        'vocabulary.jsonl'
    """

    network: Network
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    store: Names | None = None  # what `load` found; `save` copies the one whose path it is given
    linking: Linking = field(default_factory=Linking)
    describer: Describer | None = None
    known: tuple[bytes, ...] = ()  # lines of JSON, one for each entity that was added
    detector: DetectorHead | None = None

    def save(
        self,
        folder: Path,
        *,
        table: Precision = "fp32",
        encoder: EncoderPrecision = "fp32",
        candidates: Path | None = None,
        parents: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Write the folder, whole or not at all; `candidates` is a store to copy into it.

        `parents` and `parameters` tell the manifest what the model was made from, and how.
        """
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.network.state_dict().items()}
        rows = self.network.entity_embeddings.entity_embeddings.quantised(table).state_dict()
        entities = {BIAS: state.pop(BIAS), **{TABLE + name: x.cpu().contiguous() for name, x in rows.items()}}
        state = {name: tensor for name, tensor in state.items() if not name.startswith(TABLE)}
        if encoder == "fp16":
            state = {name: tensor.half() for name, tensor in state.items()}
        elif encoder != "fp32":
            state = quantise(state, 8 if encoder == "int8" else 12)
        with folder_aside(folder) as aside:
            (aside / CONFIG).write_text(json.dumps(self.network.config.to_json(), indent=1) + "\n")
            save_file(state, aside / ENCODER)
            save_file(entities, aside / ENTITIES)
            self.vocabulary.save(aside / VOCABULARY)
            self.tokenizer.save(aside)
            if self.linking != Linking():
                (aside / LINKING).write_text(json.dumps(self.linking.to_json()) + "\n")
            if self.detector is not None:
                self.detector.save(aside / DETECTOR)
            if self.describer is not None:
                self.describer.save(aside / DESCRIBER)
            if self.known:
                (aside / KNOWN).write_bytes(b"".join(line + b"\n" for line in self.known))
            if candidates is not None:
                shutil.copytree(candidates, aside / CANDIDATES)
                if (added := getattr(self.store, "extension", None)) is not None:
                    added.save(aside / CANDIDATES)
            # The card is no part of what the digest stands for: it tells figures measured with the finished folder.
            paths = sorted(path for path in aside.rglob("*") if path.is_file() and path.name != CARD)
            files = {str(path.relative_to(aside)): digest_file(path) for path in paths}
            counts = {"entities": len(self.vocabulary.entities), "entities added": len(self.known)}
            told = {"table": table, "encoder": encoder, **(parameters or {})}
            manifest = Manifest("model", told, dict(parents or {}), files, counts)
            manifest.save(aside / MANIFEST)
        return manifest

    def among(self, vocabulary: Vocabulary) -> ModelFolder:
        """Return the model with the entities of a smaller vocabulary only; its answers among them are the same."""
        rows = torch.tensor([*range(len(SPECIAL)), *map(self._row, vocabulary.entities)])
        table, bias = self._table
        return self._with_table(vocabulary, table.select(rows), bias[rows])

    def with_rows(self, titles: Sequence[str], rows: Tensor, biases: Tensor) -> ModelFolder:
        """Return the model with more entities, their rows in the table's own precision."""
        counts = [*self.vocabulary.counts, *([0] * len(titles))]
        vocabulary = Vocabulary([*self.vocabulary.titles, *titles], counts)
        table, bias = self._table
        return self._with_table(vocabulary, table.append(rows), torch.cat([bias, biases.to(bias.device)]))

    def with_changed(self, titles: Sequence[str], rows: Tensor, biases: Tensor) -> ModelFolder:
        """Return the model with other rows of some of its entities; those of the others stay to the bit."""
        table, bias = self._table
        at = torch.tensor([self._row(title) for title in titles], dtype=torch.int64, device=bias.device)
        return self._with_table(
            self.vocabulary, table.replace(at, rows), bias.index_copy(0, at, biases.to(bias.device))
        )

    @property
    def _table(self) -> tuple[EntityTable, Tensor]:
        return self.network.entity_embeddings.entity_embeddings, self.network.entity_predictions.bias.detach()

    def _with_table(self, vocabulary: Vocabulary, table: EntityTable, bias: Tensor) -> ModelFolder:
        """Return the model with another table of entities; all other weights are shared."""
        network = _shallow(self.network)
        network.config = replace(network.config, entities=len(vocabulary))
        network.entity_embeddings = _shallow(network.entity_embeddings)
        network.entity_embeddings.entity_embeddings = table
        network.entity_predictions = _shallow(network.entity_predictions)
        network.entity_predictions.bias = nn.Parameter(bias)
        return replace(self, network=network.eval(), vocabulary=vocabulary)

    def with_table(self, vocabulary: Vocabulary, table: EntityTable, biases: Tensor) -> ModelFolder:
        """Return the model with the entities of a vocabulary and their rows in int8, in place of its own."""
        own, bias = self._table
        special, more = own.quantised("int8").select(torch.arange(len(SPECIAL))).state_dict(), table.state_dict()
        joined = EntityTable.of({name: torch.cat([special[name].cpu(), more[name]]) for name in more})
        return self._with_table(vocabulary, joined, torch.cat([bias[: len(SPECIAL)].cpu(), biases]))

    def _row(self, title: str) -> int:
        row = self.vocabulary.row(title)
        if row is None:
            raise InputError(f"the model has no row for {title!r}; give titles of its vocabulary")
        return row

    @classmethod
    def load(cls, folder: Path) -> ModelFolder:
        """Open a folder; every file is checked against the manifest, and the entity table stays on disk."""
        if not folder.is_dir():
            raise ArtefactError(f"{folder} is no folder; expected a model folder of deixis")
        Manifest.load(folder / MANIFEST, "model").verify(folder)
        config = _config(folder / CONFIG)
        vocabulary = Vocabulary.load(folder / VOCABULARY)
        if len(vocabulary) != config.entities:
            raise ArtefactError(f"{folder / VOCABULARY} has {len(vocabulary)} rows; {CONFIG} says {config.entities}")
        entities = _tensors(folder / ENTITIES)
        with torch.device("meta"):  # nothing is allocated that is not on disk
            network = Network(config)
        rows = {name.removeprefix(TABLE): x for name, x in entities.items() if name.startswith(TABLE)}
        network.entity_embeddings.entity_embeddings = EntityTable.of(rows)
        _fill(network, dequantise(_tensors(folder / ENCODER)) | entities, folder)
        store, linking = _store(folder / CANDIDATES), _linking(folder / LINKING)
        describer = Describer.load(folder / DESCRIBER) if (folder / DESCRIBER).exists() else None
        known = tuple((folder / KNOWN).read_bytes().splitlines()) if (folder / KNOWN).exists() else ()
        detector = DetectorHead.load(folder / DETECTOR) if (folder / DETECTOR).exists() else None
        return cls(network, Tokenizer.load(folder), vocabulary, store, linking, describer, known, detector)


def quantise_folder(
    source: Path,
    target: Path,
    *,
    encoder: EncoderPrecision = "int8",
    table: Precision = "int8",
    entities: int | None = None,
    keep: Collection[str] = (),
    candidates: Path | None = None,
    cut: bool = False,
    redirects: Mapping[str, str] | None = None,
    seen: Tensor | None = None,
    parents: Mapping[str, str] | None = None,
) -> Manifest:
    """Write a model folder in fewer bits; with `entities`, of so many, those of `keep` first (`Vocabulary.cut`).

    `candidates` is a store to put in place of the model's own; `cut` leaves in it what the model knows. With vectors
    m_e (seen, entity_size) the table is rounded to int8 for these; `parents` tell the manifest where they are from.
    """
    from deixis.knowledge.cut import cut_store
    from deixis.knowledge.names import Names

    model = ModelFolder.load(source)
    parents = {**(parents or {}), "model": Manifest.load(source / MANIFEST, "model").digest}
    if entities is not None:
        model = model.among(model.vocabulary.cut(entities, keep))
    if seen is not None:
        embeddings = model.network.entity_embeddings
        embeddings.entity_embeddings = embeddings.entity_embeddings.quantised("int8", seen)
    store = model.store if candidates is None else Names.open(candidates)
    if store is None:
        if cut:
            raise InputError(f"{source} has no candidate store to cut; give one")
        return model.save(target, table=table, encoder=encoder, parents=parents)
    parents["candidates"] = store.digest
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        folder = store.folder
        if cut:
            folder = Path(scratch) / CANDIDATES
            cut_store(store, model.vocabulary, folder, redirects=redirects)
        return model.save(target, table=table, encoder=encoder, candidates=folder, parents=parents)


def relink(source: Path, target: Path, linking: Linking, chosen: Mapping[str, Any]) -> Manifest:
    """Copy a model folder, to link plain texts otherwise; `chosen` tells the manifest on what that was decided."""

    def write(aside: Path) -> None:
        (aside / LINKING).write_text(json.dumps(linking.to_json()) + "\n")

    return _copy(source, target, {LINKING: write}, {"linking": dict(chosen)})


def with_detector(source: Path, target: Path, detector: DetectorHead, trained: Mapping[str, Any]) -> Manifest:
    """Copy a model folder, with another detector; `trained` tells the manifest how that was made."""
    return _copy(source, target, {DETECTOR: lambda aside: detector.save(aside / DETECTOR)}, {"detector": dict(trained)})


def _copy(
    source: Path, target: Path, changed: Mapping[str, Callable[[Path], None]], told: Mapping[str, Any]
) -> Manifest:
    """Copy a model folder; `changed` writes some files anew."""
    manifest = Manifest.load(source / MANIFEST, "model")
    manifest.verify(source)
    with folder_aside(target) as aside:
        for name in manifest.files:
            (aside / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, aside / name)
        for write in changed.values():
            write(aside)
        digests = {name: digest_file(aside / name) for name in changed}
        manifest = replace(manifest, parameters={**manifest.parameters, **told}, files={**manifest.files, **digests})
        manifest.save(aside / MANIFEST)
    return manifest


def _linking(path: Path) -> Linking:
    if not path.exists():
        return Linking()
    try:
        return Linking(**_json(path))
    except TypeError as error:
        raise ArtefactError(f"{path} does not say how to link: {error}") from None


def _store(folder: Path) -> Names | None:
    if not folder.exists():
        return None
    # Imported here: machines that only train need not have what a store is read with.
    from deixis.knowledge.names import Names

    return Names.open(folder)


def network_from_bert(folder: Path, entities: int, generator: torch.Generator, **settings: Any) -> Network:
    """Start a network from a Hugging Face BERT folder; what BERT does not have is drawn at random."""
    bert = _json(folder / CONFIG)
    network = Network(Config.of_bert(bert, entities, **settings))
    network.initialise(generator)
    given = {_bert_name(name): tensor for name, tensor in _tensors(folder / "model.safetensors").items()}
    ours = [name for name in network.state_dict() if name.startswith(("embeddings.", "encoder."))]
    missing = [name for name in ours if name not in given]
    if missing:
        raise ArtefactError(f"{folder / 'model.safetensors'} has no {missing[0]}; expected a BERT encoder")
    _fill(network, {name: given[name].float() for name in ours}, folder, partly=True)
    return network


def convert_luke(source: Path, target: Path, table: Precision = "fp32") -> Manifest:
    """Turn a LUKE checkpoint for entity disambiguation into a model folder."""
    luke = _json(source / CONFIG)
    if luke.get("use_entity_aware_attention"):
        raise ArtefactError(f"{source / CONFIG} has use_entity_aware_attention; deixis reads LUKE-ED, which has not")
    if "bert-" not in str(luke.get("bert_model_name")) or "roberta" in str(luke.get("bert_model_name")):
        raise ArtefactError(
            f"{source / CONFIG} has the bert_model_name {luke.get('bert_model_name')!r}; deixis reads LUKE-ED "
            "checkpoints, which stand on BERT"
        )
    vocabulary = Vocabulary.load(source / "entity_vocab.jsonl")
    known = {field.name for field in fields(Config)}
    shape = {name: value for name, value in luke.items() if name in known}
    size = luke.get("entity_emb_size") or luke["hidden_size"]
    network = Network(Config(**shape, entities=len(vocabulary), entity_size=size))
    _fill(network, _luke_state(source, network), source)
    return ModelFolder(network, Tokenizer.load(source), vocabulary).save(target, table=table)


def _luke_state(source: Path, network: Network) -> dict[str, Tensor]:
    if (source / "model.safetensors").exists():
        given = _tensors(source / "model.safetensors")
    elif (source / "pytorch_model.bin").exists():
        # weights_only: tensors alone are read, no code of the file is run.
        given = torch.load(source / "pytorch_model.bin", map_location="cpu", weights_only=True)
    else:
        raise ArtefactError(f"{source} has neither model.safetensors nor pytorch_model.bin")
    state = {name.removeprefix("luke."): tensor.float() for name, tensor in given.items()}
    mask = "entity_embeddings.mask_embedding"
    if (table := TABLE + "weight") in state:  # an ordinary LUKE keeps [MASK] in its row
        state[mask] = state.get(mask, state[table][MASK]).reshape(-1)
    types = "entity_embeddings.token_type_embeddings.weight"
    if types in state:
        state[types] = state[types][:1]
    return {name: state[name] for name in network.state_dict() if name in state}


def _bert_name(name: str) -> str:
    """Name a tensor as today's BertModel does: no prefix, and weight and bias for gamma and beta."""
    name = name.removeprefix("bert.")
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _fill(network: Network, state: Mapping[str, Tensor], folder: Path, partly: bool = False) -> None:
    """Put tensors into a network, refusing what is missing or of another shape."""
    for name, parameter in network.state_dict().items():
        if name in state and state[name].shape != parameter.shape:
            raise ArtefactError(
                f"{folder} has {name} of shape {tuple(state[name].shape)}; its config.json asks for "
                f"{tuple(parameter.shape)}"
            )
        if name not in state and not partly:
            raise ArtefactError(f"{folder} has no tensor {name}")
    network.load_state_dict(state, strict=not partly, assign=True)


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except FileNotFoundError:
        raise ArtefactError(f"{path} does not exist; expected the tensors of the model") from None
    except SafetensorError as error:
        raise ArtefactError(f"{path} is damaged: {error}") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ArtefactError(f"{path} does not exist; expected the folder of a model") from None
    except ValueError as error:
        raise ArtefactError(f"{path} is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ArtefactError(f"{path} is not a JSON object")
    return record


def _shallow(module: _Module) -> _Module:
    """Return a module with the same parts, which may be exchanged one by one; whatever arithmetic they compute in."""
    copied = copy.copy(module)
    copied._modules, copied._parameters = copied._modules.copy(), copied._parameters.copy()
    return copied


def _config(path: Path) -> Config:
    try:
        return Config(**_json(path))
    except TypeError as error:
        raise ArtefactError(f"{path} does not describe a network of this deixis: {error}") from None
