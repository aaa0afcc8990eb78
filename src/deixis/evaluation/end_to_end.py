"""From plain text to entities: strict span and entity, micro precision, recall and F1.

An answer is right where a mention with a gold entity has exactly its span, and its entity after redirects. Mentions
that were found but left unresolved are no answers; an answer to anything else is wrong, also to a name that the
annotators marked as being in no knowledge base. With the gold mentions given only the entity can be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

from deixis.datasets.dataset import Dataset
from deixis.documents import Document, Mention, Resolutions
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.knowledge.detection import Detector
from deixis.rendering import Table

__all__ = ["Answers", "EndToEnd", "count_answers", "link_set", "link_texts", "linking_table"]


@dataclass(frozen=True, slots=True)
class EndToEnd:
    """The counts of one set with one way to find mentions."""

    name: str
    mentions: str  # who found them
    golds: int = 0
    found: int = 0  # mentions, resolved or not
    placed: int = 0  # of those, with the span of a gold
    answers: int = 0
    right: int = 0

    @property
    def precision(self) -> float:
        """The share of answers that are right."""
        return self.right / max(1, self.answers)

    @property
    def recall(self) -> float:
        """The share of golds that are answered rightly."""
        return self.right / max(1, self.golds)

    @property
    def coverage(self) -> float:
        """The share of found mentions that are answered."""
        return self.answers / max(1, self.found)

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * self.right / max(1, self.answers + self.golds)

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the counts and figures."""
        return {
            "set": self.name,
            "mentions": self.mentions,
            "golds": self.golds,
            "found": self.found,
            "placed": self.placed,
            "answers": self.answers,
            "right": self.right,
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "coverage": self.coverage,
        }


class Answers(Protocol):
    """What answers documents with mentions: a `Disambiguator`, or a baseline."""

    answer_threshold: float

    def disambiguate_many(self, documents: Iterable[Document], **changes: Any) -> Iterator[Resolutions]:
        """Resolve the mentions of the documents, in their order."""
        ...


Watch = Callable[[Iterator[Resolutions]], Iterable[Resolutions]]  # shows how far it is


def link_set(
    nlp: Answers,
    dataset: Dataset,
    detector: Detector | Literal["gold"],
    label: str,
    *,
    redirects: Mapping[str, str] = NO_REDIRECTS,
    watch: Watch = iter,
    **settings: Any,
) -> EndToEnd:
    """Link the texts of a set, with mentions found by a detector or with the gold ones, and judge the answers."""
    answered = link_texts(nlp, dataset, detector, watch=watch, **{"answer_threshold": nlp.answer_threshold, **settings})
    return count_answers(dataset, answered, label, redirects=redirects)


def link_texts(
    nlp: Answers, dataset: Dataset, detector: Detector | Literal["gold"], *, watch: Watch = iter, **settings: Any
) -> Iterable[Resolutions]:
    """Link the texts of a set, in their order."""
    return watch(nlp.disambiguate_many((_document(each, detector) for each in dataset.documents), **settings))


def count_answers(
    dataset: Dataset,
    answered: Iterable[Resolutions],
    label: str,
    *,
    threshold: float = 0.0,
    redirects: Mapping[str, str] = NO_REDIRECTS,
) -> EndToEnd:
    """Judge the answers to the texts of a set; one under the threshold is none."""
    total = EndToEnd(dataset.name, label)
    for document, resolutions in zip(dataset.documents, answered, strict=True):
        total = _added(total, document, resolutions, threshold, redirects)
    return total


def _document(document: Document, detector: Detector | Literal["gold"]) -> Document:
    """Return the text with bare mentions: no gold, no candidates."""
    if detector == "gold":
        spans = [(mention.start, mention.end) for mention in document.mentions]
    else:
        spans = detector.detect(document.text)
    return replace(document, mentions=tuple(Mention(*span) for span in spans))


def _added(
    total: EndToEnd, document: Document, resolutions: Resolutions, threshold: float, redirects: Mapping[str, str]
) -> EndToEnd:
    golds = {(m.start, m.end): redirects.get(m.entity, m.entity) for m in document.mentions if m.entity is not None}
    answers = {
        (r.start, r.end): redirects.get(r.entity, r.entity)
        for r in resolutions
        if r.entity is not None and r.probability >= threshold
    }
    return replace(
        total,
        golds=total.golds + len(golds),
        found=total.found + len(resolutions),
        placed=total.placed + sum((resolution.start, resolution.end) in golds for resolution in resolutions),
        answers=total.answers + len(answers),
        right=total.right + sum(golds.get(span) == entity for span, entity in answers.items()),
    )


def linking_table(results: Iterable[EndToEnd]) -> Table:
    """Return one row a set and way to find mentions."""
    rows = tuple(
        (
            result.name,
            result.mentions,
            f"{result.golds:,}",
            f"{result.found:,}",
            f"{result.placed:,}",
            f"{result.right:,}",
            *(f"{100 * figure:.1f}" for figure in (result.precision, result.recall, result.f1)),
        )
        for result in results
    )
    columns = ("set", "mentions by", "golds", "found", "placed", "right", "precision", "recall", "F1")
    return Table("End to end", columns, rows, "micro, strict span and entity; placed: found with the span of a gold")
