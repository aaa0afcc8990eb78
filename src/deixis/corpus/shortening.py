"""Shortened names: the text of a mention replaced by a part of its entity's title that could mean something else.

Encyclopaedias write "Chicago White Sox" and "George W. Bush"; news write "Chicago" and "Bush". A model that has read
only the first learns names by heart; one that has also read the second must look at what stands around them. Common
nouns and names with numbers are not shortened: who reads "radiation" for Radiation therapy and "Boeing" for the Boeing
727 learns to answer whatever is longest on the topic.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from deixis.corpus.completion import own_names
from deixis.wikipedia.articles import Article, Link

__all__ = ["is_team", "parts_of", "shorten"]

_NAME = re.compile(r"[^\W\d_a-z][^\W\d_]*[\w.'’-]*\Z")  # a word of a proper name, initials included
_SENTENCE = re.compile(r".*?\w{3}\s?\.(?=\s|\Z)|.*", re.DOTALL)
_TEAM = re.compile(r"\b(?:club|team|franchise)\b")
_SPORT = re.compile(
    r"\b(?:football|soccer|baseball|basketball|hockey|rugby|cricket|handball|volleyball|league)\b", re.I
)
_PLAYER = re.compile(r"\b(?:born|player|coach|manager|season|stadium|owner)\b")


def is_team(description: str) -> bool:
    """Tell whether the first sentence of a description speaks of a team."""
    found = _SENTENCE.match(description)
    sentence = found[0] if found else ""
    return bool(_TEAM.search(sentence) and _SPORT.search(sentence)) and not _PLAYER.search(sentence)


def parts_of(title: str, team: bool, every: bool, is_word: Callable[[str], bool]) -> list[str]:
    """Return the parts of a title that news would write for it.

    Of any title what stands before its bracket or comma; of a team the beginnings ("Chicago"); and of a title that
    looks like a person's or a place's, its words capitalised and the last `is_word` of no language, the ends ("Bush").
    With `every`, of all proper names the beginnings and ends that are no words: "New York" of New York City.
    """
    bare = own_names(title)[-1]
    words = bare.split()
    while team and len(words) > 1 and words[-1].islower():  # Spain national football team
        words.pop()
    found = [bare, " ".join(words)]
    if all(map(_NAME.match, words)):
        cuts = range(1, len(words))
        parts = [words[:cut] for cut in cuts] if team or every else []
        if (every or not is_word(words[-1])) and not words[-1].isupper():  # nobody is called F.C. or IX
            parts += [words[cut:] for cut in cuts]
        found += [" ".join(part) for part in parts if not (every and is_word(part[-1]))]
    return list(dict.fromkeys(part for part in found if part != title))


def shorten(
    article: Article, links: Sequence[Link], names_of: Callable[[str], Sequence[str]], rate: float, seed: int
) -> Article:
    """Return the article with `rate` of its links' texts replaced by one of `names_of` their targets.

    The links must not overlap. The choice is a function of seed, title and the link's place alone.
    """
    text: list[str] = []
    moved: list[Link] = []
    reached = length = 0
    for number, link in enumerate(links):
        surface = article.surface(link)
        mark = hashlib.blake2b(f"{seed}:{number}:{article.title}".encode(), digest_size=8).digest()
        if int.from_bytes(mark[:4]) < rate * 2**32:
            names = [name for name in names_of(link.target) if name.lower() != surface.lower()]
            if names:
                surface = names[int.from_bytes(mark[4:]) % len(names)]
        text += (article.text[reached : link.start], surface)
        start = length + link.start - reached
        length = start + len(surface)
        moved.append(Link(start, length, link.target))
        reached = link.end
    return replace(article, text="".join((*text, article.text[reached:])), links=tuple(moved))
