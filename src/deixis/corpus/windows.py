"""Training windows: articles tokenised and packed once, into arrays that training maps into memory (protocol 11).

A folder holds a manifest and, for each split, flat arrays; window `i` owns the ranges between offsets `i` and `i + 1`:

    train/pieces.npy            (pieces,)      uint16 or uint32; no [CLS], no [SEP]
    train/window_offsets.npy    (windows + 1,) int64, into pieces
    train/mention_offsets.npy   (windows + 1,) int64, into the three below
    train/spans.npy             (mentions, 2)  uint16; [start, end) in pieces of the window
    train/rows.npy              (mentions,)    int32; the entity's row; [UNK] outside the vocabulary
    train/candidates.npy        (mentions, k)  int32; rows the surface may mean, best first, [PAD] behind; optional
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.vocabulary import Vocabulary

__all__ = ["SPLITS", "PackedWindow", "Split", "WindowSet"]

Split = Literal["train", "held-out"]
SPLITS: tuple[Split, ...] = get_args(Split)


class PackedWindow(NamedTuple):
    """One window: pieces without [CLS] and [SEP], and a span, a row and perhaps candidates for each mention."""

    pieces: NDArray[Any]  # (pieces,)
    spans: NDArray[np.uint16]  # (mentions, 2)
    rows: NDArray[np.int32]  # (mentions,)
    candidates: NDArray[np.int32] | None  # (mentions, k)


@dataclass(frozen=True, slots=True, eq=False)
class WindowSet:
    """The windows of one split, mapped into memory; the arrays are open for vectorised batching."""

    folder: Path
    manifest: Manifest
    pieces: NDArray[Any]
    window_offsets: NDArray[np.int64]
    mention_offsets: NDArray[np.int64]
    spans: NDArray[np.uint16]
    rows: NDArray[np.int32]
    candidates: NDArray[np.int32] | None

    @classmethod
    def open(cls, folder: Path, split: Split = "train", vocabulary: Vocabulary | None = None) -> WindowSet:
        """Map the windows of a split; a vocabulary other than the one they were built with is refused."""
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
                raise ArtefactError(f"{path} is missing; copy the folder again or run `deixis windows`") from None
            except (ValueError, OSError, EOFError) as error:
                raise ArtefactError(f"{path} is damaged ({error}); copy the folder again") from None

        return cls(
            folder,
            manifest,
            pieces=array("pieces"),
            window_offsets=array("window_offsets"),
            mention_offsets=array("mention_offsets"),
            spans=array("spans"),
            rows=array("rows"),
            candidates=array("candidates") if manifest.parameters.get("candidates") else None,
        )

    def __len__(self) -> int:
        return len(self.window_offsets) - 1

    def window(self, index: int) -> PackedWindow:
        """Return one window; the arrays are views of the file."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        first, last = int(self.mention_offsets[index]), int(self.mention_offsets[index + 1])
        return PackedWindow(
            self.pieces[int(self.window_offsets[index]) : int(self.window_offsets[index + 1])],
            self.spans[first:last],
            self.rows[first:last],
            None if self.candidates is None else self.candidates[first:last],
        )

    @property
    def vocabulary_digest(self) -> str:
        """The digest of the vocabulary whose rows the windows hold."""
        return self.manifest.parents["vocabulary"]

    def verify(self) -> None:
        """Check every file against its digest."""
        self.manifest.verify(self.folder)
