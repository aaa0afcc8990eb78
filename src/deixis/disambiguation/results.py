"""What was decided for a document, window by window, and the resolutions that come of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

from deixis.disambiguation.answer_rule import AnswerRule, evidence_of
from deixis.disambiguation.choices import Choices, distinct
from deixis.documents import Candidate, Document, Reason, Resolution, Resolutions, Step
from deixis.network.kept_words import KeptWords

__all__ = ["PendingDocument", "resolve_by_prior", "resolve_by_title", "unresolved"]

Chances = tuple[tuple[str, float], ...]  # titles and probabilities


@dataclass(slots=True)
class PendingDocument:
    """A document whose windows are being decided."""

    document: Document
    choices: list[Choices]  # one a mention
    resolutions: list[Resolution | None]
    trace: dict[int, dict[int, Chances]] | None = None  # step -> open mention -> its candidates
    priors: Sequence[Mapping[str, float]] | None = None  # of each mention, where it is asked what speaks for answers
    kept: KeptWords | None = None  # the words of its text, where they were read to find the mentions
    windows_left: int = 0
    passes: int = 0
    is_read: bool = field(default=False)  # all of its windows are known

    def decide(self, place: int, choice: int, chances: Sequence[float], step: int, fit: float | None = None) -> None:
        """Note the decision of a mention, and how well it fits where that was asked for."""
        mention, titles = self.document.mentions[place], self.choices[place].titles
        ranked = sorted(zip(titles, chances, strict=True), key=itemgetter(1), reverse=True)
        surface = self.document.surface(mention)
        evidence = None
        if fit is not None and self.priors is not None:
            evidence = evidence_of(chances[choice], len(titles), fit, self.priors[place].get(titles[choice]))
        self.resolutions[place] = Resolution(
            mention.start, mention.end, surface, titles[choice], chances[choice], step, tuple(ranked), evidence=evidence
        )

    def note_open(self, place: int, chances: Sequence[float], step: int) -> None:
        """Note the probabilities of a mention that was open in a step."""
        if self.trace is not None:
            noted = tuple(zip(self.choices[place].titles, chances, strict=True))
            self.trace.setdefault(step, {})[place] = noted

    def finish(
        self, threshold: float | None, identified: Callable[[Resolution], Resolution], rule: AnswerRule | None = None
    ) -> Resolutions:
        """Return the resolutions; answers under the threshold are left open, the others say how they are known."""
        items = [
            resolution or unresolved(self.document, place, "too long")
            for place, resolution in enumerate(self.resolutions)
        ]
        if rule is not None:
            items = [rule.applied(resolution) for resolution in items]
        settled = [_settled(resolution, threshold) for resolution in items]
        for place, (resolution, mention) in enumerate(zip(settled, self.document.mentions, strict=True)):
            told = resolution if resolution.entity is None else identified(resolution)
            settled[place] = told if mention.kind is None else replace(told, kind=mention.kind)
        return Resolutions(self.document, tuple(settled), self.passes, self._steps(items))

    def _steps(self, items: Sequence[Resolution]) -> tuple[Step, ...] | None:
        """Join what was noted of each step with what was decided in it."""
        if self.trace is None:
            return None
        decided: dict[int, list[int]] = {}
        for place, resolution in enumerate(items):
            if resolution.entity is not None:
                decided.setdefault(resolution.step, []).append(place)
        steps = sorted(decided.keys() | self.trace.keys())
        return tuple(Step(step, tuple(decided.get(step, ())), self.trace.get(step, {})) for step in steps)


def resolve_by_prior(document: Document, place: int, candidates: tuple[Candidate, ...]) -> Resolution:
    """Resolve a mention of whose candidates the network knows none by their priors."""
    mention = document.mentions[place]
    listed = distinct(candidates)
    weights = [candidate.prior or 0.0 for candidate in listed]
    total = sum(weights)
    shares = [weight / total if total > 0 else 1 / len(weights) for weight in weights]
    ranked = sorted(zip((c.entity for c in listed), shares, strict=True), key=lambda pair: -pair[1])
    surface = document.surface(mention)
    return Resolution(mention.start, mention.end, surface, *ranked[0], 1, tuple(ranked))


def resolve_by_title(document: Document, place: int, title: str, probability: float) -> Resolution:
    """Resolve a mention of which nothing is known but that there is an article of its name."""
    mention = document.mentions[place]
    surface, ranked = document.surface(mention), ((title, probability),)
    return Resolution(mention.start, mention.end, surface, title, probability, 1, ranked, known_by="title")


def unresolved(document: Document, place: int, reason: Reason) -> Resolution:
    """Return the resolution of a mention without an answer."""
    mention = document.mentions[place]
    return Resolution(mention.start, mention.end, document.surface(mention), None, 0.0, 0, (), reason)


def _settled(resolution: Resolution, threshold: float | None) -> Resolution:
    """Return the resolution, unresolved where its probability is under the threshold."""
    if threshold is None or resolution.entity is None or resolution.probability >= threshold:
        return resolution
    return replace(resolution, entity=None, reason="none fits", known_by=None)
