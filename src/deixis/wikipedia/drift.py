"""Title drift: links to a title that no page has any more, led to the entity that a list of aliases names.

Dumps of different years, and links to redirects whose pages are not at hand, call one entity by several titles, and
each would get a row of its own. A link target that is neither a page nor described leads to an entity where its
lower-cased title is the alias of exactly one. And titles that differ only in how they are spelt, as "Yuan Dynasty" and
"Yuan dynasty", are one entity unless descriptions tell them apart, as those of "Airport" and "AirPort" do.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from deixis.artefacts import Manifest, digest_file, write_aside
from deixis.wikipedia.articles import read_articles
from deixis.wikipedia.counting import digests, gather_redirects, manifest_path, read_titles
from deixis.wikipedia.naming import NameSources, read_pairs

__all__ = ["build_redirects", "find_drift", "find_spellings"]

_MARKS = re.compile(r"(?<=\w)[.,]|['’‘ʻʼ\"“”]")  # ".tokyo" is no city
_INITIALS = re.compile(r"(?<=\b\w) (?=\w\b)")  # the space between two
_DASHES = re.compile(r"[-‐‑–—−\s]+")


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


def find_spellings(links: Mapping[str, int], described: Collection[str], pages: Collection[str]) -> dict[str, str]:
    """Return where other spellings lead: to the title that is described, else to a page, else to the most linked.

    Described titles stay; where several are spelt alike, nothing says which of them is meant, and nothing leads there.
    """
    spelt: dict[str, list[str]] = defaultdict(list)
    for title in {*links, *described, *pages}:
        spelt[_spelling(title)].append(title)
    found: dict[str, str] = {}
    for titles in spelt.values():
        best = max(titles, key=lambda title: (title in described, title in pages, links.get(title, 0), title))
        if sum(title in described for title in titles) < 2:
            found.update((title, best) for title in titles if title != best)
    return found


def _spelling(title: str) -> str:
    """Return what all spellings of a title have in common: no case, accents, full stops, kinds of dashes."""
    letters = unicodedata.normalize("NFKD", title.casefold())
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _INITIALS.sub("", _DASHES.sub(" ", _MARKS.sub("", bare)).strip())


def build_redirects(sources: NameSources, output: Path) -> Manifest:
    """Write one table, `from<TAB>to`: redirects of pages, of the tables given, drifted titles, other spellings."""
    redirects = gather_redirects(sources.articles, sources.redirects)
    described = {title for path in sources.descriptions for title in read_titles(path)}
    pages: set[str] = set()
    targets: Counter[str] = Counter()
    for path in (*sources.articles, *sources.annotated):
        for article in read_articles(path):
            if article.redirect is None and path in sources.articles:
                pages.add(article.title)
            targets.update(link.target for link in article.links)
    pairs = (pair for path in sources.aliases for pair in read_pairs(path, "an alias, a tab and a title"))
    drifted = find_drift(sorted(targets), described | pages, pairs, redirects)
    table = redirects | drifted
    # An alias may name a title that has drifted itself: lead on, but never in a circle.
    table = {source: drifted.get(target, target) for source, target in table.items()}
    linked = Counter(dict.fromkeys(table.values(), 0))  # a title that only redirects name has spellings too
    for target, count in targets.items():
        linked[table.get(target, target)] += count
    spelt = find_spellings(linked, described - table.keys(), pages - table.keys())
    table = spelt | {source: spelt.get(target, target) for source, target in table.items()}
    table = {source: target for source, target in table.items() if source != target}
    with write_aside(output) as file:
        file.writelines(f"{source}\t{target}\n".encode() for source, target in sorted(table.items()))
    parents = _parents(sources)
    counts = {
        "link targets": len(targets),
        "redirects": len(redirects),
        "drifted titles": len(drifted),
        "other spellings": len(spelt),
    }
    manifest = Manifest("redirects", {}, parents, {output.name: digest_file(output)}, counts)
    manifest.save(manifest_path(output))
    return manifest


def _parents(sources: NameSources) -> dict[str, str]:
    inputs: dict[str, Sequence[Path]] = {name: getattr(sources, name) for name in sources.__slots__}
    return digests(**inputs)
