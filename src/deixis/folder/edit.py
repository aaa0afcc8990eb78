"""Add, change and remove the entities of a model, or keep none but one's own; no weight of the encoder is touched."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it

from deixis.artefacts import MANIFEST, Manifest
from deixis.errors import InputError
from deixis.folder.model_folder import Linking, ModelFolder
from deixis.folder.sharpen import sharpen
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.describe import Describer, Progress
from deixis.knowledge.entities import Entity
from deixis.knowledge.extension import Extension
from deixis.knowledge.names import ExtendedNames, Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.special import SPECIAL

__all__ = ["add", "alike", "build", "build_folder", "describe", "fit", "remove", "save_edited"]

KEPT = ("linking", "described", "language", "domain")  # of what the manifest tells, what editing leaves as it is


def fit(model: ModelFolder, descriptions: Mapping[str, str], limit: int, progress: Progress = iter) -> ModelFolder:
    """Return the model with a map from descriptions to rows, fitted on its own rows."""
    model.network.eval()  # a folder comes as training would take it, with dropout
    found = Describer.fit(
        model.network, model.tokenizer, model.vocabulary, descriptions, limit=limit, progress=progress
    )
    return replace(model, describer=found)


def add(
    model: ModelFolder, entities: Sequence[Entity], *, clashes: bool = False, progress: Progress = iter
) -> ModelFolder:
    """Return the model with more entities: rows from their descriptions, sharpened by examples, names in the store.

    An entity that the model has already is refused, or with `clashes` made anew.
    """
    known = [entity.title for entity in entities if entity.title in model.vocabulary]
    if known and not clashes:
        raise InputError(
            f"{known[0]!r} is an entity of the model already{_others(known)}; leave it out, or say that it is to be "
            "replaced"
        )
    if known:
        model = remove(model, known)
    if not entities:
        return model
    describer = _describer(model)
    model.network.eval()
    texts = [(entity.title, entity.description) for entity in entities]
    names = [entity.names[0].surface if entity.names else None for entity in entities]
    rows, biases = describer.rows(model.network, model.tokenizer, texts, names, progress)
    examples = [(place, document) for place, entity in enumerate(entities) for document in entity.examples]
    if examples:
        owners, documents = zip(*examples, strict=True)
        parts = (model.network, model.tokenizer, model.vocabulary, model.store)
        rows, biases = sharpen(*parts, documents, owners, rows, biases)
    own = {entity.title: entity for entity in map(Entity.from_json, model.known)}
    own |= {entity.title: entity for entity in entities}
    return replace(
        model.with_rows([title for title, _ in texts], rows, biases),
        store=_extended(model.store, own, ()),
        known=tuple(entity.to_json() for entity in own.values()),
    )


def describe(
    model: ModelFolder, descriptions: Mapping[str, str], *, links: int = 4, part: float = 0.5, progress: Progress = iter
) -> tuple[ModelFolder, int]:
    """Return the model with rows of entities that training hardly saw moved towards their descriptions, and how many.

    Those with at most so many links are moved, by this part of the way: what training knows of them, as rivals at
    least, and what the text says are worth more together than either. Entities that were added stay as they are.
    """
    describer = _describer(model)
    model.network.eval()
    own = {Entity.from_json(line).title for line in model.known}
    titles = [
        title
        for title, count in _counted(model.vocabulary)[len(SPECIAL) :]
        if count <= links and title in descriptions and title not in own
    ]
    if not titles:
        return model, 0
    texts = [(title, descriptions[title]) for title in titles]
    rows, biases = describer.rows(model.network, model.tokenizer, texts, progress=progress)
    with torch.no_grad():
        were = model.network.candidate_rows(torch.tensor([model.vocabulary.row(title) for title in titles]))
        rows, biases = (torch.lerp(old, new, part) for old, new in zip(were, (rows, biases), strict=True))
    return model.with_changed(titles, rows, biases), len(titles)


def remove(model: ModelFolder, titles: Collection[str]) -> ModelFolder:
    """Return the model without some entities; no name means them any more."""
    missing = [title for title in titles if title not in model.vocabulary]
    if missing:
        raise InputError(f"{missing[0]!r} is no entity of the model{_others(missing)}; titles are as in its vocabulary")
    gone = set(titles)
    kept = [(title, count) for title, count in _counted(model.vocabulary) if title not in gone]
    own = {entity.title: entity for entity in map(Entity.from_json, model.known) if entity.title not in gone}
    return replace(
        model.among(Vocabulary(*zip(*kept, strict=True))),
        store=_extended(model.store, own, gone),
        known=tuple(entity.to_json() for entity in own.values()),
    )


def build(base: ModelFolder, entities: Sequence[Entity], progress: Progress = iter) -> ModelFolder:
    """Return a model that knows only these entities, with the encoder of another; it has no store yet."""
    # Beside the rows of the base: those are what the examples are told apart from.
    alone = replace(base, store=None, known=(), linking=Linking())
    return add(alone, entities, clashes=True, progress=progress).among(
        Vocabulary.of(entity.title for entity in entities)
    )


def build_folder(
    base: Path, entities: Sequence[Entity], target: Path, parents: Mapping[str, str], progress: Progress = iter
) -> Manifest:
    """Write the model folder of a knowledge base of one's own."""
    builder = NamesBuilder()
    for entity in entities:
        builder.add_title(entity.title)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
        builder.save(Path(scratch) / "candidates", {}, parents)
        store = Names.open(Path(scratch) / "candidates")
        model = build(ModelFolder.load(base), entities, progress)
        own = {entity.title: entity for entity in entities}
        return save_edited(replace(model, store=_extended(store, own, ())), base, target, parents)


