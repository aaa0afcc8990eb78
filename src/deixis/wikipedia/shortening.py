"""Shortened names: the text of a mention replaced by a part of its entity's title that could mean something else.

Encyclopaedias write "Chicago White Sox" and "George W. Bush"; news write "Chicago" and "Bush". A model that has read
only the first learns names by heart; one that has also read the second must look at what stands around them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from deixis.wikipedia.articles import Article, Link

__all__ = ["parts_of", "shorten"]

_BRACKET = re.compile(r"\s+\([^()]*\)\Z")
_LETTER = re.compile(r"[^\W\d_]")
_INNER = re.compile(r"(?:a|an|and|at|by|de|del|for|from|in|la|of|on|or|the|to|van|von|with|&)\Z", re.IGNORECASE)


def parts_of(title: str) -> list[str]:
    """Return the beginnings and ends of a title and its initials, each of which may be what a text calls the entity."""
    bare = _BRACKET.sub("", title).split(", ")[0]
    words = bare.split()
    found = [bare]
    for cut in range(1, len(words)):
        if not _INNER.match(words[cut - 1]):
            found.append(" ".join(words[:cut]))
        # "Florida" is no name of the Supreme Court of Florida, nor "team" one of a team.
        if words[cut][0].isupper() and not any(map(_INNER.match, words[:cut])):
            found.append(" ".join(words[cut:]))
    initials = "".join(part[0] for word in words for part in word.split("-") if part[:1].isupper())
    if len(initials) >= 3:
        found.append(initials)
    return list(dict.fromkeys(part for part in found if part != title and _LETTER.search(part)))


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
