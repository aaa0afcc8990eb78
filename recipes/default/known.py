"""All that is known of Wikipedia's entities: one table of redirects, a text for each entity, and names for all.

    python recipes/default/known.py OUT --wikipedia FOLDER --enwik8 ARTICLES [--earlier REDIRECTS] [--include TITLES]

ARTICLES is what `deixis wikipedia articles` made of enwik8; REDIRECTS the table of a model whose titles are to be kept;
TITLES are entities anyway, without names of their own: candidates of the benchmarks. What is made, in OUT; what is
there already is not made again:

    aliases.tsv       other names of entities from lists, their titles spelt as they are known here
    redirects.tsv     from<TAB>to: redirects of pages and tables, older titles, titles described alike, other spellings
    texts.tsv.zst     title<TAB>description of every entity, the best description of each, empty where there is none
    everything        the names of all entities, as `deixis candidates build` makes them
    ship.txt          all entities, the more used before the less (shipped.py): any part from the top may travel

An entity is what is linked, described, the subject of an article, or where a redirect leads. The best description is a
sentence of a page, then a sentence of an article's own text, then a phrase beside a link in a list, then of a place.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import orjson
import zstandard
from places import read_places
from shipped import Use, rank

from deixis.artefacts import digest_file, read_lines, write_aside
from deixis.corpus.completion import own_names
from deixis.corpus.drift import build_redirects
from deixis.corpus.names import NameSources, add_annotated, add_articles, count_names, read_pairs
from deixis.documents import normalise_title
from deixis.errors import DeixisError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.names import Names
from deixis.knowledge.occurrences import Occurrences
from deixis.knowledge.surfaces import key, short_titles
from deixis.wikipedia.articles import Article, read_articles
from deixis.wikipedia.leads import lead_of
from deixis.wikipedia.redirects import Redirects, read_redirects
from deixis.wikipedia.summary import read_summary
from deixis.wikipedia.titles import read_titles

PAGES = ("articles-en.jsonl.xz", "articles-2023-en.jsonl.xz", "articles-html-en.jsonl.xz")
ANNOTATED = ("news-silver-en.jsonl.xz", "tables-en.jsonl.xz", "on-this-day-en.jsonl.xz", "lists-html-en.jsonl.xz")
DESCRIPTIONS = (
    "leads-html-en.tsv.xz",
    "descriptions-en.tsv.xz",
    "descriptions-more-en.tsv.xz",
    "descriptions-2022-en.tsv.xz",
)
MOVED = ("title-drift-en.tsv.xz", "page-redirects-en.tsv.xz", "redirects-html-en.tsv.xz")

SMOOTHING = 0.25  # of an entity's links; with 0.1 to 1 the first candidates are right about as often
NAMED = 120  # characters of a description that name its subject
PHRASE = 160  # characters of the longest phrase of a list
# "Emil Holub – Czech explorer", "1847 – Emil Holub, Czech explorer (d. 1902)"
_BEFORE = re.compile(r"(?:\d{1,4}(?: BC)? [-–] )?\"?")
_AFTER = re.compile(r"\"?(?:,| [-–—:]| \([^()]*\),?) (?=[^\W\d_])")
_HEADING = re.compile(r"\d+(?:\.\d+)* (?=[\w\"'(])")  # "1 1001 Movies You Must See Before You Die is a film …"
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_EMPTY = re.compile(r"\s?\(\s*[;,]?\s*\)")


@dataclass
class Seen:
    """What the articles say of titles."""

    pages: set[str] = field(default_factory=set)
    links: Counter[str] = field(default_factory=Counter)
    leads: dict[str, str] = field(default_factory=dict)  # the first lines of articles
    phrases: dict[str, str] = field(default_factory=dict)  # what stands beside a link in a list

    def read(self, path: Path, subjects: bool) -> None:
        """Read a file of articles, whose `subjects` are entities or not."""
        for article in read_articles(path):
            if article.redirect is not None:
                continue
            self.links.update(link.target for link in article.links)
            for title, phrase in _phrases(article):
                if len(phrase) > len(self.phrases.get(title, "")):
                    self.phrases[title] = phrase
            if subjects:
                self.pages.add(article.title)
            if subjects and not article.disambiguation:
                self.leads.setdefault(article.title, lead_of(article.title, article.text))


def _phrases(article: Article) -> Iterator[tuple[str, str]]:
    """Yield what lines say of the entity that they begin with."""
    for link in article.links:
        start = article.text.rfind("\n", 0, link.start) + 1
        if link.start - start > 12 or not _BEFORE.fullmatch(article.text, start, link.start):
            continue
        end = article.text.find("\n", link.end)
        rest = article.text[link.end : end if end >= 0 else len(article.text)]
        found = _AFTER.match(rest)
        if found is not None and len(rest) <= PHRASE and " | " not in rest:
            yield link.target, rest[found.end() :].strip()


def _spelt(seen: Seen, described: Iterable[str]) -> dict[str, str]:
    """Return the titles that are known by their lower case: the described before pages before the most linked."""
    found: dict[str, tuple[bool, bool, int, str]] = {}
    described = set(described)
    for title in {*described, *seen.pages, *seen.links}:
        rank = (title in described, title in seen.pages, seen.links[title], title)
        name = title.lower()
        if name not in found or rank > found[name]:
            found[name] = rank
    return {name: rank[-1] for name, rank in found.items()}


def write_aliases(path: Path, tables: Path, seen: Seen, described: Iterable[str]) -> None:
    """Write the lists of aliases as one; titles in lower case are spelt as known, unknown ones left out."""
    known = _spelt(seen, described)
    with write_aside(path) as file:
        written = set()
        for _, line in read_lines(tables / "aliases-en.tsv.xz"):
            written.add(line.decode().rstrip("\n"))
        for _, line in read_lines(tables / "aliases-2022-lower-en.tsv.xz"):
            alias, lower, *given = line.decode().rstrip("\n").split("\t")
            title = known.get(lower) or "".join(given)
            # "parker" of "Parker (band)" is a name, but no other title of it
            if title and alias not in {short.lower() for short in short_titles(title)}:
                written.add(f"{alias}\t{title}")
        file.writelines(f"{line}\n".encode() for line in sorted(written))


def read_texts(paths: Iterable[Path]) -> dict[str, str]:
    """Return the best description of each title: sentences before phrases, the earlier file before the later."""
    texts: dict[str, str] = {}
    phrases: dict[str, str] = {}
    for path in paths:
        for _, line in read_lines(path):
            title, text, *source = line.decode().rstrip("\n").split("\t")
            into = phrases if source and source[0].startswith("short") else texts
            into.setdefault(normalise_title(title), tidied(title, text))
    return {**phrases, **{title: text for title, text in texts.items() if text}}


def tidied(title: str, text: str) -> str:
    """Return a description without what crawling left in it: numbers of headings, empty brackets, categories."""
    if (heading := _HEADING.match(text)) is not None and not text.startswith(title):
        text = text[heading.end() :]
    text = text.partition(" Category:")[0]
    return _EMPTY.sub("", text).strip()


def read_clubs(path: Path, texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield names of football clubs with the title of the one described entity that goes by any of them."""
    clubs = {key(title): title for title, text in texts.items() if re.search(r"football|soccer|sports? club", text)}
    for _, line in read_lines(path):
        club, _, *others = line.decode().split("\t")
        forms = [club.split(",")[0].split("@")[0], *(name for names in others for name in names.split(" | "))]
        forms = [_BRACKETS.sub("", form.partition("#")[0]).strip() for form in forms]
        if len(found := {clubs[key(form)] for form in forms if key(form) in clubs}) == 1:
            yield from ((form, min(found)) for form in forms if form)


