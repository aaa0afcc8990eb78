"""Finding mentions in plain text: names that are often linked where they appear (occurrences.py).

Names under the threshold, dates and names that end in a score ("Chelsea 3" in "Chelsea 3-1") are dropped. Of names that
overlap the longest stays, of equally long ones the likelier, then the earlier. Then the document has its say: a name of
one word beside a capitalised word that nobody knows is a fragment of a longer name ("Duran" in "Oscar Duran") and no
mention; and the last word of a name of several ("Hussain" after "Nasser Hussain") is a mention wherever it stands alone
with a capital.

The constants and the threshold were tuned on AIDA testa; benchmarks/detection.md has precision and recall.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from deixis.documents import Mention, NameMatch
from deixis.knowledge.surfaces import SMALL_WORDS
from deixis.knowledge.words import Span, Word, read_words

if TYPE_CHECKING:
    from deixis.network.detector import LearnedDetector, TaggedWords
    from deixis.network.kept_words import KeptWords
    from deixis.settings import Find

__all__ = ["THRESHOLD", "Detector", "Evidence", "NameDetector", "UnionRule", "UnitedDetector"]

THRESHOLD = 0.1  # the best F1 on testa; 0.2 gives up 7 points of recall for 2 of precision
LEAST = 0.2  # that a word is in a name: what the learned detector proposes
MONTHS = frozenset(
    {"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"}
    | {"december"}
)


class FindableNames(Protocol):
    """What is asked of names, as `Knowledge` answers it: where they stand in a text, how often they are linked."""

    @property
    def digest(self) -> str: ...
    def find_names(self, words: list[Word]) -> Iterator[list[Span]]: ...
    def find_words(self, words: list[Word]) -> Iterator[Span]: ...
    def term_probability(self, number: int, single: bool) -> float: ...
    def link_probability(self, number: int, single: bool, unsure: bool) -> float: ...
    def is_common(self, name: str) -> bool: ...


class Detector(Protocol):
    """Whatever finds mentions in a text: ours, a named-entity recogniser, a list of your own."""

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans `[start, end)` of the mentions, in their order, none overlapping."""


@dataclass(frozen=True)
class NameDetector:
    """Finds the names of a model; `threshold` is the least link probability of a mention.

    Examples:
        >>> from pathlib import Path
        >>> from deixis.knowledge.names import Names
        >>> detector = NameDetector(Names.open(Path("velm/store")))
        >>> detector.detect("After the Silver Oar came Marlow.")
        [(10, 20), (26, 32)]
    """

    names: FindableNames
    threshold: float = THRESHOLD

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the mentions."""
        return [(mention.start, mention.end) for mention in self.mentions(read_words(text))]

    def find(self, texts: Iterable[str], find: Find = "names") -> Iterator[list[Mention]]:
        """Yield the mentions of each of many texts; of "all", also terms in lower case that are often linked."""
        for text in texts:
            words = read_words(text)
            found = self.mentions(words)
            yield found if find == "names" else _with_terms(found, self.terms(words))

    def terms(self, words: list[Word]) -> Iterator[Mention]:
        """Yield the terms in lower case that are linked as often as the threshold says."""
        for span in self.names.find_words(words):
            if self.names.term_probability(span.name, span.first == span.last) >= self.threshold:
                yield self._mention(words, span)

    def mentions(self, words: list[Word]) -> list[Mention]:
        """Return the mentions of a text whose words have been read, each with the name that it matched."""
        chosen = _without_overlaps(self._likely(words))
        taken = _words_in(chosen)
        whole = [span for span in chosen if not self._is_fragment(words, span, taken)]
        found = [self._mention(words, span) for span in whole]
        found += [Mention(_start(words, at), words[at].end) for at in _surnames(words, whole)]
        return sorted(found, key=lambda mention: (mention.start, mention.end))

    def _mention(self, words: list[Word], span: Span) -> Mention:
        key = " ".join(word.key for word in words[span.first : span.last + 1])
        name = NameMatch(key, span.name, self.names.digest)
        return Mention(_start(words, span.first), words[span.last].end, name=name)

    def proposals(self, words: list[Word]) -> Iterator[tuple[float, Mention]]:
        """Yield every name of a text but dates and scores, with its link probability."""
        return ((chance, self._mention(words, span)) for chance, span in replace(self, threshold=0.0)._likely(words))

    def _likely(self, words: list[Word]) -> Iterator[tuple[float, Span]]:
        for spans in self.names.find_names(words):
            for span in spans:
                if not (_is_date(words, span) or words[span.last].score):
                    single = span.first == span.last
                    probability = self.names.link_probability(span.name, single, words[span.last].unsure)
                    if probability >= self.threshold:
                        yield probability, span

    def _is_fragment(self, words: list[Word], span: Span, taken: Collection[int]) -> bool:
        """Tell whether a name of one word is part of a longer one that nobody knows."""
        first, last = span.first, span.last
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
        return not self.names.is_common(word.key)


class Evidence(NamedTuple):
    """What speaks for a span: logits of the learned detector's probability and of the link probability."""

    learned: float
    linked: float = 0.0
    known: float = 0.0  # 1: it is a name of the model
    several: float = 0.0  # 1: of several words, and known


