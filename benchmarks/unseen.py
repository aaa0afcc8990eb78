"""Entities that no training saw, known by a description alone, among namesakes: are they answered, whom do they rob?

    python benchmarks/unseen.py DESCRIPTIONS.tsv... --articles ARTICLES.jsonl... --data BENCHMARKS [--model MODEL]

Protocol, for any model folder that has names:

1.  Held out are titles that the articles link, that have a description (five words or more), and of which training saw
    no link: the model does not know them, or has no links for them and a row from text. What it has of them is removed.
2.  They are linked by a name of their own: their title, or what is left of it without its bracket or what follows its
    comma. That name means another entity to the model, one that training saw: a real namesake. Pages of meanings
    and lists are no entities.
3.  400 of them are drawn by seed, with one link each: the first of the articles in their order. The text is what
    stands within 300 characters of it, whole words; the link is the only mention, the candidates are the model's own.
4.  They are added with `with_entities`, title and description and nothing else: no name, no example, no prior.
5.  Right is the title itself, with the model's own settings for plain texts and no answer withheld.
6.  What they take: links in the same articles with a name of one of them that mean another entity, one that training
    saw, at most 400 by seed and at most 2 of a name; and the five sets, gold mentions with the model's own candidates.
    Both are answered without the added entities and with them.
"""

from __future__ import annotations

import argparse
import math
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch

from deixis.datasets import open_dataset
from deixis.documents import Document, Mention
from deixis.folder.edit import remove
from deixis.folder.model_folder import ModelFolder, opened, packaged_model
from deixis.inference import Disambiguator
from deixis.knowledge.entities import Entity
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.surfaces import key, short_titles
from deixis.settings import Settings
from deixis.training.descriptions import read_descriptions
from deixis.wikipedia.articles import Article, read_articles

SETS = ("aida-a", "aida-b", "msnbc", "aquaint", "ace2004")
AROUND = 300  # characters on either side of a mention
WORDS = 5  # of a description
OF_A_NAME = 2  # mentions of others that have the name of an added entity
NO_ENTITIES = ("List of", "Lists of", "Index of", "Outline of")


@dataclass(frozen=True, slots=True)
class Link:
    """A link of an article that may be asked."""

    name: str  # the key of its surface
    document: Document

    @property
    def gold(self) -> str:
        """Where it leads."""
        return self.document.mentions[0].entity or ""


def held_out(knowledge: Knowledge, descriptions: dict[str, str]) -> dict[str, frozenset[str]]:
    """Return the entities that could be held out, each with the keys of its own names."""
    found = {}
    for title, text in descriptions.items():
        if len(text.split()) < WORDS or title.startswith(NO_ENTITIES) or title.endswith("(disambiguation)"):
            continue
        number = knowledge.number(title)
        if number is None or (knowledge.title(number) == title and not trained(knowledge, number)):
            found[title] = frozenset(map(key, (title, *short_titles(title))))
    return found


def trained(knowledge: Knowledge, number: int) -> bool:
    """Tell whether training saw links of an entity."""
    return knowledge.links(number) > 0


def namesakes(knowledge: Knowledge, surface: str, title: str) -> int:
    """Return how many others that training saw a name means."""
    numbers = (knowledge.number(one.entity) for one in knowledge.lookup(surface) if one.entity != title)
    return sum(number is not None and trained(knowledge, number) for number in numbers)


def links(
    articles: Iterator[Article], knowledge: Knowledge, able: dict[str, frozenset[str]]
) -> tuple[dict[str, Link], list[Link]]:
    """Return the first fitting link of each entity that could be held out, and links of others by name."""
    names = Counter(name for own in able.values() for name in own)
    own: dict[str, Link] = {}
    others: list[Link] = []
    for article in articles:
        for start, end, target in article.links:
            surface = article.text[start:end]
            name = key(surface)
            if name not in names:
                continue
            number = knowledge.number(target)
            title = target if number is None else knowledge.title(number)
            if title in able:
                if title not in own and name in able[title] and namesakes(knowledge, surface, title):
                    own[title] = Link(name, excerpt(article.text, start, end, title))
            elif number is not None and trained(knowledge, number):
                others.append(Link(name, excerpt(article.text, start, end, title)))
    return own, others


def excerpt(text: str, start: int, end: int, title: str) -> Document:
    """Return what stands around a mention, whole words, with the mention alone."""
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    while 0 < first < start and not text[first - 1].isspace():
        first += 1
    while end < last < len(text) and not text[last].isspace():
        last -= 1
    return Document(text[first:last], (Mention(start - first, end - first, title),))


