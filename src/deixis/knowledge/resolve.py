"""Candidates with the document's help: partial names through fuller ones, places for their teams, initials.

A store knows what names mean; a document often says less than a name. For a mention three lists are made:

    names    what its key and the key's variants (surfaces.py) are stored as
    fuller   what longer mentions of the document that contain its words mean: "Clinton" through "Bill Clinton",
             "the Bank" through "Bank of Japan"
    parts    titles that begin or end with its words, or have its initials: "Chicago" and "Chicago White Sox",
             "Arafat" and "Yasser Arafat", "AFP" and "Agence France-Presse"; those whose other words occur in the
             document first, then the often linked

Protocol 3 replaces a person's surname's candidates by those of the fuller names, each prior the mean over them; here
the fuller names need not be persons, and the mention's own names stay, with a smaller share of the prior.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from deixis.documents import Document
from deixis.knowledge.surfaces import INITIALS, SMALL_WORDS, is_initials, key, splits, variants, words_of

__all__ = ["resolve_names"]

# Measured on AIDA testa: each is flat around its value (recall within 0.3 points, the first candidate within 0.5).
PLACES_FOR_PARTS = 12  # of 30
SHARE_OF_ENDING = 0.8  # of the prior, for fuller names that end with the mention, as surnames do
SHARE_OF_INSIDE = 0.3  # for fuller names that contain it elsewhere
SHARE_OF_PARTS = 0.15  # for parts, where there is a name
SHARE_OF_VARIANT = 0.6  # of each further variant against the ones before
BOOST = 10  # times more popular seems a part all of whose other words occur in the document
MAX_FULLER = 10  # candidates taken from fuller names
MAX_VARIANT = 10  # candidates taken from a variant when there are others already
MAX_INITIALS = 8
MAX_PARTS = 30  # candidates taken from the parts of one key
MAX_PART_KEYS = 4  # the key and its first variants are tried as parts
SHARE_OF_FIRST_PART = 0.8  # of each key against its variants

Entity = TypeVar("Entity", bound=int | str)


class Names(Protocol[Entity]):
    """What is asked of names, whose entities are numbers (`Knowledge`) or titles (`names.Names`)."""

    @property
    def named(self) -> Callable[[str, int, int | None], Sequence[tuple[Entity, float]]]: ...
    @property
    def words(self) -> Callable[[Entity], frozenset[str]]: ...
    @property
    def language(self) -> str: ...
    @property
    def digest(self) -> str: ...
    def parts(self, name: str) -> list[tuple[Entity, int]]: ...


def resolve_names(store: Names[Entity], document: Document, k: int) -> list[tuple[tuple[Entity, float], ...]]:
    """Return the k best entities of every mention of the document, most probable first, and their priors."""
    surfaces = [document.surface(mention) for mention in document.mentions]
    matches = [mention.name for mention in document.mentions]
    names = [key(surface) if name is None else name.key for surface, name in zip(surfaces, matches, strict=True)]
    numbers = {name.key: name.number for name in matches if name is not None and name.names == store.digest}
    words = words_of(document.text)
    distinct = list(dict.fromkeys(names))
    known: dict[tuple[str, bool], tuple[tuple[Entity, float], ...]] = {}
    for surface, name in zip(surfaces, names, strict=True):
        asked = (name, is_initials(surface))
        if asked not in known:
            known[asked] = _candidates(store, name, asked[1], distinct, numbers, words, k)
    return [known[name, is_initials(surface)] for surface, name in zip(surfaces, names, strict=True)]


def _candidates(
    store: Names[Entity],
    name: str,
    abbreviated: bool,
    others: Sequence[str],
    numbers: Mapping[str, int],
    words: frozenset[str],
    k: int,
) -> tuple[tuple[Entity, float], ...]:
    if not name:
        return ()
    keys = [name, *variants(name, store.language)]
    ending, inside = _fuller(store, name, others, numbers)
    names = _mixed([(SHARE_OF_ENDING, ending), (SHARE_OF_INSIDE, inside), (1.0, _own(store, keys, numbers, k))])
    parts = _parts(store, keys[:MAX_PART_KEYS], abbreviated, words)
    places = k - PLACES_FOR_PARTS * k // 30
    chosen = dict.fromkeys([*_ordered(names)[:places], *_ordered(parts), *_ordered(names)])
    mixed = _mixed([(SHARE_OF_PARTS, parts), (1.0, names)])
    best = _ordered({entity: mixed[entity] for entity in list(chosen)[:k]})
    return tuple([(entity, mixed[entity]) for entity in best])


def _own(store: Names[Entity], keys: Sequence[str], numbers: Mapping[str, int], k: int) -> dict[Entity, float]:
    """Return what the key and its variants are stored as; each list that adds to others has a smaller share."""
    own: dict[Entity, float] = {}
    share = 1.0
    for at, name in enumerate(keys):
        found = store.named(name, k if at == 0 or not own else MAX_VARIANT, numbers.get(name))
        for entity, prior in found:
            own[entity] = own.get(entity, 0.0) + share * prior
        if found:
            share *= SHARE_OF_VARIANT
    for name in () if own else splits(keys[0]):
        for entity, prior in store.named(name, MAX_VARIANT, None):
            own[entity] = own.get(entity, 0.0) + prior
    return _normalised(own)


def _fuller(
    store: Names[Entity], name: str, others: Iterable[str], numbers: Mapping[str, int]
) -> tuple[dict[Entity, float], dict[Entity, float]]:
    """Return the mean priors of the fuller names that end with the name, and of those that contain it elsewhere."""
    ending: dict[Entity, float] = {}
    inside: dict[Entity, float] = {}
    for other in others:
        if len(other) > len(name) and f" {name} " in f" {other} ":
            found = store.named(other, MAX_FULLER // 2, numbers.get(other))
            before = other.removesuffix(f" {name}")
            # "China" is no surname of "Human Rights in China".
            into = ending if before != other and before.rpartition(" ")[2] not in SMALL_WORDS else inside
            for entity, prior in found:
                into[entity] = into.get(entity, 0.0) + prior
    return _normalised(_best(ending, MAX_FULLER)), _normalised(_best(inside, MAX_FULLER))


def _parts(store: Names[Entity], keys: Sequence[str], abbreviated: bool, words: frozenset[str]) -> dict[Entity, float]:
    """Return entities that the name is a part or the initials of, best first: popular, and spoken of in the text."""
    found = [_spoken_of(store, store.parts(name), words, set(name.split())) for name in keys]
    if abbreviated:
        found.insert(0, _best(_spoken_of(store, store.parts(INITIALS + keys[0]), words, set()), MAX_INITIALS))
    return _mixed([(SHARE_OF_FIRST_PART, _normalised(_best(scores, MAX_PARTS))) for scores in found])


def _spoken_of(
    store: Names[Entity], found: Iterable[tuple[Entity, int]], words: frozenset[str], own: set[str]
) -> dict[Entity, float]:
    scores: dict[Entity, float] = {}
    for entity, popularity in found:
        rest = store.words(entity) - own
        spoken = len(rest & words) / len(rest) if rest else 0.0
        scores[entity] = (popularity + 1) * (1 + BOOST * spoken)
    return scores


def _best(priors: dict[Entity, float], size: int) -> dict[Entity, float]:
    return {entity: priors[entity] for entity in _ordered(priors)[:size]}


def _ordered(priors: dict[Entity, float]) -> list[Entity]:
    return sorted(priors, key=lambda entity: (-priors[entity], entity))


def _normalised(priors: dict[Entity, float]) -> dict[Entity, float]:
    total = sum(priors.values())
    return {entity: prior / total for entity, prior in priors.items()} if total else {}


def _mixed(lists: Sequence[tuple[float, dict[Entity, float]]]) -> dict[Entity, float]:
    """Mix lists in the order given: each takes its share of what the ones before left, the last the rest."""
    present = [(share, priors) for share, priors in lists if priors]
    left = 1.0
    mixed: dict[Entity, float] = {}
    for at, (share, priors) in enumerate(present):
        taken = left if at == len(present) - 1 else left * share
        left -= taken
        for entity, prior in priors.items():
            mixed[entity] = mixed.get(entity, 0.0) + taken * prior
    return mixed
