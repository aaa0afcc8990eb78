"""Wikipedia's names into a candidate store: link texts, titles, redirects, aliases, descriptions, pages of meanings."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import marisa_trie

from deixis.artefacts import Manifest, read_lines
from deixis.corpus.counting import digests, lead_on
from deixis.errors import InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.occurrences import OccurrenceCounter, Occurrences
from deixis.wikipedia.articles import Article, read_articles
from deixis.wikipedia.parallel import in_order
from deixis.wikipedia.summary import Summary, read_summary

__all__ = ["BATCH", "NameSources", "build_store", "read_pairs"]

BATCH = 256  # articles counted at a time, of which `counting` is told
Step = tuple[Path, Callable[[Path], None]]


@dataclass(frozen=True, slots=True)
class NameSources:
    """The files that a store is built from."""

    articles: Sequence[Path] = ()  # pages of Wikipedia
    annotated: Sequence[Path] = ()  # article JSONL whose own titles are no entities: news, tables, your own text
    redirects: Sequence[Path] = ()  # from<TAB>to
    aliases: Sequence[Path] = ()  # alias<TAB>title
    descriptions: Sequence[Path] = ()  # title<TAB>description

    def digests(self) -> dict[str, str]:
        """Return what a manifest records of them."""
        return digests(**{name: getattr(self, name) for name in self.__slots__})


def build_store(
    sources: NameSources,
    output: Path,
    *,
    occurrences: bool = True,
    among: Collection[str] | None = None,
    smoothing: float = 0.0,
    workers: int = 1,
    report: Callable[[str], None] | None = None,
    progress: Callable[[Iterable[Step]], Iterable[Step]] = iter,
    counting: Callable[[Iterable[Occurrences]], Iterable[Occurrences]] = iter,
) -> Manifest:
    """Write the store of all names found in the sources; `occurrences` of names in the articles make them detectable.

    Counting reads the articles once more, when all names are known; `workers` are its processes. With `among`, only
    these titles are entities, and the leads of pages give them names too. `smoothing` is that of `NamesBuilder.save`.
    """
    parents = sources.digests()
    pages = {path: read_summary(path, report) for path in sources.articles}
    table = lead_on((pair for summary in pages.values() for pair in summary.redirects), sources.redirects)
    if among is not None:
        table = {source: target for source, target in table.items() if target in among}
    builder = NamesBuilder(table)
    steps: list[Step] = [
        *((path, lambda path: add_articles(builder, pages[path], among)) for path in sources.articles),
        *((path, lambda path: add_annotated(builder, read_summary(path, report))) for path in sources.annotated),
        *((path, lambda path: add_aliases(builder, path)) for path in sources.aliases),
        *((path, lambda path: add_descriptions(builder, path)) for path in sources.descriptions),
    ]
    for path, add in progress(steps):
        add(path)
    texts = [*sources.articles, *sources.annotated] if occurrences else []

    def count(trie: Path) -> Iterable[Occurrences]:
        return counting(found for path in texts for found in count_names(path, trie, workers))

    told = {"occurrences": bool(texts)} | ({"smoothing": smoothing} if smoothing else {})
    return builder.save(output, told, parents, count if texts else None, smoothing)


def count_names(path: Path, trie: Path, workers: int = 1) -> Iterator[Occurrences]:
    """Count the names of a trie in the articles of a file, part by part; pages of meanings have no running text."""
    # What cannot be read was reported when the names were collected.
    pages = (a for a in read_articles(path, report=lambda _: None) if a.redirect is None and not a.disambiguation)
    batches = iter(lambda: list(islice(pages, BATCH)), [])
    yield from in_order(_count_batch, batches, workers, _open_names, trie)


_names: Any = None  # of this process


def _open_names(trie: Path) -> None:
    global _names
    _names = marisa_trie.Trie().mmap(str(trie))


def _count_batch(articles: list[Article]) -> Occurrences:
    counter = OccurrenceCounter(_names)
    for article in articles:
        counter.add(article.title, article.text, [(link.start, link.end) for link in article.links])
    return counter.counts


def add_articles(builder: NamesBuilder, summary: Summary, among: Collection[str] | None = None) -> None:
    """Add the link texts of pages, their titles, and the meanings that pages of meanings list."""
    for page in summary.pages:
        builder.counts["articles"] += 1
        if among is None:
            builder.add_title(page.title)
        elif page.title in among:
            builder.add_description(page.title, page.lead)
        if page.meanings is not None:
            builder.add_meanings(page.title, [one for one in page.meanings if among is None or one in among])
    for link in summary.links:
        if among is None or link.target in among:
            builder.add_link(*link)


def add_annotated(builder: NamesBuilder, summary: Summary) -> None:
    """Add the link texts alone."""
    builder.counts["annotated texts"] += sum(1 for _ in summary.pages) + sum(1 for _ in summary.redirects)
    for link in summary.links:
        builder.add_link(*link)


def add_aliases(builder: NamesBuilder, path: Path) -> None:
    """Add other names of entities: lines alias<TAB>title."""
    for alias, title in read_pairs(path, "an alias, a tab and a title"):
        builder.add_alias(alias, title)


def add_descriptions(builder: NamesBuilder, path: Path) -> None:
    """Add the titles, and the abbreviations in brackets, of lines title<TAB>description."""
    for title, description in read_pairs(path, "a title, a tab and a description"):
        builder.add_description(title, description)


def read_pairs(path: Path, expected: str) -> Iterator[tuple[str, str]]:
    """Yield the first two fields of tab-separated lines; `expected` says what they are, for messages."""
    for number, line in read_lines(path):
        try:
            first, second, *_ = line.decode().split("\t")
        except ValueError:  # too few fields, or not UTF-8
            raise InputError(f"{path}:{number} is not {expected}") from None
        yield first, second