def drawn(own: dict[str, Link], others: list[Link], number: int, seed: int) -> tuple[list[Link], list[Link]]:
    """Draw the held-out links, and links of others that have one of their names."""
    dice = random.Random(seed)
    chosen = [own[title] for title in dice.sample(sorted(own), min(number, len(own)))]
    names, taken = {link.name for link in chosen}, Counter[str]()
    kept: list[Link] = []
    for link in dice.sample(others, len(others)):
        if link.name in names and taken[link.name] < OF_A_NAME and len(kept) < number:
            taken[link.name] += 1
            kept.append(link)
    return chosen, kept


def right(nlp: Disambiguator, documents: Sequence[Document]) -> list[bool]:
    """Tell of each mention with a gold whether it is answered right; another title of the gold is the gold."""
    knowledge, found = nlp.knowledge, []
    answers = nlp.disambiguate_many(documents, nlp.for_texts(Settings(answer_threshold=0.0)))
    for document, resolutions in zip(documents, answers, strict=True):
        for mention, resolution in zip(document.mentions, resolutions, strict=True):
            if mention.entity is not None:
                gold = knowledge.number(mention.entity)
                answer = None if resolution.entity is None else knowledge.number(resolution.entity)
                found.append(answer is not None and answer == gold)
    return found


def share(found: Sequence[bool]) -> str:
    """Return a percentage with its 95 % interval."""
    if not found:
        return "none"
    mean = sum(found) / len(found)
    return f"{100 * mean:5.1f} ± {196 * math.sqrt(mean * (1 - mean) / len(found)):3.1f}"


def compare(what: str, before: Sequence[bool], after: Sequence[bool]) -> None:
    """Print how many are right before and after, and the points that are lost or won."""
    a, b = (100 * sum(found) / max(1, len(found)) for found in (before, after))
    changed = sum(x != y for x, y in zip(before, after, strict=True))
    print(f"{what:34} {len(before):7,} {a:7.2f} {b:7.2f} {b - a:+7.2f}   {changed:,} change", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("descriptions", nargs="+", type=Path, help="lines title TAB description")
    parser.add_argument("--articles", nargs="+", type=Path, required=True, help="article JSONL that links them")
    parser.add_argument("--model", type=Path, help="model folder; the packaged model if not given")
    parser.add_argument("--data", type=Path, help="folder of the five sets; without it they are left out")
    parser.add_argument("--number", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--most-articles", type=int, help="read so many articles of each file, for a trial")
    parser.add_argument("--documents", type=int, help="read so many documents of each set, for a trial")
    given = parser.parse_args()
    torch.manual_seed(given.seed)
    model = ModelFolder.load(opened(given.model or packaged_model())[0])
    knowledge = model.names
    if knowledge is None:
        parser.error("the model has no names; namesakes are found by them")
    descriptions = read_descriptions(given.descriptions)
    able = held_out(knowledge, descriptions)
    articles = (one for path in given.articles for one in islice(read_articles(path), given.most_articles))
    own, others = links(articles, knowledge, able)
    chosen, beside = drawn(own, others, given.number, given.seed)
    if not chosen:
        parser.error("no article links an entity that could be held out by a name that others have")
    print(f"{len(able):,} described entities that training did not see, {len(own):,} linked among namesakes")
    rivals = [namesakes(knowledge, link.name, link.gold) for link in chosen]
    print(
        f"{len(chosen):,} drawn with seed {given.seed}; namesakes of each: {sum(rivals) / len(rivals):.1f} on average"
    )
    titles = [link.gold for link in chosen]
    with tempfile.TemporaryDirectory() as scratch:
        remove(model, [title for title in titles if title in knowledge]).save_edited(Path(scratch) / "less", {})
        without = Disambiguator.load(Path(scratch) / "less", given.device)
        added = without.with_entities([Entity(title, descriptions[title]) for title in titles])
        asked = [link.document for link in chosen]
        print(f"held out and added by description: {share(right(added, asked))} % right")
        first = (added.knowledge.candidates(document)[0] for document in asked)  # type: ignore[union-attr]
        by_prior = [bool(found) and found[0].entity == title for found, title in zip(first, titles, strict=True)]
        print(f"the first candidate by prior:      {share(by_prior)} %\n")
        print(f"{'what they take':34} {'n':>7} {'before':>7} {'after':>7} {'points':>7}")
        same = [link.document for link in beside]
        compare("others with one of their names", right(without, same), right(added, same))
        before: list[bool] = []
        after: list[bool] = []
        for name in SETS if given.data is not None else ():
            documents = open_dataset(given.data, name).in_kb().documents[: given.documents]
            pair = right(without, documents), right(added, documents)
            compare(name, *pair)
            before, after = before + pair[0], after + pair[1]
        if before:
            compare("the five sets", before, after)


if __name__ == "__main__":
    main()
