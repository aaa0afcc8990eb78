"""Texts with their names marked, from public sets and from Wikipedia's own links, for training the detector.

python recipes/default/marked_texts.py NER WIKIPEDIA marked.jsonl.xz     # folders of NER sets and of articles

Each set marks other kinds of names, and some only a part of them; what is not marked is not taken as "no name".
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deixis.artefacts import read_lines, write_aside
from deixis.languages.english import NATIONS

COARSE = ("person", "organisation", "place")
# What each set marks; a set that is not named here marks everything. "other" beside these three is all the rest.
MARKED: dict[str, tuple[str, ...]] = {
    "docred": (*COARSE, "other"),
    "wikigold": (*COARSE, "other"),
    "tweebank_ner": (*COARSE, "other"),
    "uner_ewt_pud": COARSE,
    "btc": COARSE,
    "litbank": ("person", "place"),
    "wnut17": (*COARSE, "work", "product"),
    # Lower case, and its products are mostly common nouns: neither names nor none.
    "multiconer1_en_lower": (*COARSE, "work"),
    "multiconer2_en_lower": (*COARSE, "work"),
}
PARTIAL = {"fewnerd_inter_partial"}
TESTED = {"multiconer1_en_lower", "multiconer2_en_lower", "snips_nlu"}  # by their dev part: they have no other
PARAGRAPHS, NEWS = 20_000, 20_000  # of Wikipedia, and of news items in its style
PEOPLES = frozenset(NATIONS)  # and the words for them


def marked(record: dict[str, Any], source: str) -> dict[str, Any]:
    """Return a text of a set with what is marked in it."""
    kinds = MARKED.get(source)
    if source == "uner_ewt_pud" and record["split"] == "train":
        kinds = (*COARSE, "other")
    spans = []
    for start, end, kind in record["spans"]:
        if kind == "product" and source.startswith("multiconer"):
            continue
        people = kind == "other" and record["text"][start:end].lower() in PEOPLES
        spans.append([start, end, "group" if people else kind])
    held_out = record["split"] == "test" or (record["split"] == "dev" and source in TESTED)
    out = {"text": record["text"], "spans": spans, "source": source, "split": "test" if held_out else "train"}
    if kinds is not None:
        out["kinds"] = kinds
    if source in PARTIAL:
        out["partial"] = True
    return out


def linked_paragraphs(path: Path, number: int, dice: random.Random) -> Iterator[dict[str, Any]]:
    """Yield paragraphs with their links as names of unknown kinds."""
    articles = [json.loads(line) for _, line in read_lines(path)]
    dice.shuffle(articles)
    paragraphs = itertools.chain.from_iterable(map(_paragraphs, articles))
    for text, spans in itertools.islice(paragraphs, number):
        yield {"text": text, "spans": spans, "source": path.name.split(".")[0], "partial": True}


def _paragraphs(article: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    start, links = 0, sorted(link[:2] for link in article["links"])
    for text in article["text"].split("\n")[:12]:
        end = start + len(text)
        spans = [[first - start, last - start, None] for first, last in links if start <= first < last <= end]
        apart = all(left[1] <= right[0] for left, right in itertools.pairwise(spans))
        if 40 <= len(text) <= 1500 and spans and apart:
            yield text, spans
        start = end + 1


def main() -> None:
    """Write one file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ner", type=Path)
    parser.add_argument("wikipedia", type=Path)
    parser.add_argument("out", type=Path)
    given, dice = parser.parse_args(), random.Random(0)
    with write_aside(given.out) as raw, lzma.open(raw, "wb") as file:
        for path in sorted(given.ner.glob("*.jsonl.xz")):
            source = path.name.split(".")[0]
            for _, line in read_lines(path):
                file.write(json.dumps(marked(json.loads(line), source), ensure_ascii=False).encode() + b"\n")
        for name, number in (("articles-en", PARAGRAPHS), ("news-silver-en", NEWS)):
            for record in linked_paragraphs(given.wikipedia / f"{name}.jsonl.xz", number, dice):
                file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")


if __name__ == "__main__":
    main()
