"""Articles to training windows: sentences tokenised and packed within a page, on many cores (protocol 11)."""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside, read_lines, write_aside
from deixis.candidates import CandidateStore
from deixis.encoding import MAX_MENTIONS, MAX_PIECES, Encoding, Tokenizer
from deixis.errors import DeixisError, InputError
from deixis.vocabulary import PAD, UNK, Vocabulary
from deixis.wikipedia.articles import Article, Link
from deixis.wikipedia.completion import complete, describe
from deixis.wikipedia.counting import digests
from deixis.wikipedia.sentences import sentences
from deixis.wikipedia.windows import SPLITS, Split

__all__ = ["Packer", "PackingConfig", "build_windows", "split_of"]

PART_LINES = 1_000  # articles a part: what a kill can cost, and what one worker takes at a time
OFFSETS = ("window_offsets", "mention_offsets")
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class PackingConfig:
    """What decides the windows, beside the articles, the vocabulary and the tokenizer."""

    max_pieces: int = MAX_PIECES
    min_sentence: int = 5  # pieces; shorter sentences are headings and crumbs
    max_mentions: int = MAX_MENTIONS
    candidates: int = 0  # rows kept a mention, for a loss over candidates; 0: none
    held_out: float = 0.01  # the fraction of articles kept out of training
    seed: int = 0
    own_name: bool = False  # completion: the article's own name in its own text
    repeats: bool = False  # completion: repeats of a surface the article links once

    def __post_init__(self) -> None:
        if not 1 <= self.max_pieces <= MAX_PIECES:
            raise InputError(f"max_pieces is {self.max_pieces}; expected 1 to {MAX_PIECES}")
        if not 0 <= self.held_out < 1:
            raise InputError(f"held_out is {self.held_out}; expected a fraction from 0 to below 1")


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
        store: CandidateStore | None = None,
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
            for window in self._windows(self._sentences(article)):
                self.counts[f"windows, {split}"] += 1
                windows[split].append(window)
        return {split: self._arrays(found) for split, found in windows.items()}

    def _sentences(self, article: Article) -> list[_Sentence]:
        article = complete(article, own_name=self.config.own_name, repeats=self.config.repeats)
        links = _without_overlaps(article.links)
        self.counts["links"] += len(links)
        self.counts["links dropped: overlapping"] += len(article.links) - len(links)
        texts, inside = [], []
        queue = list(reversed(links))
        for start, end in sentences(article.text, [(link.start, link.end) for link in links]):
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
        arrays: Arrays = {
            "pieces": np.concatenate([np.empty(0, np.int32), *pieces]).astype(_piece_type(self.tokenizer)),
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
        size = self.config.candidates
        rivals = self._rivals.get(surface)
        if rivals is None:
            assert self.store is not None
            found = (self.vocabulary.row(candidate.entity) for candidate in self.store.lookup(surface, 2 * size))
            rivals = self._rivals[surface] = [other for other in found if other is not None][:size]
        if row != UNK and row not in rivals:
            rivals = [*rivals[: size - 1], row]
        return rivals + [PAD] * (size - len(rivals))


def _without_overlaps(links: Sequence[Link]) -> list[Link]:
    kept: list[Link] = []
    for link in sorted(links):
        if not kept or link.start >= kept[-1].end:
            kept.append(link)
    return kept


def _piece_type(tokenizer: Tokenizer) -> type[np.uint16] | type[np.uint32]:
    return np.uint16 if len(tokenizer) <= 1 << 16 else np.uint32


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where a worker finds what it needs."""

    config: PackingConfig
    vocabulary: Path
    tokenizer: Path
    redirects: Mapping[str, str]
    store: Path | None

    def packer(self) -> Packer:
        store = None if self.store is None else CandidateStore.open(self.store)
        return Packer(
            self.config, Vocabulary.load(self.vocabulary), Tokenizer.load(self.tokenizer), self.redirects, store
        )


class _Part(NamedTuple):
    """A run of input lines, and where its windows go."""

    path: Path
    described: bool
    lines: list[tuple[str, bytes]]  # (file and line, for messages; the line)


def build_windows(
    articles: Sequence[Path],
    vocabulary: Path,
    tokenizer: Path,
    folder: Path,
    config: PackingConfig | None = None,
    *,
    descriptions: Sequence[Path] = (),
    redirects: Mapping[str, str] | None = None,
    store: Path | None = None,
    workers: int = 1,
    progress: Callable[[Iterable[Any]], Iterable[Any]] = iter,
) -> Manifest:
    """Write the windows of the articles, and of descriptions whose subject is annotated, to a folder.

    Parts are kept beside the folder while it grows, so that a run that was killed goes on where it was; the result
    depends neither on that nor on the number of workers.
    """
    config = config or PackingConfig()
    if config.candidates and store is None:
        raise InputError("candidate rows were asked for without a store; give one, or leave them out")
    sources = _Sources(config, vocabulary, tokenizer, redirects or {}, store)
    manifest = _planned(sources, articles, descriptions)
    if (folder / MANIFEST).exists() and _finished(folder, manifest):
        return Manifest.load(folder / MANIFEST, "windows")
    parts = folder.with_name(folder.name + ".parts") / manifest.digest[:16]
    _forget_others(parts)
    work = (part for part in _parts(articles, descriptions, parts) if not part.path.exists())
    with _pool(sources, workers) as run:
        for _ in progress(run(work)):
            pass
    finished = _join(sorted(parts.glob("*.npz")), folder, manifest)
    shutil.rmtree(parts.parent)
    return finished


def _planned(sources: _Sources, articles: Sequence[Path], descriptions: Sequence[Path]) -> Manifest:
    """Return the manifest without files: its digest says which parts on disk belong to this run."""
    tokenizer = sources.tokenizer / "tokenizer.json"
    parents = {
        "vocabulary": Vocabulary.load(sources.vocabulary).digest,
        "tokenizer": digest_file(tokenizer if tokenizer.exists() else sources.tokenizer / "vocab.txt"),
    }
    if sources.store is not None and sources.config.candidates:
        parents["candidates"] = Manifest.load(sources.store / MANIFEST, "candidates").digest
    if sources.redirects:
        told = orjson.dumps(dict(sources.redirects), option=orjson.OPT_SORT_KEYS)
        parents["redirects"] = hashlib.sha256(told).hexdigest()
    parents |= digests(articles=articles, descriptions=descriptions)
    return Manifest("windows", asdict(sources.config), parents)


def _finished(folder: Path, planned: Manifest) -> bool:
    try:
        found = Manifest.load(folder / MANIFEST, "windows")
        found.verify(folder)
    except DeixisError:
        return False
    return replace(found, files={}, counts={}) == planned


def _forget_others(parts: Path) -> None:
    if parts.parent.exists():
        for other in parts.parent.iterdir():
            if other != parts:
                shutil.rmtree(other)
    try:
        parts.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write {parts}: {error.strerror or error}") from error


def _parts(articles: Sequence[Path], descriptions: Sequence[Path], folder: Path) -> Iterator[_Part]:
    number = itertools.count()
    for described, paths in ((False, articles), (True, descriptions)):
        for path in paths:
            lines = ((f"{path}:{at}", line) for at, line in read_lines(path))
            for batch in _batches(lines, PART_LINES * (20 if described else 1)):
                yield _Part(folder / f"{next(number):06}.npz", described, batch)


def _batches(items: Iterator[tuple[str, bytes]], size: int) -> Iterator[list[tuple[str, bytes]]]:
    while batch := list(itertools.islice(items, size)):
        yield batch


@contextmanager
def _pool(sources: _Sources, workers: int) -> Iterator[Callable[[Iterable[_Part]], Iterator[None]]]:
    if workers <= 1:
        _start(sources)
        yield lambda parts: map(_make, parts)
        return
    # spawn: forking a process that has threads (the tokenizer's, a progress bar's) can hang.
    with multiprocessing.get_context("spawn").Pool(workers, _start, (sources,)) as pool:
        yield lambda parts: _bounded(pool, parts, workers)


def _bounded(pool: Any, parts: Iterable[_Part], workers: int) -> Iterator[None]:
    """Keep a few parts waiting and no more: reading is faster than tokenising, and memory is not for queues."""
    waiting: list[Any] = []
    for part in parts:
        waiting.append(pool.apply_async(_make, (part,)))
        if len(waiting) > 2 * workers:
            yield waiting.pop(0).get()
    for result in waiting:
        yield result.get()


_packer: Packer | None = None  # one a process


def _start(sources: _Sources) -> None:
    global _packer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _packer = sources.packer()


def _make(part: _Part) -> None:
    assert _packer is not None
    _packer.counts = Counter()
    packed = _packer.pack(_read(part, _packer.counts))
    arrays = {f"{split}/{name}": array for split, found in packed.items() for name, array in found.items()}
    counts = np.frombuffer(orjson.dumps(dict(+_packer.counts)), np.uint8)
    with write_aside(part.path) as file:
        np.savez(file, counts=counts, **arrays)  # type: ignore[arg-type]


def _read(part: _Part, counts: Counter[str]) -> Iterator[Article]:
    for _, line in part.lines:
        try:
            article = describe(line) if part.described else Article.from_json(line)
        except InputError:
            counts["lines dropped: not readable"] += 1
            continue
        if article is None:
            counts["descriptions dropped: the subject is not named"] += 1
        elif article.redirect is None and not article.disambiguation:
            yield article


def _join(parts: Sequence[Path], folder: Path, planned: Manifest) -> Manifest:
    """Write the parts one behind the other, array by array, so that memory holds one part's array at a time."""
    counts: Counter[str] = Counter()
    names: list[str] = []
    for path in parts:
        with np.load(path) as part:
            counts.update(orjson.loads(part["counts"].tobytes()))
            names = names or [name for name in part.files if name != "counts"]
    if not names:
        raise InputError("there are no articles in what was given; expected article JSONL")
    with folder_aside(folder) as aside:
        for name in names:
            _join_array(parts, name, aside / f"{name}.npy")
        files = {f"{name}.npy": digest_file(aside / f"{name}.npy") for name in sorted(names)}
        manifest = replace(planned, files=files, counts=dict(sorted(counts.items())))
        manifest.save(aside / MANIFEST)
    return manifest


def _join_array(parts: Sequence[Path], name: str, path: Path) -> None:
    cumulative = name.rpartition("/")[2] in OFFSETS
    length, template = 0, np.empty(0)
    for part in parts:
        with np.load(part) as arrays:
            template = arrays[name]
            length += len(template) - cumulative
    header = {
        "descr": np.lib.format.dtype_to_descr(template.dtype),
        "fortran_order": False,
        "shape": (length + cumulative, *template.shape[1:]),
    }
    with write_aside(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        if cumulative:
            file.write(np.zeros(1, template.dtype).tobytes())
        before = 0
        for part in parts:
            with np.load(part) as arrays:
                array = arrays[name]
            if cumulative:
                array, before = array[1:] + before, before + int(array[-1])
            file.write(array.tobytes())
