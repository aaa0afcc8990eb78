"""Candidate recall: whether the right entity is among the candidates, and first of them, and why it is not.

    python benchmarks/recall.py STORE --data BENCHMARKS --wild WILD --redirects TABLE [--titles TITLES] [--examples OUT]

STORE is a names store or a model folder; WILD a folder of document JSONL. TABLE lists redirects, applied to golds and
candidates alike before they are compared. TITLES are all titles of a wiki in lower case, one a line: a mention of two
words or more that is no name of the store, but a title, has that as its last candidate. --examples writes every miss, a
line each: set, reason, mention, gold.
"""

from __future__ import annotations

import argparse
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from deixis.artefacts import read_lines
from deixis.datasets import read_set
from deixis.documents import Document, normalise_title
from deixis.knowledge.names import Names
from deixis.knowledge.surfaces import INITIALS, initials, is_initials, key
from deixis.wikipedia.redirects import read_redirects

SETS = ("aida-a", "aida-b", "msnbc", "aquaint", "ace2004", "cweb", "wiki")
REASONS = (
    "unknown",  # the gold is no entity of the store
    "cut",  # the gold is stored for the mention, but not among the candidates
    "initials",  # the mention is an abbreviation that the store does not know
    "words",  # the mention shares a word with the gold: a longer or shorter form
    "other",  # the mention shares no word with the gold: a nickname, a metonym, another spelling
)


def measure(
    store: Names,
    documents: Iterable[Document],
    newer: Mapping[str, str],
    titles: set[str],
    all_titles: Collection[str] = (),
) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """Return the counts of a set, and of each miss the reason, the mention and the gold."""
    counts: Counter[str] = Counter()
    misses = []
    for document in documents:
        for mention, candidates in zip(document.mentions, store.candidates(document), strict=True):
            assert mention.entity is not None
            gold, surface = newer.get(mention.entity, mention.entity), document.surface(mention)
            found = [newer.get(candidate.entity, candidate.entity) for candidate in candidates]
            if " " in surface and surface not in store and plain(surface) in all_titles:
                found.append(normalise_title(surface))
                counts["by title"] += 1
            counts["mentions"] += 1
            counts["known"] += gold in titles
            counts["first"] += found[:1] == [gold]
            counts["found"] += gold in found
            if gold not in found:
                reason = why(store, surface, gold, titles)
                counts[reason] += 1
                misses.append((reason, surface, gold))
    return counts, misses


def plain(title: str) -> str:
    """Return a title in lower case, without accents."""
    decomposed = unicodedata.normalize("NFKD", title.lower())
    return "".join(letter for letter in decomposed if not unicodedata.combining(letter))


def why(store: Names, surface: str, gold: str, titles: set[str]) -> str:
    """Return the reason for which the gold is not among the candidates."""
    if gold not in titles:
        return "unknown"
    name = key(surface)
    if any(entry.entity == gold for entry in store.entries(name)) or gold in dict(store.parts(name)):
        return "cut"
    if is_initials(surface) and (name in initials(gold) or not store.parts(INITIALS + name)):
        return "initials"
    return "words" if set(name.split()) & set(key(gold).split()) else "other"


def sets(data: Path | None, wild: Path | None) -> Iterator[tuple[str, tuple[Document, ...]]]:
    """Yield the name and the documents of each set."""
    for path in sorted(wild.glob("*.jsonl*")) if wild is not None else ():
        yield path.name.partition(".")[0], read_set(path.parent, str(path)).documents
    for name in SETS if data is not None else ():
        assert data is not None
        yield name, read_set(data, name).documents


def main() -> None:
    """Print a line a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="a names store or a model folder")
    parser.add_argument("--data", type=Path, help="the folder with the unpacked benchmarks")
    parser.add_argument("--wild", type=Path, help="a folder of document JSONL")
    parser.add_argument("--redirects", type=Path, help="lines from<TAB>to")
    parser.add_argument("--titles", type=Path, help="all titles in lower case, one a line")
    parser.add_argument("--examples", type=Path, help="where to write what is missing")
    given = parser.parse_args()
    own = given.store / "candidates"
    store = Names.open(own if own.is_dir() else given.store)
    newer = read_redirects(given.redirects) if given.redirects else {}
    titles = {newer.get(title, title) for title, _ in store.titles()}
    all_titles = {plain(line.decode()) for _, line in read_lines(given.titles)} if given.titles else set()
    columns = ("known", "found", "first", "by title", *REASONS)
    print(f"{'set':22} {'mentions':>8}", *(f"{column:>8}" for column in columns))
    lines = []
    for name, documents in sets(given.data, given.wild):
        counts, misses = measure(store, documents, newer, titles, all_titles)
        shares = (f"{100 * counts[column] / counts['mentions']:8.1f}" for column in columns)
        print(f"{name:22} {counts['mentions']:8}", *shares, flush=True)
        lines += [f"{name}\t{reason}\t{surface}\t{gold}\n" for reason, surface, gold in misses]
    if given.examples is not None:
        given.examples.write_text("".join(lines))


if __name__ == "__main__":
    main()
