"""The learned detector: a small head on the states of the words finds names, each with a probability and a kind.

    text      Ødegaard   beat   West   Ham   at   Anfield
    states    those after a few layers of the encoder, words read without any mention, and the features of the words
    tags      B-person   O      B-org  I-org O    B-place        9 kinds of beginnings and insides, or none
    names     [Ødegaard] .98 person    [West Ham] .95 organisation    [Anfield] .97 place

A head is two linear layers around two convolutions over words; it is trained by training/detector.py on a frozen
encoder. A name's probability is that of its weakest word: a beginning, insides, and an end where it ends. A long text
is read in windows that overlap, and every word counts where it stands nearest to the middle. Those are the windows of
disambiguation, which in the pattern "words" goes on from what was read here (kept_words.py).
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from deixis.errors import ArtefactError
from deixis.network.batching import Batch, pack
from deixis.network.encoding import MAX_PIECES, Tokenizer, overlapping_windows
from deixis.network.kept_words import KeptWords
from deixis.network.model import Network
from deixis.network.reading import Reading
from deixis.network.word_features import FEATURES, SECTION, WordPieces, sections, split_words, word_features

__all__ = [
    "KINDS",
    "TAGS",
    "DetectorHead",
    "FoundName",
    "LearnedDetector",
    "ReadText",
    "WordWindow",
    "kind_tags",
    "pack_words",
    "windows",
]

KINDS = ("person", "organisation", "place", "work", "product", "event", "group", "other")
TAGS = 1 + 2 * len(KINDS)  # none, then a beginning and an inside of each kind
WIDTH = 5  # words that a convolution sees
CPU_PIECES, GPU_PIECES = 512, 16384  # read at once; on a CPU few rows are as fast as many
MOST_TEXTS = 64  # read together
KEPT_LETTERS, KEPT_PIECES = SECTION // 2, 16384  # of texts that are read together: bounds memory where words are kept


def kind_tags(kind: str) -> tuple[int, int]:
    """Return the tags of a beginning and an inside of a kind."""
    first = 1 + 2 * KINDS.index(kind)
    return first, first + 1


class FoundName(NamedTuple):
    """A name in a text: `[start, end)` in characters."""

    start: int
    end: int
    probability: float
    kind: str


@dataclass(frozen=True, slots=True)
class WordWindow:
    """A window of words: at most 510 pieces, and which of the words count."""

    pieces: NDArray[np.int32]  # (pieces,)
    word: NDArray[np.int64]  # (pieces,): which word of the window each belongs to
    features: NDArray[np.float16]  # (words, FEATURES)
    counting: slice  # of the words
    start: int = 0  # the piece of the text that it begins with

    @property
    def place(self) -> tuple[int, int]:
        """The pieces `[start, end)` of the text that it holds."""
        return self.start, self.start + len(self.pieces)


def windows(words: WordPieces, features: NDArray[np.float16]) -> Iterator[WordWindow]:
    """Yield the overlapping windows of a text; every word counts in exactly one."""
    length = len(words.pieces)
    if not length:
        return
    begins = np.flatnonzero(np.diff(words.word, prepend=-1))
    starts, home = overlapping_windows(length, begins, np.append(begins[1:], length))
    upto = np.searchsorted(home, np.arange(len(starts)), "right")  # words that count so far
    for start, done, end_of_words in zip(starts.tolist(), [0, *upto.tolist()], upto.tolist(), strict=False):
        end = min(start + MAX_PIECES, length)
        first, last = int(words.word[start]), int(words.word[end - 1]) + 1
        counting = slice(done - first, end_of_words - first)
        yield WordWindow(words.pieces[start:end], words.word[start:end] - first, features[first:last], counting, start)


class PackedWords(NamedTuple):
    """Windows of words as a network and a head take them."""

    batch: Batch
    pieces: Tensor  # (pieces of words,): where each is among the batch's, word by word
    offsets: Tensor  # (words,): where each word begins in these
    at: Tensor  # (words,): the place of each word in a row with gaps between windows
    features: Tensor  # (words, FEATURES)

    def to(self, device: torch.device | str) -> PackedWords:
        batch, *rest = self
        return PackedWords(batch.to(device), *(part.to(device) for part in rest))


def pack_words(tokenizer: Tokenizer, parts: Sequence[WordWindow]) -> PackedWords:
    """Pack windows of words, end to end."""
    counts = np.array([len(part.pieces) + 2 for part in parts])
    cls, sep = np.array([tokenizer.cls]), np.array([tokenizer.sep])
    pieces = np.concatenate([x for part in parts for x in (cls, part.pieces, sep)]).astype(np.int64)
    none = np.zeros((0, 2), np.int64)
    batch = pack(pieces, counts, none, np.zeros(len(parts), np.int64))
    before = np.cumsum(counts) - counts
    places = np.concatenate(
        [np.arange(len(part.pieces)) + 1 + first for part, first in zip(parts, before, strict=True)]
    )
    begins = np.concatenate([np.diff(part.word, prepend=-1) != 0 for part in parts])
    sizes = np.array([len(part.features) for part in parts])
    gaps = np.repeat(np.arange(len(parts)) * (WIDTH - 1), sizes)
    return PackedWords(
        batch,
        torch.from_numpy(places),
        torch.from_numpy(np.flatnonzero(begins)),
        torch.from_numpy(np.arange(int(sizes.sum())) + gaps),
        torch.from_numpy(np.concatenate([part.features for part in parts])),
    )


class DetectorHead(nn.Module):
    """From the states of the pieces and the features of the words to the logits of the tags."""

    def __init__(self, hidden: int, layers: Sequence[int], size: int = 160) -> None:
        super().__init__()
        self.hidden, self.layers, self.size = hidden, tuple(layers), size
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in layers)
        self.input = nn.Linear(hidden * len(layers) + FEATURES, size)
        self.convolutions = nn.ModuleList(nn.Conv1d(size, size, WIDTH, padding=WIDTH // 2) for _ in range(2))
        self.dropout = nn.Dropout(0.1)
        self.tags = nn.Linear(size, TAGS)

    def forward(self, states: Sequence[Tensor], words: PackedWords) -> Tensor:
        """Return logits (words, TAGS)."""
        spelt = [
            norm(F.embedding_bag(words.pieces, state.float(), words.offsets, mode="mean"))
            for norm, state in zip(self.norms, states, strict=True)
        ]
        rows = F.gelu(self.input(self.dropout(torch.cat([*spelt, words.features.float()], -1))))
        for convolution in self.convolutions:
            # Windows lie end to end with rows of zeros between them, so that none sees another.
            spread = rows.new_zeros(int(words.at[-1]) + 1, self.size).index_copy(0, words.at, rows)
            seen = convolution(self.dropout(spread).T[None])[0].T
            rows = rows + F.gelu(seen.index_select(0, words.at))
        logits: Tensor = self.tags(rows)
        return logits

    def save(self, path: Path) -> None:
        """Write the head in fp16, its shape among the metadata."""
        state = {name: tensor.detach().cpu().half().contiguous() for name, tensor in self.state_dict().items()}
        shape = {"hidden": self.hidden, "layers": self.layers, "size": self.size, "kinds": KINDS}
        save_file(state, path, {"detector": json.dumps(shape)})

    @classmethod
    def load(cls, path: Path) -> Self:
        try:
            with safe_open(path, "pt") as file:
                shape = json.loads(file.metadata()["detector"])
                state = {name: file.get_tensor(name).float() for name in file.keys()}  # noqa: SIM118 - no mapping
            if tuple(shape.pop("kinds")) != KINDS:
                raise ArtefactError(f"{path} finds other kinds of names than this deixis; train it again")
            head = cls(**shape)
            head.load_state_dict(state)
        except FileNotFoundError:
            raise ArtefactError(f"{path} does not exist; expected a detector") from None
        except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ArtefactError(f"{path} is damaged or not a detector: {error}") from None
        return head.eval()


class LearnedDetector:
    """Finds names with a head over a network's words; `threshold` is the least probability that a word is in a name."""

    def __init__(self, network: Network, tokenizer: Tokenizer, head: DetectorHead, threshold: float = 0.5) -> None:
        if head.hidden != network.config.hidden_size or max(head.layers) > network.config.num_hidden_layers:
            raise ArtefactError("the detector was trained on another encoder; train it again: deixis train detector")
        self.network, self.tokenizer, self.head, self.threshold = network, tokenizer, head, threshold

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the names of a text."""
        return [(name.start, name.end) for name in next(self.names_of([text]))]

    def names_of(self, texts: Iterable[str]) -> Iterator[list[FoundName]]:
        """Yield the names of each of many texts, in their order."""
        for tagged in self.tags_of(texts):
            yield [name for part in tagged for name in part.names(self.threshold)]

    def tags_of(self, texts: Iterable[str]) -> Iterator[list[TaggedWords]]:
        """Yield the words of each text with the probabilities of their tags, a long text in sections."""
        return (read.parts for read in self._read(texts, keep=False))

    def read(self, texts: Iterable[str]) -> Iterator[ReadText]:
        """Yield the same, with what is kept of the words where disambiguation can go on from it.

        Of a text of several sections the pieces alone are kept, and read again.
        """
        return self._read(texts, keep=self.network.config.words_see == "words")

    def _read(self, texts: Iterable[str], *, keep: bool) -> Iterator[ReadText]:
        parts = (
            _Part(number, start, part, keep and len(part) == len(text))
            for number, text in enumerate(texts)
            for start, part in sections(text)
        )
        read = (one for group in _groups(parts, KEPT_LETTERS if keep else SECTION) for one in self._tag(group))
        for _, found in itertools.groupby(read, key=itemgetter(0)):
            tagged, kept = zip(*((words, kept) for _, words, kept in found), strict=True)
            if keep and len(kept) > 1:
                starts = (words.start for words in tagged)
                kept = (KeptWords(WordPieces.joined([(s, k.words) for s, k in zip(starts, kept, strict=True)])),)
            yield ReadText(list(tagged), kept[0] if keep else None)

    def _tag(self, group: Sequence[_Part]) -> Iterator[tuple[int, TaggedWords, KeptWords]]:
        texts = [part.text for part in group]
        words = split_words(self.tokenizer, texts)
        cut = [list(windows(one, word_features(text, one))) for text, one in zip(texts, words, strict=True)]
        kept = [KeptWords(one) for one in words]
        owners = [owner if part.keep else None for part, owner, own in zip(group, kept, cut, strict=True) for _ in own]
        tags = self._read_windows([window for parts in cut for window in parts], owners)
        first = 0
        for part, owner in zip(group, kept, strict=True):
            last = first + len(owner.words)
            yield part.number, TaggedWords(part.start, part.text, owner.words.spans, tags[first:last]), owner
            first = last

    @torch.inference_mode()
    def _read_windows(self, parts: Sequence[WordWindow], owners: Sequence[KeptWords | None]) -> NDArray[np.float32]:
        """Return the probabilities of the tags (words, TAGS) of the words of windows that count.

        What is kept of a window goes to its owner, as far as there is room.
        """
        device = next(self.network.parameters()).device
        self.head.to(device)  # the network may have been moved
        found: list[NDArray[np.float32]] = [np.zeros((0, TAGS), np.float32)]
        room = KEPT_PIECES
        for chosen in _batches(parts, GPU_PIECES if device.type == "cuda" else CPU_PIECES):
            pending = parts[chosen]
            packed = pack_words(self.tokenizer, pending).to(device)
            keep = room > 0 and any(owner is not None for owner in owners[chosen])
            states, reading = self._states(packed.batch, keep)
            tags = self.head(states, packed).softmax(-1)
            sizes = np.cumsum([len(part.features) for part in pending])[:-1]
            split = np.split(tags.cpu().numpy(), sizes)
            found += [consistent_tags(chances)[part.counting] for chances, part in zip(split, pending, strict=True)]
            if reading is not None:
                room -= len(packed.batch.pieces)
                kept = reading.split(packed.batch.piece_counts)
                for owner, part, one in zip(owners[chosen], pending, kept, strict=True):
                    if owner is not None:
                        owner.windows[part.place] = one
        return np.concatenate(found)

    def _states(self, batch: Batch, keep: bool) -> tuple[Sequence[Tensor], Reading | None]:
        """Return the states that the head reads and, if it is kept, what disambiguation goes on from."""
        if not keep:
            return self.network.word_states(batch, self.head.layers), None
        last = self.network.config.num_hidden_layers in self.head.layers
        reading = self.network.read_words(batch, finish=last, states=self.head.layers)
        return reading.states, reading


class ReadText(NamedTuple):
    """A text whose words were read: their tags, section by section, and what is kept of them."""

    parts: list[TaggedWords]
    kept: KeptWords | None


def _batches(parts: Sequence[WordWindow], most: int) -> Iterator[slice]:
    """Yield runs of windows that are read at once: of so many pieces, and what the last has more."""
    first, size = 0, 0
    for place, window in enumerate(parts, 1):
        size += len(window.pieces)
        if size >= most or place == len(parts):
            yield slice(first, place)
            first, size = place, 0


def consistent_tags(tags: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return probabilities (words, TAGS) in which no word is likelier inside a name than the word before is in one.

    So the full stop of an initial is inside a name if what follows is.
    """
    tags = tags.copy()
    for _ in range(3):  # words in a row
        inside = tags[1:, 2::2].sum(-1)
        lacking = np.maximum(inside - (1 - tags[:-1, 0]), 0)
        tags[:-1, 2::2] += tags[1:, 2::2] * (lacking / np.maximum(inside, 1e-9))[:, None]
        tags[:-1, 0] -= lacking
    return tags


