"""Model folders: save, load, verify; starting from a BERT folder; the layout of LUKE's checkpoints (protocol 13).

config.json            the shape of the network
encoder.safetensors    every tensor but those of the next, in fp32, fp16, int12 or int8 (quantisation.py)
entities.safetensors   the entity table (fp32, fp16, int8, or mixed: entity_table.py) and its biases
knowledge/             entities in the order of their rows, with their names (knowledge/knowledge.py), or, as training
vocabulary.jsonl       writes it, the entities alone
tokenizer.json
linking.json           how plain texts are linked, where it is not as by default
descriptions.safetensors  the map from descriptions to rows, where one was fitted (knowledge/describe.py)
added.safetensors      rows and biases of the entities that were added since
entities.jsonl         these entities, as they were described (knowledge/entities.py)
detector.safetensors   the learned detector, where one was trained for this encoder
README.md              the model card, where somebody wrote one
manifest.json          digests of all but the card, parents
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from deixis.artefacts import MANIFEST, Manifest, copy_or_link, digest_file, folder_aside
from deixis.disambiguation.answer_rule import AnswerRule
from deixis.errors import ArtefactError, InputError
from deixis.folder.hub import fetch, is_remote
from deixis.knowledge.describe import Describer
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import Config
from deixis.network.detector import DetectorHead
from deixis.network.encoding import Tokenizer
from deixis.network.entity_table import EntityTable, MixedTable, TablePrecision
from deixis.network.model import Network
from deixis.network.quantisation import dequantise, quantise
from deixis.network.special import MASK, SPECIAL

if TYPE_CHECKING:
    from deixis.knowledge.assemble import Source
    from deixis.knowledge.knowledge import Knowledge
    from deixis.knowledge.names import Names
    from deixis.knowledge.overlay import Overlay

__all__ = [
    "Linking",
    "ModelFolder",
    "Precision",
    "assemble_folder",
    "convert_luke",
    "located",
    "network_from_bert",
    "opened",
    "packaged_model",
    "quantise_folder",
    "read_old",
    "relink",
    "with_detector",
]

_Module = TypeVar("_Module", bound=nn.Module)

Precision = TablePrecision  # "mixed": a table that is mixed already, as it is
EncoderPrecision = Literal["fp32", "fp16", "int12", "int8"]

CONFIG, ENCODER, ENTITIES, VOCABULARY = "config.json", "encoder.safetensors", "entities.safetensors", "vocabulary.jsonl"
KNOWLEDGE, LINKING, CARD = "knowledge", "linking.json", "README.md"
OLD_STORE = "candidates"  # names as they lay in model folders before knowledge did
TITLE_PROBABILITY = 0.86  # that a name's title is right: the share on data/wild, benchmarks/titles.py
PACKAGED = Path(__file__).parents[1] / "models" / "default"  # the model that deixis comes with
DETECTOR = "detector.safetensors"
DESCRIBER, KNOWN, ADDED = "descriptions.safetensors", "entities.jsonl", "added.safetensors"
# Of what is told, what edits leave as it is.
KEPT = ("table", "encoder", "training", "linking", "detector", "language", "domain")
TABLE = "entity_embeddings.entity_embeddings."  # what the names of its tensors begin with
BIAS = "entity_predictions.bias"


def packaged_model() -> Path:
    """Return the folder of the model that deixis comes with."""
    if not (PACKAGED / MANIFEST).exists():
        raise ArtefactError(
            f"this copy of deixis comes without a model ({PACKAGED} is missing): give a model folder or install a wheel"
        )
    return PACKAGED


@dataclass(frozen=True, slots=True)
class Linking:
    """How a model links plain texts; chosen on held-out data by `deixis calibrate`."""

    names: float | None = None  # the least link probability of a mention; None: detection.py's own
    answers: float = 0.0  # the least probability of an answer; under it a mention is left unresolved
    prior: float = 0.0  # the weight of log p(e|m) in the scores
    rule: AnswerRule | None = None  # makes probabilities of the evidence for answers
    title_probability: float = TITLE_PROBABILITY  # of an answer of which nothing but the title is known

    def __post_init__(self) -> None:
        if isinstance(self.rule, list):  # as JSON has it
            object.__setattr__(self, "rule", AnswerRule(*self.rule))

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object; a rule that there is not, and what was not measured, are left out."""
        unsaid = {"rule": None, "title_probability": TITLE_PROBABILITY}
        return {name: value for name, value in asdict(self).items() if name not in unsaid or value != unsaid[name]}


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """All that is needed to disambiguate, as a folder holds it.

    Examples:
        >>> parts = ModelFolder.load(Path("velm/model"))
        >>> parts.network.config.words_see, parts.linking.answers
        ('placeholders', 0.0)
        >>> manifest = parts.save(Path("small"), table="int8")
        >>> sorted(manifest.files)[-1]
        'tokenizer.json'
    """

    network: Network
    tokenizer: Tokenizer
    knowledge: Knowledge | Vocabulary
    linking: Linking = field(default_factory=Linking)
    describer: Describer | None = None
    known: tuple[bytes, ...] = ()  # lines of JSON, one for each entity that was added
    detector: DetectorHead | None = None
    folder: Path | None = None  # where it was loaded from

    @property
    def vocabulary(self) -> Vocabulary:
        """The entities in the order of their rows; of knowledge it is made when asked for."""
        return self.knowledge if isinstance(self.knowledge, Vocabulary) else self.knowledge.vocabulary

    @property
    def names(self) -> Knowledge | None:
        """The knowledge, where it has names."""
        has_names = not isinstance(self.knowledge, Vocabulary) and self.knowledge.has_names
        return cast("Knowledge", self.knowledge) if has_names else None

    def save(
        self,
        folder: Path,
        *,
        table: Precision = "fp32",
        encoder: EncoderPrecision = "fp32",
        source: Source | None = None,
        title_filter: Path | None = None,
        parents: Mapping[str, str] | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> Manifest:
        """Write the folder, whole or not at all; from a source knowledge is put together, of entities with a row here.

        `parents` and `parameters` tell the manifest what the model was made from, and how; how the folder that it was
        loaded from was trained, it tells as well.
        """
        parameters = {"table": table, "encoder": encoder, **self._trained(), **(parameters or {})}
        rows, bias = self._table
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.network.state_dict().items()}
        state = {name: tensor for name, tensor in state.items() if name != BIAS and not name.startswith(TABLE)}
        if encoder == "fp16":
            state = {name: tensor.half() for name, tensor in state.items()}
        elif encoder != "fp32":
            state = quantise(state, 8 if encoder == "int8" else 12)
        with folder_aside(folder) as aside:
            digests: dict[str, str] = {}
            if source is not None:
                order = self._assemble(aside / KNOWLEDGE, source, parameters, title_filter)
                rows, bias = rows.quantised(table).select(order), bias[order.to(bias.device)]
            elif isinstance(self.knowledge, Vocabulary):
                self.knowledge.save(aside / VOCABULARY)
                rows = rows.quantised(table)
            else:
                digests = self._keep_knowledge(aside)
                self._save_added(aside)
                size = self.knowledge.size
                rows, bias = _split(rows, size)[0].quantised(table), bias[:size]
            config = replace(self.network.config, entities=len(bias))
            (aside / CONFIG).write_text(json.dumps(config.to_json(), indent=1) + "\n")
            save_file(state, aside / ENCODER)
            save_file(_table_state(rows, bias), aside / ENTITIES)
            self.tokenizer.save(aside)
            if self.linking != Linking():
                (aside / LINKING).write_text(json.dumps(self.linking.to_json()) + "\n")
            if self.detector is not None:
                self.detector.save(aside / DETECTOR)
            if self.describer is not None:
                self.describer.save(aside / DESCRIBER)
            return self._seal(aside, config.entities, digests, parents, parameters)

    def _trained(self) -> dict[str, Any]:
        """Return what the manifest of the folder it was loaded from tells of training."""
        if self.folder is None or not (self.folder / MANIFEST).exists():
            return {}
        made = Manifest.load(self.folder / MANIFEST, "model")
        return {name: made.parameters[name] for name in ("training", "detector") if name in made.parameters}

    def _assemble(
        self, folder: Path, source: Source, parameters: Mapping[str, Any], title_filter: Path | None
    ) -> Tensor:
        """Write the knowledge of a source, and return which rows it has here, in its order."""
        from deixis.knowledge.assemble import assemble

        told = {name: parameters[name] for name in ("language", "domain") if name in parameters}
        numbers = torch.from_numpy(assemble(folder, source, told, title_filter=title_filter))
        order = torch.arange(len(numbers) + len(SPECIAL))
        order[numbers] = torch.tensor([self._row(title) for title in source.known.titles], dtype=torch.int64)
        return order

    def _keep_knowledge(self, aside: Path) -> dict[str, str]:
        """Put the mapped files of the knowledge into a folder; return their digests, which are known."""
        knowledge = cast("Knowledge", self.knowledge)
        for name in knowledge.manifest.files:
            copy_or_link(knowledge.folder / name, aside / KNOWLEDGE / name)
        knowledge.manifest.save(aside / KNOWLEDGE / MANIFEST)
        return {f"{KNOWLEDGE}/{name}": digest for name, digest in knowledge.manifest.files.items()}

    def _save_added(self, aside: Path) -> None:
        """Write what was added to the knowledge and removed from it."""
        knowledge = cast("Knowledge", self.knowledge)
        overlay, (rows, bias) = knowledge.overlay, self._table
        if overlay.titles or overlay.hidden:
            overlay.save(aside / KNOWLEDGE / "added.json")
        if overlay.titles:
            save_file(_table_state(_split(rows, knowledge.size)[1], bias[knowledge.size :]), aside / ADDED)

    def _seal(
        self,
        aside: Path,
        entities: int,
        digests: Mapping[str, str],
        parents: Mapping[str, str] | None,
        parameters: Mapping[str, Any],
    ) -> Manifest:
        """Write the records of added entities and the manifest; some digests are known."""
        if self.known:
            (aside / KNOWN).write_bytes(b"".join(line + b"\n" for line in self.known))
        # The card is no part of what the digest stands for: it tells figures measured with the finished folder.
        names = sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())
        files = {name: digests.get(name) or digest_file(aside / name) for name in names if name != CARD}
        removed = 0 if isinstance(self.knowledge, Vocabulary) else len(self.knowledge.overlay.hidden)
        added = 0 if isinstance(self.knowledge, Vocabulary) else len(self.knowledge.overlay.titles)
        counts = {"entities": entities - len(SPECIAL) + added - removed, "entities added": len(self.known)}
        manifest = Manifest("model", dict(parameters), dict(parents or {}), files, counts)
        manifest.save(aside / MANIFEST)
        return manifest

    def save_edited(self, folder: Path, parents: Mapping[str, str]) -> Manifest:
        """Write a folder in which entities were added or removed, or the map from descriptions fitted.

        All other files are those of the folder it was loaded from, and linked where the file system can: the time is
        that of the change.
        """
        if self.folder is None:
            raise InputError("only a model that was loaded from a folder can be edited; save it first")
        made = Manifest.load(self.folder / MANIFEST, "model")
        changed = {ADDED, KNOWN, f"{KNOWLEDGE}/added.json"} | ({DESCRIBER} if self.describer is not None else set())
        digests = {name: digest for name, digest in made.files.items() if name not in changed}
        told = {name: made.parameters[name] for name in KEPT if name in made.parameters}
        with folder_aside(folder) as aside:
            for name in digests:
                copy_or_link(self.folder / name, aside / name)
            size = len(self.knowledge)
            if not isinstance(self.knowledge, Vocabulary):
                size = self.knowledge.size
                self._save_added(aside)
            if self.describer is not None:
                self.describer.save(aside / DESCRIBER)
            return self._seal(aside, size, digests, {"model": made.digest, **parents}, told)

    def among(self, vocabulary: Vocabulary) -> ModelFolder:
        """Return the model with the entities of a smaller vocabulary only; its answers among them are the same."""
        rows = torch.tensor([*range(len(SPECIAL)), *map(self._row, vocabulary.entities)])
        table, bias = self._table
        return self.with_rows(vocabulary, table.select(rows), bias[rows.to(bias.device)])

    def with_rows(self, knowledge: Knowledge | Vocabulary, table: EntityTable, bias: Tensor) -> ModelFolder:
        """Return the model with other entities and their rows, the special ones first; all other weights are shared."""
        network = _shallow(self.network)
        network.config = replace(network.config, entities=len(table))
        network.entity_embeddings = _shallow(network.entity_embeddings)
        network.entity_embeddings.entity_embeddings = table
        network.entity_predictions = _shallow(network.entity_predictions)
        network.entity_predictions.bias = nn.Parameter(bias)
        return replace(self, network=network.eval(), knowledge=knowledge)

    def with_table(self, vocabulary: Vocabulary, table: EntityTable, biases: Tensor) -> ModelFolder:
        """Return the model with the entities of a vocabulary and their rows in int8, in place of its own."""
        own, bias = self._table
        special, more = own.select(torch.arange(len(SPECIAL))).quantised("int8").state_dict(), table.state_dict()
        joined = EntityTable.of({name: torch.cat([special[name].cpu(), more[name]]) for name in more})
        return self.with_rows(vocabulary, joined, torch.cat([bias[: len(SPECIAL)].cpu(), biases]))

    def with_overlay(
        self, overlay: Overlay, kept: Sequence[int] = (), rows: Tensor | None = None, biases: Tensor | None = None
    ) -> ModelFolder:
        """Return the model with other added entities: those that have the numbers `kept` here, then new rows.

        The rows of the knowledge below are neither copied nor changed.
        """
        knowledge = cast("Knowledge", self.knowledge)
        (table, bias), size = self._table, knowledge.size
        below, added = _split(table, size)
        at = torch.tensor(kept, dtype=torch.int64, device=bias.device)
        added, bias = added.select(at - size), torch.cat([bias[:size], bias[at]])
        if rows is not None and biases is not None:
            added, bias = added.append(rows), torch.cat([bias, biases.to(bias.device)])
        return self.with_rows(knowledge.with_overlay(overlay), _joined(below, added), bias)

    @property
    def _table(self) -> tuple[EntityTable, Tensor]:
        return self.network.entity_embeddings.entity_embeddings, self.network.entity_predictions.bias.detach()

    def _row(self, title: str) -> int:
        row = self.knowledge.number(title)
        if row is None:
            raise InputError(f"the model has no row for {title!r}; give titles of its entities")
        return row

    @classmethod
    def load(cls, folder: Path) -> ModelFolder:
        """Open a folder; its files are checked (`Manifest.verify`), and the entity table stays on disk."""
        folder, manifest = opened(folder)
        manifest.verify(folder)
        config = _config(folder / CONFIG)
        knowledge: Knowledge | Vocabulary
        if (folder / VOCABULARY).exists():
            knowledge = Vocabulary.load(folder / VOCABULARY)
            size = len(knowledge)
        else:
            # Imported here: machines that only train need not have what knowledge is read with.
            from deixis.knowledge.knowledge import Knowledge

            knowledge = Knowledge.open(folder / KNOWLEDGE)
            size = knowledge.size
        if size != config.entities:
            raise ArtefactError(f"{folder} knows {size} entities; its {CONFIG} says {config.entities}")
        entities = _tensors(folder / ENTITIES)
        with torch.device("meta"):  # nothing is allocated that is not on disk
            network = Network(config)
        network.entity_embeddings.entity_embeddings = _table_of(entities)
        _fill(network, dequantise(_tensors(folder / ENCODER)) | entities, folder)
        describer = Describer.load(folder / DESCRIBER) if (folder / DESCRIBER).exists() else None
        known = tuple((folder / KNOWN).read_bytes().splitlines()) if (folder / KNOWN).exists() else ()
        detector = DetectorHead.load(folder / DETECTOR) if (folder / DETECTOR).exists() else None
        read = (Tokenizer.load(folder), knowledge, _linking(folder / LINKING), describer, known, detector, folder)
        model = cls(network, *read)
        if not (folder / ADDED).exists():
            return model
        more, (table, bias) = _tensors(folder / ADDED), model._table
        joined = model.with_rows(knowledge, _joined(table, _table_of(more)), torch.cat([bias, more[BIAS]]))
        return replace(joined, network=joined.network.train(network.training))


