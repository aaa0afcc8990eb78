"""Names that the first sentence of a description gives its subject, before it says what that is.

"Willie Moir"       William Moir (born 1922), better known as Willie Moir, was …       William Moir
"Afaq Khoja …"      The Afāq Khoja Mausoleum or Aba Khoja Mausoleum is …               Aba Khoja Mausoleum
"Kaun Banega …"     Kaun Banega Crorepati (transl. …; also simply known as KBC) is …   KBC
"Trade Office"      The Department of Trade (Filipino: …, abbreviated as DTI) is …     DTI
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from deixis.knowledge.surfaces import initials, key, short_titles

__all__ = ["names_in_lead"]

LEAD = 320  # characters, in which the verb of the first sentence stands
MOST_WORDS = 6

# "Agence France-Presse (AFP) is ..." or "(Filipino: Kagawaran ..., abbreviated as DTI)"
_ABBREVIATION = re.compile(r"\(\s?(?:[^()]{0,60}?[\s,;])?([A-Z](?:[A-Za-z.]{0,5}[A-Z])\.?)\s?[,;)]")
_AIRPORT = re.compile(r"\bIATA(?: code)?\s?:\s?([A-Z]{3})\b")
_VERB = re.compile(r"\s(?:is|was|are|were|refers|has|have|had|became|occurred|took|began|won)\s")
_SUBJECT = re.compile(r"(?:The |An? )?([^,;:(]+)")
_CALLED = (
    r"(?:known|called|nicknamed|abbreviated|shortened|referred to|styli[sz]ed|formerly|previously|originally|commonly"
    r"|simply|also|often|better|best|billed|credited|née|aka|acronym)"
)
_FILLED = (
    r"(?:as|to|more|mononymously|professionally|locally|internationally|collectively|officially|informally|popularly"
    r"|usually|sometimes|his|her|by|stage|name|the|a|in|English|[Rr]omani[sz]ed|locals|named|spelled|written)"
)
_OTHER = re.compile(rf"\b(?:a\s?\.\s?k\s?\.\s?a\b\s?\.?|{_CALLED}(?:,? (?:{_CALLED}|{_FILLED}))*)\s*:?\s+([^,;:()]+)")
_OR = re.compile(r"\s+or\s+|\s+and\s+as\s+|\s+/\s+")
_NO_NAME = re.compile(r"(?i:in|on|at|of|by|for|from|with|during|after|before|and|or|his|her|its)\b|.*[a-z]{4}\.\s")


def names_in_lead(title: str, text: str) -> Iterator[str]:
    """Yield the names of an entity that its description gives, other than those that its title is good for."""
    if title.startswith(("List of ", "Lists of ")):
        return
    known = {key(name) for name in (title, *short_titles(title))}
    for name in _found(title, text):
        bare = name.strip(" .,\"'“”‘’")
        own = key(bare)
        if own and own not in known and len(own) > 1 and len(own.split()) <= MOST_WORDS and not own.isdigit():
            known.add(own)
            if not _NO_NAME.match(bare):
                yield bare


def _found(title: str, text: str) -> Iterator[str]:
    letters = {letter for short in initials(title) for letter in short}
    yield from (found[1] for found in _ABBREVIATION.finditer(text[:LEAD]) if key(found[1])[:1] in letters)
    yield from _AIRPORT.findall(text[:LEAD])
    verb = _VERB.search(text, 0, LEAD)
    if verb is None:
        return
    head = text[: verb.start()]
    subject = _SUBJECT.match(head)
    if subject is not None and set(key(title).split()) & set(key(subject[1]).split()):
        yield from _OR.split(subject[1])
    for called in _OTHER.finditer(head):
        yield from _OR.split(called[1])
