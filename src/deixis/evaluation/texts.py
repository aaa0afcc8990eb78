"""From plain text to entities: spans and entities, strict and weak, with and without NIL, as GERBIL and ELEVANT count.

What was found is matched one to one with the gold mentions, micro-averaged:

    strict      the span is exactly that of the gold; weak: the two overlap
    spans       every mention that was found, answered or left open, against every gold mention, NIL included
    entities    answers against the golds in the knowledge base; an answer to anything else is wrong, also to a NIL
    with NIL    every mention that was found against every gold; one left open is right where the gold is NIL

Optional golds (ELEVANT's) are neither missed nor wrongly found; with a wrong entity they are wrong. Dates and
quantities may be answered in any way. Where a document has an `evaluation_span`, only what lies in it counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from deixis.datasets.dataset import Dataset, is_optional
from deixis.datasets.elevant import VALUES
from deixis.documents import Document, Mention, Resolutions
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.evaluation.reliability import Judged, precision_at, reliability
from deixis.evaluation.running import Disambiguates
from deixis.settings import Settings

if TYPE_CHECKING:
    from deixis.inference import Disambiguator
    from deixis.knowledge.detection import Detector

__all__ = [
    "COVERAGES",
    "NO_KIND",
    "KindCounts",
    "LinksTexts",
    "Score",
    "TextScores",
    "judged_answers",
    "link_texts",
    "score_texts",
    "score_ways",
]

COVERAGES = (0.5, 0.7, 0.9)
NO_KIND = "unknown"


@dataclass(frozen=True, slots=True)
class Score:
    """How many there are, how many were given, and how many of these are right."""

    golds: int = 0
    answers: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        """The share of the answers that are right."""
        return self.right / max(1, self.answers)

    @property
    def recall(self) -> float:
        """The share of the golds that are answered rightly."""
        return self.right / max(1, self.golds)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / max(1, self.answers + self.golds)

    def __add__(self, other: Score) -> Score:
        return Score(self.golds + other.golds, self.answers + other.answers, self.right + other.right)

    def to_record(self) -> dict[str, float]:
        """Return the JSON object of counts and figures."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True, slots=True)
class KindCounts:
    """Golds of one kind (person, place, …): all, those whose span was found, in the knowledge base, right."""

    golds: int = 0
    found: int = 0
    in_kb: int = 0
    right: int = 0

    def __add__(self, other: KindCounts) -> KindCounts:
        return KindCounts(*(a + b for a, b in zip(asdict(self).values(), asdict(other).values(), strict=True)))


@dataclass(frozen=True, slots=True)
class TextScores:
    """The scores of one set with one way to find mentions."""

    name: str
    mentions: str  # who found them
    found: int = 0  # mentions, answered or left open
    spans: Score = field(default_factory=Score)
    spans_weak: Score = field(default_factory=Score)
    entities: Score = field(default_factory=Score)
    entities_weak: Score = field(default_factory=Score)
    with_nil: Score = field(default_factory=Score)
    with_nil_weak: Score = field(default_factory=Score)
    kinds: Mapping[str, KindCounts] = field(default_factory=dict)
    judged: tuple[Judged, ...] = ()  # of every answer at a gold span, whatever the threshold

    def __add__(self, other: TextScores) -> TextScores:
        """Add up the scores of two documents or sets; the names are those of the first."""
        pairs = ((name, getattr(self, name), getattr(other, name)) for name in _ADDED)
        kinds = {k: _kind(self, k) + _kind(other, k) for k in sorted({*self.kinds, *other.kinds})}
        return replace(self, **{name: one + two for name, one, two in pairs}, kinds=kinds)

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object; the figures at its top are those of the entities, strict."""
        measured = reliability(self.judged)
        return {
            "set": self.name,
            "mentions": self.mentions,
            "found": self.found,
            "placed": self.spans.right,
            **self.entities.to_record(),
            "spans": {"strict": self.spans.to_record(), "weak": self.spans_weak.to_record()},
            "entities": {"strict": self.entities.to_record(), "weak": self.entities_weak.to_record()},
            "with_nil": {"strict": self.with_nil.to_record(), "weak": self.with_nil_weak.to_record()},
            "kinds": {kind: asdict(counts) for kind, counts in self.kinds.items()},
            "reliability": asdict(measured),
            "precision_at_coverage": {f"{share:g}": precision_at(self.judged, share) for share in COVERAGES},
        }


_ADDED = ("found", "spans", "spans_weak", "entities", "entities_weak", "with_nil", "with_nil_weak", "judged")


def _kind(scores: TextScores, kind: str) -> KindCounts:
    return scores.kinds.get(kind, KindCounts())


class LinksTexts(Disambiguates, Protocol):
    """What links texts: a `Disambiguator`, or a baseline."""

    answer_threshold: float

    def link_many(self, texts: Iterable[str | Document], settings: Settings) -> Iterator[Resolutions]:
        """Find and resolve the mentions of texts, in their order."""

    def for_texts(self, settings: Settings) -> Settings:
        """Return the settings for plain texts, with the model's own values where none is given."""