class _Part(NamedTuple):
    """A part of a text."""

    number: int  # of the text
    start: int
    text: str
    keep: bool  # it is the whole text, and what is read of it is kept


def _groups(parts: Iterable[_Part], most: int) -> Iterator[list[_Part]]:
    """Yield parts of texts in groups that are read together: of so many letters, and what the last has more."""
    group: list[_Part] = []
    letters = 0
    for part in parts:
        group.append(part)
        letters += len(part.text)
        if letters >= most or len(group) >= MOST_TEXTS:
            yield group
            group, letters = [], 0
    if group:
        yield group


@dataclass(frozen=True)
class TaggedWords:
    """The words of a part of a text, and how likely each begins a name, goes on with one, or is none."""

    start: int  # of the part
    text: str
    spans: NDArray[np.int64]  # (words, 2)
    tags: NDArray[np.float32]  # (words, TAGS)

    def names(self, threshold: float) -> list[FoundName]:
        """Return runs of words that are likely in a name, cut where a new one likely begins."""
        begins, inside = map(np.array, self._chances)
        named = begins + inside >= threshold
        opens = named & ((begins > inside) | ~np.append(False, named[:-1]))
        firsts = np.flatnonzero(opens)
        ends = np.append(opens[1:] | ~named[1:], True)[: len(named)]
        lasts = np.flatnonzero(named & ends)
        pairs = zip(firsts.tolist(), lasts.tolist(), strict=True)
        return [self.name(first, self._trimmed(first, last)) for first, last in pairs]

    def _trimmed(self, first: int, last: int) -> int:
        """Return the last word of a name without a comma or the like at its end."""
        while last > first and self.text[self.spans[last, 0]] in ",;:([-–—":
            last -= 1
        return last

    def name_at(self, start: int, end: int) -> FoundName | None:
        """Return the name that `[start, end)`, counted in this part, is; None if that is no run of whole words."""
        starts, ends = self._borders
        first, last = starts.get(start), ends.get(end)
        return None if first is None or last is None or last < first else self.name(first, last)

    @cached_property
    def _chances(self) -> tuple[list[float], list[float]]:
        """How likely each word begins a name, and goes on with one."""
        return self.tags[:, 1::2].sum(1).tolist(), self.tags[:, 2::2].sum(1).tolist()

    @cached_property
    def _borders(self) -> tuple[dict[int, int], dict[int, int]]:
        """The words by where they begin and where they end."""
        starts, ends = ({at: word for word, at in enumerate(side.tolist())} for side in self.spans.T)
        return starts, ends

    def name(self, first: int, last: int) -> FoundName:
        """Return the name that words `[first, last]` are, whatever its probability."""
        begins, inside = self._chances
        chances = [begins[first], *inside[first + 1 : last + 1]]
        if last + 1 < len(inside):
            chances.append(1 - inside[last + 1])
        kinds = self.tags[first, 1::2]
        if last > first:
            kinds = kinds + self.tags[first + 1 : last + 1, 2::2].sum(0)
        kind = KINDS[int(kinds.argmax())]
        start, end = self.start + int(self.spans[first, 0]), self.start + int(self.spans[last, 1])
        return FoundName(start, end, min(chances), kind)