def keep_titles(table: Mapping[str, str], earlier: Mapping[str, str], texts: Mapping[str, str]) -> dict[str, str]:
    """Return a table in which pages keep the titles of an earlier one, as the rows of a model have them.

    Where the earlier table led to a title of the same page, that is its title again. Where it led elsewhere and the
    title has its own description now, it stays by itself, unless the two are alike by name or by what is said of them.
    """
    renamed = {}
    for page in set(table.values()):
        if (title := earlier.get(page)) is not None and table.get(title) == page:
            renamed[page] = title
    kept = {source: renamed.get(page, page) for source, page in table.items()} | renamed
    for source, page in earlier.items():
        title = kept.get(page, page)
        if source not in kept and (source not in texts or page not in texts or _alike(source, page, texts)):
            kept[source] = title
    return dict(Redirects.build({source: page for source, page in kept.items() if source != page}).table)


# Of two titles of an earlier table that are both described now: one page, or two?
def _alike(title: str, other: str, texts: Mapping[str, str]) -> bool:
    for one, text in ((other, texts[title]), (title, texts[other])):
        if own_names(one)[-1].lower() in text[:NAMED].lower():
            return True
    words, others = set(key(title).split()), set(key(other).split())
    return 2 * len(words & others) >= len(words | others) and title.isupper() == other.isupper()


