"""Training a detector: a small head on a frozen encoder learns names from texts in which they are marked.

A line of the data is a text with its names, or a document of document JSONL, whose mentions may have a "kind":

    {"text": "Arsenal beat Chelsea.", "spans": [[0, 7, "organisation"], [13, 20, "organisation"]],
     "kinds": ["organisation", "place"], "partial": true, "split": "test"}

    kinds      which kinds are marked in this text (all if not given): what is not marked may be a name of another kind
    partial    some names are not marked: an unmarked word with a capital may be anything
    split      "train", if not given; all other texts are held out and measured

What is not known takes no part in the loss: a word is asked only that its tag be one of those that may be true.
Capitals are unreliable, so a part of the windows is learned as if written in lower case, in capitals or as a headline.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.artefacts import read_lines
from deixis.errors import InputError
from deixis.network.detector import KINDS, TAGS, DetectorHead, LearnedDetector, WordWindow, kind_tags, pack_words
from deixis.network.encoding import MAX_PIECES, Tokenizer
from deixis.network.model import Network
from deixis.network.word_features import CASES, split_words, with_case, word_features
from deixis.training.recipe import DetectorRecipe

__all__ = [
    "DetectorRecipe",
    "Lessons",
    "MarkedText",
    "Score",
    "lessons_of",
    "read_marked_texts",
    "score_detector",
    "train_detector",
]

log = logging.getLogger(__name__)
ANY = (1 << TAGS) - 1
NONE = 1  # the bit of the tag of a word in no name
BEGINS = sum(1 << tag for tag in range(1, TAGS, 2))
LINK = 3  # letters of a word in lower case inside a name, and such words in a row
FINER = ("work", "product", "event", "group", "other")  # what "other" means where none of the first four is marked


@dataclass(frozen=True, slots=True)
class MarkedText:
    """A text with the names that are marked in it."""

    text: str
    spans: tuple[tuple[int, int, str | None], ...]  # [start, end) and the kind, where it is known
    kinds: frozenset[str]  # those that are marked
    partial: bool = False  # of these too, not all names are marked
    source: str = ""
    held_out: bool = False


def read_marked_texts(paths: Iterable[Path]) -> Iterator[MarkedText]:
    """Yield the texts of files; errors name file and line."""
    for path in paths:
        for line, raw in read_lines(path):
            try:
                yield _marked(json.loads(raw), path.name.split(".")[0])
            except (InputError, ValueError, TypeError, KeyError, AttributeError) as error:
                raise InputError(f"{path}, line {line}: {error!s:.200}; expected a text with its spans") from None


def _marked(record: dict[str, Any], source: str) -> MarkedText:
    text = record["text"]
    marked = record.get("spans")
    if marked is None:
        mentions = record["mentions"]
        marked = [(mention["start"], mention["end"], mention.get("kind")) for mention in mentions]
    spans = sorted((int(start), int(end), kind) for start, end, kind in marked)
    for start, end, kind in spans:
        if not 0 <= start < end <= len(text):
            raise InputError(f"the span [{start}, {end}) does not fit a text of {len(text)} characters")
        if kind is not None and kind not in KINDS:
            raise InputError(f"the kind {kind!r} is unknown; use one of {', '.join(KINDS)}")
    kinds = frozenset(record.get("kinds", KINDS))
    held_out = record.get("split", "train") != "train"
    return MarkedText(text, tuple(spans), kinds, bool(record.get("partial")), record.get("source", source), held_out)


@dataclass(frozen=True, slots=True)
class _Lesson:
    """A tokenised text: what a head is given of it, and the tags that may be true."""

    window: WordWindow
    single: NDArray[np.bool_]  # (words,): written with one letter
    glued: NDArray[np.bool_]  # (words,): to a @ or # before it, as also tokenised texts have it
    allowed: NDArray[np.int64]  # (words,): a bit a tag


Lessons = list[list[_Lesson]]


def allowed_tags(
    marked: MarkedText, spans: NDArray[np.int64], capital: NDArray[np.bool_], minor: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Return the tags that each word (words, 2) may have, a bit each (words,).

    `minor` are the words that may stand inside a name without a capital: "of", the full stop of an initial.
    """
    coarse = not marked.kinds & set(FINER[:-1])
    covered = FINER if coarse and "other" in marked.kinds else ()
    missing = [kind for kind in KINDS if kind not in marked.kinds and kind not in covered]
    outside = NONE | sum(1 << tag for kind in missing for tag in kind_tags(kind))
    out = np.full(len(spans), outside, np.int64)
    if marked.partial:
        out[capital] = ANY
        after = capital.copy()  # behind a capital, with nothing but minor words between
        for _ in range(LINK):
            after[1:] |= after[:-1] & minor[1:]
        out[after & minor] = ANY
    for start, end, kind in marked.spans:
        first, last = np.searchsorted(spans[:, 0], (start, end)).tolist()
        if first == last:
            continue  # within a word
        kinds = KINDS if kind is None else FINER if kind == "other" and coarse else (kind,)
        begins, inside = (sum(1 << kind_tags(one)[tag] for one in kinds) for tag in (0, 1))
        if marked.partial and not capital[first:last].any():
            out[first:last] = ANY  # a term that is linked, but no name
            continue
        # Beside a word that may belong to the same name, the name may have begun earlier.
        unsure = marked.partial and first > 0 and capital[first - 1] and out[first - 1] == ANY
        out[first] = begins | inside if unsure else begins
        out[first + 1 : last] = inside
    return out


