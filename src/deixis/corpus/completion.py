"""Annotation completion: links that an article's editors left out because a reader does not need them twice.

Wikipedia links a name once and never its own subject, so most mentions of a page are unlinked. Each function adds
links that follow from the page itself; none is used unless asked for (the paper trains on the links alone). What
they add never lies inside another mention, and a surface that could mean two things in the article is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from deixis.documents import normalise_title
from deixis.errors import InputError
from deixis.languages.english import FUNCTION_WORDS
from deixis.wikipedia.articles import Article, Link

__all__ = ["complete", "describe", "own_names"]

_BRACKET = re.compile(r"\s+\([^()]*\)\Z")
_FIRST_SENTENCE = 400  # characters: where a description names its subject


def complete(article: Article, *, own_name: bool = False, repeats: bool = False) -> Article:
    """Return the article with the asked-for links added, in the order of the text."""
    if not (own_name or repeats) or not article.text:
        return article
    wanted: dict[str, str] = {}  # surface -> target
    banned: set[str] = set()  # surfaces that mean two things here
    meanings = [(article.surface(link), link.target) for link in article.links]
    if own_name:
        meanings += [(name, article.title) for name in own_names(article.title)]
    for surface, target in meanings:
        if wanted.setdefault(surface, target) != target:
            banned.add(surface)
    linked = {article.surface(link) for link in article.links}
    own = set(own_names(article.title)) if own_name else set()
    chosen = {
        surface: target
        for surface, target in wanted.items()
        if surface not in banned and ((repeats and surface in linked) or surface in own) and _nameable(surface)
    }
    return replace(article, links=_added(article.text, article.links, chosen))


def describe(line: bytes) -> Article | None:
    """Return a line `title<TAB>description[<TAB>source]` as an article whose subject is annotated.

    The subject is named by its title, or by the title without its bracket or what follows its comma, within the first
    sentence or so, in any case; or by first and last name with others between. Else there is nothing to annotate: None.
    """
    fields = line.decode("utf-8", "replace").split("\t")
    if len(fields) < 2 or not fields[0] or not fields[1]:
        raise InputError("not a title, a tab and a description")
    title, text = normalise_title(fields[0]), fields[1]
    lead = text[:_FIRST_SENTENCE]
    for name in own_names(title):
        # Names are matched in any case and with any spacing: some descriptions write them in CAPITALS or tokenised.
        pattern = r"\s*".join(re.escape(part) for part in re.findall(r"\w+|[^\w\s]", name))
        found = re.search(rf"(?<!\w){pattern}(?!\w)", lead, re.IGNORECASE) or _with_middle_names(name, lead)
        if found is not None:
            named = Article(title, text, (Link(found.start(), found.end(), title),))
            return complete(named, repeats=True)
    return None


def _with_middle_names(name: str, lead: str) -> re.Match[str] | None:
    """Find "Tara Mae Thornton" at the beginning of the description of Tara Thornton."""
    first, *_, last = name.split() if " " in name else (name, name)
    if first == last or not last[0].isupper():
        return None
    return re.match(rf"{re.escape(first)}(?:\s+[^\W\d_a-z][\w.'’-]*){{1,5}}?\s+{re.escape(last)}(?!\w)", lead)


def own_names(title: str) -> list[str]:
    """Return what an article may call its subject, fullest first."""
    bare = _BRACKET.sub("", title)
    return list(dict.fromkeys(name for name in (title, bare, bare.split(", ")[0]) if name))


def _nameable(surface: str) -> bool:
    # Shorter than three characters a surface repeats by accident; without a capital it is a word, not a name.
    return len(surface) >= 3 and surface[0].isalnum() and any(character.isupper() for character in surface)


def _added(text: str, links: Iterable[Link], surfaces: dict[str, str]) -> tuple[Link, ...]:
    taken = sorted(links)
    by_word: dict[str, list[str]] = {}  # the first word of a surface -> surfaces, the longest first
    for surface in sorted(surfaces, key=lambda surface: (-len(surface), surface)):
        by_word.setdefault(_first_word(surface), []).append(surface)
    added = []
    coming = iter(taken)
    link = next(coming, None)
    reached = 0  # no mention ends behind this
    for word in _WORD.finditer(text) if by_word else ():
        start = word.start()
        found = next((name for name in by_word.get(word[0], ()) if _stands(text, name, start)), None)
        if found is None or start < reached:
            continue
        end = start + len(found)
        while link is not None and link.start < end:
            reached = max(reached, link.end)
            link = next(coming, None)
        if start >= reached and not _part_of_name(text, start, end):
            added.append(Link(start, end, surfaces[found]))
            reached = end
    return tuple(sorted([*taken, *added]))


_WORD = re.compile(r"\w+")
_NAME_AFTER = re.compile(r"[ \-–]([^\W\d_]+)")


def _first_word(surface: str) -> str:
    found = _WORD.match(surface)
    return found[0] if found else surface


def _stands(text: str, surface: str, start: int) -> bool:
    """Tell whether the surface stands at `start`, ending with a word."""
    end = start + len(surface)
    return text.startswith(surface, start) and not (end < len(text) and text[end].isalnum() and surface[-1].isalnum())


def _part_of_name(text: str, start: int, end: int) -> bool:
    """Tell whether a capitalised word stands right beside: "Bush" in "Kate Bush" is no repeat of George Bush."""
    after = _NAME_AFTER.match(text, end)
    if after is not None and after[1][0].isupper():
        return True
    if start < 2 or text[start - 1] not in " -–":
        return False
    before = text[max(0, start - 30) : start - 1]
    word = _last_word(before)
    if word.endswith(".") and len(word) > 3:  # the full stop of a sentence, not of an initial or a "Dr."
        return False
    return word[:1].isupper() and word.lower() not in FUNCTION_WORDS


def _last_word(text: str) -> str:
    at = len(text)
    while at and (text[at - 1].isalnum() or text[at - 1] in "'’."):
        at -= 1
    return text[at:]
