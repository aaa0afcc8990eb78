"""Surface normalisation: the key under which a surface is stored, and the other keys worth asking.

`key` is applied on both sides, when a store is built and when it is asked:

    case            "CHICAGO", "Chicago"                   chicago
    diacritics      "Kühbauer", "São Tomé"                 kuhbauer, sao tome
    possessives     "Sotheby's", "Clinton 's"              sotheby, clinton
    punctuation     "AT&T Corp.", "Jean-Paul"              at and t corp, jean paul
    initials        "U.S.", "U. S.", "J. R. R. Tolkien"    us, us, jrr tolkien
    articles        "The Hague"                            hague

`variants` are asked only on the reader's side, in this order, because each is right less often than the last:

    company suffixes     "Johnson Controls Inc"             johnson controls
    attached words       "Boston-based", "Brazilian-born"   boston; brazilian, then brazil
    nations              "Dutch", "Tajiks", "S. Korean"     netherlands, tajikistan, south korea
    abbreviations        "U.S. Navy", "Ft. Worth"           united states navy, fort worth
    offices              "Agriculture Department"           department of agriculture
    ranks and titles     "Gen. Powell", "Vice President X"  powell, x
    initials             "S. Waugh"                         waugh
    umlauts written out  "Juergen Schult"                   jurgen schult
    plurals              "Wallabies"                        wallaby
    middle names         "Carroll A. Campbell Jr."          carroll campbell
    kinds of things      "Reader's Digest magazine"         reader digest
    where places are     "Lille, France", "Long Beach, NY"  lille; long beach california, long beach

Nations, attached words, abbreviations, offices, ranks, plurals, kinds and places are words of English: in a wiki of
another language they are not asked.

`splits` are asked where nothing else is known: "sanfrancisco" may be san francisco.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from deixis.languages.english import (
    ABBREVIATIONS,
    ATTACHED,
    KINDS,
    NATIONS,
    OFFICES,
    RANKS,
    SMALL_WORDS,
    STATES,
    SUFFIXES,
    YOUNGER,
)

__all__ = [
    "INITIALS",
    "SMALL_WORDS",
    "initials",
    "is_initials",
    "key",
    "short_titles",
    "splits",
    "title_parts",
    "variants",
    "without_accents",
    "words_of",
]

MAX_TITLE_WORDS = 8  # longer titles are lists and treaties that nobody shortens by a few words
MAX_PART_WORDS = 4
MOST_SPLIT = 24  # letters
INITIALS = "#"  # starts initials where they stand beside keys; no key contains it

# Letters that decompose into no base letter of their own.
_LETTERS = str.maketrans(
    {"æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "œ": "oe", "ı": "i", "ħ": "h", "ŋ": "n"}
)
_POSSESSIVE = re.compile(r"['’`´](?:s\b)?")
_SPACED_POSSESSIVE = re.compile(r"\s['’`´]s?(?=\s|\Z)")
_INITIALS = re.compile(r"(?<=\b[^\W\d_])\.\s?(?=[^\W\d_]\b)")
_WORDS = re.compile(r"[^\W_]+")


@lru_cache(1 << 16)
def key(surface: str) -> str:
    """Return the key of a surface; empty where it has no letter and no digit."""
    return _key(surface)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a whole text, as keys have them."""
    return frozenset(_key(text).split())  # not `key`: texts are long and come once, so they are not remembered