def link_texts(nlp: LinksTexts, dataset: Dataset, settings: Settings, *, gold: bool = False) -> Iterator[Resolutions]:
    """Link the texts of a set, with the mentions that are found in them or, for comparison, with the gold spans.

    No candidates are given, and every answer is kept: a threshold is applied where answers are scored.
    """
    settings = nlp.for_texts(settings).changed(answer_threshold=0.0)
    if gold:
        return nlp.disambiguate_many(
            (replace(d, mentions=tuple(Mention(m.start, m.end) for m in d.mentions)) for d in dataset.documents),
            settings,
        )
    return nlp.link_many((replace(document, mentions=()) for document in dataset.documents), settings)


class _Span(NamedTuple):
    start: int
    end: int
    entity: str | None
    optional: bool = False
    kind: str = NO_KIND


Agree = Callable[[_Span, _Span], bool]  # gold, answer


def score_texts(
    dataset: Dataset,
    answered: Iterable[Resolutions],
    label: str,
    *,
    threshold: float = 0.0,
    redirects: Mapping[str, str] = NO_REDIRECTS,
) -> TextScores:
    """Score the answers to the texts of a set; one under the threshold is left open."""
    pairs = zip(dataset.documents, answered, strict=True)
    scored = (_score_document(*pair, threshold, redirects) for pair in pairs)
    return reduce(TextScores.__add__, scored, TextScores(dataset.name, label))


def score_ways(
    nlp: Disambiguator,
    dataset: Dataset,
    ways: Iterable[str],
    settings: Settings,
    *,
    redirects: Mapping[str, str] = NO_REDIRECTS,
    watch: Callable[[str, int, Iterator[Resolutions]], Iterable[Resolutions]] = lambda label, total, results: results,
) -> Iterator[TextScores]:
    """Link the texts of a set with mentions that are `found` by the model, `gold`, or found by a spaCy pipeline."""
    threshold = nlp.for_texts(settings).answer_threshold or 0.0
    for way in ways:
        model = nlp if way in ("found", "gold") else replace(nlp, detector=_spacy_detector(way))
        results = link_texts(model, dataset, settings, gold=way == "gold")
        answered = watch(f"{dataset.name} {way}", len(dataset.documents), results)
        yield score_texts(dataset, answered, way, threshold=threshold, redirects=redirects)


def _spacy_detector(name: str) -> Detector:
    from deixis.integrations.spacy import SpacyDetector

    return SpacyDetector.load(name)


