"""Names of which nothing but the title is known: how often that title is right, and how many mentions it adds.

    python benchmarks/titles.py STORE TITLES WILD [--redirects TABLE] [--examples OUT]

STORE is a names store or a folder of knowledge; TITLES are all titles of a wiki, one a line, or a filter of them; WILD
is a folder of document JSONL with gold mentions. Counted are gold mentions of two words or more that have no candidate
and whose name is a title. Redirects of the table are applied to golds and titles; `same but case` also takes titles for
right that differ from the gold in case or accents alone, to which Wikipedia mostly redirects. `known in part`: names
that no name of the store is written as, but that have candidates by a part of their words or through another mention;
these are not answered by title.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from deixis.artefacts import read_lines
from deixis.datasets import read_texts
from deixis.documents import Document
from deixis.knowledge.knowledge import NUMBERS, Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.surfaces import key
from deixis.knowledge.title_filter import TitleFilter
from deixis.wikipedia.redirects import read_redirects

COLUMNS = ("mentions", "no candidate", "by title", "right", "same but case", "NIL", "known in part", "of them right")


def measure(
    store: Names | Knowledge, titles: TitleFilter, documents: Iterable[Document], newer: Mapping[str, str]
) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """Return the counts of a set, and the names that a title answers: right or wrong, the title, the gold."""
    counts: Counter[str] = Counter()
    answers = []
    for document in documents:
        for mention, candidates in zip(document.mentions, store.candidates(document), strict=True):
            surface = document.surface(mention)
            counts["mentions"] += mention.entity is not None
            counts["no candidate"] += mention.entity is not None and not candidates
            title = titles.find(surface)
            if title is None or (candidates and store.lookup(surface)):
                continue
            gold = newer.get(mention.entity or "", mention.entity)
            right = newer.get(title, title) == gold
            if candidates:
                counts["known in part"] += gold is not None
                counts["of them right"] += right
                continue
            counts["by title" if gold is not None else "NIL"] += 1
            counts["right"] += right
            counts["same but case"] += gold is not None and key(newer.get(title, title)) == key(gold)
            answers.append(("right" if right else "wrong", surface, gold or "NIL"))
    return counts, answers


def main() -> None:
    """Print a line a set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", type=Path, help="a names store or a folder of knowledge")
    parser.add_argument("titles", type=Path, help="all titles of a wiki, one a line, or a filter of them")
    parser.add_argument("wild", type=Path, help="a folder of document JSONL")
    parser.add_argument("--redirects", type=Path, help="lines from<TAB>to")
    parser.add_argument("--examples", type=Path, help="where to write the answers")
    given = parser.parse_args()
    store = Knowledge.open(given.store) if (given.store / NUMBERS).exists() else Names.open(given.store)
    if given.titles.suffix == ".filter":
        titles = TitleFilter.open(given.titles)
    else:
        titles = TitleFilter.build(line.decode() for _, line in read_lines(given.titles))
    newer = read_redirects(given.redirects) if given.redirects else {}
    print(f"{'set':22}", *(f"{column:>14}" for column in COLUMNS))
    lines, together = [], Counter[str]()
    for path in sorted(given.wild.glob("*.jsonl*")):
        name = path.name.partition(".")[0]
        counts, answers = measure(store, titles, read_texts(path.parent, str(path)).documents, newer)
        together += counts
        print(f"{name:22}", *(f"{counts[column]:14,}" for column in COLUMNS), flush=True)
        lines += ["\t".join((name, *answer)) + "\n" for answer in answers]
    print(f"{'together':22}", *(f"{together[column]:14,}" for column in COLUMNS))
    answered = max(1, together["by title"])
    print(
        f"right: {together['right'] / answered:.3f}, but for case {together['same but case'] / answered:.3f}; "
        f"{together['by title'] / together['mentions']:.2%} of the mentions"
    )
    if given.examples is not None:
        given.examples.write_text("".join(lines))


if __name__ == "__main__":
    main()