class UnionRule(NamedTuple):
    """Weights of the evidence, of which a logistic function makes the probability of a mention.

    Fitted on AIDA testa: `python benchmarks/detection.py MODEL DATA aida-a --fit`.
    """

    bias: float = -0.549
    learned: float = 0.88
    linked: float = 0.262
    known: float = 1.142
    several: float = 0.335

    def probability(self, evidence: Evidence) -> float:
        """Return how likely a span is a mention."""
        score = self.bias + sum(weight * value for weight, value in zip(self[1:], evidence, strict=True))
        return 1 / (1 + math.exp(-score))


RULE = UnionRule()


@dataclass(frozen=True)
class UnitedDetector:
    """Finds mentions with a learned detector and with names; each span that either proposes is judged by both.

    Of spans that overlap the likelier stays.
    """

    learned: LearnedDetector
    names: NameDetector
    threshold: float = 0.35
    rule: UnionRule = RULE

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the mentions."""
        return [(mention.start, mention.end) for mention in next(self.find([text]))]

    def find(self, texts: Iterable[str], find: Find = "names") -> Iterator[list[Mention]]:
        """Yield the mentions of each of many texts, each with its kind and the name that it matched."""
        return (self._mentions(parts, find) for parts in self.learned.tags_of(texts))

    def read(self, texts: Iterable[str], find: Find = "names") -> Iterator[tuple[list[Mention], KeptWords | None]]:
        """Yield the same, with what is kept of each text's words where disambiguation can go on from it."""
        return ((self._mentions(read.parts, find), read.kept) for read in self.learned.read(texts))

    def _mentions(self, parts: Iterable[TaggedWords], find: Find) -> list[Mention]:
        return [mention for part in parts for mention in self._mentions_in(part, find)]

    def _mentions_in(self, part: TaggedWords, find: Find) -> list[Mention]:
        words = read_words(part.text)
        chosen: list[Mention] = []
        taken = bytearray(len(part.text))
        judged = [(self.rule.probability(told), mention) for told, mention in self.proposals(part, words)]
        for chance, mention in sorted(judged, key=lambda pair: (-pair[0], pair[1].start)):
            if chance >= self.threshold and not any(taken[mention.start : mention.end]):
                taken[mention.start : mention.end] = b"\1" * (mention.end - mention.start)
                chosen.append(mention)
        if find == "all":
            chosen = _with_terms(chosen, self.names.terms(words))
        chosen.sort(key=lambda mention: mention.start)
        if part.start == 0:
            return chosen
        return [replace(one, start=one.start + part.start, end=one.end + part.start) for one in chosen]

    def proposals(self, part: TaggedWords, words: list[Word]) -> Iterator[tuple[Evidence, Mention]]:
        """Yield what may be a mention in a part of a text, with what speaks for it."""
        named = set()
        for linked, mention in self.names.proposals(words):
            found = part.name_at(mention.start, mention.end)
            several = float(mention.name is not None and " " in mention.name.key)
            learned = _logit(0.0 if found is None else found.probability)
            named.add((mention.start, mention.end))
            yield (
                Evidence(learned, _logit(linked), 1.0, several),
                replace(mention, kind=None if found is None else found.kind),
            )
        for found in part.names(LEAST):
            span = found.start - part.start, found.end - part.start
            if span not in named:
                yield Evidence(_logit(found.probability)), Mention(*span, kind=found.kind)


def _logit(chance: float) -> float:
    chance = min(max(chance, 1e-3), 1 - 1e-3)
    return math.log(chance / (1 - chance))


def _with_terms(mentions: list[Mention], terms: Iterable[Mention]) -> list[Mention]:
    """Return mentions and, where none of them stands, terms, in the order of the text."""
    taken = {at for mention in mentions for at in range(mention.start, mention.end)}
    free = [term for term in terms if taken.isdisjoint(range(term.start, term.end))]
    return sorted([*mentions, *free], key=lambda mention: mention.start)


def _is_date(words: list[Word], span: Span) -> bool:
    """Tell whether a name is a day of a month, as Wikipedia used to link."""
    return span.last > span.first and words[span.first].key in MONTHS and not words[span.last].capital


def _without_overlaps(found: Iterable[tuple[float, Span]]) -> list[Span]:
    taken: set[int] = set()
    chosen: list[Span] = []
    for _, span in sorted(found, key=lambda pair: (pair[1].first - pair[1].last, -pair[0], pair[1].first)):
        places = range(span.first, span.last + 1)
        if taken.isdisjoint(places):
            taken.update(places)
            chosen.append(span)
    return chosen


def _surnames(words: list[Word], chosen: list[Span]) -> list[int]:
    """Return the words that stand alone and are the last of a longer name."""
    lasts = {words[span.last].key for span in chosen if span.last > span.first and words[span.last].capital}
    taken = _words_in(chosen)
    return [at for at, word in enumerate(words) if word.capital and word.key in lasts and at not in taken]


def _words_in(chosen: list[Span]) -> set[int]:
    return {place for span in chosen for place in range(span.first, span.last + 1)}


def _start(words: list[Word], first: int) -> int:
    """Return where a mention starts: with "The" before it where that is part of the name, as in "The Hague"."""
    word, before = words[first], words[first - 1] if first else None
    with_article = word.joined and before is not None and before.key == "the" and before.capital and not before.unsure
    return before.start if with_article and before is not None else word.start
