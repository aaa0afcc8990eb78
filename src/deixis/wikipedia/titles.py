"""Titles: what the target of a link means on a wiki, by its namespaces and by the interwiki prefixes of all wikis."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from deixis.artefacts import read_lines
from deixis.documents import normalise_title
from deixis.errors import InputError
from deixis.languages.wikis import LANGUAGES

__all__ = ["Kind", "Site", "Target", "read_titles"]

Kind = Literal["article", "file", "category", "language", "namespace", "interwiki", "section", "invalid"]

MEDIA, FILE, CATEGORY = -2, 6, 14

# The names that every wiki understands beside its own.
CANONICAL = {
    "media": -2, "special": -1, "talk": 1, "user": 2, "user talk": 3, "project": 4, "project talk": 5,
    "wikipedia": 4, "wikipedia talk": 5, "wp": 4, "wt": 5, "file": 6, "file talk": 7, "image": 6, "image talk": 7,
    "mediawiki": 8, "mediawiki talk": 9, "template": 10, "template talk": 11, "help": 12, "help talk": 13,
    "category": 14, "category talk": 15, "portal": 100, "portal talk": 101, "draft": 118, "draft talk": 119,
    "timedtext": 710, "timedtext talk": 711, "module": 828, "module talk": 829,
}  # fmt: skip

_PROJECTS = (
    "b betawikiversity bugzilla c commons d dbdump doi f foundation google gutenberg imdb incubator isbn iso639-3 "
    "jargon m mail mailarchive meatball meta metawiki metawikipedia mw n nost nostalgia oeis orthodoxwiki outreach "
    "otrs phab phabricator pmid q quality rfc s sep11 sourceforge species strategy sulutil testwiki ticket tools "
    "tswiki usemod v voy w wikia wikibooks wikicities wikidata wikifunctions wikimania wikimedia wikinews "
    "wikiquote wikisource wikispecies wikiversity wikivoyage wikt wiktionary wmf c2 "
    "meatballwiki memoryalpha susning unreal wiki wlug xkcd advogato arxiv dict disinfopedia foldoc"
)
PROJECTS = frozenset(_PROJECTS.split())

_FORBIDDEN = re.compile(r"[<>\[\]{}|\n\t\x00-\x1f\x7f\ufffd\ufdd0-\ufdef]")
_PLAIN = r"[^\s%#:_&<>\[\]{}|\x00-\x1f\x7f\u200e\u200f\u202a-\u202e\ufffd\ufdd0-\ufdef]"
_USUAL = re.compile(rf"[A-Za-z0-9]{_PLAIN}*+(?: {_PLAIN}++)*+")  # nothing to do but the first letter
_MARKS = re.compile("[\u200e\u200f\u202a-\u202e]")  # directions, which MediaWiki drops from titles


class Target(NamedTuple):
    """What a link leads to: an article by its title, or something else."""

    kind: Kind
    title: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """The namespaces of a wiki, by lower-case name, and what it remembers of the targets seen."""

    namespaces: Mapping[str, int] = field(default_factory=lambda: CANONICAL)
    _seen: dict[str, Target] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, names: Mapping[str, int]) -> Site:
        """Return a site with the names of its siteinfo beside those that every wiki understands."""
        own = {_folded(name): key for name, key in names.items() if name}
        return cls(CANONICAL | own)

    def namespace(self, title: str) -> int:
        """Return the number of the namespace that a page's title is in."""
        prefix, colon, _ = title.partition(":")
        return self.namespaces.get(_folded(prefix), 0) if colon else 0

    def target(self, raw: str) -> Target:
        """Read the target of a link as it stands in the wikitext, HTML escapes aside."""
        found = self._seen.get(raw)
        if found is None:
            if len(self._seen) >= 1 << 18:  # bounds the memory; the common targets are soon seen again
                self._seen.clear()
            found = self._seen[raw] = self._read(raw)
        return found

    def _read(self, raw: str) -> Target:
        if len(raw) < 64 and _USUAL.fullmatch(raw):
            return Target("article", raw[0].upper() + raw[1:])
        if "%" in raw:
            raw = _percent_decoded(raw)
        before, anchor, _ = raw.partition("#")
        title = normalise_title(_MARKS.sub("", before))
        if not title:
            return Target("section" if anchor else "invalid")
        if _FORBIDDEN.search(title) or len(title.encode("utf-8", "replace")) > 255:
            return Target("invalid")
        if ":" not in title:
            return Target("article", title)
        return self._prefixed(title)

    def _prefixed(self, title: str) -> Target:
        shown = title.startswith(":")  # [[:Category:Cats]] is a link in the text
        prefix, colon, _ = title.lstrip(": ").partition(":")
        if not colon:
            return Target("article", normalise_title(prefix)) if prefix else Target("invalid")
        prefix = _folded(prefix)
        key = self.namespaces.get(prefix)
        if key is not None:
            if shown or key not in (FILE, CATEGORY):
                return Target("namespace")
            return Target("file" if key == FILE else "category")
        if prefix in LANGUAGES:
            return Target("interwiki" if shown else "language")
        if prefix in PROJECTS:
            return Target("interwiki")
        return Target("article", normalise_title(title.lstrip(": ")))


def read_titles(path: Path) -> Iterator[str]:
    """Yield the titles of a list, one a line; what follows a tab is ignored."""
    for number, line in read_lines(path):
        try:
            title = normalise_title(line.decode().split("\t")[0])
        except UnicodeDecodeError:
            raise InputError(f"{path}, line {number}: not UTF-8; save the list of titles as UTF-8") from None
        if title:
            yield title


def _folded(name: str) -> str:
    return " ".join(name.replace("_", " ").lower().split())


def _percent_decoded(raw: str) -> str:
    try:
        return unquote_to_bytes(raw).decode()
    except UnicodeError:  # a plain per cent sign, or bytes of another encoding
        return raw
