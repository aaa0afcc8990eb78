"""Counting what articles link to: the entities of a vocabulary, redirects resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from deixis.artefacts import Manifest, digest_file, read_lines
from deixis.errors import InputError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.wikipedia.articles import Article, read_articles
from deixis.wikipedia.redirects import Redirects, read_redirects
from deixis.wikipedia.titles import read_titles

__all__ = ["build_vocabulary", "count_entities", "digests", "gather_redirects", "manifest_path"]


def gather_redirects(articles: Sequence[Path], tables: Sequence[Path] = ()) -> dict[str, str]:
    """Return where titles lead in the end, by the redirect pages among the articles and by tables `from<TAB>to`."""
    found: dict[str, str] = {}
    for path in articles:
        # Most lines are articles: only those that have the key are decoded.
        for _, line in read_lines(path):
            if b'"redirect":' in line:
                try:
                    article = Article.from_json(line)
                except InputError:
                    continue  # reported when the articles are read
                if article.redirect is not None:
                    found[article.title] = article.redirect
    given: dict[str, str] = {}
    for table in tables:
        given.update(read_redirects(table))
    return dict(Redirects.build(found, given).table)


def count_entities(articles: Iterable[Article], redirects: Mapping[str, str]) -> Counter[str]:
    """Return how often each entity is the target of a link."""
    counts: Counter[str] = Counter()
    for article in articles:
        counts.update(link.target for link in article.links)
    resolved: Counter[str] = Counter()
    for title, count in counts.items():
        resolved[redirects.get(title, title)] += count
    return resolved


def build_vocabulary(
    articles: Sequence[Path],
    output: Path,
    *,
    tables: Sequence[Path] = (),
    min_count: int = 1,
    include: Sequence[Path] = (),
    limit: int | None = None,
    report: Callable[[str], None] | None = None,
    progress: Callable[[Iterable[Path]], Iterable[Path]] = iter,
) -> Manifest:
    """Write the vocabulary of the articles, and its manifest beside it."""
    redirects = gather_redirects(articles, tables)
    counts: Counter[str] = Counter()
    for path in progress(articles):
        counts.update(count_entities(read_articles(path, report=report), redirects))
    wanted = {redirects.get(title, title) for path in include for title in read_titles(path)}
    vocabulary = Vocabulary.build(counts, min_count=min_count, include=wanted, limit=limit)
    vocabulary.save(output)
    manifest = Manifest(
        "vocabulary",
        {"min_count": min_count, "limit": limit},
        digests(articles=articles, redirects=tables, include=include),
        {output.name: digest_file(output)},
        _kept_and_dropped(vocabulary, counts, wanted, min_count),
    )
    manifest.save(manifest_path(output))
    return manifest


def _kept_and_dropped(
    vocabulary: Vocabulary, counts: Mapping[str, int], wanted: Collection[str], min_count: int
) -> dict[str, int]:
    rare = sum(count < min_count and title not in wanted for title, count in counts.items())
    outside = sum(title not in vocabulary for title in counts)
    return {
        "links": sum(counts.values()),
        "links to the vocabulary": sum(vocabulary.counts),
        "entities linked": len(counts),
        "entities kept": len(vocabulary.titles) - 3,
        "entities kept: on the white list only": sum(counts.get(title, 0) < min_count for title in wanted),
        "entities dropped: under the minimum count": rare,
        "entities dropped: over the limit": outside - rare,
    }


def digests(**inputs: Sequence[Path]) -> dict[str, str]:
    """Return what a manifest records of its parents: the sha256 of each file, under its kind and name."""
    found: dict[str, str] = {}
    for kind, paths in inputs.items():
        for path in paths:
            if not path.is_file():
                raise InputError(f"{path} does not exist")
            name = f"{kind} {path.name}"
            while name in found:  # part files of the same name in several folders
                name += "'"
            found[name] = digest_file(path)
    return found


def manifest_path(output: Path) -> Path:
    """Return where the manifest of an artefact that is a single file is."""
    return output.with_name(output.name + ".manifest.json")
