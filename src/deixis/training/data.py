"""Training data as arrays: windows that `deixis windows` wrote, or annotated documents."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deixis.corpus.windows import WindowSet
from deixis.documents import Candidate, Document
from deixis.errors import InputError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer, Window, windows_of
from deixis.network.special import MASK, PAD

__all__ = ["TrainingData"]

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class TrainingData:
    """Windows end to end, without [CLS] and [SEP], and the mentions of each (see `deixis.corpus.windows`)."""

    pieces: NDArray[Any]  # (pieces,)
    window_offsets: NDArray[np.int64]  # (windows + 1,) into pieces
    mention_offsets: NDArray[np.int64]  # (windows + 1,) into the three below
    spans: NDArray[Any]  # (mentions, 2)
    rows: NDArray[Any]  # (mentions,)
    candidates: NDArray[Any] | None  # (mentions, k)
    cls: int
    sep: int
    mask: int

    @classmethod
    def of_windows(cls, windows: WindowSet, tokenizer: Tokenizer, top: int = 30) -> TrainingData:
        """Take windows that `deixis windows` wrote, and the first `top` candidates; they stay on disk."""
        return cls(
            windows.pieces,
            windows.window_offsets,
            windows.mention_offsets,
            windows.spans,
            windows.rows,
            None if windows.candidates is None else windows.candidates[:, :top],
            tokenizer.cls,
            tokenizer.sep,
            tokenizer.mask,
        )

    @classmethod
    def of_documents(
        cls, documents: Iterable[Document], tokenizer: Tokenizer, vocabulary: Vocabulary, top: int = 30
    ) -> TrainingData:
        """Take annotated documents; mentions whose gold is not among the `top` candidates are left out (protocol 12).

        Without candidate lists, every mention whose gold is in the vocabulary takes part.
        """
        parts = [part for document in documents for part in _windows(document, tokenizer, vocabulary, top)]
        if not parts:
            raise InputError("no mention of the documents has its gold entity among its candidates and in the model")
        counts = np.array([(len(window.pieces) - 2, len(rows)) for window, rows, _ in parts]).T
        offsets = np.concatenate((np.zeros((2, 1), np.int64), np.cumsum(counts, 1)), 1)
        known = all(len(lists) for _, _, lists in parts)
        width = max((len(one) for _, _, lists in parts for one in lists), default=0)
        lists = [np.pad(one, (0, width - len(one)), constant_values=PAD) for _, _, each in parts for one in each]
        return cls(
            np.concatenate([window.pieces[1:-1] for window, _, _ in parts]),
            offsets[0],
            offsets[1],
            np.concatenate([window.spans - 1 for window, _, _ in parts]),  # without [CLS]
            np.concatenate([rows for _, rows, _ in parts]),
            np.stack(lists) if known and lists else None,
            tokenizer.cls,
            tokenizer.sep,
            tokenizer.mask,
        )

    def __len__(self) -> int:
        return len(self.window_offsets) - 1

    @property
    def digest(self) -> str:
        """A digest of the windows and their mentions."""
        digest = hashlib.sha256()
        for array in (self.pieces, self.window_offsets, self.mention_offsets, self.spans, self.rows):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def usable(self) -> Ints:
        """Return the windows with an entity of the vocabulary."""
        before = np.concatenate(([0], np.cumsum(np.asarray(self.rows) > MASK)))
        return np.flatnonzero(np.diff(before[self.mention_offsets]))


def _best(candidates: Sequence[Candidate], top: int) -> Sequence[Candidate]:
    """Return the first `top` by prior; without priors there is no honest rule to cut by (protocol 4)."""
    if any(candidate.prior is None for candidate in candidates):
        return candidates
    return sorted(candidates, key=lambda candidate: -(candidate.prior or 0.0))[:top]


def _windows(
    document: Document, tokenizer: Tokenizer, vocabulary: Vocabulary, top: int
) -> Iterator[tuple[Window, Ints, list[Ints]]]:
    """Yield the windows of a document with the row, and the candidates' rows, of each mention."""
    mentions, golds, lists = [], [], []
    for mention in document.mentions:
        gold = None if mention.entity is None else vocabulary.row(mention.entity)
        if gold is None:
            continue
        rows = [vocabulary.row(candidate.entity) for candidate in _best(mention.candidates or (), top)]
        known = [row for row in rows if row is not None]
        if mention.candidates is not None and gold not in known:
            continue
        mentions.append(mention)
        golds.append(gold)
        lists.append(None if mention.candidates is None else np.array(known, np.int64))
    encoding = tokenizer.encode(document.text, [(mention.start, mention.end) for mention in mentions])
    for window in windows_of(tokenizer, encoding, "simple"):
        if len(window.mentions):
            given = [lists[place] for place in window.mentions.tolist()]
            yield window, np.array(golds)[window.mentions], [one for one in given if one is not None]
