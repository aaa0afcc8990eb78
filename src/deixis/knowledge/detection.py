"""Finding mentions in plain text: names of the candidate store that are often linked where they appear.

A name's link probability is estimated from what the store counted (candidates/occurrences.py), drawn towards a prior
where it was seen seldom or never:

    p = (linked + STRENGTH * prior) / (named + STRENGTH)

    prior     SEVERAL for names of several words, for a single word SINGLE * links / (links + 1), with the links that
              the store knows of it; where the store has counted nothing, the prior is all there is
    unsure    a name of one word may start a sentence or stand in a line of capitals; its capital says nothing then,
              and articles where it is in lower case count in the denominator too (nothing counted: it is no mention)

Names under the threshold and dates are dropped. Of names that overlap the longest stays, of equally long ones the
likelier, then the earlier. Then the document has its say: a name of one word beside a capitalised word that nobody
knows is a fragment of a longer name ("Duran" in "Oscar Duran") and no mention; and the last word of a name of several
("Hussain" after "Nasser Hussain") is a mention wherever it stands alone with a capital.

The constants and the threshold were tuned on AIDA testa; benchmarks/detection.md has precision and recall.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from deixis.knowledge.names import Names
from deixis.knowledge.occurrences import LOWER
from deixis.knowledge.surfaces import SMALL_WORDS
from deixis.knowledge.words import Span, Word, read_words

__all__ = ["THRESHOLD", "Detector", "NameDetector"]

THRESHOLD = 0.1  # the best F1 on testa; 0.2 gives up 7 points of recall for 2 of precision
STRENGTH = 2.0
SINGLE, SEVERAL = 0.2, 0.5
MONTHS = frozenset(
    {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"}
    | {"december"}
)

Place = tuple[int, int]  # the first and the last word of a mention


class Detector(Protocol):
    """Whatever finds mentions in a text: ours, a named-entity recogniser, a list of your own."""

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans `[start, end)` of the mentions, in their order, none overlapping."""
        ...


@dataclass(frozen=True)
class NameDetector:
    """Finds the names of a store; `threshold` is the least link probability of a mention.

    Examples:
        >>> from pathlib import Path
        >>> detector = NameDetector(Names.open(Path("velm/store")))
        >>> detector.detect("After the Silver Oar came Marlow.")
        [(10, 20), (26, 32)]
    """

    store: Names
    threshold: float = THRESHOLD

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the mentions."""
        return self.detect_in(read_words(text))

    def detect_in(self, words: list[Word]) -> list[tuple[int, int]]:
        """Return the spans of the mentions of a text whose words have been read."""
        chosen = _without_overlaps(self._likely(words))
        taken = _words_in(chosen)
        whole = [place for place in chosen if not self._is_fragment(words, place, taken)]
        whole += _surnames(words, whole)
        return sorted((_start(words, first), words[last].end) for first, last in whole)

    def _likely(self, words: list[Word]) -> Iterator[tuple[float, Span]]:
        for spans in self.store.find_names(words):
            for span in spans:
                if not _is_date(words, span):
                    probability = self._probability(span.name, span.first == span.last, words[span.last].unsure)
                    if probability >= self.threshold:
                        yield probability, span

    def _probability(self, name: int, single: bool, unsure: bool) -> float:
        """Return the link probability of a name."""
        links = self.store.links(name)
        prior = SINGLE * links / (links + 1) if single else SEVERAL
        counted = self.store.occurrences(name)
        if counted is None:
            return 0.0 if single and unsure else prior
        named, linked, lower = counted
        seen = named + lower if single and unsure else named
        return (linked + STRENGTH * prior) / (seen + STRENGTH)

    def _is_fragment(self, words: list[Word], place: Place, taken: Collection[int]) -> bool:
        """Tell whether a name of one word is part of a longer one that nobody knows."""
        first, last = place
        if first != last:
            return False
        if words[first].joined and self._is_strange(words, first - 1, taken):
            return True
        return last + 1 < len(words) and words[last + 1].joined and self._is_strange(words, last + 1, taken)

    def _is_strange(self, words: list[Word], place: int, taken: Collection[int]) -> bool:
        """Tell whether a word looks like a name, is in no mention, and is not known as a common word."""
        word = words[place]
        if not word.capital or word.unsure or place in taken or word.key in SMALL_WORDS:
            return False
        number = self.store.number(word.key)
        counted = None if number is None else self.store.occurrences(number)
        return counted is None or counted[LOWER] == 0


def _is_date(words: list[Word], span: Span) -> bool:
    """Tell whether a name is a day of a month, as Wikipedia used to link."""
    return span.last > span.first and words[span.first].key in MONTHS and not words[span.last].capital


def _without_overlaps(found: Iterable[tuple[float, Span]]) -> list[Place]:
    taken: set[int] = set()
    chosen = []
    for _, span in sorted(found, key=lambda pair: (pair[1].first - pair[1].last, -pair[0], pair[1].first)):
        places = range(span.first, span.last + 1)
        if taken.isdisjoint(places):
            taken.update(places)
            chosen.append((span.first, span.last))
    return chosen


def _surnames(words: list[Word], chosen: list[Place]) -> list[Place]:
    """Return the words that stand alone and are the last of a longer name."""
    lasts = {words[last].key for first, last in chosen if last > first and words[last].capital}
    taken = _words_in(chosen)
    return [(at, at) for at, word in enumerate(words) if word.capital and word.key in lasts and at not in taken]


def _words_in(chosen: list[Place]) -> set[int]:
    return {place for first, last in chosen for place in range(first, last + 1)}


def _start(words: list[Word], first: int) -> int:
    """Return where a mention starts: with "The" before it where that is part of the name, as in "The Hague"."""
    word, before = words[first], words[first - 1] if first else None
    with_article = word.joined and before is not None and before.key == "the" and before.capital and not before.unsure
    return before.start if with_article and before is not None else word.start
