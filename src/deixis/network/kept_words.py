"""Words that were read to find the mentions of a text, kept until these mentions are decided: one read for both.

Where words see words only, what the detector reads is what disambiguation goes on from. Of each window are kept the
states of its words under the first layer with placeholders, and their keys and values from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from deixis.network.encoding import Encoding
from deixis.network.reading import Reading
from deixis.network.word_features import WordPieces

__all__ = ["KeptWords"]


@dataclass(frozen=True, slots=True, eq=False)
class KeptWords:
    """The words of a text, and what was kept of its windows: of a long text not of all."""

    words: WordPieces
    windows: dict[tuple[int, int], Reading] = field(default_factory=dict)  # by their pieces [start, end)

    def encode(self, spans: Sequence[tuple[int, int]]) -> Encoding:
        """Return the pieces of the text, and those of spans `[start, end)` in characters: of all words they touch."""
        starts, ends = np.array(spans, np.int64).reshape(-1, 2).T
        first = np.searchsorted(self.words.spans[:, 1], starts, "right")
        last = np.maximum(np.searchsorted(self.words.spans[:, 0], ends), first)
        borders = np.searchsorted(self.words.word, np.stack([first, last], 1))
        # A span without any piece takes the piece before it, as in `Tokenizer.encode_many`.
        borders[:, 0] = np.minimum(borders[:, 0], np.maximum(borders[:, 1] - 1, 0))
        return Encoding(self.words.pieces, borders)