def _lessons(tokenizer: Tokenizer, texts: Sequence[MarkedText]) -> Iterator[_Lesson]:
    for first in range(0, len(texts), 1024):
        chunk = texts[first : first + 1024]
        for marked, words in zip(chunk, split_words(tokenizer, [one.text for one in chunk]), strict=True):
            if not len(words):
                continue
            features = word_features(marked.text, words)
            capital = np.asarray(features[:, 1:5].any(1))
            window = WordWindow(words.pieces, words.word, features, slice(0, len(words)))
            sizes = np.diff(words.spans, axis=1)[:, 0]
            glued = np.array([marked.text[start - 1 : start] in ("@", "#") for start in words.spans[:, 0].tolist()])
            minor = (features[:, 6] > 0) | ((features[:, 0] > 0) & (sizes <= LINK))
            yield _Lesson(window, sizes == 1, glued, allowed_tags(marked, words.spans, capital, minor))


def _joined(lessons: Sequence[_Lesson], dice: np.random.Generator) -> Iterator[_Lesson]:
    """Yield windows of one text or several of a source; a long one is cut."""
    order = dice.permutation(len(lessons)).tolist()
    pending: list[_Lesson] = []
    room = 0.0
    for index in order:
        for part in _cut(lessons[index]):
            size = len(part.window.pieces)
            if pending and size > room:
                yield _join(pending)
                pending = []
            if not pending:
                # Most windows are a single short text, some are as long as can be.
                room = MAX_PIECES * float(dice.random()) ** 2
            pending.append(part)
            room = min(room, MAX_PIECES - sum(len(one.window.pieces) for one in pending))
    if pending:
        yield _join(pending)


def _cut(lesson: _Lesson) -> Iterator[_Lesson]:
    window, count = lesson.window, len(lesson.allowed)
    if len(window.pieces) <= MAX_PIECES:
        yield lesson
        return
    first = 0
    while first < count:
        start = int(np.searchsorted(window.word, first))
        last = count if start + MAX_PIECES >= len(window.pieces) else int(window.word[start + MAX_PIECES])
        last = max(last, first + 1)
        end = min(int(np.searchsorted(window.word, last)), start + MAX_PIECES)
        part = WordWindow(
            window.pieces[start:end], window.word[start:end] - first, window.features[first:last], slice(None)
        )
        words = slice(first, last)
        yield _Lesson(part, lesson.single[words], lesson.glued[words], lesson.allowed[words])
        first = last


def _join(parts: Sequence[_Lesson]) -> _Lesson:
    if len(parts) == 1:
        return parts[0]
    sizes = np.cumsum([0, *(len(part.allowed) for part in parts)])
    window = WordWindow(
        np.concatenate([part.window.pieces for part in parts]),
        np.concatenate([part.window.word + int(first) for part, first in zip(parts, sizes, strict=False)]),
        np.concatenate([part.window.features for part in parts]),
        slice(None),
    )
    each = [(part.single, part.glued, part.allowed) for part in parts]
    return _Lesson(window, *(np.concatenate(arrays) for arrays in zip(*each, strict=True)))


def _recased(lesson: _Lesson, share: float, dice: np.random.Generator) -> WordWindow:
    if dice.random() >= share:
        return lesson.window
    case = CASES[int(dice.integers(len(CASES)))]
    return replace(lesson.window, features=with_case(lesson.window.features, lesson.single, lesson.glued, case, dice))