def located(folder: Path) -> Path:
    """Return where a model folder is: `default` is the packaged one, one of a hub is fetched."""
    if folder == Path("default") and not folder.exists():
        return packaged_model()
    return fetch(folder) if is_remote(folder) else folder


def opened(folder: Path) -> tuple[Path, Manifest]:
    """Return where a folder is, and its manifest.

    Folders that were written before names, titles and rows were one are refused.
    """
    folder = located(folder)
    if not folder.is_dir():
        raise ArtefactError(f"{folder} is not a directory; expected a deixis model folder")
    manifest = Manifest.load(folder / MANIFEST, "model")
    if f"{OLD_STORE}/{MANIFEST}" in manifest.files:
        raise ArtefactError(f"{folder} was written by an earlier deixis; convert it: deixis assemble {folder} -o NEW")
    return folder, manifest


def read_old(folder: Path) -> tuple[ModelFolder, Names | None]:
    """Open a folder as deixis wrote it until names, titles and rows had one number; its files are checked."""
    from deixis.knowledge.names import Names

    manifest = Manifest.load(folder / MANIFEST, "model")
    manifest.verify(folder)
    if (folder / KNOWN).exists():
        raise ArtefactError(f"{folder} has added entities; convert the model without them and add them again")
    with tempfile.TemporaryDirectory() as scratch:
        plain = Path(scratch)
        for name in manifest.files:
            if not name.startswith(OLD_STORE):
                (plain / name).symlink_to((folder / name).resolve())
        replace(manifest, files={}).save(plain / MANIFEST)
        model = ModelFolder.load(plain)
    return model, Names.open(folder / OLD_STORE) if (folder / OLD_STORE).exists() else None


