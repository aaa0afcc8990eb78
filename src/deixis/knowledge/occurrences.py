"""How often names are linked where they occur: the link probability that mention detection rests on.

Of each name three numbers of articles are counted:

    named     where it is written with capitals, as a name
    linked    of those, where it is linked there
    lower     where it is written in lower case (single words only)

Articles are counted, not occurrences, because Wikipedia links a name once. What tells nothing is left out: the
article's own subject, which is never linked; the first word of a sentence and lines of capitals; and what lies inside
a link or a longer name.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from deixis.knowledge.surfaces import key, short_titles
from deixis.knowledge.words import Span, Word, find_names, read_words

__all__ = ["LINKED", "LOWER", "NAMED", "OccurrenceCounter", "Occurrences"]

NAMED, LINKED, LOWER = range(3)  # columns of the store's array
Links = list[tuple[int, int]]


class Occurrences(NamedTuple):
    """Numbers of articles by the number of a name, one column each."""

    named: Counter[int]
    linked: Counter[int]
    lower: Counter[int]


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
            if not _unsure(words, span):
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


def _unsure(words: list[Word], span: Span) -> bool:
    return words[span.last].unsure  # of several words only a line of capitals is: the last starts no sentence