def _batches(
    sources: Sequence[Sequence[_Lesson]], recipe: DetectorRecipe, dice: np.random.Generator
) -> Iterator[list[_Lesson]]:
    """Yield batches of windows of all sources, for ever."""
    while True:
        drawn = [window for lessons in sources for window in _joined(lessons, dice)]
        pending: list[_Lesson] = []
        free = recipe.batch_pieces
        for index in dice.permutation(len(drawn)).tolist():
            lesson = drawn[index]
            pending.append(replace(lesson, window=_recased(lesson, recipe.cases, dice)))
            free -= len(lesson.window.pieces)
            if free <= 0:
                yield pending
                pending, free = [], recipe.batch_pieces
        if pending:
            yield pending


def lessons_of(tokenizer: Tokenizer, texts: Sequence[MarkedText]) -> Lessons:
    """Return what a head learns from texts, source by source; those that are held out are left out."""
    sources: dict[str, list[MarkedText]] = {}
    for one in texts:
        if not one.held_out:
            sources.setdefault(one.source, []).append(one)
    return [list(_lessons(tokenizer, chosen)) for chosen in sources.values()]


def train_detector(network: Network, tokenizer: Tokenizer, sources: Lessons, recipe: DetectorRecipe) -> DetectorHead:
    """Train a head on the states of a frozen network, on the device where the network is."""
    pieces = sum(len(lesson.window.pieces) for lessons in sources for lesson in lessons)
    if not pieces:
        raise InputError("there is no text to train on; give texts whose split is train")
    device = next(network.parameters()).device
    count = network.config.num_hidden_layers
    layers = recipe.layers or tuple(sorted({-(-count // 3), -(-2 * count // 3), count}))
    torch.manual_seed(recipe.seed)
    head = DetectorHead(network.config.hidden_size, layers, recipe.size).to(device).train()
    steps = max(1, math.ceil(pieces * recipe.epochs / recipe.batch_pieces))
    optimiser = torch.optim.AdamW(head.parameters(), recipe.rate, (0.9, 0.99), weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, recipe.rate, steps, pct_start=min(0.1, 200 / steps))
    bits = torch.arange(TAGS, device=device)
    dice = np.random.default_rng(recipe.seed)
    begun, total = time.monotonic(), torch.zeros((), device=device)
    for step, lessons in zip(range(1, steps + 1), _batches(sources, recipe, dice), strict=False):
        words = pack_words(tokenizer, [lesson.window for lesson in lessons]).to(device)
        allowed = torch.from_numpy(np.concatenate([lesson.allowed for lesson in lessons])).to(device)
        with torch.no_grad():
            states = network.word_states(words.batch, head.layers)
        logits = head(states, words)
        possible = logits.masked_fill(allowed[:, None] >> bits & 1 == 0, float("-inf"))
        loss = (logits.logsumexp(-1) - possible.logsumexp(-1)).mean()
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(head.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        total += loss.detach()
        if step % 100 == 0 or step == steps:
            log.info(
                "step %d of %d, loss %.4f, %.0f s", step, steps, total / (step % 100 or 100), time.monotonic() - begun
            )
            total.zero_()
    return head.eval()


@dataclass(frozen=True, slots=True)
class Score:
    """Spans of a source, strictly: those marked, those found, those found with the span and with the kind too."""

    source: str
    marked: int = 0
    found: int = 0
    right: int = 0
    kind: int = 0

    def __str__(self) -> str:
        recall, precision = self.right / max(self.marked, 1), self.right / max(self.found, 1)
        kind = self.kind / max(self.right, 1)
        return f"{self.source:24} {self.marked:6} recall {recall:.3f} precision {precision:.3f} kind {kind:.3f}"


def score_detector(detector: LearnedDetector, texts: Iterable[MarkedText]) -> list[Score]:
    """Measure the spans of the held-out texts, source by source."""
    scores: dict[str, Score] = {}
    held_out = [one for one in texts if one.held_out]
    for one, names in zip(held_out, detector.names_of([one.text for one in held_out]), strict=True):
        golds = {(start, end): kind for start, end, kind in one.spans}
        found = {(name.start, name.end): name.kind for name in names}
        both = golds.keys() & found.keys()
        score = scores.get(one.source, Score(one.source))
        scores[one.source] = replace(
            score,
            marked=score.marked + len(golds),
            found=score.found + len(found),
            right=score.right + len(both),
            kind=score.kind + sum(golds[span] == found[span] for span in both),
        )
    return list(scores.values())
