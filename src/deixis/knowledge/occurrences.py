"""How often names are linked where they occur: the link probability that mention detection rests on.

Of each name three numbers of articles are counted:

    named     where it is written with capitals, as a name
    linked    of those, where it is linked there
    lower     where it is written in lower case (single words only)

Articles are counted, not occurrences, because Wikipedia links a name once. What tells nothing is left out: the
article's own subject, which is never linked; the first word of a sentence and lines of capitals; and what lies inside
a link or a longer name.

A name's link probability is estimated from these, drawn towards a prior where it was seen seldom or never:

    p = (linked + STRENGTH * prior) / (named + STRENGTH)

    prior     SEVERAL for names of several words, for a single word SINGLE * links / (links + 1), with the links that
              are known of it; where nothing was counted, the prior is all there is
    unsure    a name of one word may start a sentence or stand in a line of capitals; its capital says nothing then,
              and articles where it is in lower case count in the denominator too (nothing counted: it is no mention)
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deixis.knowledge.surfaces import key, short_titles
from deixis.knowledge.words import Word, find_names, read_words

__all__ = ["LINKED", "LOWER", "NAMED", "OccurrenceCounter", "Occurrences", "link_probabilities", "term_probabilities"]

STRENGTH = 2.0
SINGLE, SEVERAL = 0.2, 0.5  # tuned on AIDA testa
RARE = 20  # articles that a term of several words in lower case is taken to occur in: they were not counted
NAMED, LINKED, LOWER = range(3)  # columns of the store's array
Links = list[tuple[int, int]]


class Occurrences(NamedTuple):
    """Numbers of articles by the number of a name, one column each."""

    named: Counter[int]
    linked: Counter[int]
    lower: Counter[int]


def link_probabilities(
    links: NDArray[Any], single: NDArray[np.bool_], counted: NDArray[Any] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the link probabilities of names: where they are surely names, and where the capital says nothing.

    `counted` are their occurrences (names, 3), None where these were not counted.
    """
    prior = np.where(single, SINGLE * links / (links + 1), SEVERAL)
    if counted is None:
        return prior, np.where(single, 0.0, prior)
    named, linked, lower = counted.T.astype(np.float64)
    hits = linked + STRENGTH * prior
    return hits / (named + STRENGTH), hits / (named + np.where(single, lower, 0) + STRENGTH)


def term_probabilities(
    links: NDArray[Any], single: NDArray[np.bool_], counted: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Return how often names are linked where they occur in lower case; 0 where nothing was counted."""
    if counted is None:
        return np.zeros(len(links))
    found: NDArray[np.float64] = links / (links + np.where(single, counted[:, LOWER], RARE) + STRENGTH)
    return found


class OccurrenceCounter:
    """Counts the names of a trie in texts."""

    def __init__(self, trie: Any) -> None:
        self._trie = trie
        self.counts = Occurrences(Counter(), Counter(), Counter())
        self._single: dict[str, int | None] = {}  # words asked before

    def add(self, title: str, text: str, links: Links) -> None:
        """Count the names of one article; `links` are the spans `[start, end)` of its links."""
        words = read_words(text)
        own = {self._trie.get(key(name)) for name in (title, *short_titles(title))}
        named, linked = self._names(words, links, len(text))
        for column, names in zip(self.counts, (named, linked, self._lower(words)), strict=True):
            column.update(names - own)

    def _names(self, words: list[Word], links: Links, length: int) -> tuple[set[int], set[int]]:
        inside = bytearray(length + 1)
        for start, end in links:
            inside[start:end] = b"\1" * (end - start)
        ends = {end for _, end in links}
        named: set[int] = set()
        linked: set[int] = set()
        done = -1  # the last word of the name before: what is inside it is no name of its own
        for spans in find_names(words, self._trie):
            if spans[0].first <= done:
                continue
            exact = next((span for span in reversed(spans) if span.end in ends and inside[span.start]), None)
            span = exact or spans[-1]
            if exact is None and (inside[span.start] or inside[span.end - 1]):
                continue
            done = span.last
            # Of several words only a line of capitals is unsure: the last starts no sentence.
            if not words[span.last].unsure:
                named.add(span.name)
                if exact is not None:
                    linked.add(span.name)
        return named, linked

    def _lower(self, words: list[Word]) -> set[int]:
        found = {self._number(word) for word in {word.key for word in words if not word.capital}}
        return {number for number in found if number is not None}

    def _number(self, word: str) -> int | None:
        if word not in self._single:
            self._single[word] = self._trie.get(word)
        return self._single[word]
