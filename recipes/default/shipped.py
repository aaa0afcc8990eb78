"""Which entities travel with the model first: all of them in the order of their use.

An entity is worth more the oftener it is linked, the more other titles and aliases it has, if Simple English Wikipedia
has an article on it, if it is described; places of the United States are, which texts name and articles seldom link.
A title of two words or more answers for itself where nothing else is known of it (`known_by="title"`); one that no name
is written as, "Halle (town)" or "Halle, Velm", or a single word does not, and is worth more here.

The weights were chosen on data/wild; of the first 700,000, no set there loses more than 3 points of recall.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Use", "rank"]


@dataclass
class Use:
    """What is counted of an entity."""

    links: int = 0
    other_titles: int = 0  # redirects and aliases
    simple: bool = False  # Simple English Wikipedia has an article
    described: bool = False
    american: bool = False  # a place of the United States that nothing else describes

    def worth(self, title: str) -> float:
        """Return what the entity is worth; lists and pages of meanings are worth less."""
        no_name = title.endswith(")") or ", " in title or " " not in title
        listing = title.startswith(("List of ", "Lists of ")) or title.endswith("(disambiguation)")
        use = math.log1p(self.links) + 0.6 * math.log1p(self.other_titles) + 0.7 * self.simple
        return use + 0.1 * self.described + 1.3 * self.american + 0.6 * no_name - listing


def rank(uses: Mapping[str, Use], first: frozenset[str]) -> list[str]:
    """Return all titles, those that go `first`, then the more used before the less, ties by title."""
    return sorted(uses, key=lambda title: (title not in first, -uses[title].worth(title), title))
