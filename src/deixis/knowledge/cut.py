"""Cutting a store to the entities that a model knows: what the model cannot answer need not travel with it.

Entries of other entities go, then names without any entry, with their occurrences. Counts stay as they are, so what is
left of a name shares its prior: p(e|m, e known). Parts of titles are made again from the titles that stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deixis.artefacts import Manifest
from deixis.errors import InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary

__all__ = ["cut_store"]


def cut_store(
    store: Names,
    vocabulary: Vocabulary,
    folder: Path,
    *,
    redirects: Mapping[str, str] | None = None,
    parents: Mapping[str, str] | None = None,
) -> Manifest:
    """Write the part of a store that names entities of a vocabulary.

    `redirects` are titles of the same page. Where store and vocabulary have two titles of one, whichever way the table
    leads, the entity takes the vocabulary's.
    """
    same = {title: name for title, name in (redirects or {}).items() if name in vocabulary}
    for name in reversed(vocabulary.entities):  # of several the most annotated
        if (title := (redirects or {}).get(name)) is not None:
            same[title] = name

    def titled(title: str) -> str | None:
        return title if title in vocabulary else same.get(title)

    builder = NamesBuilder()
    builder.add_store(store, titled)
    if not len(builder):
        raise InputError(f"no entity of {store.folder} is in the vocabulary; were they made from the same articles?")
    builder.counts["entities without a name"] = len(vocabulary.entities) - len(builder)
    known = {"candidates": store.digest, "vocabulary": vocabulary.digest}
    return builder.save(folder, {"cut": True}, known | dict(parents or {}))