def write_texts(
    path: Path, sources: Iterable[Mapping[str, str]], redirects: Mapping[str, str], titles: Iterable[str]
) -> tuple[int, int]:
    """Write every entity with its best description, of the first source that has one; return how many have, and all.

    A description under another title of the entity stands behind those under its own.
    """
    best: dict[str, str] = {}
    entities = {redirects.get(title, title) for title in titles} | set(redirects.values())
    for source in sources:
        entities.update(redirects.get(title, title) for title in source)
        for moved in (False, True):
            for title, text in source.items():
                if text and (title in redirects) == moved:
                    best.setdefault(redirects.get(title, title), text)
    entities.discard("")
    lines = (f"{title}\t{best.get(title, '')}\n".encode() for title in sorted(entities))
    with write_aside(path) as file, zstandard.ZstdCompressor(9).stream_writer(file, closefd=False) as packed:
        for line in lines:
            packed.write(line)
    return sum(title in best for title in entities), len(entities)


class Known:
    """The artefacts, each made from those before it."""

    def __init__(self, out: Path, wikipedia: Path, enwik8: Path, earlier: Path | None, include: Path | None) -> None:
        self.out, self.tables, self.earlier = out, wikipedia / "redirects", earlier
        self.included = frozenset(read_titles(include)) if include is not None else frozenset()
        self.simple = wikipedia / "simple-en.jsonl.xz"
        self.articles = [enwik8, *(wikipedia / name for name in PAGES)]
        self.annotated = [wikipedia / name for name in ANNOTATED]
        self.described = [wikipedia / name for name in DESCRIPTIONS]

    @cached_property
    def seen(self) -> Seen:
        """What the articles say of titles."""
        seen = Seen()
        for path in (*self.articles, *self.annotated):
            print(f"reading {path}", file=sys.stderr, flush=True)
            seen.read(path, path in self.articles)
        return seen

    @cached_property
    def texts(self) -> dict[str, str]:
        """The best description of each title."""
        return read_texts(self.described)

    @cached_property
    def redirects(self) -> dict[str, str]:
        """The table of redirects."""
        return read_redirects(self.out / "redirects.tsv")

    @cached_property
    def aliases(self) -> list[tuple[str, str]]:
        """Pairs of alias and title."""
        pairs = read_pairs(self.out / "aliases.tsv", "an alias, a tab and a title")
        return [(alias, normalise_title(title)) for alias, title in pairs]

    def make_aliases(self, path: Path) -> None:
        """Write aliases.tsv."""
        write_aliases(path, self.tables, self.seen, self.texts)

    def make_redirects(self, path: Path) -> None:
        """Write redirects.tsv."""
        moved = [self.tables / name for name in MOVED]
        aliases = [self.out / "aliases.tsv"]
        sources = NameSources(self.articles, self.annotated, moved, aliases, self.described)
        print(build_redirects(sources, path).counts, file=sys.stderr)
        if self.earlier is not None:
            kept = keep_titles(read_redirects(path), read_redirects(self.earlier), self.texts)
            with write_aside(path) as file:
                file.writelines(f"{source}\t{title}\n".encode() for source, title in sorted(kept.items()))

    @cached_property
    def places(self) -> dict[str, str]:
        """Places that nothing else describes."""
        aliases = [alias for alias, _ in self.aliases]
        titles = sorted({*self.texts, *self.seen.pages, *self.seen.links, *self.redirects})
        known = {key(title): self.redirects.get(title, title) for title in titles}
        shorts = (short for title in titles for short in short_titles(title))
        return dict(sorted(read_places(known, {*known, *map(key, aliases), *map(key, shorts)})))

    def make_texts(self, path: Path) -> None:
        """Write texts.tsv.zst."""
        sources = (self.texts, self.seen.leads, self.seen.phrases, self.places)
        titles = {*self.seen.pages, *self.seen.links, *(title for _, title in self.aliases), *self.included}
        described, entities = write_texts(path, sources, self.redirects, titles)
        print(f"{entities:,} entities, {described:,} of them described", file=sys.stderr)

    def make_names(self, path: Path) -> None:
        """Write the store of names."""
        builder = NamesBuilder(self.redirects)
        for file in self.articles:
            add_articles(builder, read_summary(file))
        for file in self.annotated:
            add_annotated(builder, read_summary(file))
        linked = {self.redirects.get(title, title) for title in self.seen.links}
        for title, text in self.entities():
            if text or title in linked or title not in self.included:
                builder.add_description(title, text)
        clubs = read_clubs(self.tables / "football-clubs.tsv.xz", self.texts)
        for alias, title in (*self.aliases, *clubs):
            builder.add_alias(alias, title)
        parents = {name: digest_file(self.out / name) for name in self.steps() if (self.out / name).is_file()}

        def count(trie: Path) -> Iterator[Occurrences]:
            for file in (*self.articles, *self.annotated):
                yield from count_names(file, trie)

        made = builder.save(path, {"occurrences": True, "smoothing": SMOOTHING}, parents, count, SMOOTHING)
        print(made.counts, file=sys.stderr)

    def entities(self) -> Iterator[tuple[str, str]]:
        """Yield every entity with its description."""
        yield from read_pairs(self.out / "texts.tsv.zst", "a title, a tab and a description")

    def make_ship(self, path: Path) -> None:
        """Write ship.txt."""
        popularity = dict(Names.open(self.out / "everything").titles())
        uses = {title: Use(popularity.get(title, 0), described=bool(text)) for title, text in self.entities()}
        for title, text in self.entities():
            uses[title].american = ", " in title and bool(text) and text == self.places.get(title)
        for other, title in (*self.redirects.items(), *self.aliases):
            if (use := uses.get(self.redirects.get(title, title))) is not None and other != title:
                use.other_titles += 1
        for _, line in read_lines(self.simple):
            title = normalise_title(orjson.loads(line)["title"])
            if (use := uses.get(self.redirects.get(title, title))) is not None:
                use.simple = True
        first = frozenset(self.redirects.get(title, title) for title in self.included)
        with write_aside(path) as file:
            file.writelines(f"{title}\n".encode() for title in rank(uses, first))

    def steps(self) -> dict[str, Callable[[Path], None]]:
        """Return what makes each artefact, in their order."""
        return {
            "aliases.tsv": self.make_aliases,
            "redirects.tsv": self.make_redirects,
            "texts.tsv.zst": self.make_texts,
            "everything": self.make_names,
            "ship.txt": self.make_ship,
        }


def main(arguments: list[str] | None = None) -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder for everything that is made")
    parser.add_argument("--wikipedia", type=Path, required=True, help="the folder with articles, descriptions, aliases")
    parser.add_argument("--enwik8", type=Path, required=True, help="the articles of enwik8")
    parser.add_argument("--earlier", type=Path, help="redirects of a model whose titles are kept")
    parser.add_argument("--include", type=Path, help="titles, one a line, that are entities anyway")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    try:
        for name, make in Known(given.out, given.wikipedia, given.enwik8, given.earlier, given.include).steps().items():
            if not (given.out / name).exists():
                print(f"making {name}", file=sys.stderr, flush=True)
                make(given.out / name)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