def without_accents(text: str) -> str:
    """Return a text decomposed, without what combines with letters."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def _key(surface: str) -> str:
    text = surface.casefold()
    if not text.isascii():
        # Decomposed twice: case folding misses capitals inside compatibility characters, and makes new ones.
        folded = unicodedata.normalize("NFKD", text).casefold().translate(_LETTERS)
        text = without_accents(folded)
    if text.isalnum():
        return text
    if "'" in text or not text.isascii():
        text = _POSSESSIVE.sub("", _SPACED_POSSESSIVE.sub("", text))
    if "." in text:
        text = _INITIALS.sub("", text)
    if "&" in text:
        text = text.replace("&", " and ")
    text = " ".join(_WORDS.findall(text))
    return text[4:] if text.startswith("the ") else text


_REGIONS = frozenset({*STATES, *STATES.values(), *(nation for nations in NATIONS.values() for nation in nations)})


@lru_cache(1 << 15)
def variants(name: str, language: str = "en") -> tuple[str, ...]:
    """Return other keys that a key may be stored under, likelier first; the key itself is not among them.

    Examples:
        >>> variants("gen powell"), variants("gen powell", "de")
        (('powell',), ())
    """
    words = name.split()
    found: dict[str, None] = {}
    for rule in _ENGLISH if language == "en" else _ANY:
        found.update(dict.fromkeys(rule(words)))
    found.pop(name, None)
    found.pop("", None)
    return tuple(found)


def _company(words: list[str]) -> Iterator[str]:
    end = len(words)
    while end > 1 and words[end - 1] in SUFFIXES:
        end -= 1
    if end < len(words):
        yield " ".join(words[:end])


def _attached(words: list[str]) -> Iterator[str]:
    if len(words) > 1 and words[-1] in ATTACHED:
        yield " ".join(words[:-1])
        yield from _nation(words[:-1])


def _nation(words: list[str]) -> Iterator[str]:
    if len(words) > 1 and words[0] in ("s", "n") and words[1].startswith(("korea", "africa")):
        words = [ABBREVIATIONS[words[0]], *words[1:]]
        yield " ".join(words)
    name = " ".join(words)
    yield from NATIONS.get(name, ())
    if name.endswith("s"):
        yield from NATIONS.get(name[:-1], ())
    elif name.endswith("men"):
        yield from NATIONS.get(name[:-3] + "man", ())


def _abbreviation(words: list[str]) -> Iterator[str]:
    if len(words) > 1 and any(word in ABBREVIATIONS for word in words):
        yield " ".join(ABBREVIATIONS.get(word, word) for word in words)


def _office(words: list[str]) -> Iterator[str]:
    if len(words) < 2 or words[-1] not in OFFICES:
        return
    office = OFFICES[words[-1]]
    of = " ".join(word for word in words[:-1] if word != "us")
    if office == "department":
        yield f"united states department of {of}"
    yield f"{office} of {of}"
    yield f"{office} of {of} affairs"


def _rank(words: list[str]) -> Iterator[str]:
    start = 0
    while start < len(words) - 1 and words[start] in RANKS:
        start += 1
        yield " ".join(words[start:])


def _initial(words: list[str]) -> Iterator[str]:
    kept = [word for word in words if len(word) > 1]
    if 0 < len(kept) < len(words):
        yield " ".join(kept)


def _umlaut(words: list[str]) -> Iterator[str]:
    name = " ".join(words)
    if "ae" in name or "oe" in name or "ue" in name:
        yield name.replace("ae", "a").replace("oe", "o").replace("ue", "u")


def _plural(words: list[str]) -> Iterator[str]:
    name = " ".join(words)
    if name.endswith("ies"):
        yield name[:-3] + "y"
    elif len(name) > 4 and name.endswith("s") and not name.endswith("ss"):
        yield name[:-1]


def _middle(words: list[str]) -> Iterator[str]:
    named = [word for word in words if word not in YOUNGER]
    if len(named) > 2:
        yield f"{named[0]} {named[-1]}"
        yield " ".join(named[1:])
    if len(named) < len(words):
        yield " ".join(named)


def _region(words: list[str]) -> Iterator[str]:
    if len(words) > 1 and words[-1] in STATES and STATES[words[-1]] != words[-1]:
        yield " ".join([*words[:-1], STATES[words[-1]]])
    for size in (1, 2):
        if len(words) > size and " ".join(words[-size:]) in _REGIONS:
            yield " ".join(words[:-size])


def _kind(words: list[str]) -> Iterator[str]:
    if len(words) > 1 and words[-1] in KINDS:
        yield " ".join(words[:-1])


_ENGLISH = (
    _company, _attached, _nation, _abbreviation, _office, _rank, _initial, _umlaut, _plural, _middle, _kind, _region,
)  # fmt: skip
_ANY = (_company, _initial, _umlaut, _middle)


def splits(name: str) -> Iterator[str]:
    """Yield the ways to read a key of one word as two."""
    if " " not in name and name.isalpha() and len(name) <= MOST_SPLIT:
        yield from (f"{name[:at]} {name[at:]}" for at in range(2, len(name) - 1))


_BRACKET = re.compile(r"\s*\([^()]*\)\Z")


def short_titles(title: str) -> list[str]:
    """Return a title without its bracket and without what follows its first comma, where that is another name."""
    bare = _BRACKET.sub("", title)
    return [name for name in dict.fromkeys((bare, bare.split(", ")[0])) if name and name != title]


def title_parts(title: str) -> set[str]:
    """Return the keys of the beginnings and ends of a title, without its bracket."""
    shorts = short_titles(title)
    words = key(shorts[0] if shorts and title.endswith(")") else title).split()
    if len(words) > MAX_TITLE_WORDS:
        return set()
    sizes = range(1, min(len(words), MAX_PART_WORDS + 1))
    return {" ".join(words[:size]) for size in sizes} | {" ".join(words[-size:]) for size in sizes}


_INITIALS_SURFACE = re.compile(r"(?:[A-Z]\.?\s?){2,7}s?")


def is_initials(surface: str) -> bool:
    """Tell whether a surface looks like initials: "AFP", "A.F.P.", "MPs"."""
    return _INITIALS_SURFACE.fullmatch(surface) is not None


def initials(title: str) -> set[str]:
    """Return the keys of the initials of a title of two to eight words: of its capitalised words, of all but small."""
    words = _WORDS.findall(short_titles(title)[0] if title.endswith(")") and short_titles(title) else title)
    if not 2 <= len(words) <= 8:
        return set()
    ways = (
        [word for word in words if word[0].isupper()],
        [word for word in words if word.lower() not in SMALL_WORDS],
        words,
    )
    found = {key("".join(word[0] for word in way)) for way in ways}
    return {letters for letters in found if 2 <= len(letters) <= 7 and letters.isalpha()}
