"""Title drift: links to a title that no page has any more, led to the entity that a list of aliases names.

Dumps of different years, and links to redirects whose pages are not at hand, call one entity by several titles, and
each would get a row of its own. A link target that is neither a page nor described leads to an entity where its
lower-cased title is the alias of exactly one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from deixis.artefacts import Manifest, digest_file, write_aside
from deixis.wikipedia.articles import read_articles
from deixis.wikipedia.counting import digests, gather_redirects, manifest_path, read_titles
from deixis.wikipedia.naming import NameSources, read_pairs

__all__ = ["build_redirects", "find_drift"]


def find_drift(
    targets: Iterable[str], known: set[str], aliases: Iterable[tuple[str, str]], redirects: Mapping[str, str]
) -> dict[str, str]:
    """Return where the targets lead that are no known entity but the alias of exactly one."""
    entities: dict[str, str | None] = {}  # lower-cased alias -> its entity, None where there are several
    for alias, title in aliases:
        entity = redirects.get(title, title)
        name = alias.lower()
        entities[name] = entity if entities.get(name, entity) == entity else None
    found: dict[str, str] = {}
    for target in targets:
        entity_found = entities.get(target.lower())
        if target not in known and target not in redirects and entity_found is not None and entity_found != target:
            found[target] = entity_found
    return found


def build_redirects(sources: NameSources, output: Path) -> Manifest:
    """Write one table of all redirects, `from<TAB>to`: of pages, of the tables given, and of drifted titles."""
    redirects = gather_redirects(sources.articles, sources.redirects)
    known = {title for path in sources.descriptions for title in read_titles(path)}
    targets: set[str] = set()
    for path in (*sources.articles, *sources.annotated):
        for article in read_articles(path):
            if article.redirect is None and path in sources.articles:
                known.add(article.title)
            targets.update(link.target for link in article.links)
    pairs = (pair for path in sources.aliases for pair in read_pairs(path, "an alias, a tab and a title"))
    drifted = find_drift(sorted(targets), known, pairs, redirects)
    table = redirects | drifted
    # An alias may name a title that has drifted itself: lead on, but never in a circle.
    table = {source: drifted.get(target, target) for source, target in table.items()}
    table = {source: target for source, target in table.items() if source != target}
    with write_aside(output) as file:
        file.writelines(f"{source}\t{target}\n".encode() for source, target in sorted(table.items()))
    parents = _parents(sources)
    counts = {"link targets": len(targets), "redirects": len(redirects), "drifted titles": len(drifted)}
    manifest = Manifest("redirects", {}, parents, {output.name: digest_file(output)}, counts)
    manifest.save(manifest_path(output))
    return manifest


def _parents(sources: NameSources) -> dict[str, str]:
    inputs: dict[str, Sequence[Path]] = {name: getattr(sources, name) for name in sources.__slots__}
    return digests(**inputs)
