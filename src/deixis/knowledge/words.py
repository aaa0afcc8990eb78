"""Words of a running text as keys have them, and the names among them: where counting and detection read alike.

    He met  Bill Clinton  at  the U.N.   in  St. Louis  .   "Reader's Digest"   PRIME MINISTER RESIGNS
            ^^^^ ^^^^^^^          ^^^^       ^^^ ^^^^^        ^^^^^^^^ ^^^^^^
    key     bill clinton          un         st  louis        reader   digest    prime minister resigns
    unsure  (case says nothing)                                  x                 x      x       x

A name is a run of words joined by no more than a space, a hyphen, a possessive or an abbreviation's full stop, whose
key is in a trie and whose first and last words have a capital letter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from deixis.knowledge.surfaces import key

__all__ = ["Span", "Word", "find_names", "find_words", "read_words"]

MAX_WORDS = 10  # of a name
MAX_PLAIN = 3  # of a term in lower case
MIN_PLAIN = 3  # letters of its first word

_WORD = re.compile(
    r"""\b[^\W\d_](?:\.[^\W\d_]\b)+\.?              # U.S., J.R.R.
      | \b[^\W\d_](?:\.\ [^\W\d_]\b(?=\.))+         # J. R. R.
      | (?<=\s)['’`´]s?(?=\s|\Z)                    # the possessive of tokenised text: no word
      | [^\W_]+(?:['’`´][^\W_]+)*                   # Sotheby's, O'Brien
      | &""",
    re.VERBOSE,
)
_POSSESSIVE = re.compile(r"['’`´][sS]\Z")
_JOINT = re.compile(r"\ |-|–|\xa0|\s?['’`´]s?\ |\.\ |")
_STOP = re.compile(r"[.!?:;\n]|[\"“”‘«(\[]\s*\Z|\s['`]+\s?\Z")
_POINTS = re.compile(r"\d{1,2}")
_ABBREVIATED = frozenset(
    {"mr", "mrs", "ms", "dr", "prof", "st", "sr", "jr", "gen", "col", "capt", "lt", "sgt", "rev", "hon", "gov", "sen"}
    | {"rep", "pres", "no", "vol", "vs", "mt", "ft"}
)


class Word(NamedTuple):
    """A word of a text."""

    start: int
    end: int  # before a possessive
    key: str
    capital: bool  # it has a capital letter
    digits: bool  # it starts with a digit
    unsure: bool  # it starts a sentence or stands in a line of capitals: the capital says nothing
    joined: bool  # it may belong to a name together with the word before
    score: bool = False  # a number of one or two digits before another one, as 3 in "3-1": no part of a name


class Span(NamedTuple):
    """A name found in a text."""

    start: int
    end: int
    first: int  # its words, [first, last]
    last: int
    name: int  # its number in the trie


def read_words(text: str) -> list[Word]:
    """Return the words of a text."""
    found: list[Word] = []
    end, line_end, shouted, before = 0, -1, False, ""
    for match in _WORD.finditer(text):
        start, stop = match.span()
        written = match[0]
        own = _key(written)
        if not own:
            continue  # a possessive by itself stays in the gap between two words
        if start > line_end:
            line_end = text.find("\n", start)
            line_end = len(text) if line_end < 0 else line_end
            shouted = text[start:line_end].isupper()
        gap = text[end:start]
        plain = gap == " "
        opens = not found or (not plain and _opens(gap, before))
        joined = bool(found) and (plain or (_JOINT.fullmatch(gap) is not None and not opens))
        capital = not written.islower() and written.lower() != written
        bare = stop - 2 if written[-1] in "sS" and _POSSESSIVE.search(written) else stop
        if gap in ("-", "–") and _POINTS.fullmatch(before) and _POINTS.fullmatch(written):
            found[-1] = found[-1]._replace(score=True)
        found.append(Word(start, bare, own, capital, written[0].isdigit(), shouted or opens, joined))
        end, before = stop, written
    return found


@lru_cache(1 << 16)
def _key(written: str) -> str:
    if written == "&":
        return "and"  # as in the key of "AT&T"
    return key(written) if written[0].isalnum() else ""


def _opens(gap: str, before: str) -> bool:
    """Tell whether a new sentence or quotation begins after the gap."""
    if _STOP.search(gap) is None:
        return False
    abbreviated = len(before) == 1 or "." in before or before.casefold() in _ABBREVIATED
    return not (abbreviated and gap == ". ")


def find_names(words: list[Word], trie: Any) -> Iterator[list[Span]]:
    """Yield the names that start at each word, shorter before longer; words where none starts are passed over."""
    count = len(words)
    for first, word in enumerate(words):
        if not (word.capital or word.digits):
            continue
        last, joined, ends = first + 1, word.key, {len(word.key): first}
        while last < count and last - first < MAX_WORDS and words[last].joined:
            joined += " " + words[last].key
            ends[len(joined)] = last
            last += 1
        spans = []
        for prefix in trie.prefixes(joined):
            at = ends.get(len(prefix))
            if at is not None and _is_name(word, words[at]):
                spans.append(Span(word.start, words[at].end, first, at, trie[prefix]))
        if spans:
            yield spans


def find_words(words: list[Word], trie: Any) -> Iterator[Span]:
    """Yield the longest term of a trie that starts at each word in lower case; what lies inside one starts none."""
    done = -1
    for first, word in enumerate(words):
        if first <= done or word.capital or word.digits or len(word.key) < MIN_PLAIN:
            continue
        joined, ends = word.key, {len(word.key): first}
        for last in range(first + 1, min(first + MAX_PLAIN, len(words))):
            after = words[last]
            if not after.joined or after.capital or after.digits:
                break
            joined += " " + after.key
            ends[len(joined)] = last
        for prefix in reversed(trie.prefixes(joined)):
            at = ends.get(len(prefix))
            if at is not None:
                done = at
                yield Span(word.start, words[at].end, first, at, trie[prefix])
                break


def _is_name(first: Word, last: Word) -> bool:
    """Tell whether a run of words is written as a name: both ends with a capital or a digit, not both with a digit."""
    return (first.capital or last.capital) and (last.capital or last.digits)
