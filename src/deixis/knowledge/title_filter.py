"""All titles of a wiki in nine bits each: a binary fuse filter (Graf and Lemire, 2022) of strings that are titles.

A title has three slots in a table of bytes; the bytes xor to its fingerprint. Of strings that are no titles one in 256
is taken for one. The three slots lie in neighbouring segments, so that a table with an eighth more slots than titles
can be filled: again and again a slot that only one title is left for is set aside for it; bytes are set in reverse.

    header   6 numbers of 8 bytes: magic, version, seed, slots of a segment, segments, titles
    table    one byte a slot
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import write_aside
from deixis.documents import normalise_title
from deixis.errors import ArtefactError
from deixis.knowledge.surfaces import SMALL_WORDS, without_accents

__all__ = ["TitleFilter"]

MAGIC, VERSION = int.from_bytes(b"DXFILTER", "little"), 1
HEADER = 6
ROOM = 1.125  # slots a title; three segments more are needed at the ends
TRIES = 100  # seeds; with this room one in a hundred fails

_WORD = re.compile(r"[^\W\d_]+")
_POSSESSIVE = re.compile(r" ?'s?$", re.IGNORECASE)
_ARTICLE = re.compile(r"^the ", re.IGNORECASE)

Words = NDArray[np.uint64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TitleFilter:
    """Which strings may be titles, whatever their case.

    Examples:
        >>> titles = TitleFilter.build(["Velm Cup (rowing)", "Ada Marlow"])
        >>> "ada marlow" in titles, "Ada Brandt" in titles
        (True, False)
    """

    table: NDArray[np.uint8]
    seed: int
    segment: int  # slots; a power of two
    segments: int  # in which a title's first slot can lie
    titles: int  # that were put in; those of one spelling count once

    @classmethod
    def build(cls, titles: Iterable[str]) -> TitleFilter:
        """Make the filter of some titles."""
        hashes = np.unique(np.fromiter(map(_hash, titles), np.uint64))
        number = len(hashes)
        # As the paper: segments as long as lets the table be filled from its ends, and some for small sets.
        segment = 4 if number < 2 else min(2 ** int(math.log(number) / math.log(3.33) + 2.25), 2**18)
        room = ROOM if number < 2 else max(ROOM, 0.875 + 0.25 * math.log(1_000_000) / math.log(number))
        segments = max(1, -(-int(number * room) // segment) - 2)
        for seed in range(TRIES):
            table = _filled(hashes, cls(np.empty(0, np.uint8), seed, segment, segments, number))
            if table is not None:
                return cls(table, seed, segment, segments, number)
        raise AssertionError(f"no table of {segments} segments of {segment} holds {number} titles")

    def __contains__(self, title: str) -> bool:
        slots, prints = self.slots(np.array([_hash(title)], np.uint64))
        found = self.table[slots[:, 0]]
        return self.titles > 0 and int(found[0] ^ found[1] ^ found[2]) == int(prints[0])

    def find(self, name: str) -> str | None:
        """Return the title that a name of two words or more is, spelled as it is written there; None for none.

        Lists of titles may have no accents, so that the name is also asked without. A possessive or an article at its
        ends is left out if the whole is no title.

        Examples:
            >>> titles = TitleFilter.build(["Velm Cup", "The Silver Oar", "Zoe Brandt"])
            >>> [titles.find(name) for name in ("the Velm Cup", "the Silver Oar", "ZOË BRANDT\u2019S", "Ada Brandt")]
            ['Velm Cup', 'The Silver Oar', 'Zoë Brandt', None]
        """
        for spelled in _spellings(name):
            if spelled in self or ((plain := without_accents(spelled)) != spelled and plain in self):
                return normalise_title(spelled)
        return None

    def slots(self, hashes: Words) -> tuple[Numbers, NDArray[np.uint8]]:
        """Return the slots (3, titles) and fingerprints (titles,) of hashes."""
        mixed = _mixed(hashes + np.uint64(self.seed * 0x9E3779B97F4A7C15 % 2**64))
        first = (((mixed >> np.uint64(32)) * np.uint64(self.segments * self.segment)) >> np.uint64(32)).astype(np.int64)
        low = mixed.astype(np.int64) & (1 << 36) - 1
        inside = self.segment - 1
        slots = np.stack(
            (first, (first + self.segment) ^ (low >> 18 & inside), (first + 2 * self.segment) ^ (low & inside))
        )
        return slots, (mixed ^ mixed >> np.uint64(32)).astype(np.uint8)

    def save(self, path: Path) -> None:
        header = np.array([MAGIC, VERSION, self.seed, self.segment, self.segments, self.titles], "<u8")
        with write_aside(path) as file:
            file.write(header.tobytes() + self.table.tobytes())

    @classmethod
    def open(cls, path: Path) -> TitleFilter:
        """Map a filter that `save` wrote."""
        try:
            numbers = np.fromfile(path, "<u8", HEADER).tolist()
            if len(numbers) < HEADER or numbers[0] != MAGIC:
                raise ArtefactError(f"{path} is not a filter of titles; make it again")
            if numbers[1] != VERSION:
                raise ArtefactError(f"{path} was written by another version of deixis; make it again")
            _, _, seed, segment, segments, titles = numbers
            if path.stat().st_size != 8 * HEADER + (segments + 2) * segment:
                raise ArtefactError(f"{path} is cut short; copy it again")
            table = np.memmap(path, np.uint8, "r", 8 * HEADER)
        except FileNotFoundError:
            raise ArtefactError(f"{path} does not exist; expected a filter of titles") from None
        return cls(table, seed, segment, segments, titles)


def _spellings(name: str) -> Iterator[str]:
    """Yield a name of several words as its title may be spelled."""
    whole = " ".join(name.replace("’", "'").split())
    bare = _POSSESSIVE.sub("", whole)
    if bare.isupper() and max(map(len, bare.split())) > 3:  # a headline, no abbreviation: guess the title's capitals
        whole = bare = _WORD.sub(_recased, bare)
    for spelled in dict.fromkeys((whole, bare, _ARTICLE.sub("", bare))):
        if " " in spelled:
            yield spelled


def _recased(word: re.Match[str]) -> str:
    lower = word[0].lower()
    return lower if lower in SMALL_WORDS else lower.capitalize()


def _hash(title: str) -> int:
    """Return 64 bits of a title, in which case and underscores do not count."""
    folded = " ".join(title.replace("_", " ").lower().split())
    return int.from_bytes(hashlib.blake2b(folded.encode(), digest_size=8).digest(), "little")


def _mixed(words: Words) -> Words:
    """Mix the bits of words (murmur3's last step)."""
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xFF51AFD7ED558CCD)
    words = (words ^ words >> np.uint64(33)) * np.uint64(0xC4CEB9FE1A85EC53)
    return words ^ words >> np.uint64(33)


