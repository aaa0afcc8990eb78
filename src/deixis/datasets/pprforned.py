"""PPRforNED's candidate lists for AIDA (protocol 4); the file lists the gold first, so its order is never used."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Dataset, Report, complaint, decoded, page_of, page_title
from deixis.documents import Candidate, Document, Mention
from deixis.errors import InputError

__all__ = ["ListedEntity", "attach_pprforned", "read_entities"]

PARTS = ("PART_1_1000", "PART_1001_1393")
SPACE = re.compile(r"\s+")
RETITLED = "gold title is now that of the candidate with its page id"
ABSENT = "no candidates: the mention is absent from PPRforNED"


@dataclass(frozen=True, slots=True)
class _ListedCandidate:
    title: str
    page: int
    count: int  # inCount: links to the page


@dataclass(slots=True)
class ListedEntity:
    """A mention of a file; `in_kb` tells whether it has a gold entity."""

    line: int
    surface: str
    in_kb: bool
    listed: list[_ListedCandidate] = field(default_factory=list)

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates, most linked first, equals by title.

        # Paper: these lists have no priors; here: the share of inCount, because a most-frequent baseline needs one
        # and a model needs an answer where it knows none of the candidates. It looks at neither position nor gold.
        """
        total = sum(item.count for item in self.listed) or 1
        best_first = sorted(self.listed, key=lambda item: (-item.count, item.title))
        return tuple(Candidate(item.title, item.count / total) for item in best_first)


def attach_pprforned(dataset: Dataset, folder: Path) -> Dataset:
    """Return AIDA documents with PPRforNED's candidates; `folder` holds `AIDA_candidates/PART_…/<number>`.

    The k-th entity of a file that is in the knowledge base is the k-th mention of the document.
    """
    report = dataset.report.copy()
    documents = tuple(_attach(document, folder, report) for document in dataset.documents)
    return replace(dataset, documents=documents, report=report, candidates="PPRforNED")


def _attach(document: Document, folder: Path, report: Report) -> Document:
    number = document.extra.get("number")
    if not isinstance(number, int):
        raise InputError(f"document {document.id} has no AIDA number; PPRforNED's candidates are for AIDA-CoNLL only")
    path = folder / "AIDA_candidates" / PARTS[number > 1000] / str(number)
    entities = [entity for entity in read_entities(path) if entity.in_kb]
    if len(entities) > len(document.mentions):
        raise complaint(
            path,
            entities[len(document.mentions)].line,
            f"{len(entities)} entities in the knowledge base; expected the {len(document.mentions)} of {document.id}",
        )
    return replace(document, mentions=tuple(_aligned(document, entities, path, report)))


def _aligned(document: Document, entities: Sequence[ListedEntity], path: Path, report: Report) -> Iterator[Mention]:
    for k, mention in enumerate(document.mentions):
        if k >= len(entities):
            report.unmatched[ABSENT] += 1
            yield replace(mention, candidates=())
            continue
        surface = document.surface(mention)
        if SPACE.sub("", entities[k].surface) != SPACE.sub("", surface):
            raise complaint(
                path, entities[k].line, f"origText {entities[k].surface!r}; expected {surface!r} of {document.id}"
            )
        yield _with_list(mention, entities[k], report)


def _with_list(mention: Mention, entity: ListedEntity, report: Report) -> Mention:
    """Attach a list; where only the page id of the gold is in it, the gold takes the (newer) title found there."""
    titles = {item.title for item in entity.listed}
    by_page = {item.page: item.title for item in entity.listed}
    gold = mention.entity
    page = page_of(mention)
    if gold not in titles and page in by_page:
        report.repaired[RETITLED] += 1
        gold = by_page[page]
    return replace(mention, entity=gold, candidates=entity.candidates())


def read_entities(path: Path) -> list[ListedEntity]:
    """Read the mentions of one file, each with its candidates."""
    entities: list[ListedEntity] = []
    for line, raw in read_lines(path):
        kind, *pairs = decoded(raw, path, line).split("\t")
        fields = dict(pair.split(":", 1) for pair in pairs if ":" in pair)
        if kind == "ENTITY":
            surface, url = _wanted(fields, ("origText", "url"), kind, path, line)
            entities.append(ListedEntity(line, surface, url != "NIL"))
        elif kind == "CANDIDATE" and entities:
            entities[-1].listed.append(_listed(fields, path, line))
        else:
            raise complaint(path, line, f"{kind[:20]!r}; expected ENTITY, then its CANDIDATE lines")
    return entities


def _listed(fields: Mapping[str, str], path: Path, line: int) -> _ListedCandidate:
    url, page, count = _wanted(fields, ("url", "id", "inCount"), "CANDIDATE", path, line)
    title = page_title(url)
    if title is None or not page.isdecimal() or not count.isdecimal():
        raise complaint(path, line, "expected the url of a page in Wikipedia and numbers in id and inCount")
    return _ListedCandidate(title, int(page), int(count))


def _wanted(fields: Mapping[str, str], names: Sequence[str], kind: str, path: Path, line: int) -> list[str]:
    for name in names:
        if name not in fields:
            raise complaint(path, line, f"{kind} without {name}:; expected {', '.join(names)}")
    return [fields[name] for name in names]
