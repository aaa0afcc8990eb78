"""Counting what articles link to: the entities of a vocabulary, redirects resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from deixis.artefacts import Manifest, digest_file, manifest_path
from deixis.knowledge.vocabulary import Vocabulary
from deixis.wikipedia.redirects import Redirects, read_redirects
from deixis.wikipedia.summary import LinkCount, digest_articles, read_redirect_pages, read_summary
from deixis.wikipedia.titles import read_titles

__all__ = ["build_vocabulary", "count_entities", "digests", "gather_redirects", "lead_on"]


def gather_redirects(articles: Sequence[Path], tables: Sequence[Path] = ()) -> dict[str, str]:
    """Return where titles lead in the end, by the redirect pages among the articles and by tables `from<TAB>to`."""
    return lead_on((pair for path in articles for pair in read_redirect_pages(path).items()), tables)


def lead_on(pages: Iterable[tuple[str, str]], tables: Sequence[Path] = ()) -> dict[str, str]:
    """Return where titles lead in the end, by redirect pages and by tables `from<TAB>to`, which go before them."""
    given: dict[str, str] = {}
    for table in tables:
        given.update(read_redirects(table))
    return dict(Redirects.build(dict(pages), given).table)


def count_entities(links: Iterable[LinkCount], redirects: Mapping[str, str]) -> Counter[str]:
    """Return how often each entity is the target of a link."""
    counts: Counter[str] = Counter()
    for link in links:
        counts[redirects.get(link.target, link.target)] += link.times
    return counts


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
    summaries = [read_summary(path, report) for path in progress(articles)]
    redirects = lead_on((pair for summary in summaries for pair in summary.redirects), tables)
    counts: Counter[str] = Counter()
    for summary in summaries:
        counts.update(count_entities(summary.links, redirects))
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
            name = f"{kind} {path.name}"
            while name in found:  # part files of the same name in several folders
                name += "'"
            found[name] = digest_articles(path)
    return found
