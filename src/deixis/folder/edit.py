"""Add, change and remove the entities of a model, or keep none but one's own; no weight of the encoder is touched.

What is added lies beside the knowledge and the table of the model (knowledge/overlay.py), which stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

from deixis.artefacts import Manifest
from deixis.errors import InputError
from deixis.folder.model_folder import Linking, ModelFolder, opened
from deixis.folder.sharpen import sharpen
from deixis.knowledge.assemble import FromEntities
from deixis.knowledge.describe import Describer, Progress
from deixis.knowledge.entities import Entity
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.overlay import Overlay
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.entity_table import EntityTable
from deixis.network.special import SPECIAL

__all__ = ["add", "alike", "build_folder", "fit", "remove"]


def fit(model: ModelFolder, descriptions: Mapping[str, str], limit: int, progress: Progress = iter) -> ModelFolder:
    """Return the model with a map from descriptions to rows, fitted on its own rows."""
    model.network.eval()  # a folder comes as training would take it, with dropout
    parts = (model.network, model.tokenizer, model.vocabulary)
    return replace(model, describer=Describer.fit(*parts, descriptions, limit=limit, progress=progress))


def add(
    model: ModelFolder, entities: Sequence[Entity], *, clashes: bool = False, progress: Progress = iter
) -> ModelFolder:
    """Return the model with more entities: rows from their descriptions, sharpened by examples, and names.

    An entity that the model has already is refused, or with `clashes` made anew.
    """
    known = [entity.title for entity in entities if entity.title in model.knowledge]
    if known and not clashes:
        raise InputError(
            f"{known[0]!r} is an entity of the model already{_others(known)}; leave it out, or say that it is to be "
            "replaced"
        )
    if known:
        model = remove(model, known)
    if not entities:
        return model
    rows, biases = describe(model, entities, progress)
    own = {entity.title: entity for entity in map(Entity.from_json, model.known)}
    own |= {entity.title: entity for entity in entities}
    overlay, kept = _overlay(model, own, [entity.title for entity in entities])
    changed = model.with_overlay(overlay, kept, rows, biases)
    return replace(changed, known=tuple(entity.to_json() for entity in own.values()))


def describe(model: ModelFolder, entities: Sequence[Entity], progress: Progress = iter) -> tuple[Tensor, Tensor]:
    """Return rows and biases of entities, from their descriptions and examples."""
    if model.describer is None:
        raise InputError(
            "the model has no map from descriptions to rows; fit one with `deixis entities fit MODEL DESCRIPTIONS.tsv`"
        )
    model.network.eval()
    texts = [(entity.title, entity.description) for entity in entities]
    names = [entity.names[0].surface if entity.names else None for entity in entities]
    rows, biases = model.describer.rows(model.network, model.tokenizer, texts, names, progress)
    examples = [(place, document) for place, entity in enumerate(entities) for document in entity.examples]
    if examples:
        owners, documents = zip(*examples, strict=True)
        rows, biases = sharpen(model.network, model.tokenizer, model.knowledge, documents, owners, rows, biases)
    return rows, biases


def remove(model: ModelFolder, titles: Collection[str]) -> ModelFolder:
    """Return the model without some entities; no name means them any more."""
    missing = [title for title in titles if title not in model.knowledge]
    if missing:
        raise InputError(f"{missing[0]!r} is not an entity of the model{_others(missing)}; titles are as in Wikipedia")
    gone = set(titles)
    own = {entity.title: entity for entity in map(Entity.from_json, model.known) if entity.title not in gone}
    numbers = {number for title in gone if (number := _knowledge(model).number(title)) is not None}
    changed = model.with_overlay(*_overlay(model, own, [], numbers))
    return replace(changed, known=tuple(entity.to_json() for entity in own.values()))


def _overlay(
    model: ModelFolder, own: Mapping[str, Entity], new: Sequence[str], gone: Collection[int] = ()
) -> tuple[Overlay, list[int]]:
    """Return what lies over the knowledge when these entities are its own, and which rows of before stay."""
    knowledge = _knowledge(model)
    old = [title for title in knowledge.overlay.titles if title in own and title not in new]
    hidden = knowledge.overlay.hidden | {number for number in gone if number < knowledge.size}
    names = {title: own[title].names for title in [*old, *new]}
    kept = [number for title in old if (number := knowledge.number(title)) is not None]
    return Overlay.of(names, knowledge.size, hidden), kept


def _knowledge(model: ModelFolder) -> Knowledge:
    if isinstance(model.knowledge, Vocabulary):
        raise InputError("the model has no names that entities could be added to; give it some with `deixis assemble`")
    return model.knowledge


def build_folder(
    base: Path, entities: Sequence[Entity], target: Path, parents: Mapping[str, str], progress: Progress = iter
) -> Manifest:
    """Write the model folder of a knowledge base of one's own, with the encoder of another model."""
    base, made = opened(base)
    model = ModelFolder.load(base)
    # Beside the rows of the base: those are what the examples are told apart from.
    rows, biases = describe(model, entities, progress)
    table = EntityTable(rows).quantised("int8")
    own = replace(
        model.with_table(Vocabulary.of(entity.title for entity in entities), table, biases),
        known=tuple(entity.to_json() for entity in entities),
        linking=Linking(),
    )
    return own.save(
        target,
        table="int8",
        encoder=made.parameters["encoder"],
        source=FromEntities(entities),
        parents={"model": made.digest, **parents},
    )


def alike(model: ModelFolder, title: str, number: int) -> list[tuple[str, float]]:
    """Return the entities whose rows point the same way, with the cosine."""
    row = model.knowledge.number(title)
    if row is None or not number:
        return []
    with torch.inference_mode():
        table = F.normalize(model.network.entity_embeddings.entity_embeddings.whole()[len(SPECIAL) :], dim=-1)
        cosines = table @ table[row - len(SPECIAL)]
    best = cosines.topk(min(number + 1, len(cosines)))
    pairs = zip((best.indices + len(SPECIAL)).tolist(), best.values.tolist(), strict=True)
    return [(model.knowledge.title(other), cosine) for other, cosine in pairs if other != row]


def _others(titles: Sequence[str]) -> str:
    return f" (and {len(titles) - 1:,} more)" if len(titles) > 1 else ""
