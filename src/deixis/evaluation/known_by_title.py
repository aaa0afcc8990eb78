"""How likely a name is right that is answered by its title alone: the share of gold mentions where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deixis.datasets.dataset import Dataset
from deixis.evaluation.judging import NO_REDIRECTS
from deixis.inference import Disambiguator
from deixis.knowledge.knowledge import Knowledge

__all__ = ["LEAST_TITLES", "judge_titles"]

LEAST_TITLES = 30  # answers to measure a probability on


def judge_titles(
    nlp: Disambiguator, dataset: Dataset, redirects: Mapping[str, str] = NO_REDIRECTS
) -> list[tuple[str, str, bool]]:
    """Return the gold mentions that only a title answers: the answer, the gold, and whether they are one.

    Redirects are the only ones that tell so: a title that leads to the gold, but is no redirect of the table, is wrong.
    """
    if not isinstance(nlp.knowledge, Knowledge) or nlp.candidates is not nlp.knowledge:
        return []
    judged = []
    for document in dataset.documents:
        bare = replace(document, mentions=tuple(replace(mention, candidates=None) for mention in document.mentions))
        for mention, candidates in zip(bare.mentions, nlp.knowledge.candidates(bare), strict=True):
            title = None if candidates else nlp.knowledge.title_named(bare.surface(mention))
            if title is not None and mention.entity is not None:
                gold = redirects.get(mention.entity, mention.entity)
                judged.append((title, gold, redirects.get(title, title) == gold))
    return judged