def assemble_folder(
    source: Path,
    target: Path,
    *,
    names: Path | None = None,
    redirects: Mapping[str, str] | None = None,
    entities: Vocabulary | None = None,
    title_filter: Path | None = None,
    wikidata: Mapping[str, str] | None = None,
    parents: Mapping[str, str] | None = None,
) -> Manifest:
    """Write a model folder with knowledge: a model's entities, or some of them, with the names of a store.

    Folders of before, with a store of their own, are converted.
    """
    from deixis.knowledge.assemble import FromStore
    from deixis.knowledge.names import Names

    made = Manifest.load(source / MANIFEST, "model")
    is_old = f"{OLD_STORE}/{MANIFEST}" in made.files
    model, own = read_old(source) if is_old else (ModelFolder.load(source), None)
    store = own if names is None else Names.open(names)
    if store is None:
        raise InputError(f"{source} has no names of its own; give a store with --names")
    found = FromStore.of(entities or model.vocabulary, store, redirects, wikidata=wikidata or {})
    return model.save(
        target,
        **{name: made.parameters[name] for name in ("table", "encoder")},
        source=found,
        title_filter=title_filter,
        parents={"model": made.digest, "candidates": store.digest, **(parents or {})},
        parameters={name: value for name, value in made.parameters.items() if name not in ("table", "encoder")},
    )


