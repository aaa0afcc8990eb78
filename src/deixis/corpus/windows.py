"""Training windows: pieces packed into flat arrays, of articles (protocol 11) or of annotated documents (protocol 12).

A folder holds a manifest and, for each split, flat arrays; window `i` owns the ranges between offsets `i` and `i + 1`:

    train/pieces.npy            (pieces,)      uint16 or uint32; no [CLS], no [SEP]
    train/window_offsets.npy    (windows + 1,) int64, into pieces
    train/mention_offsets.npy   (windows + 1,) int64, into the three below
    train/spans.npy             (mentions, 2)  uint16; [start, end) in pieces of the window
    train/rows.npy              (mentions,)    int32; the entity's row; [UNK] outside the vocabulary
    train/candidates.npy        (mentions, k)  int32; rows the surface may mean, best first, [PAD] behind; optional
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest
from deixis.documents import Candidate, Document
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer, Window, windows_of
from deixis.network.special import MASK, PAD

__all__ = ["SPLITS", "Split", "WindowSet"]

Split = Literal["train", "held-out"]
SPLITS: tuple[Split, ...] = get_args(Split)
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class WindowSet:
    """Windows end to end, without [CLS] and [SEP], and the mentions of each."""

    pieces: NDArray[Any]  # (pieces,)
    window_offsets: NDArray[np.int64]  # (windows + 1,) into pieces
    mention_offsets: NDArray[np.int64]  # (windows + 1,) into the three below
    spans: NDArray[Any]  # (mentions, 2)
    rows: NDArray[Any]  # (mentions,)
    candidates: NDArray[Any] | None = None  # (mentions, k)

    @classmethod
    def open(cls, folder: Path, split: Split = "train", vocabulary: Vocabulary | None = None) -> WindowSet:
        """Map the windows of a split into memory; a vocabulary other than theirs is refused."""
        if split not in SPLITS:
            raise InputError(f"there is no split {split!r}; choose {' or '.join(SPLITS)}")
        manifest = Manifest.load(folder / MANIFEST, "windows")
        if vocabulary is not None:
            manifest.check_parent("vocabulary", vocabulary.digest, folder)

        def array(name: str) -> NDArray[Any]:
            path = folder / split / f"{name}.npy"
            try:
                return np.load(path, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
            except FileNotFoundError:
                raise ArtefactError(
                    f"{path} is missing; copy the folder again or run `deixis wikipedia windows`"
                ) from None
            except (ValueError, OSError, EOFError) as error:
                raise ArtefactError(f"{path} is damaged ({error}); copy the folder again") from None

        return cls(
            pieces=array("pieces"),
            window_offsets=array("window_offsets"),
            mention_offsets=array("mention_offsets"),
            spans=array("spans"),
            rows=array("rows"),
            candidates=array("candidates") if manifest.parameters.get("candidates") else None,
        )

    @classmethod
    def of_documents(
        cls, documents: Iterable[Document], tokenizer: Tokenizer, vocabulary: Vocabulary, top: int = 30
    ) -> WindowSet:
        """Take annotated documents; mentions whose gold is not among the `top` candidates are left out (protocol 12).

        Without candidate lists, every mention whose gold is in the vocabulary takes part.
        """
        parts = [part for document in documents for part in _annotated(document, tokenizer, vocabulary, top)]
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


def _annotated(
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
