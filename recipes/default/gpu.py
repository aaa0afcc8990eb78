"""What goes to a GPU, what happens there, and what comes back.

    python recipes/default/gpu.py send BUILD ENCODER BENCHMARKS WILD parts  # here: files of at most 58 MiB
    python recipes/default/gpu.py prepare parts/first WORK  # there, with src on PYTHONPATH; torch and tokenizers do
    python recipes/default/gpu.py train parts/second WORK   # there: the network and the rows, in WORK/back
    python recipes/default/gpu.py names WORK                # there, beside it: the detector, in WORK/names
    python recipes/default/gpu.py patterns parts/second WORK  # there: the three attention patterns, trained alike

BUILD is the folder of make.py. The GPU may be a machine that is lent for half an hour and takes little at a time:
arrays travel compressed, in parts, and nothing that can be made there is sent.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tomllib
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
SETTINGS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("recipe.toml").read_text())

CHUNK = 14 << 20  # bytes of an array that are compressed together


def _filters(size: int) -> list[dict[str, int]]:
    """Return how xz is told that numbers have so many bytes."""
    bits = {1: 0, 2: 1, 4: 2}.get(size, 0)
    return [{"id": lzma.FILTER_LZMA2, "preset": 4, "lc": 3 - bits, "lp": bits, "pb": bits}]


def _packed(part: bytes, size: int) -> bytes:
    return lzma.compress(part, format=lzma.FORMAT_XZ, filters=_filters(size))


def write_arrays(arrays: Mapping[str, NDArray[Any]], out: Path, largest: int, cores: int = 2) -> None:
    """Write arrays into numbered files of at most `largest` bytes."""
    tasks = []
    for name, array in arrays.items():
        planes = array.dtype.kind == "f" or array.dtype.itemsize == 4  # bytes of the same weight lie together
        flat = np.ascontiguousarray(array)
        step = CHUNK // array.dtype.itemsize
        flat = flat.reshape(-1)
        for number, first in enumerate(range(0, max(1, len(flat)), step)):
            part = flat[first : first + step]
            raw = part.view(np.uint8).reshape(len(part), -1).T.tobytes() if planes else part.tobytes()
            told = {"name": name, "number": number, "dtype": array.dtype.str, "shape": array.shape, "planes": planes}
            tasks.append((told, raw, 1 if planes else array.dtype.itemsize))
    out.mkdir(parents=True, exist_ok=True)
    number, room = 0, 0
    with ProcessPoolExecutor(cores) as pool:
        done = pool.map(_packed, [task[1] for task in tasks], [task[2] for task in tasks])
        for (told, _, _), content in zip(tasks, done, strict=True):
            header = json.dumps({**told, "size": len(content)}).encode()
            record = len(header).to_bytes(4, "big") + header + content
            if len(record) > room:
                number, room = number + 1, largest
            room -= len(record)
            with (out / f"{number:02}.part").open("ab") as file:
                file.write(record)


def read_arrays(*folders: Path) -> Arrays:
    """Read what `write_arrays` wrote, from all its files together."""
    records = []
    for path in sorted((path for folder in folders for path in folder.rglob("*.part")), key=lambda path: path.name):
        raw, at = path.read_bytes(), 0
        while at < len(raw):
            size = int.from_bytes(raw[at : at + 4], "big")
            told = json.loads(raw[at + 4 : at + 4 + size])
            at += 4 + size + told["size"]
            records.append((told, raw[at - told["size"] : at]))

    def read(record: tuple[dict[str, Any], bytes]) -> NDArray[Any]:
        told, content = record
        kind, raw = np.dtype(told["dtype"]), lzma.decompress(content)
        if told["planes"]:
            raw = np.frombuffer(raw, np.uint8).reshape(kind.itemsize, -1).T.tobytes()
        return np.frombuffer(raw, kind)

    found: dict[str, list[NDArray[Any]]] = {}
    with ThreadPoolExecutor(16) as pool:
        for (told, _), part in zip(records, pool.map(read, records), strict=True):
            found.setdefault(told["name"], []).append(part)
    shapes = {told["name"]: told["shape"] for told, _ in records}
    return {name: np.concatenate(parts).reshape(shapes[name]) for name, parts in found.items()}


# --- here: what is sent -------------------------------------------------------------------------------------------

SENT = 58 << 20  # bytes of a file
TEXT_PIECES = 64  # of "title: description" that are read
PREFIX = "query: "  # what e5 wants before a text
CANDIDATES = 12
PUBLISHED = {"msnbc": ("msnbc", "kb+yago"), "aquaint": ("aquaint", "kb+yago"), "ace2004": ("ace2004", "kb+yago")}
WORDS = 0.3  # what is written in lower case so often, beside as a name, is a word


def send(build: Path, encoder: Path, benchmarks: Path, wild: Path, out: Path) -> None:
    """Write what training needs."""
    from deixis.knowledge.names import Names
    from deixis.knowledge.vocabulary import Vocabulary
    from deixis.network.encoding import Tokenizer

    tokenizer = Tokenizer.load(encoder)
    vocabulary = Vocabulary.load(build / "vocabulary.jsonl")
    store = Names.open(build / "known" / "everything")
    arrays = _encoder(encoder)
    arrays |= _texts(build / "known" / "texts.tsv.zst", vocabulary, tokenizer)
    arrays["counts"] = np.array(vocabulary.counts, np.int32)
    write_arrays(arrays, out / "first", SENT)
    lists = _Lists()
    arrays = {"marked": np.frombuffer((build / "marked.jsonl.xz").read_bytes(), np.uint8)}
    for name, windows in _questions(build, benchmarks, wild, vocabulary, tokenizer, store):
        arrays |= _windows(f"{name}/", windows, lists)
    for split in ("held-out", "train"):
        windows = _opened(build / "windows", split)
        arrays |= _windows(f"{split}/", windows, lists)
        if split == "train":
            arrays |= _shortened(windows, vocabulary, tokenizer, store, lists)
    arrays["lists"] = lists.array()
    write_arrays(arrays, out / "second", SENT)
    send_published(build, encoder, benchmarks, out)


def send_published(build: Path, encoder: Path, benchmarks: Path, out: Path) -> None:
    """Write the sets that no model is chosen by, for the comparison of patterns."""
    from deixis.knowledge.vocabulary import Vocabulary
    from deixis.network.encoding import Tokenizer

    tokenizer, vocabulary = Tokenizer.load(encoder), Vocabulary.load(build / "vocabulary.jsonl")
    lists = _Lists()
    arrays: Arrays = {}
    for name, windows in _questions(build, benchmarks, None, vocabulary, tokenizer, None):
        arrays |= _windows(f"{name}/", windows, lists)
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


def _opened(folder: Path, split: Any) -> Any:
    from deixis.corpus.windows import WindowSet

    return WindowSet.open(folder, split)


def _encoder(folder: Path) -> Arrays:
    from safetensors.numpy import load_file

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


def _texts(path: Path, vocabulary: Any, tokenizer: Any) -> Arrays:
    from deixis.artefacts import read_lines
    from deixis.network.special import SPECIAL

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


def _windows(prefix: str, windows: Any, lists: _Lists) -> Arrays:
    """Return windows whose mentions say which of their candidates they are, 255 if none."""
    candidates, rows = np.asarray(windows.candidates), np.asarray(windows.rows)
    distinct, which = np.unique(candidates, axis=0, return_inverse=True)
    numbers = np.array([lists.number(tuple(row for row in one if row)) for one in distinct.tolist()], np.int32)
    right = candidates == rows[:, None]
    place = np.where(right.any(1) & (rows > 2), right.argmax(1), 255)
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
    build: Path, benchmarks: Path, wild: Path | None, vocabulary: Any, tokenizer: Any, store: Any
) -> Iterator[tuple[str, Any]]:
    """Yield the sets that a model is chosen by, as windows with candidates."""
    from dataclasses import replace

    from deixis.corpus.windows import WindowSet
    from deixis.datasets import open_dataset, read_jsonl
    from deixis.documents import Candidate, Document
    from deixis.wikipedia.redirects import read_redirects

    table = read_redirects(build / "known" / "redirects.tsv")

    def named(document: Document, listed: Any) -> Document:
        mentions = []
        for mention, found in zip(document.mentions, listed, strict=True):
            best: dict[str, Candidate] = {}
            for one in found:
                title = table.get(one.entity, one.entity)
                best.setdefault(title, one._replace(entity=title))
            gold = None if mention.entity is None else table.get(mention.entity, mention.entity)
            mentions.append(replace(mention, entity=gold, candidates=tuple(best.values())))
        return replace(document, mentions=tuple(mentions))

    sets: dict[str, Any] = {}
    for name, (known_as, kind) in PUBLISHED.items() if wild is None else [("testa", ("aida-a", "ppr"))]:
        documents = open_dataset(benchmarks, known_as, kind).documents
        sets[name] = [named(one, [mention.candidates or () for mention in one.mentions]) for one in documents]
    for path in sorted(wild.glob("*.jsonl.xz")) if wild is not None else ():
        documents = read_jsonl(path).documents
        sets[path.name.split(".")[0]] = [named(one, store.candidates(one)) for one in documents]
    for name, documents in sets.items():
        yield name, WindowSet.of_documents(documents, tokenizer, vocabulary)


def _shortened(windows: Any, vocabulary: Any, tokenizer: Any, store: Any, lists: _Lists) -> Arrays:
    """Return which pieces of a mention are kept where its name is shortened, 0 to 0 where it is not, and its rivals.

    Encyclopaedias write "Chicago White Sox" and "George W. Bush"; news write "Chicago" and "Bush". A name is the title
    without its bracket; of its beginnings and ends, those are kept that the store knows as names of the entity.
    """
    rows, starts = np.asarray(windows.rows), np.asarray(windows.spans[:, 0], np.int64)
    sizes = np.diff(np.asarray(windows.spans, np.int64), axis=1)[:, 0]
    owner = np.repeat(np.arange(len(windows)), np.diff(windows.mention_offsets))
    at = np.asarray(windows.window_offsets)[owner] + starts
    seen = np.unique(rows[rows > 2])
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


def _forms(titles: list[str], vocabulary: Any, tokenizer: Any, store: Any, lists: _Lists) -> list[Any]:
    """Return of each title the pieces of its name, and its shorter forms: from which piece to which, rivals."""
    from deixis.corpus.completion import own_names

    names = [own_names(title)[-1] for title in titles]
    found: list[Any] = []
    for first in range(0, len(names), 4096):
        chunk = names[first : first + 4096]
        cuts = [_cuts(name) for name in chunk]
        encoded = tokenizer.encode_many([(name, spans) for name, spans in zip(chunk, cuts, strict=True)])
        for title, name, spans, one in zip(titles[first:], chunk, cuts, encoded, strict=False):
            parts = []
            for (start, end), (begin, stop) in zip(spans, one.spans.tolist(), strict=True):
                short = name[start:end]
                if _is_word(store, short) or _is_word(store, short.split()[-1]):
                    continue
                listed = [candidate.entity for candidate in store.lookup(short, 2 * CANDIDATES)]
                if title not in listed and title not in {other for other, _ in store.parts(short.lower())}:
                    continue
                rivals = [row for one_ in listed if (row := vocabulary.row(one_)) is not None][:CANDIDATES]
                own = vocabulary.row(title)
                if own not in rivals:
                    rivals = [*rivals[: CANDIDATES - 1], own]
                parts.append((begin, stop, lists.number(tuple(rivals))))
            found.append((one.pieces, parts))
    return found


def _is_word(store: Any, name: str) -> bool:
    number = store.number(name.lower())
    counted = None if number is None else store.occurrences(number)
    return counted is not None and counted[2] > WORDS * counted[0]


def _cuts(name: str) -> list[tuple[int, int]]:
    """Return the beginnings and ends of a proper name, [start, end) in characters."""
    words, spans, at = name.split(" "), [], 0
    for word in words:
        spans.append((at, at + len(word)))
        at += len(word) + 1
    if not 2 <= len(words) <= 5 or not all(word[:1].isupper() for word in words):
        return []
    found = [(spans[0][0], spans[cut][1]) for cut in range(len(words) - 1)]
    return found + [(spans[cut][0], spans[-1][1]) for cut in range(1, len(words)) if not words[-1].isupper()]


# --- there: training ----------------------------------------------------------------------------------------------

SHAPE: dict[str, Any] = SETTINGS["network"]
RECIPE: dict[str, Any] = SETTINGS["train"]
OWN_LINKS: int = SETTINGS["vocabulary"]["own_links"]
BACK = (0.0, 0.1, 0.2)  # parts of the encoder's way back to where it started that are tried
READ_AT_ONCE = 262_144  # pieces of texts


def prepare(first: Path, work: Path, device: str) -> None:
    """Write the BERT folder and the vectors of all texts."""
    import torch
    from safetensors.torch import save_file

    from deixis.folder.model_folder import network_from_bert
    from deixis.network.batching import pack
    from deixis.network.special import SPECIAL

    arrays = read_arrays(first)
    bert = work / "bert"
    bert.mkdir(parents=True, exist_ok=True)
    told, flat, tensors, at = json.loads(arrays["encoder.json"].tobytes()), arrays["encoder"], {}, 0
    for name, shape in told["tensors"].items():
        size = int(np.prod(shape))
        tensors[name] = torch.from_numpy(flat[at : at + size].astype(np.float32).reshape(shape))
        at += size
    save_file(tensors, bert / "model.safetensors")
    (bert / "config.json").write_text(json.dumps(told["config"]))
    (bert / "tokenizer.json").write_bytes(arrays["tokenizer.json"].tobytes())
    np.save(work / "counts.npy", arrays["counts"])

    network = network_from_bert(bert, len(SPECIAL), torch.Generator()).to(device).eval()
    network.precision = torch.bfloat16 if device == "cuda" else torch.float32
    lengths = arrays["texts/lengths"].astype(np.int64)
    ends = np.cumsum(lengths)
    vectors = np.zeros((len(lengths), network.config.hidden_size), np.float32)
    order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]
    with torch.no_grad():
        for some in np.split(order, np.flatnonzero(np.diff(np.cumsum(lengths[order] + 2) // READ_AT_ONCE)) + 1):
            counts = lengths[some] + 2
            pieces = np.empty(counts.sum(), np.int64)
            stops = np.cumsum(counts)
            inside = np.ones(len(pieces), bool)
            inside[stops - counts] = inside[stops - 1] = False
            pieces[stops - counts], pieces[stops - 1] = 101, 102
            starts = ends[some] - lengths[some]
            pieces[inside] = arrays["texts/pieces"][_flat(starts, lengths[some])]
            batch = pack(pieces, counts, np.zeros((0, 2), np.int64), np.zeros(len(some), np.int64)).to(device)
            states = network.words(batch).float()
            owner = torch.from_numpy(np.repeat(np.arange(len(some)), counts)).to(device)
            sums = torch.zeros(len(some), states.shape[1], device=device).index_add_(0, owner, states)
            vectors[some] = torch.nn.functional.normalize(sums, dim=-1).cpu().numpy()
    vectors[order] -= vectors[order].mean(0)
    np.save(work / "vectors.npy", vectors.astype(np.float16))
    print(f"{len(order):,} texts read", flush=True)


def _flat(starts: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the numbers of all ranges, end to end."""
    numbers: NDArray[np.int64] = np.arange(counts.sum()) + np.repeat(starts - (np.cumsum(counts) - counts), counts)
    return numbers