def _filled(hashes: Words, empty: TitleFilter) -> NDArray[np.uint8] | None:
    """Return the table that holds all hashes, or None where this seed leaves titles that share every slot."""
    size = (empty.segments + 2) * empty.segment
    slots, prints = empty.slots(hashes)
    counts = np.zeros(size, np.int32)
    sums = np.zeros(size, np.int64)  # of the numbers of the titles left: where one is left, its number
    numbers = np.arange(len(hashes))
    for row in slots:
        np.add.at(counts, row, 1)
        np.add.at(sums, row, numbers)
    rounds: list[tuple[Numbers, Numbers]] = []  # titles, and the slots set aside for them
    free = np.flatnonzero(counts == 1)
    left = len(hashes)
    while len(free):
        titles, at = np.unique(sums[free], return_index=True)
        rounds.append((titles, free[at]))
        left -= len(titles)
        touched = slots[:, titles]
        for row in touched:
            np.subtract.at(counts, row, 1)
            np.subtract.at(sums, row, titles)
        touched = np.unique(touched)
        free = touched[counts[touched] == 1]
    if left:
        return None
    table = np.zeros(size, np.uint8)
    # Titles of one round do not share their slots with each other, so that they can be set at once.
    for titles, own in reversed(rounds):
        a, b, c = (table[row] for row in slots[:, titles])
        table[own] = prints[titles] ^ a ^ b ^ c  # the own slot is still 0
    return table
