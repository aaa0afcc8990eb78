"""What is kept of windows: of their words until their mentions are known, of both between the steps of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.network.attention import Packed, Segments
from deixis.network.batching import Batch, append_layout
from deixis.network.layers import KeysValues

__all__ = ["Reading", "Static"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Reading(NamedTuple):
    """What is kept of rows that went through layers."""

    under: Tensor  # (rows, hidden): their states under a layer
    past: tuple[KeysValues, ...]  # from that layer on: keys and values of the rows and of all that they see
    last: Tensor | None = None  # (rows, hidden): their last states, if wanted
    states: tuple[Tensor, ...] = ()  # (rows, hidden) each: those after the layers that were asked for

    def split(self, counts: Ints) -> list[Reading]:
        """Return what is kept of each window, given its rows; what was only asked for is left out."""
        bounds = [0, *np.cumsum(counts).tolist()]
        return [
            Reading(self.under[start:end], tuple([(k[:, start:end], v[:, start:end]) for k, v in self.past]))
            for start, end in pairwise(bounds)
        ]

    @classmethod
    def joined(cls, parts: Sequence[Self], attend: Packed) -> Reading:
        """Lay what was kept of windows end to end, with room for what is appended to it."""
        layers = zip(*(part.past for part in parts), strict=True)
        return Reading(torch.cat([part.under for part in parts]), tuple([_reserve(attend, layer) for layer in layers]))


def _reserve(attend: Packed, layer: Sequence[KeysValues]) -> KeysValues:
    return attend.reserve([keys for keys, _ in layer]), attend.reserve([values for _, values in layer])


@dataclass(frozen=True, slots=True)
class Static:
    """What of some windows does not depend on their answers, made once by `Network.read`."""

    words: Tensor  # (pieces, hidden): embedded words; empty where the words are in `past`
    start: Tensor | None  # (mentions, hidden): placeholders' states under the first answer layer
    positions: Tensor  # (mentions, hidden): averaged position embeddings
    past: tuple[KeysValues, ...]  # of words and placeholders, for each answer layer
    attend: Packed  # how answers, appended to the words or to words and placeholders, see them and each other
    counts: tuple[Ints, Ints]  # pieces and mentions of each window
    queries: Segments  # of the answers whose last states are wanted
    mentions: Tensor | None = None  # (answers,): which of the batch's mentions have a row; None: all
    wanted: Tensor | None = None  # (wanted,): the answers whose last states are wanted; None: all

    @classmethod
    def of(cls, parts: Sequence[Static], batch: Batch) -> Static:
        """Join what was read of a batch in parts, and reserve room for the answers beside what they see."""
        starts = [part.start for part in parts if part.start is not None]
        layers = zip(*(part.past for part in parts), strict=True)
        past = tuple([_reserve(batch.answers, layer) for layer in layers])
        return Static(
            torch.cat([part.words for part in parts]),
            torch.cat(starts) if starts else None,
            torch.cat([part.positions for part in parts]),
            past,
            replace(batch.answers, first_at=None) if past else batch.joint,
            (batch.piece_counts, batch.mention_counts),
            batch.answers.queries,
        )

    def select(self, wanted: Bools) -> Static:
        """Return the part of the windows that have wanted mentions (mentions,); the last layer has these alone."""
        pieces, mentions = self.counts
        asked = np.bincount(np.repeat(np.arange(len(mentions)), mentions)[wanted], minlength=len(mentions))
        running = asked > 0  # (windows,)
        inside = np.repeat(running, mentions)  # (mentions,)
        device = self.positions.device
        rows = torch.from_numpy(np.flatnonzero(inside)).to(device, non_blocking=True)
        words, attend = self.words, self.attend
        if self.past:  # a window that does not run has no queries; what was seen of it stays where it is
            queries = Segments.of(np.where(running, mentions, 0)).to(device)
            attend = replace(attend, queries=queries, second_at=attend.second_at.index_select(0, rows))
        else:
            of_words = torch.from_numpy(np.flatnonzero(np.repeat(running, pieces))).to(device, non_blocking=True)
            words = words.index_select(0, of_words)
            attend = append_layout(pieces[running], mentions[running]).to(device)
            asked = asked[running]
        return Static(
            words,
            None if self.start is None else self.start.index_select(0, rows),
            self.positions.index_select(0, rows),
            self.past,
            attend,
            self.counts,
            Segments.of(asked).to(device),
            rows,
            torch.from_numpy(np.flatnonzero(wanted[inside])).to(device, non_blocking=True),
        )
