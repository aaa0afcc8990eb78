"""What goes to a GPU: windows with their rivals, shorter names, texts, the encoder, the sets that a model is chosen by.

    python recipes/default/send.py BUILD ENCODER BENCHMARKS WILD OUT

BUILD is the folder of make.py. OUT/first is what `gpu.py prepare` reads, OUT/second what `gpu.py train` does, OUT/third
has more sets for `patterns.py`. Nothing that can be made there is sent.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from parts import Arrays, write_arrays
from safetensors.numpy import load_file

from deixis.artefacts import read_lines
from deixis.corpus.completion import own_names
from deixis.corpus.windows import SPLITS, WindowSet
from deixis.datasets import open_dataset, read_jsonl
from deixis.documents import Candidate, Document
from deixis.errors import DeixisError
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer
from deixis.network.special import MASK, SPECIAL
from deixis.wikipedia.redirects import read_redirects

SETTINGS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("recipe.toml").read_text())
SENT = 58 << 20  # bytes of a file
TEXT_PIECES = 64  # of "title: description" that are read
PREFIX = "query: "  # what e5 wants before a text
CANDIDATES: int = SETTINGS["windows"]["candidates"]
PUBLISHED = ("msnbc", "aquaint", "ace2004")  # no model is chosen by these: for the comparison of patterns
WORDS = 0.3  # what is written in lower case so often, beside as a name, is a word


def send(build: Path, encoder: Path, benchmarks: Path, wild: Path, out: Path) -> None:
    """Write what training needs."""
    tokenizer = Tokenizer.load(encoder)
    vocabulary = Vocabulary.load(build / "vocabulary.jsonl")
    store = Names.open(build / "known" / "everything")
    arrays = _encoder(encoder)
    arrays |= _texts(build / "known" / "texts.tsv.zst", vocabulary, tokenizer)
    arrays["counts"] = np.array(vocabulary.counts, np.int32)
    write_arrays(arrays, out / "first", SENT)
    lists = _Lists()
    chosen_by: dict[str, Sequence[Document]] = {"testa": open_dataset(benchmarks, "aida-a", "ppr").documents}
    for path in sorted(wild.glob("*.jsonl.xz")):
        chosen_by[path.name.split(".")[0]] = [_with_names(one, store) for one in read_jsonl(path).documents]
    arrays = _questions(chosen_by, build, vocabulary, tokenizer, lists)
    arrays["marked"] = np.frombuffer((build / "marked.jsonl.xz").read_bytes(), np.uint8)
    train, held_out = (WindowSet.open(build / "windows", split, vocabulary) for split in SPLITS)
    arrays |= _windows("held-out/", held_out, lists) | _windows("train/", train, lists)
    arrays |= _shortened(train, vocabulary, tokenizer, store, lists)
    arrays["lists"] = lists.array()
    write_arrays(arrays, out / "second", SENT)
    lists = _Lists()
    published = {name: open_dataset(benchmarks, name, "kb+yago").documents for name in PUBLISHED}
    arrays = _questions(published, build, vocabulary, tokenizer, lists)
    write_arrays({**arrays, "lists": lists.array()}, out / "third", SENT)


class _Lists:
    """Lists of candidates, each once."""

    def __init__(self) -> None:
        self.found: dict[tuple[int, ...], int] = {(): 0}

    def number(self, rows: tuple[int, ...]) -> int:
        return self.found.setdefault(rows, len(self.found))

    def array(self) -> NDArray[np.int32]:
        listed = np.zeros((len(self.found), max(map(len, self.found))), np.int32)
        for number, rows in enumerate(self.found):
            listed[number, : len(rows)] = rows
        return listed


def _encoder(folder: Path) -> Arrays:
    tensors = load_file(folder / "model.safetensors")
    shapes = {name: tensor.shape for name, tensor in sorted(tensors.items())}
    told = {"tensors": shapes, "config": json.loads((folder / "config.json").read_text())}
    flat = np.concatenate([tensors[name].ravel() for name in shapes]).astype(np.float16)
    tokenizer = (folder / "tokenizer.json").read_bytes()
    return {
        "encoder": flat,
        "encoder.json": np.frombuffer(json.dumps(told).encode(), np.uint8),
        "tokenizer.json": np.frombuffer(tokenizer, np.uint8),
    }


def _texts(path: Path, vocabulary: Vocabulary, tokenizer: Tokenizer) -> Arrays:
    texts: list[str] = [f"{PREFIX}{title}" for title in vocabulary]
    for _, line in read_lines(path):
        title, _, text = line.decode().rstrip("\n").partition("\t")
        row = vocabulary.row(title)
        if row is not None and text:
            texts[row] = f"{PREFIX}{title}: {text}"
    pieces, lengths = [], [0] * len(SPECIAL)
    for first in range(len(SPECIAL), len(texts), 4096):
        for encoding in tokenizer.encode_many([(text[:600], ()) for text in texts[first : first + 4096]]):
            pieces.append(encoding.pieces[:TEXT_PIECES].astype(np.uint16))
            lengths.append(len(pieces[-1]))
    return {"texts/pieces": np.concatenate(pieces), "texts/lengths": np.array(lengths, np.uint8)}


def _windows(prefix: str, windows: WindowSet, lists: _Lists) -> Arrays:
    """Return windows whose mentions say which of their candidates they are, 255 if none."""
    candidates, rows = np.asarray(windows.candidates), np.asarray(windows.rows)
    distinct, which = np.unique(candidates, axis=0, return_inverse=True)
    numbers = np.array([lists.number(tuple(row for row in one if row)) for one in distinct.tolist()], np.int32)
    right = candidates == rows[:, None]
    place = np.where(right.any(1) & (rows > MASK), right.argmax(1), 255)
    return {
        prefix + "pieces": np.asarray(windows.pieces, np.uint16),
        prefix + "lengths": np.diff(windows.window_offsets).astype(np.uint16),
        prefix + "mentions": np.diff(windows.mention_offsets).astype(np.uint8),
        prefix + "starts": np.asarray(windows.spans[:, 0], np.uint16),
        prefix + "sizes": np.minimum(np.diff(windows.spans, axis=1)[:, 0], 255).astype(np.uint8),
        prefix + "places": place.astype(np.uint8),
        prefix + "lists": numbers[which.ravel()],
    }


def _questions(
    sets: Mapping[str, Sequence[Document]],
    build: Path,
    vocabulary: Vocabulary,
    tokenizer: Tokenizer,
    lists: _Lists,
) -> Arrays:
    """Return annotated documents as windows, their golds and candidates under the titles of today."""
    table = read_redirects(build / "known" / "redirects.tsv")
    arrays: Arrays = {}
    for name, some in sets.items():
        resolved = [_resolved(document, table) for document in some]
        arrays |= _windows(f"{name}/", WindowSet.of_documents(resolved, tokenizer, vocabulary), lists)
    return arrays


def _resolved(document: Document, table: Mapping[str, str]) -> Document:
    mentions = []
    for mention in document.mentions:
        best: dict[str, Candidate] = {}
        for one in mention.candidates or ():
            title = table.get(one.entity, one.entity)
            best.setdefault(title, one._replace(entity=title))
        gold = None if mention.entity is None else table.get(mention.entity, mention.entity)
        mentions.append(replace(mention, entity=gold, candidates=tuple(best.values())))
    return replace(document, mentions=tuple(mentions))


def _with_names(document: Document, store: Names) -> Document:
    listed = zip(document.mentions, store.candidates(document), strict=True)
    return replace(document, mentions=tuple(replace(mention, candidates=found) for mention, found in listed))


def _shortened(windows: WindowSet, vocabulary: Vocabulary, tokenizer: Tokenizer, store: Names, lists: _Lists) -> Arrays:
    """Return which pieces of a mention are kept where its name is shortened, 0 to 0 where it is not, and its rivals.

    Encyclopaedias write "Chicago White Sox" and "George W. Bush"; news write "Chicago" and "Bush". A name is the title
    without its bracket; of its beginnings and ends, those are kept that the store knows as names of the entity.
    """
    rows, starts = np.asarray(windows.rows), np.asarray(windows.spans[:, 0], np.int64)
    sizes = np.diff(np.asarray(windows.spans, np.int64), axis=1)[:, 0]
    owner = np.repeat(np.arange(len(windows)), np.diff(windows.mention_offsets))
    at = np.asarray(windows.window_offsets)[owner] + starts
    seen = np.unique(rows[rows > MASK])
    forms = _forms([vocabulary.title(int(row)) for row in seen], vocabulary, tokenizer, store, lists)
    kept, into = np.zeros((len(rows), 2), np.uint8), np.zeros(len(rows), np.int32)
    dice = np.random.default_rng(0)
    by_row = dict(zip(seen.tolist(), forms, strict=True))
    order = np.argsort(rows, kind="stable")
    borders = np.searchsorted(rows[order], seen), np.searchsorted(rows[order], seen, "right")
    for row, first, last in zip(seen.tolist(), *(border.tolist() for border in borders), strict=True):
        whole, parts = by_row[row]
        if not parts:
            continue
        mentions = order[first:last]
        mentions = mentions[sizes[mentions] == len(whole)]
        if not len(mentions):
            continue
        same = (windows.pieces[at[mentions][:, None] + np.arange(len(whole))] == whole).all(1)
        mentions = mentions[same & (dice.random(len(mentions)) < 0.6)]
        chosen = dice.integers(len(parts), size=len(mentions))
        for number, (begin, end, listed) in enumerate(parts):
            some = mentions[chosen == number]
            kept[some] = begin, end
            into[some] = listed
    return {"short/kept": kept, "short/lists": into}


def _forms(titles: list[str], vocabulary: Vocabulary, tokenizer: Tokenizer, store: Names, lists: _Lists) -> list[Any]:
    """Return of each title the pieces of its name, and its shorter forms: from which piece to which, rivals."""
    names = [own_names(title)[-1] for title in titles]
    found: list[Any] = []
    for first in range(0, len(names), 4096):
        chunk = names[first : first + 4096]
        cuts = [short_spans(name) for name in chunk]
        encoded = tokenizer.encode_many([(name, spans) for name, spans in zip(chunk, cuts, strict=True)])
        for title, name, spans, one in zip(titles[first:], chunk, cuts, encoded, strict=False):
            parts, own = [], vocabulary.row(title)
            assert own is not None, "it is a title of the vocabulary"
            for (start, end), (begin, stop) in zip(spans, one.spans.tolist(), strict=True):
                short = name[start:end]
                if _is_word(store, short) or _is_word(store, short.split()[-1]):
                    continue
                listed = [candidate.entity for candidate in store.lookup(short, 2 * CANDIDATES)]
                if title not in listed and title not in {other for other, _ in store.parts(short.lower())}:
                    continue
                rivals = [row for one_ in listed if (row := vocabulary.row(one_)) is not None][:CANDIDATES]
                if own not in rivals:
                    rivals = [*rivals[: CANDIDATES - 1], own]
                parts.append((begin, stop, lists.number(tuple(rivals))))
            found.append((one.pieces, parts))
    return found


def _is_word(store: Names, name: str) -> bool:
    number = store.number(name.lower())
    counted = None if number is None else store.occurrences(number)
    return counted is not None and counted[2] > WORDS * counted[0]


def short_spans(name: str) -> list[tuple[int, int]]:
    """Return the beginnings and ends of a proper name, [start, end) in characters."""
    words, spans, at = name.split(" "), [], 0
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    if not 2 <= len(words) <= 5 or not all(word[:1].isupper() for word in words):
        return []
    found = [(spans[0][0], spans[cut][1]) for cut in range(len(words) - 1)]
    return found + [(spans[cut][0], spans[-1][1]) for cut in range(1, len(words)) if not words[-1].isupper()]


def main() -> int:
    """Write the parts."""
    if len(sys.argv) != 6:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        send(*map(Path, sys.argv[1:]))
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
