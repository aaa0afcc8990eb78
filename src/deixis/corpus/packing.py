"""Packing: the sentences of a page tokenised and put together into windows, with their links (protocol 11)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deixis.corpus.completion import complete
from deixis.corpus.settings import PackingConfig
from deixis.corpus.windows import SPLITS, Split
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Encoding, Tokenizer
from deixis.network.special import MASK, PAD, UNK
from deixis.wikipedia.articles import Article, Link
from deixis.wikipedia.sentences import sentences

__all__ = ["Arrays", "Packer", "split_of"]

Arrays = dict[str, NDArray[Any]]  # as in windows.py


def split_of(title: str, config: PackingConfig) -> Split:
    """Return the split of an article, by a hash of its title and the seed: every copy of a page goes one way."""
    mark = hashlib.blake2b(f"{config.seed}:{title}".encode(), digest_size=8).digest()
    return "held-out" if int.from_bytes(mark) < config.held_out * 2**64 else "train"


class _Sentence(NamedTuple):
    encoding: Encoding
    rows: list[int]
    surfaces: list[str]


class Packer:
    """Packs articles into windows; counts what it drops, by reason."""

    def __init__(
        self,
        config: PackingConfig,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        redirects: Mapping[str, str],
        store: Names | None = None,
    ) -> None:
        self.config, self.vocabulary, self.tokenizer = config, vocabulary, tokenizer
        self.redirects, self.store = redirects, store
        self.counts: Counter[str] = Counter()
        self._rivals: dict[str, list[int]] = {}

    def pack(self, articles: Iterable[Article]) -> dict[Split, Arrays]:
        """Return the windows of the articles as one set of arrays a split."""
        windows: dict[Split, list[list[_Sentence]]] = {split: [] for split in SPLITS}
        for article in articles:
            self.counts["articles"] += 1
            split = split_of(article.title, self.config)
            for window in self._windows(self._sentences(self._completed(article))):
                self.counts[f"windows, {split}"] += 1
                windows[split].append(window)
        return {split: self._arrays(found) for split, found in windows.items()}

    def _completed(self, article: Article) -> Article:
        """Return the article with the links that the configuration asks for, without overlaps."""
        completed = complete(article, own_name=self.config.own_name, repeats=self.config.repeats)
        links = _without_overlaps(completed.links)
        self.counts["links"] += len(links)
        self.counts["links dropped: overlapping"] += len(completed.links) - len(links)
        return replace(completed, links=tuple(links))

    def _sentences(self, article: Article) -> list[_Sentence]:
        texts, inside = [], []
        queue = list(reversed(article.links))
        for start, end in sentences(article.text, [(link.start, link.end) for link in article.links]):
            here = []
            while queue and queue[-1].start < end:
                link = queue.pop()
                if link.start >= start and link.end <= end:
                    here.append(link)
                else:
                    self.counts["links dropped: not wholly inside a sentence"] += 1
            texts.append((article.text[start:end], [(link.start - start, link.end - start) for link in here]))
            inside.append(here)
        self.counts["links dropped: not wholly inside a sentence"] += len(queue)
        encodings = self.tokenizer.encode_many(texts)
        return [
            _Sentence(encoding, [self._row(link.target) for link in here], [article.surface(link) for link in here])
            for encoding, here in zip(encodings, inside, strict=True)
        ]

    def _row(self, target: str) -> int:
        row = self.vocabulary.row(self.redirects.get(target, target))
        return UNK if row is None else row

    def _windows(self, found: list[_Sentence]) -> Iterator[list[_Sentence]]:
        """Pack consecutive sentences greedily; a window without a link in the vocabulary teaches nothing."""
        window: list[_Sentence] = []
        pieces = mentions = 0
        for sentence in (part for whole in found for part in self._usable(whole)):
            length, links = len(sentence.encoding.pieces), len(sentence.rows)
            if window and (pieces + length > self.config.max_pieces or mentions + links > self.config.max_mentions):
                if self._teaches(window):
                    yield window
                window, pieces, mentions = [], 0, 0
            window.append(sentence)
            pieces, mentions = pieces + length, mentions + links
        if window and self._teaches(window):
            yield window

    def _usable(self, sentence: _Sentence) -> Iterator[_Sentence]:
        length = len(sentence.encoding.pieces)
        reason = None
        if length < self.config.min_sentence:
            reason = f"sentences dropped: under {self.config.min_sentence} pieces"
        elif length > self.config.max_pieces:
            reason = f"sentences dropped: over {self.config.max_pieces} pieces"
        if reason is not None:
            self.counts[reason] += 1
            self.counts["links dropped: with their sentence"] += len(sentence.rows)
            return
        kept = self.config.max_mentions
        self.counts[f"links dropped: over {kept} in a sentence"] += max(0, len(sentence.rows) - kept)
        if len(sentence.rows) <= kept:
            yield sentence
        else:
            encoding = replace(sentence.encoding, spans=sentence.encoding.spans[:kept])
            yield _Sentence(encoding, sentence.rows[:kept], sentence.surfaces[:kept])

    def _teaches(self, window: list[_Sentence]) -> bool:
        links = [row for sentence in window for row in sentence.rows]
        if not links:
            self.counts["windows dropped: no links"] += 1
        elif all(row == UNK for row in links):
            self.counts["windows dropped: no link in the vocabulary"] += 1
            self.counts["links dropped: with their window"] += len(links)
        else:
            self.counts["links kept"] += len(links)
            self.counts["links kept as [UNK]"] += links.count(UNK)
            return True
        return False

    def _arrays(self, windows: list[list[_Sentence]]) -> Arrays:
        pieces: list[NDArray[Any]] = []
        spans: list[NDArray[Any]] = []
        rows: list[int] = []
        surfaces: list[str] = []
        lengths, mentions = [], []
        for window in windows:
            length = 0
            for sentence in window:
                pieces.append(sentence.encoding.pieces)
                spans.append(sentence.encoding.spans + length)
                length += len(sentence.encoding.pieces)
                rows.extend(sentence.rows)
                surfaces.extend(sentence.surfaces)
            lengths.append(length)
            mentions.append(sum(len(sentence.rows) for sentence in window))
        piece_type = np.uint16 if len(self.tokenizer) <= 1 << 16 else np.uint32
        arrays: Arrays = {
            "pieces": np.concatenate([np.empty(0, np.int32), *pieces]).astype(piece_type),
            "window_offsets": np.cumsum([0, *lengths], dtype=np.int64),
            "mention_offsets": np.cumsum([0, *mentions], dtype=np.int64),
            "spans": np.concatenate([np.empty((0, 2), np.int64), *spans]).astype(np.uint16),
            "rows": np.array(rows, np.int32),
        }
        if self.config.candidates:
            listed = [self._candidates(surface, row) for surface, row in zip(surfaces, rows, strict=True)]
            arrays["candidates"] = np.array(listed, np.int32).reshape(-1, self.config.candidates)
        return arrays

    def _candidates(self, surface: str, row: int) -> list[int]:
        """Return the rows the surface may mean, best first; the entity itself is always among them."""
        size, rivals = self.config.candidates, self._listed(surface)
        if row > MASK and row not in rivals:
            rivals = [*rivals[: size - 1], row]
        return rivals + [PAD] * (size - len(rivals))

    def _listed(self, surface: str) -> list[int]:
        """Return the rows that the store has for a surface, best first."""
        found = self._rivals.get(surface)
        if found is None:
            assert self.store is not None
            size = self.config.candidates
            rows = (self.vocabulary.row(one.entity) for one in self.store.lookup(surface, 2 * size))
            found = self._rivals[surface] = [row for row in rows if row is not None][:size]
        return found


def _without_overlaps(links: Sequence[Link]) -> list[Link]:
    kept: list[Link] = []
    for link in sorted(links):
        if not kept or link.start >= kept[-1].end:
            kept.append(link)
    return kept