def window_set(arrays: Arrays, prefix: str) -> Any:
    """Return windows that were sent."""
    from deixis.corpus.windows import WindowSet

    lists, places = arrays["lists"][arrays[prefix + "lists"]], arrays[prefix + "places"]
    rows = np.where(places == 255, 1, lists[np.arange(len(lists)), np.minimum(places, lists.shape[1] - 1)])
    starts = arrays[prefix + "starts"].astype(np.int64)
    spans = np.stack([starts, starts + arrays[prefix + "sizes"]], 1)
    offsets = [
        np.concatenate(([0], np.cumsum(arrays[prefix + name], dtype=np.int64))) for name in ("lengths", "mentions")
    ]
    return WindowSet(arrays[prefix + "pieces"], offsets[0], offsets[1], spans, rows.astype(np.int32), lists)


def with_short_names(windows: Any, arrays: Arrays) -> Any:
    """Return the windows, and behind them those with shortened names once more."""
    from dataclasses import replace

    kept = arrays["short/kept"].astype(np.int64)
    short = kept[:, 1] > 0
    owner = np.repeat(np.arange(len(windows)), np.diff(windows.mention_offsets))
    first = windows.window_offsets[owner] + windows.spans[:, 0]
    sizes = windows.spans[:, 1] - windows.spans[:, 0]
    stays = np.ones(len(windows.pieces), bool)
    stays[_flat(first[short], kept[short, 0])] = False
    stays[_flat(first[short] + kept[short, 1], sizes[short] - kept[short, 1])] = False
    before = np.concatenate(([0], np.cumsum(stays)))
    offsets = before[windows.window_offsets]
    spans = np.stack([before[first] - offsets[owner], before[first + sizes] - offsets[owner]], 1)
    candidates = np.where(short[:, None], arrays["lists"][arrays["short/lists"]], windows.candidates)
    copy = replace(windows, pieces=windows.pieces[stays], window_offsets=offsets, spans=spans, candidates=candidates)
    chosen = np.flatnonzero(np.bincount(owner[short], minlength=len(windows)))
    return joined(windows, part_of(copy, chosen))