def quantise_folder(
    source: Path,
    target: Path,
    *,
    encoder: EncoderPrecision = "int8",
    table: Precision = "int8",
    entities: int | None = None,
    keep: Collection[str] = (),
    seen: Tensor | None = None,
    parents: Mapping[str, str] | None = None,
) -> Manifest:
    """Write a model folder in fewer bits; one without names also with so many entities, those of `keep` first.

    With vectors m_e (seen, entity_size) the table is rounded to int8 for these; `parents` tell the manifest where they
    are from.
    """
    model = ModelFolder.load(source)
    parents = {**(parents or {}), "model": opened(source)[1].digest}
    if entities is not None:
        if not isinstance(model.knowledge, Vocabulary):
            raise InputError(f"{source} has names for its entities; cut the model before names are given to it")
        model = model.among(model.vocabulary.cut(entities, keep))
    if seen is not None:
        embeddings = model.network.entity_embeddings
        embeddings.entity_embeddings = embeddings.entity_embeddings.quantised("int8", seen)
    return model.save(target, table=table, encoder=encoder, parents=parents)


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
    source, manifest = opened(source)
    manifest.verify(source)
    with folder_aside(target) as aside:
        for name in manifest.files:
            if name not in changed:
                copy_or_link(source / name, aside / name)
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


