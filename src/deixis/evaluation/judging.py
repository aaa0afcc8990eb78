"""Answers against golds, mention by mention: what every figure and analysis is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from deixis.datasets.dataset import Dataset
from deixis.documents import Document, Mention, Resolution, Resolutions
from deixis.errors import InputError

__all__ = ["NO_REDIRECTS", "Judgement", "candidate_recall", "judge", "most_frequent"]

NO_REDIRECTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Judgement:
    """One mention with a gold entity and what was answered for it."""

    document: int  # place in the dataset
    mention: int  # place in the document
    surface: str
    gold: str
    answer: str | None
    probability: float
    step: int
    has_candidates: bool
    gold_listed: bool  # the gold is among the candidates
    correct: bool


def judge(
    dataset: Dataset, answers: Iterable[Resolutions], redirects: Mapping[str, str] = NO_REDIRECTS
) -> tuple[Judgement, ...]:
    """Compare every answer with its gold; titles are equal where they are after redirects.

    Answers to other documents or mentions than the dataset's are refused: no figure over part of the data.
    """
    judgements: list[Judgement] = []
    count = 0
    for place, resolutions in enumerate(answers):
        count += 1
        if place >= len(dataset.documents):
            break
        judgements.extend(_judge_document(place, dataset.documents[place], resolutions, redirects))
    if count != len(dataset.documents):
        raise InputError(f"{count} answered documents; {dataset.name} has {len(dataset.documents)}")
    return tuple(judgements)


def _judge_document(
    place: int, document: Document, resolutions: Resolutions, redirects: Mapping[str, str]
) -> Iterable[Judgement]:
    if [(m.start, m.end) for m in document.mentions] != [(r.start, r.end) for r in resolutions]:
        raise InputError(f"the answers for document {document.id} are not to its {len(document.mentions)} mentions")
    for index, (mention, resolution) in enumerate(zip(document.mentions, resolutions, strict=True)):
        if mention.entity is not None:
            gold = redirects.get(mention.entity, mention.entity)
            titles = _titles(mention, resolution)
            answer = resolution.entity
            yield Judgement(
                document=place,
                mention=index,
                surface=document.surface(mention),
                gold=mention.entity,
                answer=answer,
                probability=resolution.probability,
                step=resolution.step,
                has_candidates=bool(titles),
                gold_listed=any(redirects.get(title, title) == gold for title in titles),
                correct=answer is not None and redirects.get(answer, answer) == gold,
            )


def _titles(mention: Mention, resolution: Resolution) -> Sequence[str]:
    """The candidates of a mention; those that were scored where the model's own store gave them."""
    if mention.candidates is not None:
        return [candidate.entity for candidate in mention.candidates]
    return [title for title, _ in resolution.alternatives]


def most_frequent(document: Document) -> Resolutions:
    """Answer every mention with its candidate of the highest prior, the first given among equals."""
    items = []
    for mention in document.mentions:
        best = max(mention.candidates or (), key=lambda candidate: candidate.prior or 0.0, default=None)
        entity = None if best is None else best.entity
        probability = 0.0 if best is None else best.prior or 0.0
        items.append(Resolution(mention.start, mention.end, document.surface(mention), entity, probability, 1))
    return Resolutions(document, tuple(items))


def candidate_recall(judgements: Sequence[Judgement]) -> float:
    """Return the share of mentions whose gold is among the candidates: the ceiling of accuracy."""
    return sum(judgement.gold_listed for judgement in judgements) / max(1, len(judgements))
