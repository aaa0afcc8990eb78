"""Scripted disambiguators and random data, so that evaluation is tested without a network."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions
from deixis.knowledge.source import CandidateSource
from deixis.knowledge.vocabulary import Vocabulary
from deixis.settings import Settings

LOCAL = Settings(order="local", top=None)


@cache
def hashed(order: str, title: str) -> float:
    """Return a score that depends on the title (and the order) alone."""
    return int(hashlib.sha256(f"{order} {title}".encode()).hexdigest()[:8], 16) / 2**32


@dataclass
class Scripted:
    """Answers with the candidate of the highest score, the first given among equals; steps are by probability."""

    score: Callable[[str, str], float] = hashed
    vocabulary: Vocabulary | None = None
    candidates: CandidateSource | None = None

    @property
    def knowledge(self) -> Vocabulary | None:
        return self.vocabulary

    def disambiguate_many(self, documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
        assert settings.top is None  # the lists are cut already
        for document in documents:
            yield self._answer(document, settings.order)

    def _answer(self, document: Document, order: str) -> Resolutions:
        answers = []
        for mention in document.mentions:
            scored = [(c.entity, self.score(order, c.entity)) for c in mention.candidates or ()]
            ranked = tuple(sorted(scored, key=lambda pair: -pair[1]))
            answers.append((mention, ranked))
        by_confidence = sorted((k for k in range(len(answers)) if answers[k][1]), key=lambda k: -answers[k][1][0][1])
        steps = {k: step for step, k in enumerate(by_confidence, 1)}
        items = [
            Resolution(m.start, m.end, document.surface(m), ranked[0][0], ranked[0][1], steps[k], ranked)
            if ranked
            else Resolution(m.start, m.end, document.surface(m), None, 0.0, 0, (), "no candidates")
            for k, (m, ranked) in enumerate(answers)
        ]
        return Resolutions(document, tuple(items), passes=len(by_confidence))


def random_dataset(seed: int, documents: int = 12, name: str = "random") -> Dataset:
    """Return documents of 0 to 5 mentions with 0 to 4 candidates each; the gold may be missing from them."""
    dice = random.Random(seed)
    made = []
    for number in range(documents):
        count = dice.randint(0, 5)
        mentions = []
        for place in range(count):
            titles = dice.sample("ABCDEFG", dice.randint(0, 4))
            candidates = tuple(Candidate(title, round(dice.random(), 2)) for title in titles)
            mentions.append(Mention(3 * place, 3 * place + 2, dice.choice("ABCDEFG"), candidates))
        made.append(Document("ab " * 5, tuple(mentions), f"d{number}"))
    total = sum(len(document.mentions) for document in made)
    return Dataset(name, tuple(made), Report(total))
