"""Title drift: links to a title that no page has any more, led to the entity that a list of aliases names.

Dumps of different years, and links to redirects whose pages are not at hand, call one entity by several titles, and
each would get a row of its own. A link target that is neither a page nor described leads to an entity where its
lower-cased title is the alias of exactly one. Who asks Wikipedia to describe a redirect is told of where it leads: a
title whose description names the entity of its alias first, as that of "Patriot Act" does, is no entity of its own, and
titles with one description, as "RAF" and "Royal Air Force", are one. So are titles that differ only in spelling,
as "Yuan Dynasty" and "Yuan dynasty", unless descriptions tell them apart, as those of "Airport" and "AirPort" do.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from deixis.artefacts import Manifest, digest_file, manifest_path, write_aside
from deixis.corpus.completion import own_names
from deixis.corpus.counting import count_entities, lead_on
from deixis.corpus.names import NameSources, read_pairs
from deixis.documents import normalise_title
from deixis.knowledge.surfaces import without_accents
from deixis.wikipedia.summary import read_summary

__all__ = ["build_redirects", "find_copies", "find_drift", "find_misnamed", "find_spellings"]

_BRACKETED = re.compile(r"\([^()]*\)")
_WORD = re.compile(r"[^\W_]+")
_LEAD = 60  # characters of a description that name its subject
_SAME = 20  # words of two descriptions that are not alike by accident
_SHORT = 12  # words under which a description is a phrase that fits many
_MANY = 6  # titles over which a description is a form that was filled in

_MARKS = re.compile(r"(?<=\w)[.,]|['’‘ʻʼ\"“”]")  # ".tokyo" is no city
_INITIALS = re.compile(r"(?<=\b\w) (?=\w\b)")  # the space between two
_DASHES = re.compile(r"[-‐‑–—−\s]+")


def find_drift(
    targets: Iterable[str], known: set[str], aliases: Iterable[tuple[str, str]], redirects: Mapping[str, str]
) -> dict[str, str]:
    """Return where the targets lead that are no known entity but the alias of exactly one."""
    entities = _meanings(aliases, redirects)
    found: dict[str, str] = {}
    for target in targets:
        entity_found = entities.get(target.lower())
        if target not in known and target not in redirects and entity_found is not None and entity_found != target:
            found[target] = entity_found
    return found


def find_misnamed(
    descriptions: Mapping[str, str], aliases: Iterable[tuple[str, str]], redirects: Mapping[str, str]
) -> set[str]:
    """Return the titles described as what they are the alias of: that entity is named first, and has no description."""
    entities = _meanings(aliases, redirects)
    found: set[str] = set()
    for title, text in descriptions.items():
        entity = entities.get(title.lower())
        if entity is not None and entity not in descriptions and title not in redirects:
            lead = text[:_LEAD].lower()
            place, own = lead.find(own_names(entity)[-1].lower()), lead.find(title.lower())
            if place >= 0 and (own < 0 or place < own):
                found.add(title)
    return found


def _meanings(aliases: Iterable[tuple[str, str]], redirects: Mapping[str, str]) -> dict[str, str | None]:
    """Return the entity of each lower-cased alias, None where there are several."""
    entities: dict[str, str | None] = {}
    for alias, title in aliases:
        entity = redirects.get(title, title)
        name = alias.lower()
        entities[name] = entity if entities.get(name, entity) == entity else None
    return entities


def find_copies(descriptions: Mapping[str, str], links: Mapping[str, int]) -> dict[str, str]:
    """Return where titles lead that are described in the same words: to the most linked of them.

    Words in brackets do not count, as some texts have lost them; the first `_SAME` decide.
    """
    alike: dict[str, list[str]] = defaultdict(list)
    for title, text in descriptions.items():
        words = _WORD.findall(_BRACKETED.sub(" ", _BRACKETED.sub(" ", text.lower())))
        if len(words) >= _SHORT:
            alike[" ".join(words[:_SAME])].append(title)
    found: dict[str, str] = {}
    for titles in alike.values():
        if 1 < len(titles) <= _MANY:
            best = max(titles, key=lambda title: (links.get(title, 0), -len(title), title))
            found.update((title, best) for title in titles if title != best)
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
    bare = without_accents(title.casefold())
    return _INITIALS.sub("", _DASHES.sub(" ", _MARKS.sub("", bare)).strip())


def build_redirects(sources: NameSources, output: Path) -> Manifest:
    """Write one table, `from<TAB>to`: redirects of pages and tables, drifted titles, copies, other spellings."""
    summaries = [read_summary(path) for path in (*sources.articles, *sources.annotated)]
    own = summaries[: len(sources.articles)]
    redirects = lead_on((pair for summary in own for pair in summary.redirects), sources.redirects)
    texts: dict[str, str] = {}
    for path in sources.descriptions:
        for title, text in read_pairs(path, "a title, a tab and a description"):
            texts.setdefault(normalise_title(title), text)
    pages = {page.title for summary in own for page in summary.pages}
    targets: Counter[str] = Counter()
    for summary in summaries:
        targets.update(count_entities(summary.links, {}))
    pairs = [pair for path in sources.aliases for pair in read_pairs(path, "an alias, a tab and a title")]
    misnamed = find_misnamed(texts, pairs, redirects) - pages
    known = (texts.keys() | pages) - misnamed
    drifted = find_drift(sorted(targets.keys() | misnamed), known, pairs, redirects)
    table = redirects | drifted
    # An alias may name a title that has drifted itself: lead on, but never in a circle.
    table = {source: drifted.get(target, target) for source, target in table.items()}
    linked = Counter(dict.fromkeys(table.values(), 0))  # a title that only redirects name has spellings too
    for target, count in targets.items():
        linked[table.get(target, target)] += count
    copies = find_copies({title: text for title, text in texts.items() if title not in table}, linked)
    table = _led_on(table, copies)
    for title in copies:
        linked[copies[title]] += linked.pop(title, 0)
    spelt = find_spellings(linked, texts.keys() - table.keys(), pages - table.keys())
    table = _led_on(table, spelt)
    with write_aside(output) as file:
        file.writelines(f"{source}\t{target}\n".encode() for source, target in sorted(table.items()))
    counts = {
        "link targets": len(targets),
        "redirects": len(redirects),
        "drifted titles": len(drifted),
        "described alike": len(copies),
        "other spellings": len(spelt),
    }
    manifest = Manifest("redirects", {}, sources.digests(), {output.name: digest_file(output)}, counts)
    manifest.save(manifest_path(output))
    return manifest


def _led_on(table: Mapping[str, str], further: Mapping[str, str]) -> dict[str, str]:
    """Return a table whose ends lead on where they do."""
    joined = {**further, **{source: further.get(target, target) for source, target in table.items()}}
    return {source: target for source, target in joined.items() if source != target}
