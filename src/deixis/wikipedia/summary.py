"""What an article file says beside its texts: pages, redirects, and how often each text links where.

The pass that reads a dump writes it beside the articles, so that the steps behind need not read them again:

    articles.jsonl.zst.summary/
        pages.jsonl.zst      [title, id, lead, meanings]    as the articles; meanings are what a disambiguation page
                                                            links, null for others
        redirects.jsonl.zst  [title, target]
        links.jsonl.zst      [surface, target, count]       sorted, each pair once

Article files from elsewhere have none: they are read when they are asked, and what is found is kept in memory.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import orjson
import zstandard

from deixis.artefacts import Manifest, digest_file, manifest_path, open_text, read_lines, write_aside
from deixis.errors import ArtefactError, InputError
from deixis.wikipedia.articles import Article, read_articles
from deixis.wikipedia.leads import lead_of

__all__ = [
    "FILES",
    "LinkCount",
    "PageSummary",
    "Summary",
    "digest_articles",
    "link_lines",
    "merge_links",
    "read_redirect_pages",
    "read_summary",
    "recorded",
    "summary_folder",
]

FILES = ("pages.jsonl.zst", "redirects.jsonl.zst", "links.jsonl.zst")
AT_ONCE = 64  # sorted files that are merged together


class PageSummary(NamedTuple):
    """A page that is no redirect: its title, its number, the sentence that says what it is, and of a disambiguation
    page what it links."""

    title: str
    id: int | str | None
    lead: str
    meanings: Sequence[str] | None = None

    @classmethod
    def of(cls, article: Article) -> PageSummary:
        """Return what is kept of an article."""
        meanings = sorted({link.target for link in article.links}) if article.disambiguation else None
        return cls(article.title, article.id, lead_of(article.title, article.text), meanings)


class LinkCount(NamedTuple):
    """How often a text links to a title."""

    surface: str
    target: str
    times: int


@dataclass(frozen=True, slots=True)
class Summary:
    """Pages, redirects (title, target) and links of an article file; each may be gone through again and again."""

    pages: Iterable[PageSummary]
    redirects: Iterable[tuple[str, str]]
    links: Iterable[LinkCount]


@dataclass(frozen=True, slots=True)
class _Lines:
    """The records of a file, read each time they are gone through."""

    path: Path
    record: Callable[[bytes], Any]

    def __iter__(self) -> Iterator[Any]:
        return (self.record(line) for _, line in read_lines(self.path))


def summary_folder(articles: Path) -> Path:
    """Return where the summary of an article file is."""
    return articles.with_name(articles.name + ".summary")


def recorded(articles: Path) -> Manifest | None:
    """Return the manifest beside an article file that was read from a dump, None beside others."""
    path = manifest_path(articles)
    if not path.exists() or not summary_folder(articles).is_dir():
        return None
    manifest = Manifest.load(path, "articles")
    size = articles.stat().st_size
    if manifest.parameters.get("bytes") != size:
        raise ArtefactError(
            f"{articles} has {size:,} bytes, but {path.name} describes a file of "
            f"{manifest.parameters.get('bytes', 0):,}; remove {path.name} or read the dump again"
        )
    return manifest


def digest_articles(path: Path) -> str:
    """Return the sha256 of a file; that of articles which were read from a dump is in their manifest."""
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    manifest = recorded(path)
    return digest_file(path) if manifest is None else manifest.files[path.name]


def read_summary(articles: Path, report: Callable[[str], None] | None = None) -> Summary:
    """Return the summary of an article file: the one beside it, or what reading it once tells.

    A line that cannot be read is told to `report`.
    """
    if recorded(articles) is not None:
        pages, redirects, links = (summary_folder(articles) / name for name in FILES)
        return Summary(
            _Lines(pages, lambda line: PageSummary(*orjson.loads(line))),
            _Lines(redirects, lambda line: tuple(orjson.loads(line))),
            _Lines(links, lambda line: LinkCount(*orjson.loads(line))),
        )
    found: list[PageSummary] = []
    led: list[tuple[str, str]] = []
    counts: Counter[tuple[str, str]] = Counter()
    for article in read_articles(articles, report=report):
        if article.redirect is not None:
            led.append((article.title, article.redirect))
        else:
            found.append(PageSummary.of(article))
            counts.update((article.surface(link), link.target) for link in article.links)
    return Summary(found, led, [LinkCount(*pair, count) for pair, count in counts.items()])


def read_redirect_pages(articles: Path) -> dict[str, str]:
    """Return where the redirect pages of an article file lead."""
    if recorded(articles) is not None:
        return dict(read_summary(articles).redirects)
    found: dict[str, str] = {}
    for _, line in read_lines(articles):
        if b'"redirect":' in line:  # most lines are articles: only those that have the key are decoded
            try:
                article = Article.from_json(line)
            except InputError:
                continue  # reported when the articles are read
            if article.redirect is not None:
                found[article.title] = article.redirect
    return found


def link_lines(counts: Counter[tuple[str, str]]) -> bytes:
    """Return counts by (surface, target) as sorted lines."""
    return b"".join(sorted(orjson.dumps((*pair, count)) + b"\n" for pair, count in counts.items()))


def merge_links(paths: Sequence[Path], output: Path) -> None:
    """Merge files of sorted lines into one, the counts of each pair summed; a line of each is in memory."""
    number = 0
    while len(paths) > AT_ONCE:
        run = paths[0].with_name(f"links-{number}.zst")  # beside the parts, and removed with them
        with write_aside(run) as file:
            _merge(paths[:AT_ONCE], file, level=1)
        paths, number = [*paths[AT_ONCE:], run], number + 1
    with write_aside(output) as file:
        _merge(paths, file, level=3)


def _merge(paths: Sequence[Path], file: BinaryIO, level: int) -> None:
    with ExitStack() as opened, zstandard.ZstdCompressor(level).stream_writer(file, closefd=False) as written:
        lines = heapq.merge(*(opened.enter_context(open_text(path)) for path in paths))
        # Lines of one pair differ in what is behind their last comma alone, so that they stand together.
        for pair, same in groupby(lines, lambda line: line.rpartition(b",")[0]):
            written.write(pair + b",%d]\n" % sum(int(line[len(pair) + 1 : -2]) for line in same))