def part_of(windows: Any, chosen: NDArray[np.int64]) -> Any:
    """Return some windows."""
    from deixis.corpus.windows import WindowSet

    sizes, counts = np.diff(windows.window_offsets)[chosen], np.diff(windows.mention_offsets)[chosen]
    pieces = _flat(windows.window_offsets[chosen], sizes)
    mentions = _flat(windows.mention_offsets[chosen], counts)
    offsets = [np.concatenate(([0], np.cumsum(one))) for one in (sizes, counts)]
    of_mentions = (windows.spans[mentions], windows.rows[mentions], windows.candidates[mentions])
    return WindowSet(windows.pieces[pieces], offsets[0], offsets[1], *of_mentions)


def joined(one: Any, other: Any) -> Any:
    """Return windows, and others behind them."""
    from deixis.corpus.windows import WindowSet

    def both(name: str) -> NDArray[Any]:
        first, second = getattr(one, name), getattr(other, name)
        if name.endswith("offsets"):
            return np.concatenate([first, second[1:] + first[-1]])
        return np.concatenate([first, second])

    return WindowSet(*(both(name) for name in WindowSet.__dataclass_fields__))


def train_model(second: Path, work: Path, seconds: float, device: str, **changes: Any) -> None:
    """Train for about so many seconds, go the best part of the way back, train the detector, write what comes back."""
    import logging
    import time
    from dataclasses import replace
    from itertools import islice

    import torch

    from deixis.folder.model_folder import network_from_bert
    from deixis.network.encoding import Tokenizer
    from deixis.network.special import SPECIAL
    from deixis.training.descriptions import describe_table, fold
    from deixis.training.distributed import processes
    from deixis.training.loop import evaluate, train
    from deixis.training.recipe import Recipe

    logging.basicConfig(level=logging.INFO)
    begun = time.monotonic()
    arrays = read_arrays(second)
    (work / "marked.jsonl.xz").write_bytes(arrays.pop("marked").tobytes())
    (work / "marked.done").touch()
    data = with_short_names(window_set(arrays, "train/"), arrays)
    held_out = window_set(arrays, "held-out/")
    sets = {name[:-7]: window_set(arrays, name[:-6]) for name in arrays if name.endswith("/pieces")}
    del sets["train"], sets["held-out"]
    counts, vectors = np.load(work / "counts.npy"), np.load(work / "vectors.npy")
    own = int((counts >= OWN_LINKS).sum()) + len(SPECIAL)
    tokenizer = Tokenizer.load(work / "bert")
    seed = int(changes.get("seed", 0))
    network = network_from_bert(work / "bert", len(counts), torch.Generator().manual_seed(seed), **SHAPE)
    start = {
        name: x.clone() for name, x in network.state_dict().items() if name.startswith(("embeddings.", "encoder."))
    }
    describe_table(network, vectors, torch.Generator().manual_seed(seed + 1), own)
    print(
        f"{len(data):,} windows, {len(data.pieces):,} pieces, {len(data.rows):,} mentions; {len(counts):,} entities, "
        f"{own:,} with their own rows; {time.monotonic() - begun:.0f} s",
        flush=True,
    )
    told: list[dict[str, Any]] = []
    with processes(device) as group:
        recipe = Recipe(**{**RECIPE, **changes})
        if recipe.steps is None:
            still = Recipe(**{**RECIPE, **changes, "learning_rate": 0.0, "entity_rate": 0.0, "encoder_rate": 0.0})
            marks = []
            for step in islice(train(network, tokenizer, data, still, processes=group), 16):
                assert step.loss > 0
                marks.append(time.monotonic())
            pace = (marks[-1] - marks[5]) / 10
            steps = int((seconds - (time.monotonic() - begun)) / pace)
            print(f"{pace:.3f} s a step: {steps:,} steps", flush=True)
            recipe = Recipe(**{**RECIPE, **changes, "steps": steps})
        for step in train(network, tokenizer, data, recipe, processes=group):
            if step.step % 50 == 0:
                told.append({"step": step.step, "loss": step.loss, "accuracy": step.accuracy})
                passed = time.monotonic() - begun
                print(
                    f"step {step.step} of {step.steps}, loss {step.loss:.3f}, {step.accuracy:.3f}, {passed:.0f} s",
                    flush=True,
                )
        fold(network)
        trained = {name: x.clone() for name, x in network.state_dict().items()}
        torch.save({"trained": trained, "start": start, "config": network.config}, work / "trained.pt")
        network.precision = torch.bfloat16 if device == "cuda" else torch.float32

        def scores() -> dict[str, float]:
            some = part_of(held_out, np.arange(0, len(held_out), max(1, len(held_out) // 1500)))
            asked = Recipe(mask_rate=1.0, batch=256, candidate_weight=1.0, candidates=30)
            found = {name: evaluate(network, tokenizer, one, asked, group).accuracy for name, one in sets.items()}
            found["held-out"] = evaluate(network, tokenizer, some, asked, group).accuracy
            beside = Recipe(mask_rate=0.3, batch=256, candidate_weight=1.0, candidates=30)
            found["testa, seven tenths shown"] = evaluate(network, tokenizer, sets["testa"], beside, group).accuracy
            everything = Recipe(mask_rate=1.0, batch=256)
            found["held-out, of all"] = evaluate(network, tokenizer, some, everything, group).accuracy
            everything = Recipe(mask_rate=0.1, batch=256)
            found["held-out, of all, nine tenths shown"] = evaluate(
                network, tokenizer, some, everything, group
            ).accuracy
            return found

        best, chosen = -1.0, 0.0
        for back in BACK if seconds > 200 else BACK[:1]:
            for name, x in start.items():
                network.state_dict()[name].copy_(torch.lerp(trained[name], x.to(device), back))
            found = scores()
            told.append({"back": back, **found})
            wild = [value for name, value in found.items() if name in sets and name != "testa"]
            mean = (found["testa"] + found["held-out"] + sum(wild) / len(wild)) / 3
            print(f"back {back}: mean {mean:.4f}", {name: round(value, 4) for name, value in found.items()}, flush=True)
            if mean > best:
                best, chosen = mean, back
        for name, x in start.items():
            network.state_dict()[name].copy_(torch.lerp(trained[name], x.to(device), chosen))
    print(f"trained in {time.monotonic() - begun:.0f} s", flush=True)
    of_bert = {name: x.cpu() for name, x in network.state_dict().items() if name in start}
    torch.save({"state": of_bert, "config": replace(network.config, entities=3)}, work / "encoder.pt")
    (work / "encoder.done").touch()
    (work / "told.json").write_text(
        json.dumps({"chosen": chosen, "recipe": recipe.to_json(), "shape": SHAPE, "told": told})
    )
    _write_back(network, own, work / "back", (work / "told.json").read_bytes())
    (work / "back.done").touch()


PATTERNS: dict[str, dict[str, Any]] = {
    "answers": {"words_see": "answers", "entity_size": SHAPE["entity_size"]},
    "placeholders": {**SHAPE, "words_see": "placeholders", "placeholder_layers": None},
    "words": SHAPE,
}
SEEDS = (0, 1)


def compare_patterns(second: Path, work: Path, device: str) -> None:
    """Train the three patterns alike, from two seeds, and measure them: held out, with lists, in both orders."""
    import time

    import torch

    from deixis.folder.model_folder import network_from_bert
    from deixis.network.encoding import Tokenizer
    from deixis.network.special import SPECIAL
    from deixis.training.descriptions import describe_table, fold
    from deixis.training.distributed import processes
    from deixis.training.loop import evaluate, train
    from deixis.training.recipe import Recipe

    arrays = read_arrays(second)
    data, held_out = with_short_names(window_set(arrays, "train/"), arrays), window_set(arrays, "held-out/")
    held_out = part_of(held_out, np.arange(0, len(held_out), max(1, len(held_out) // 1500)))
    names = [name.removesuffix("/pieces") for name in arrays if name.endswith("/pieces")]
    sets = {name: window_set(arrays, f"{name}/") for name in names if name not in ("train", "held-out")}
    published = read_arrays(second.with_name("third"))
    sets |= {name: window_set(published, f"{name}/") for name in PUBLISHED}
    counts, vectors = np.load(work / "counts.npy"), np.load(work / "vectors.npy")
    own = int((counts >= OWN_LINKS).sum()) + len(SPECIAL)
    tokenizer = Tokenizer.load(work / "bert")
    told = []
    with processes(device) as group:
        for seed in SEEDS:
            for pattern, shape in PATTERNS.items():
                begun = time.monotonic()
                network = network_from_bert(work / "bert", len(counts), torch.Generator().manual_seed(seed), **shape)
                describe_table(network, vectors, torch.Generator().manual_seed(seed + 1), own)
                recipe = Recipe(**{**RECIPE, **SETTINGS["patterns"], "seed": seed})
                losses = list(train(network, tokenizer, data, recipe, processes=group))
                found: dict[str, Any] = {"pattern": pattern, "seed": seed, "loss": losses[-1].loss}
                found["seconds"] = time.monotonic() - begun
                fold(network)
                network.precision = torch.bfloat16 if device == "cuda" else torch.float32
                for shown in (0.0, 0.5, 0.9):
                    asked = Recipe(mask_rate=1 - shown, batch=256)
                    found[f"held-out, {shown:g} shown"] = evaluate(network, tokenizer, held_out, asked, group).accuracy
                for order in ("local", "confidence"):
                    begun = time.monotonic()
                    for name, one in sets.items():
                        found[f"{name}, {order}"] = decided(network, tokenizer, one, order, device)
                    found[f"{order}, seconds"] = time.monotonic() - begun
                told.append(found)
                print(found, flush=True)
                (work / "patterns.json").write_text(json.dumps(told, indent=1))
                del network


def decided(network: Any, tokenizer: Any, windows: Any, order: Any, device: str) -> float:
    """Return the part of the mentions that an order decides rightly."""
    import torch

    from deixis.network.batching import pack
    from deixis.network.decoding import Question, decode
    from deixis.network.special import MASK

    sizes, right, total = np.diff(windows.window_offsets), 0, 0
    chosen = np.flatnonzero(np.diff(windows.mention_offsets))
    for some in np.array_split(chosen, -(-len(chosen) // 128)):
        part = part_of(windows, some)
        counts, mentions = sizes[some] + 2, np.diff(part.mention_offsets)
        stops = np.cumsum(counts)
        pieces = np.empty(counts.sum(), np.int64)
        inside = np.ones(len(pieces), bool)
        inside[stops - counts] = inside[stops - 1] = False
        pieces[stops - counts], pieces[stops - 1] = tokenizer.cls, tokenizer.sep
        pieces[inside] = part.pieces
        batch = pack(pieces, counts, part.spans.astype(np.int64) + 1, mentions).to(device)
        candidates = torch.from_numpy(np.asarray(part.candidates, np.int64))
        number = len(candidates)
        yes = torch.ones(number, dtype=torch.bool)
        window = torch.from_numpy(np.repeat(np.arange(len(some)), mentions))
        question = Question(candidates, None, torch.full((number,), MASK), yes, ~yes, window).to(device)
        decisions = decode(network, batch, question, order)
        answers = candidates[torch.arange(number), decisions.choice.cpu().clamp_min(0)].numpy()
        right += int((answers == part.rows).sum())
        total += number
    return right / max(1, total)


def find_names(work: Path, device: str) -> None:
    """Prepare what the detector learns, wait for the network, and train it on that."""
    import logging
    import time

    import torch

    from deixis.network.detector import LearnedDetector
    from deixis.network.encoding import Tokenizer
    from deixis.network.model import Network
    from deixis.training.detector import lessons_of, read_marked_texts, score_detector, train_detector
    from deixis.training.recipe import DetectorRecipe

    logging.basicConfig(level=logging.INFO)
    tokenizer = Tokenizer.load(work / "bert")
    while not (work / "marked.done").exists():
        time.sleep(1)
    texts = list(read_marked_texts([work / "marked.jsonl.xz"]))
    lessons = lessons_of(tokenizer, texts)
    print(f"{len(texts):,} marked texts", flush=True)
    while not (work / "encoder.done").exists():
        time.sleep(1)
    found = torch.load(work / "encoder.pt", weights_only=False)
    network = Network(found["config"])
    network.load_state_dict(found["state"], strict=False)
    network.to(device).eval().requires_grad_(False)
    network.precision = torch.bfloat16 if device == "cuda" else torch.float32
    head = train_detector(network, tokenizer, lessons, DetectorRecipe(**SETTINGS["detector"]))
    (work / "names").mkdir(exist_ok=True)
    head.save(work / "names" / "detector.safetensors")
    scores = score_detector(LearnedDetector(network, tokenizer, head), texts)
    (work / "names" / "scores.txt").write_text("\n".join(map(str, scores)) + "\n")
    print("\n".join(map(str, scores)), flush=True)


def _write_back(network: Any, own: int, out: Path, told: bytes) -> None:
    """Write the network in fp16, rows in six bits a number, those that are text alone in four."""
    import torch

    state = {name: x.detach().float().cpu() for name, x in network.state_dict().items()}
    table = state.pop("entity_embeddings.entity_embeddings.weight")
    bias = state.pop("entity_predictions.bias")
    shapes = {name: tuple(x.shape) for name, x in sorted(state.items())}
    config = network.config.to_json()
    arrays = {
        "network": torch.cat([state[name].flatten() for name in shapes]).half().numpy(),
        "network.json": np.frombuffer(json.dumps({"tensors": shapes, "config": config}).encode(), np.uint8),
        "told": np.frombuffer(told, np.uint8),
        "bias": bias.numpy(),
    }
    for name, rows, bits in (("own", table[:own], 6), ("text", table[own:], 4)):
        largest = 2 ** (bits - 1) - 1
        x = rows.numpy()
        scale = (np.abs(x).max(1, initial=1e-9) / largest).astype(np.float16)
        numbers = np.rint(x / scale.astype(np.float32)[:, None]).clip(-largest, largest) + largest
        arrays[f"{name}/numbers"] = pack_bits(numbers.astype(np.uint8), bits)
        arrays[f"{name}/scales"] = scale
    write_arrays(arrays, out, RETURNED, cores=16)


RETURNED = 15 << 20  # bytes of a file


def pack_bits(numbers: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Pack numbers (rows, columns) of 4 or 6 bits; columns are a multiple of four."""
    if bits == 4:
        return (numbers[:, ::2] | numbers[:, 1::2] << 4).astype(np.uint8)
    q = numbers.reshape(len(numbers), -1, 4).astype(np.uint32)
    whole = q[..., 0] | q[..., 1] << 6 | q[..., 2] << 12 | q[..., 3] << 18
    return np.stack([whole & 255, whole >> 8 & 255, whole >> 16], -1).astype(np.uint8).reshape(len(numbers), -1)


def unpack_bits(packed: NDArray[np.uint8], bits: int) -> NDArray[np.uint8]:
    """Undo `pack_bits`."""
    if bits == 4:
        return np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)
    three = packed.reshape(len(packed), -1, 3).astype(np.uint32)
    whole = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    return np.stack([whole >> shift & 63 for shift in (0, 6, 12, 18)], -1).astype(np.uint8).reshape(len(packed), -1)


def main() -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, paths in {
        "send": ("build", "encoder", "benchmarks", "wild", "out"),
        "prepare": ("parts", "work"),
        "train": ("parts", "work"),
        "names": ("work",),
        "patterns": ("parts", "work"),
    }.items():
        step = steps.add_parser(name)
        for path in paths:
            step.add_argument(path, type=Path)
        step.add_argument("--device", default="cuda")
        step.add_argument("--seconds", type=float, default=900.0)
        step.add_argument("--set", nargs="*", default=[], help="field=value of the recipe")
    given = parser.parse_args()
    if given.step == "send":
        send(given.build, given.encoder, given.benchmarks, given.wild, given.out)
    elif given.step == "prepare":
        prepare(given.parts, given.work, given.device)
    elif given.step == "train":
        changes = {name: json.loads(value) for name, value in (one.split("=") for one in given.set)}
        train_model(given.parts, given.work, given.seconds, given.device, **changes)
    elif given.step == "patterns":
        compare_patterns(given.parts, given.work, given.device)
    else:
        find_names(given.work, given.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
