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
from functools import lru_cache
from typing import Protocol

from deixis.documents import Candidate, Document
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

Priors = dict[str, float]


class Names(Protocol):
    """What is asked of a store: the meanings of a name, and the titles that it is a part of."""

    @property
    def named(self) -> Callable[[str, int, int | None], tuple[Candidate, ...]]:
        """Return the best candidates of a name, and only of it, by its key and, where it is known, its number."""
        ...

    @property
    def digest(self) -> str:
        """What numbers of names are told apart by from those of others."""
        ...

    def parts(self, name: str) -> list[tuple[str, int]]:
        """Return titles that have the name as a part, with their popularity."""
        ...


def resolve_names(store: Names, document: Document, k: int) -> list[tuple[Candidate, ...]]:
    """Return the k best candidates of every mention of the document, most probable first, ties by title."""
    surfaces = [document.surface(mention) for mention in document.mentions]
    matches = [mention.name for mention in document.mentions]
    names = [key(surface) if name is None else name.key for surface, name in zip(surfaces, matches, strict=True)]
    numbers = {name.key: name.number for name in matches if name is not None and name.names == store.digest}
    words = words_of(document.text)
    distinct = list(dict.fromkeys(names))
    known: dict[tuple[str, bool], tuple[Candidate, ...]] = {}
    for surface, name in zip(surfaces, names, strict=True):
        asked = (name, is_initials(surface))
        if asked not in known:
            known[asked] = _candidates(store, name, asked[1], distinct, numbers, words, k)
    return [known[name, is_initials(surface)] for surface, name in zip(surfaces, names, strict=True)]


def _candidates(
    store: Names,
    name: str,
    abbreviated: bool,
    others: Sequence[str],
    numbers: Mapping[str, int],
    words: frozenset[str],
    k: int,
) -> tuple[Candidate, ...]:
    if not name:
        return ()
    keys = [name, *variants(name)]
    ending, inside = _fuller(store, name, others, numbers)
    names = _mixed([(SHARE_OF_ENDING, ending), (SHARE_OF_INSIDE, inside), (1.0, _own(store, keys, numbers, k))])
    parts = _parts(store, keys[:MAX_PART_KEYS], abbreviated, words)
    places = k - PLACES_FOR_PARTS * k // 30
    chosen = dict.fromkeys([*_ordered(names)[:places], *_ordered(parts), *_ordered(names)])
    mixed = _mixed([(SHARE_OF_PARTS, parts), (1.0, names)])
    best = _ordered({title: mixed[title] for title in list(chosen)[:k]})
    return tuple(Candidate(title, mixed[title]) for title in best)


def _own(store: Names, keys: Sequence[str], numbers: Mapping[str, int], k: int) -> Priors:
    """Return what the key and its variants are stored as; each list that adds to others has a smaller share."""
    own: Priors = {}
    share = 1.0
    for at, name in enumerate(keys):
        found = store.named(name, k if at == 0 or not own else MAX_VARIANT, numbers.get(name))
        for title, prior in found:
            own[title] = own.get(title, 0.0) + share * (prior or 0.0)
        if found:
            share *= SHARE_OF_VARIANT
    for name in () if own else splits(keys[0]):
        for title, prior in store.named(name, MAX_VARIANT, None):
            own[title] = own.get(title, 0.0) + (prior or 0.0)
    return _normalised(own)


def _fuller(store: Names, name: str, others: Iterable[str], numbers: Mapping[str, int]) -> tuple[Priors, Priors]:
    """Return the mean priors of the fuller names that end with the name, and of those that contain it elsewhere."""
    ending: Priors = {}
    inside: Priors = {}
    for other in others:
        if len(other) > len(name) and f" {name} " in f" {other} ":
            found = store.named(other, MAX_FULLER // 2, numbers.get(other))
            before = other.removesuffix(f" {name}")
            # "China" is no surname of "Human Rights in China".
            into = ending if before != other and before.rpartition(" ")[2] not in SMALL_WORDS else inside
            for title, prior in found:
                into[title] = into.get(title, 0.0) + (prior or 0.0)
    return _normalised(_best(ending, MAX_FULLER)), _normalised(_best(inside, MAX_FULLER))


def _parts(store: Names, keys: Sequence[str], abbreviated: bool, words: frozenset[str]) -> Priors:
    """Return titles that the name is a part or the initials of, best first: popular, and spoken of in the document."""
    found = [_spoken_of(store.parts(name), words, set(name.split())) for name in keys]
    if abbreviated:
        found.insert(0, _best(_spoken_of(store.parts(INITIALS + keys[0]), words, set()), MAX_INITIALS))
    return _mixed([(SHARE_OF_FIRST_PART, _normalised(_best(scores, MAX_PARTS))) for scores in found])


def _spoken_of(titles: Iterable[tuple[str, int]], words: frozenset[str], own: set[str]) -> Priors:
    scores = {}
    for title, popularity in titles:
        rest = _words(title) - own
        spoken = len(rest & words) / len(rest) if rest else 0.0
        scores[title] = (popularity + 1) * (1 + BOOST * spoken)
    return scores


@lru_cache(1 << 16)
def _words(title: str) -> frozenset[str]:
    return words_of(title)


def _best(priors: Priors, size: int) -> Priors:
    return {title: priors[title] for title in _ordered(priors)[:size]}


def _ordered(priors: Priors) -> list[str]:
    return sorted(priors, key=lambda title: (-priors[title], title))


def _normalised(priors: Priors) -> Priors:
    total = sum(priors.values())
    return {title: prior / total for title, prior in priors.items()} if total else {}


def _mixed(lists: Sequence[tuple[float, Priors]]) -> Priors:
    """Mix lists in the order given: each takes its share of what the ones before left, the last the rest."""
    present = [(share, priors) for share, priors in lists if priors]
    left = 1.0
    mixed: Priors = {}
    for at, (share, priors) in enumerate(present):
        taken = left if at == len(present) - 1 else left * share
        left -= taken
        for title, prior in priors.items():
            mixed[title] = mixed.get(title, 0.0) + taken * prior
    return mixed
