"""Window files: parts made on many cores, kept while the folder grows, and joined into one array a column."""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside, read_lines, write_aside
from deixis.corpus.completion import describe
from deixis.corpus.counting import digests
from deixis.corpus.packing import Packer
from deixis.corpus.settings import PackingConfig
from deixis.errors import DeixisError, InputError
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer
from deixis.wikipedia.articles import Article
from deixis.wikipedia.parallel import in_order

__all__ = ["build_windows"]

log = logging.getLogger(__name__)

PART_BYTES = 8_000_000  # of lines a part: what a kill can cost, and what one worker takes at a time
OFFSETS = ("window_offsets", "mention_offsets")


@dataclass(frozen=True, slots=True)
class _Sources:
    """Where a worker finds what it needs."""

    config: PackingConfig
    vocabulary: Path
    tokenizer: Path
    redirects: Mapping[str, str]
    store: Path | None

    def packer(self) -> Packer:
        store = None if self.store is None else Names.open(self.store)
        vocabulary, tokenizer = Vocabulary.load(self.vocabulary), Tokenizer.load(self.tokenizer)
        return Packer(self.config, vocabulary, tokenizer, self.redirects, store)


class _Part(NamedTuple):
    """A run of input lines, and where its windows go."""

    path: Path
    described: bool
    lines: list[tuple[str, bytes]]  # (file and number, for messages; the line)


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
    report: Callable[[str], None] = log.warning,
    progress: Callable[[Iterable[list[str]]], Iterable[list[str]]] = iter,
) -> Manifest:
    """Write the windows of the articles, and of descriptions whose subject is annotated, to a folder.

    Parts are kept beside the folder while it grows, so that a run that was killed goes on where it was; the result
    depends neither on that nor on the number of workers. A line that cannot be read is told to `report`.
    """
    config = config or PackingConfig()
    if config.candidates and store is None:
        raise InputError("candidate rows were asked for without a store; give one, or leave them out")
    sources = _Sources(config, vocabulary, tokenizer, redirects or {}, store)
    manifest = _planned(sources, articles, descriptions)
    if (folder / MANIFEST).exists() and _finished(folder, manifest):
        return Manifest.load(folder / MANIFEST, "windows")
    parts = folder.with_name(folder.name + ".parts") / f"{manifest.digest[:16]}-{PART_BYTES}"
    _forget_others(parts)
    work = (part for part in _parts(articles, descriptions, parts) if not part.path.exists())
    for complaints in progress(in_order(_make, work, workers, _start, sources)):
        for complaint in complaints:
            report(complaint)
    finished = _join(sorted(parts.glob("*.npz")), folder, manifest)
    shutil.rmtree(parts.parent)
    return finished


def _planned(sources: _Sources, articles: Sequence[Path], descriptions: Sequence[Path]) -> Manifest:
    """Return the manifest without files: its digest says which parts on disk belong to this run."""
    Tokenizer.load(sources.tokenizer)  # says what is wrong with the folder, if anything is
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
    return Manifest("windows", sources.config.model_dump(), parents)


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
            for batch in _batches(lines):
                yield _Part(folder / f"{next(number):06}.npz", described, batch)


def _batches(lines: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    """Yield lines in parts of about the same work, short news or long articles."""
    batch, size = [], 0
    for place, line in lines:
        batch.append((place, line))
        size += len(line)
        if size >= PART_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


_packer: Packer | None = None  # one a process


def _start(sources: _Sources) -> None:
    global _packer
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the processes are the parallelism
    _packer = sources.packer()


def _make(part: _Part) -> list[str]:
    """Write the windows of a part and return what was wrong with its lines."""
    assert _packer is not None
    _packer.counts = Counter()
    complaints: list[str] = []
    packed = _packer.pack(_read(part, _packer, complaints))
    arrays = {f"{split}/{name}": array for split, found in packed.items() for name, array in found.items()}
    counts = np.frombuffer(orjson.dumps(dict(+_packer.counts)), np.uint8)
    with write_aside(part.path) as file:
        np.savez(file, counts=counts, **arrays)  # type: ignore[arg-type]
    return complaints


def _read(part: _Part, packer: Packer, complaints: list[str]) -> Iterator[Article]:
    for place, line in part.lines:
        try:
            article = describe(line) if part.described else Article.from_json(line)
        except InputError as error:
            packer.counts["lines dropped: not readable"] += 1
            complaints.append(f"{place}: {error}")
            continue
        if article is None:
            packer.counts["descriptions dropped: the subject is not named"] += 1
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