def _table_state(table: EntityTable, bias: Tensor) -> dict[str, Tensor]:
    rows = {TABLE + name: tensor.detach().cpu().contiguous() for name, tensor in table.state_dict().items()}
    return {BIAS: bias.cpu().clone(), **rows}


def _table_of(state: Mapping[str, Tensor]) -> EntityTable:
    return EntityTable.of({name.removeprefix(TABLE): x for name, x in state.items() if name.startswith(TABLE)})


def _joined(below: EntityTable, added: EntityTable) -> EntityTable:
    """Return a table with added rows behind its own, neither of which is copied."""
    if not len(added):
        return below
    kinds = torch.zeros(len(below) + len(added), dtype=torch.uint8)
    kinds[len(below) :] = 1
    device = next(iter(below.state_dict().values())).device
    return MixedTable.join(kinds, [below, added.to(device)]).to(device)


def _split(table: EntityTable, size: int) -> tuple[EntityTable, EntityTable]:
    """Return the rows of a table up to a number, and those added behind them: no more exact than int8."""
    if isinstance(table, MixedTable) and len(table.tables) == 2 and len(table.tables[0]) == size:
        return table.tables[0], table.tables[1]
    if len(table) == size:
        none = EntityTable(torch.empty(0, table(torch.zeros(1, dtype=torch.int64)).shape[1]))
        return table, none.quantised("int8" if table.precision == "mixed" else table.precision)
    numbers = torch.arange(len(table))
    return table.select(numbers[:size]), table.select(numbers[size:])


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
    if f"{TABLE}weight" in state:  # an ordinary LUKE keeps [MASK] in its row
        state[mask] = state.get(mask, state[f"{TABLE}weight"][MASK]).reshape(-1)
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