def judged_answers(
    dataset: Dataset, answered: Iterable[Resolutions], redirects: Mapping[str, str] = NO_REDIRECTS
) -> list[Judged]:
    """Return every answer's probability and whether it is right: strict span and entity."""
    judged = []
    for document, resolutions in zip(dataset.documents, answered, strict=True):
        golds = {(gold.start, gold.end): gold.entity for gold in _golds(document, redirects) if gold.entity is not None}
        judged += [
            (item.probability, golds.get((item.start, item.end)) == redirects.get(item.entity, item.entity))
            for item in resolutions
            if item.entity is not None
        ]
    return judged


def _golds(document: Document, redirects: Mapping[str, str]) -> list[_Span]:
    return [
        _Span(m.start, m.end, _led(m.entity, redirects), is_optional(m), m.kind or NO_KIND) for m in document.mentions
    ]


def _led(entity: str | None, redirects: Mapping[str, str]) -> str | None:
    return None if entity is None else redirects.get(entity, entity)


def _score_document(
    document: Document, resolutions: Resolutions, threshold: float, redirects: Mapping[str, str]
) -> TextScores:
    begin, stop = document.extra.get("evaluation_span", (0, len(document.text)))
    golds = _golds(document, redirects)
    inside = [item for item in resolutions if begin <= item.start and item.end <= stop]
    found = [_Span(r.start, r.end, _led(r.entity, redirects) if r.probability >= threshold else None) for r in inside]
    in_kb = [gold for gold in golds if gold.entity is not None or gold.kind in VALUES]
    answers = [span for span in found if span.entity is not None]
    required = {(gold.start, gold.end): gold for gold in golds if not gold.optional}
    judged = [
        (item.probability, _led(item.entity, redirects) == required[item.start, item.end].entity)
        for item in inside
        if item.entity is not None and (item.start, item.end) in required
    ]
    return TextScores(
        "",
        "",
        found=len(found),
        spans=_score(golds, found, _same_span),
        spans_weak=_score(golds, found, _overlap),
        entities=_score(in_kb, answers, _agree),
        entities_weak=_score(in_kb, answers, _agree_weakly),
        with_nil=_score(golds, found, _agree),
        with_nil_weak=_score(golds, found, _agree_weakly),
        kinds=_count_kinds(required.values(), found),
        judged=tuple(judged),
    )


def _same_span(gold: _Span, answer: _Span) -> bool:
    return (gold.start, gold.end) == (answer.start, answer.end)


def _overlap(gold: _Span, answer: _Span) -> bool:
    return gold.start < answer.end and answer.start < gold.end


def _same_entity(gold: _Span, answer: _Span) -> bool:
    return gold.entity == answer.entity or gold.kind in VALUES


def _agree(gold: _Span, answer: _Span) -> bool:
    return _same_span(gold, answer) and _same_entity(gold, answer)


def _agree_weakly(gold: _Span, answer: _Span) -> bool:
    return _overlap(gold, answer) and _same_entity(gold, answer)


def _score(golds: Sequence[_Span], answers: Sequence[_Span], agree: Agree) -> Score:
    """Match golds and answers one to one: required golds first, exact spans before others that agree."""
    free = set(range(len(answers)))
    matched = {False: 0, True: 0}  # optional or not -> golds
    for gold in sorted(golds, key=lambda gold: gold.optional):
        agreeing = [place for place in free if agree(gold, answers[place])]
        if agreeing:
            free.remove(min(agreeing, key=lambda place: (not _same_span(gold, answers[place]), place)))
            matched[gold.optional] += 1
    required = sum(not gold.optional for gold in golds)
    return Score(required, len(answers) - matched[True], matched[False])


def _count_kinds(golds: Iterable[_Span], found: Iterable[_Span]) -> dict[str, KindCounts]:
    entities = {(span.start, span.end): span.entity for span in found}
    kinds: dict[str, KindCounts] = {}
    for gold in golds:
        place = gold.start, gold.end
        right = gold.entity is not None and entities.get(place) == gold.entity
        counts = KindCounts(1, place in entities, gold.entity is not None, right)
        kinds[gold.kind] = kinds.get(gold.kind, KindCounts()) + counts
    return kinds