def alike(model: ModelFolder, title: str, number: int) -> list[tuple[str, float]]:
    """Return the entities whose rows point the same way, with the cosine."""
    row = model.vocabulary.row(title)
    if row is None or not number:
        return []
    with torch.inference_mode():
        table = F.normalize(model.network.entity_embeddings.entity_embeddings.whole()[len(SPECIAL) :], dim=-1)
        cosines = table @ table[row - len(SPECIAL)]
    best = cosines.topk(min(number + 1, len(cosines)))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [(model.vocabulary.titles[at + len(SPECIAL)], cosine) for at, cosine in pairs if at + len(SPECIAL) != row]


def save_edited(
    model: ModelFolder,
    source: Path,
    target: Path,
    parents: Mapping[str, str],
    parameters: Mapping[str, Any] | None = None,
) -> Manifest:
    """Write a model that was made from a folder, in that folder's precision; its manifest tells from what, and how."""
    made = Manifest.load(source / MANIFEST, "model")
    return model.save(
        target,
        table=made.parameters["table"],
        encoder=made.parameters["encoder"],
        candidates=None if model.store is None else model.store.folder,
        parents={"model": made.digest, **parents},
        parameters={**{name: made.parameters[name] for name in KEPT if name in made.parameters}, **(parameters or {})},
    )


def _describer(model: ModelFolder) -> Describer:
    if model.describer is None:
        raise InputError(
            "the model has no map from descriptions to rows; fit one with `deixis entities fit MODEL DESCRIPTIONS.tsv`"
        )
    return model.describer


def _extended(store: Names | None, own: Mapping[str, Entity], gone: Collection[str]) -> Names | None:
    if store is None:
        return None
    hidden = store.extension.hidden if isinstance(store, ExtendedNames) else frozenset[str]()
    names = {title: entity.names for title, entity in own.items()}
    return ExtendedNames.over(store, Extension.of(names, hidden | set(gone)))


def _counted(vocabulary: Vocabulary) -> list[tuple[str, int]]:
    return list(zip(vocabulary.titles, vocabulary.counts, strict=True))


def _others(titles: Sequence[str]) -> str:
    return f" (and {len(titles) - 1:,} more)" if len(titles) > 1 else ""
