"""Global inference against local: time, passes, memory and answers, side by side over the same documents and weights.

    python benchmarks/inference.py point --model MODEL           # 20 mentions, 256 pieces
    python benchmarks/inference.py sweep --model MODEL --svg benchmarks/inference.svg      # 5 to 100 mentions
    python benchmarks/inference.py sets --model MODEL --data BENCHMARKS --set aida-b=ppr --set msnbc=kb+yago
    python benchmarks/inference.py curve --model MODEL --data BENCHMARKS --set aida-a=ppr --redirects OLD  # of commit
    python benchmarks/inference.py long --model MODEL --data BENCHMARKS --set cweb=none --redirects OLD   # of windows
    python benchmarks/inference.py exact --model MODEL --data BENCHMARKS --set aida-b=ppr  # against no cache at all
    python benchmarks/inference.py texts --model MODEL --data BENCHMARKS --set aida-b=none # mentions found as well
    python benchmarks/inference.py documents --data BENCHMARKS --set aida-b=ppr OUT.json
    python benchmarks/inference.py bare --model MODEL BARE       # the model without its store
    python benchmarks/inference.py gpu --model BARE OUT.json     # needs torch, tokenizers, safetensors and numpy alone
    python benchmarks/inference.py gpu --model BARE OUT.json --processes 8 --copies 4     # that share one GPU
    python benchmarks/inference.py memory --model MODEL          # the highest of each way, in a process of its own

Ways, which take turns:

    reference     transformers' LUKE modules, a whole pass a mention, scores over all entities, one document at a time
    local         deixis, one pass
    confidence    deixis, confidence order as the model folder has its attention
    paper         confidence order with the same weights in the paper's attention: every step is a whole pass
    commit=0.95   confidence order, every answer of that probability in the same step
    … int8        the same, the layers' products in int8

Generated documents name half of their entities by their titles and half by a word that says nothing, among rivals drawn
at random, so that some answers are sure and some are not. With one thread seconds are of the CPU, which others on the
machine disturb less, else of the wall; medians of the rounds.
"""

# ruff: noqa: E402 - see the stand-ins below
from __future__ import annotations

import argparse
import json
import random
import resource
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

# A machine lent for its accelerator may have torch and little else; the way of `gpu` needs no more of these.
for module in ("marisa_trie", "orjson", "zstandard"):
    if find_spec(module) is None:
        sys.modules[module] = json if module == "orjson" else ModuleType(module)

from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions
from deixis.folder.model_folder import ModelFolder
from deixis.inference import Disambiguator
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import make_batch
from deixis.network.encoding import Tokenizer, Window, windows_of
from deixis.network.model import Network
from deixis.network.special import MASK, SPECIAL
from deixis.settings import Precision, Settings

WORDS = ("the", "team", "played", "in", "a", "city", "with", "players", "and", "won", "game", "after", "war", "river")
MENTIONS, PIECES = (5, 10, 20, 50, 100), (64, 128, 256, 512)
DEFAULT_WAYS = ("reference", "local", "confidence", "commit=0.95", "local int8", "confidence int8", "commit=0.95 int8")
CORES = 2


@dataclass
class Seen:
    """What one way took on some documents."""

    seconds: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    passes: int = 0
    answers: list[list[str | None]] = field(default_factory=list)

    @property
    def time(self) -> float:
        """The CPU's seconds with one thread, else the wall's."""
        return median(self.cpu if torch.get_num_threads() == 1 else self.seconds)


class Ways:
    """The ways of disambiguating, each over the same weights; networks are opened when they are first asked for."""

    def __init__(self, model: Path, windows: str | None = None) -> None:
        self.model, self.windows = model, windows
        self._opened: dict[tuple[str, Precision], Disambiguator] = {}
        self._luke: Any = None

    def opened(self, pattern: str, precision: Precision) -> Disambiguator:
        """Return the model in some precision, with its own attention or the paper's."""
        if (pattern, precision) not in self._opened:
            nlp = Disambiguator.load(self.model, precision=precision)
            if pattern == "paper":
                nlp.network.config = replace(nlp.network.config, words_see="answers", answer_layers=None)
            self._opened[pattern, precision] = nlp
        return self._opened[pattern, precision]

    def run(self, way: str, documents: Sequence[Document]) -> tuple[list[Resolutions] | list[list[str | None]], int]:
        """Return the answers and the number of passes."""
        name, _, precision = way.partition(" ")
        if name == "reference":
            return self._reference(documents)
        nlp = self.opened("paper" if name == "paper" else "own", "int8" if precision == "int8" else "fp32")
        order = "local" if name == "local" else "confidence"
        settings: dict[str, Any] = {"top": None, "order": order, "windows": self.windows}
        if name.startswith("commit="):
            settings["commit"] = float(name.removeprefix("commit="))
        results = list(nlp.disambiguate_many(documents, **settings))
        return results, sum(result.passes for result in results)

    def _reference(self, documents: Sequence[Document]) -> tuple[list[list[str | None]], int]:
        sys.path.insert(0, str(Path(__file__).parent.parent))
        from tests.reference import Luke, confidence_order

        if self._luke is None:
            parts = ModelFolder.load(self.model)
            table = parts.network.entity_embeddings
            table.entity_embeddings = table.entity_embeddings.quantised("fp32")
            self._luke = Luke(parts.network), parts.tokenizer, parts.vocabulary
        luke, tokenizer, vocabulary = self._luke
        answers: list[list[str | None]] = []
        for document in documents:
            decided = confidence_order(luke, tokenizer, vocabulary, document)
            answers.append([decision.entity for decision in decided])
        return answers, sum(len(document.mentions) for document in documents)


def generate(
    tokenizer: Tokenizer, titles: Sequence[str], mentions: int, pieces: int, count: int, rivals: int = 13
) -> list[Document]:
    """Make documents of so many pieces in which so many entities are named by their titles."""
    made = []
    for seed in range(count):
        dice = random.Random(seed)
        named = [dice.choice(titles if place % 2 else WORDS) for place in range(mentions)]
        room = max(0, pieces - 2 - len(tokenizer.encode(" ".join(named), []).pieces))
        gaps = sorted(dice.choices(range(mentions + 1), k=room))  # each filler word is one piece
        text, spans, at = "", [], 0
        for place, title in enumerate(named):
            while at < room and gaps[at] <= place:
                text, at = text + dice.choice(WORDS) + " ", at + 1
            spans.append((len(text), len(text) + len(title), title))
            text += title + " "
        text += " ".join(dice.choice(WORDS) for _ in gaps[at:])
        made.append(Document(text, tuple(_mention(*span, titles, rivals, dice) for span in spans), id=str(seed)))
    return made


def _mention(start: int, end: int, title: str, titles: Sequence[str], rivals: int, dice: random.Random) -> Mention:
    others = dice.sample(titles, dice.randint(2, 2 * rivals))
    named = others if title in WORDS else dict.fromkeys((title, *others))
    return Mention(start, end, candidates=tuple(Candidate(name) for name in named))


def short_titles(vocabulary: Vocabulary, tokenizer: Tokenizer) -> list[str]:
    """Return entities whose titles are one to three pieces, so that a hundred fit into a window."""
    some = [title for title in vocabulary.titles[len(SPECIAL) :: 7] if "(" not in title][:20_000]
    encoded = tokenizer.encode_many([(title, []) for title in some])
    return [title for title, encoding in zip(some, encoded, strict=True) if len(encoding.pieces) <= 3]


def compare(ways: Ways, names: Sequence[str], documents: Sequence[Document], rounds: int, few: int) -> dict[str, Seen]:
    """Let ways take turns over the documents; the reference, which is slow, over the first few."""
    seen = {name: Seen() for name in names}
    one_mention = replace(documents[0], mentions=documents[0].mentions[:1])
    for name in names:  # opens networks, warms caches
        ways.run(name, [one_mention if name.startswith(("reference", "paper")) else documents[0]])
    for _ in range(rounds):
        for name, one in seen.items():
            given = documents[:few] if name.startswith(("reference", "paper")) else documents
            begun, used = time.perf_counter(), time.process_time()
            results, one.passes = ways.run(name, given)
            one.seconds.append((time.perf_counter() - begun) / len(given))
            one.cpu.append((time.process_time() - used) / len(given))
            one.answers = [[a.entity if isinstance(a, Resolution) else a for a in result] for result in results]
    return seen


def table(seen: dict[str, Seen], documents: Sequence[Document]) -> str:
    """Lay the ways out as Markdown."""
    per = sum(len(document.mentions) for document in documents) / len(documents)
    lines = [
        "| way | ms/document | documents/s | mentions/s | passes/document | × local | reference ÷ it | other answers |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    base = {name: seen[name].time for name in ("local", "local int8", "reference") if name in seen}
    for name, one in seen.items():
        local = base.get("local int8" if name.endswith("int8") else "local")
        exact = seen.get("reference" if "reference" in seen and name == "paper" else "confidence")
        pairs = [
            (a, b)
            for ours, theirs in zip(one.answers, exact.answers if exact else [], strict=False)
            for a, b in zip(ours, theirs, strict=True)
        ]
        differ = sum(a != b for a, b in pairs)
        cells = [
            f"{1000 * one.time:.1f}",
            f"{1 / one.time:.2f}",
            f"{per / one.time:.0f}",
            f"{one.passes / max(1, len(one.answers)):.1f}",
            f"{one.time / local:.2f}" if local else "–",
            f"{base['reference'] / one.time:.1f}" if "reference" in base else "–",
            f"{differ} of {len(pairs)}" if pairs else "–",
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def sweep(ways: Ways, names: Sequence[str], rounds: int, count: int, svg: Path | None) -> None:
    """Measure over mentions at 512 pieces, and over pieces at 20 mentions (10 where 64 pieces hold no more)."""
    nlp = ways.opened("own", "fp32")
    titles = short_titles(nlp.vocabulary, nlp.tokenizer)
    lines: dict[str, list[tuple[int, float]]] = {name: [] for name in names}
    points = [(mentions, 512) for mentions in MENTIONS] + [
        (20 if pieces > 64 else 10, pieces) for pieces in PIECES[:-1]
    ]
    for mentions, pieces in points:
        documents = generate(nlp.tokenizer, titles, mentions, pieces, count)
        seen = compare(ways, names, documents, rounds, few=1)
        print(f"\n{mentions} mentions, {pieces} pieces\n\n{table(seen, documents)}", flush=True)
        if pieces == 512:
            for name, one in seen.items():
                lines[name].append((mentions, 1000 * one.time))
    for name, line in lines.items():
        print(
            f"{name}: from {MENTIONS[0]} to {MENTIONS[-1]} mentions the time grows {line[-1][1] / line[0][1]:.1f} times"
        )
    if svg is not None:
        svg.write_text(
            plot(lines, f"ms a document of 512 pieces, {torch.get_num_threads()} thread(s), fp32 unless int8")
        )


def plot(lines: dict[str, list[tuple[int, float]]], title: str) -> str:
    """Draw time against mentions, both axes logarithmic."""
    from math import log10

    values = [y for line in lines.values() for _, y in line]
    low, high = log10(min(values)) - 0.05, log10(max(values)) + 0.05
    left, right, top, bottom = 60, 520, 40, 340

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - log10(MENTIONS[0])) / (log10(MENTIONS[-1]) - log10(MENTIONS[0]))
        return left + across * (right - left), bottom - (log10(y) - low) / (high - low) * (bottom - top)

    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 390" font-family="sans-serif" font-size="12">',
        f'<rect width="700" height="390" fill="white"/><text x="{left}" y="22" font-size="14">{title}</text>',
    ]
    grid = '<path d="{}" stroke="#ddd"/><text x="{:.0f}" y="{:.0f}" text-anchor="{}">{}</text>'
    for x in MENTIONS:
        at, _ = place(x, 10**low)
        parts.append(grid.format(f"M{at:.0f} {top}V{bottom}", at, bottom + 18, "middle", x))
    for y in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000):
        if low <= log10(y) <= high:
            _, at = place(MENTIONS[0], y)
            parts.append(grid.format(f"M{left} {at:.0f}H{right}", left - 6, at + 4, "end", y))
    colours = ("#444", "#1b6ca8", "#c0392b", "#d68910", "#5dade2", "#ec7063", "#f5b041", "#7d3c98", "#229954")
    labels = sorted(((place(*line[-1])[1], name) for name, line in lines.items()), reverse=True)
    free, heights = float(bottom), {}
    for wanted, name in labels:
        heights[name] = min(wanted, free)
        free = heights[name] - 14
    for (name, line), colour in zip(lines.items(), colours, strict=False):
        drawn = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{drawn}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<text x="{right + 8}" y="{heights[name] + 4:.0f}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>", ""])


def read_sets(data: Path, sets: Sequence[str]) -> dict[str, list[Document]]:
    """Read benchmark documents with their lists, `name=lists` each."""
    from deixis.datasets.catalogue import open_dataset

    return {one: list(open_dataset(data, *one.split("=")).documents) for one in sets}


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write documents as plain JSON, for a machine that has no readers of benchmarks."""
    records = [
        [d.id, d.text, [[m.start, m.end, [[c.entity, c.prior] for c in m.candidates or ()]] for m in d.mentions]]
        for d in documents
    ]
    path.write_text(json.dumps(records))


def read_documents(path: Path) -> list[Document]:
    """Read what `write_documents` wrote."""
    return [
        Document(
            text,
            tuple(Mention(a, b, candidates=tuple(Candidate(*pair) for pair in listed)) for a, b, listed in mentions),
            id=name,
        )
        for name, text, mentions in json.loads(path.read_text())
    ]


ORDERS: dict[str, dict[str, Any]] = {"local": {"order": "local"}, "confidence": {}, "commit=0.95": {"commit": 0.95}}


def _on_device(model: Path, device: str) -> Disambiguator:
    # Larger batches than a CPU's: a step costs its launches, whatever its width.
    return replace(Disambiguator.load(model, device), batch_rows=131_072, group=2048)


def gpu(model: Path, path: Path, rounds: int, device: str, copies: int) -> None:
    """Measure one accelerator end to end from text, and the shares of tokenising, transfer and model."""
    documents = read_documents(path) * copies
    nlp = _on_device(model, device)
    where = torch.device(device)
    mentions = sum(len(document.mentions) for document in documents)
    name = torch.cuda.get_device_name() if where.type == "cuda" else "CPU"
    print(f"{name}, torch {torch.__version__}; {len(documents)} documents, {mentions} mentions")
    for windows in ("per_mention", "overlapping", "simple"):
        for label, settings in ORDERS.items():
            call: dict[str, Any] = {"top": None, "windows": windows, **settings}
            list(nlp.disambiguate_many(documents, **call))
            seconds = []
            for _ in range(rounds):
                _wait(where)
                begun = time.perf_counter()
                list(nlp.disambiguate_many(documents, **call))
                _wait(where)
                seconds.append(time.perf_counter() - begun)
            shares = _shares(nlp, documents, call, where)
            took = median(seconds)
            parts = ", ".join(f"{part} {100 * share:.0f} %" for part, share in shares.items())
            rates = f"{len(documents) / took:.0f} documents/s, {mentions / took:.0f} mentions/s"
            print(f"{windows}, {label}: {rates}; {parts}", flush=True)
    if where.type == "cuda":
        print(f"peak memory {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")


def share_gpu(model: Path, path: Path, rounds: int, device: str, copies: int, processes: int) -> None:
    """Measure one accelerator that several processes share: each has the model and its share of the documents.

    One process leaves the accelerator waiting while Python prepares its next batch. NVIDIA's MPS, where it can be
    started, lets kernels of several processes run side by side; without it they take turns.
    """
    control = shutil.which("nvidia-cuda-mps-control")
    mps = control is not None and subprocess.run([control, "-d"], check=False).returncode == 0
    context = get_context("spawn")
    gate = context.Barrier(processes + 1, timeout=600)
    workers = [
        context.Process(target=_work, args=(model, path, rounds, device, copies, slice(index, None, processes), gate))
        for index in range(processes)
    ]
    try:
        for worker in workers:
            worker.start()
        number = len(read_documents(path)) * copies
        print(f"{processes} processes on {device}, {'under' if mps else 'without'} MPS; {number} documents")
        for label in ORDERS:
            seconds = []
            for _ in range(rounds):
                gate.wait()  # all are ready
                begun = time.perf_counter()
                gate.wait()  # all are done
                seconds.append(time.perf_counter() - begun)
            print(f"simple, {label}: {number / median(seconds):.0f} documents/s", flush=True)
        for worker in workers:
            worker.join()
    finally:
        for worker in workers:
            worker.terminate()
        if mps and control is not None:
            subprocess.run([control], input="quit\n", text=True, check=False)


def _work(
    model: Path, path: Path, rounds: int, device: str, copies: int, share: slice, gate: threading.Barrier
) -> None:
    torch.set_num_threads(1)
    documents = (read_documents(path) * copies)[share]
    nlp = _on_device(model, device)
    for settings in ORDERS.values():
        call: dict[str, Any] = {"top": None, "windows": "simple", **settings}
        list(nlp.disambiguate_many(documents, **call))
        for _ in range(rounds):
            gate.wait()
            list(nlp.disambiguate_many(documents, **call))
            gate.wait()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def _shares(
    nlp: Disambiguator, documents: list[Document], call: dict[str, Any], device: torch.device
) -> dict[str, float]:
    """Time the parts of a run, each waited for: shares of a run that is a little slower than the measured ones."""
    import deixis.disambiguation.scheduling

    inference: Any = deixis.disambiguation.scheduling
    spent: dict[str, float] = {}

    def timed(part: str, plain: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            _wait(device)
            begun = time.perf_counter()
            result = plain(*args, **kwargs)
            _wait(device)
            spent[part] = spent.get(part, 0.0) + time.perf_counter() - begun
            return result

        return call

    kept = inference.decode, inference.make_batch, inference._question, nlp.tokenizer.encode_many
    transfer = timed("transfer", lambda x: x.to(device))
    plain = inference.make_batch, inference._question
    inference.decode = timed("model", inference.decode)
    inference.make_batch = lambda windows: transfer(plain[0](windows))
    inference._question = lambda tasks, settings: transfer(plain[1](tasks, settings))
    nlp.tokenizer.encode_many = timed("tokenising", nlp.tokenizer.encode_many)  # type: ignore[method-assign]
    begun = time.perf_counter()
    try:
        list(nlp.disambiguate_many(documents, **call))
        _wait(device)
    finally:
        inference.decode, inference.make_batch, inference._question = kept[:3]
        del nlp.tokenizer.__dict__["encode_many"]
    whole = time.perf_counter() - begun
    spent["the rest (Python)"] = whole - sum(spent.values())
    return {part: seconds / whole for part, seconds in spent.items()}


COMMITS: list[dict[str, Any]] = [
    {"windows": "simple", "commit": commit} for commit in ("one", 1.0, 0.99, 0.95, 0.9, 0.8, 0.6, 0.5)
]
SPLITTINGS: list[dict[str, Any]] = [
    {"windows": "per_mention"},
    {"windows": "overlapping"},
    {"windows": "simple"},
]


def accuracies(
    nlp: Disambiguator, documents: Sequence[Document], variants: Sequence[dict[str, Any]], old: Path | None
) -> None:
    """Print accuracy against cost of some settings in confidence order, and of local order."""
    moved = dict(line.split("\t")[:2] for line in old.read_text().splitlines()) if old else {}
    golds = [moved.get(m.entity or "", m.entity) for document in documents for m in document.mentions]
    print("| settings | accuracy | passes/document | CPU s |\n|---|---:|---:|---:|")
    for settings in ({"order": "local", **variants[0]}, *variants):
        used = time.process_time()
        results = list(nlp.disambiguate_many(documents, top=None, **settings))
        used = time.process_time() - used
        answers = [moved.get(r.entity or "", r.entity) for result in results for r in result]
        right = sum(a == b for a, b in zip(answers, golds, strict=True) if b is not None)
        passes = sum(result.passes for result in results) / len(results)
        label = ", ".join(f"{name}={value}" for name, value in settings.items())
        accuracy = 100 * right / max(1, sum(gold is not None for gold in golds))
        print(f"| {label} | {accuracy:.2f} | {passes:.2f} | {used:.1f} |", flush=True)


TIE = 1e-6  # probabilities this near are told apart by how sums were rounded; near 1 the next number is 6e-8 away


class Uncached:
    """Algorithm 1 as it is written: every step reads a window anew, all rows through all layers, under a mask."""

    def __init__(self, network: Network, window: Window, candidates: Sequence[Sequence[int]]) -> None:
        self.network, self.batch, self.candidates = network, make_batch([window]), candidates
        with torch.inference_mode():
            self.positions = network.entity_embeddings.positions(self.batch)
            self.rows = [network.candidate_rows(torch.tensor(rows, dtype=torch.int64)) for rows in candidates]

    @torch.inference_mode()
    def probabilities(self, answers: dict[int, int]) -> dict[int, Tensor]:
        """Return the softmax over each open mention's candidates, given the rows of B that others have become."""
        entities = torch.tensor([answers.get(place, MASK) for place in range(len(self.candidates))])
        states = self.network.entity_predictions(self._states(entities))
        return {
            place: torch.softmax(weight @ states[place] + bias, 0)
            for place, (weight, bias) in enumerate(self.rows)
            if len(bias) and place not in answers
        }

    def _states(self, entities: Tensor) -> Tensor:
        network, number = self.network, len(entities)
        own = network.entity_embeddings(entities, self.positions)
        rows: Tensor = network.embeddings(self.batch.pieces, self.batch.places)
        layers = network.encoder.layers
        first = 0
        if network.config.words_see == "placeholders":
            rows = torch.cat((rows, network.entity_embeddings(None, self.positions)))
            first = len(layers) - (network.config.answer_layers or len(layers))
        static = len(rows)
        for index, layer in enumerate(layers):
            if index == first:
                rows = torch.cat((rows, own + rows[static - number :] if first else own))
            seen = torch.ones(len(rows), len(rows), dtype=torch.bool)
            if network.config.words_see == "placeholders":
                seen[:static, static:] = False
            query, (keys, values) = layer.attention.project(rows)
            attended = F.scaled_dot_product_attention(query[None], keys[None], values[None], attn_mask=seen[None])
            rows = layer.finish(attended[0].transpose(0, 1).flatten(1), rows)
        return rows[-number:]

    def decide(self, theirs: Sequence[tuple[int, int]] | None = None) -> list[tuple[int, int, float | None]]:
        """Return the decisions in their order: a mention, which of its candidates, and None.

        Given the decisions of another, those are committed, and where one is not our own the third says by how much
        less probable it is.
        """
        decided: list[tuple[int, int, float | None]] = [
            (place, 0, None)
            for place, rows in enumerate(self.candidates)
            if len(rows) == 1  # these need no pass
        ]
        answers = {place: self.candidates[place][0] for place, _, _ in decided}
        while chances := self.probabilities(answers):
            best = {place: float(each.max()) for place, each in chances.items()}
            place = max(best, key=lambda place: (best[place], -place))
            choice, behind = int(chances[place].argmax()), None
            if theirs is not None and theirs[len(decided)] != (place, choice):
                highest = best[place]
                place, choice = theirs[len(decided)]
                behind = highest - float(chances[place][choice])
            decided.append((place, choice, behind))
            answers[place] = self.candidates[place][choice]
        return decided


def exact(nlp: Disambiguator, documents: Sequence[Document]) -> None:
    """Compare the answers and steps of confidence order with those of the algorithm without a cache.

    Each step is compared given the same decisions before it. Where one is another, the uncached algorithm goes its own
    way once more from the window's first step, so that what comes of a tie is seen as well.
    """
    settings = Settings(windows="simple")
    steps = answers = 0
    behind: list[float] = []
    for document, result in zip(documents, nlp.disambiguate_many(documents, settings), strict=True):
        options = nlp._begin(document, None, settings).choices
        encoding = nlp.tokenizer.encode(document.text, [(m.start, m.end) for m in document.mentions])
        for window in windows_of(nlp.tokenizer, encoding, "simple"):
            given = [options[mention] for mention in window.mentions.tolist()]
            found = [result[mention] for mention in window.mentions.tolist()]
            ours = [
                (place, given[place].titles.index(found[place].entity or ""))
                for place in sorted(range(len(given)), key=lambda place: found[place].step)
                if given[place].rows
            ]
            uncached = Uncached(nlp.network, window, [option.rows for option in given])
            other = [each for _, _, each in uncached.decide(ours) if each is not None]
            if other:
                answers += len({*ours} - {(place, choice) for place, choice, _ in uncached.decide()})
            steps += len(ours)
            behind += other
    ties = sum(each <= TIE for each in behind)
    print(
        f"{steps} steps, {len(behind)} of them others without a cache: {ties} where the two are as probable within "
        f"{TIE:g}, {len(behind) - ties} where they are not (at most {max(behind, default=0.0):.1e}); "
        f"{answers} of {steps} answers others",
        flush=True,
    )


def texts(nlp: Disambiguator, documents: Sequence[Document], rounds: int) -> None:
    """Time plain texts from end to end, mentions and candidates found by the model itself."""
    for order in ("local", "confidence"):
        seconds = []
        for _ in range(rounds):
            begun = time.perf_counter()
            found = sum(len(result) for result in nlp.link_many([d.text for d in documents], order=order))
            seconds.append(time.perf_counter() - begun)
        rate = len(documents) / median(seconds)
        print(f"{order}: {median(seconds):.1f} s, {rate:.1f} documents/s, {found} mentions found", flush=True)


def memory(model: Path, names: Sequence[str]) -> None:
    """Print the highest memory of each way, in a process of its own, on the documents of `point`."""
    for name in names:
        command = [sys.executable, __file__, "point", "--model", str(model), "--way", name, "--rounds", "1", "--peak"]
        peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]
        print(f"{name}: {float(peak):.0f} MiB")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "what",
        choices=("point", "sweep", "sets", "curve", "long", "exact", "texts", "documents", "bare", "gpu", "memory"),
    )
    parser.add_argument(
        "path", type=Path, nargs="?", help="of the documents, for `documents` and `gpu`; of the folder, for `bare`"
    )
    parser.add_argument("--model", type=Path, help="a model folder")
    parser.add_argument("--data", type=Path, help="the folder with the benchmarks")
    parser.add_argument("--set", action="append", dest="sets", metavar="NAME=LISTS", help="e.g. aida-b=ppr")
    parser.add_argument("--redirects", type=Path, help="old to new titles, lines old TAB new, for `curve` and `long`")
    parser.add_argument("--way", action="append", dest="ways", help=f"of {', '.join(DEFAULT_WAYS)}, paper")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, CORES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=16, help="generated documents")
    parser.add_argument("--limit", type=int, help="only the first documents of a set")
    parser.add_argument(
        "--copies", type=int, default=1, help="of the documents, for `gpu`: one set alone is over too soon"
    )
    parser.add_argument("--processes", type=int, default=1, help="that share the accelerator, for `gpu`")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--windows", help="how documents over 510 pieces are split, for `sets`")
    parser.add_argument("--precision", default="fp32", help="for `curve`, `long`, `exact` and `texts`")
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--peak", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_intermixed_args()
    names = tuple(given.ways or DEFAULT_WAYS)
    if given.what == "documents":
        write_documents(given.path, [d for documents in read_sets(given.data, given.sets).values() for d in documents])
        return
    if given.what == "bare":
        ModelFolder.load(given.model).save(given.path, table="int8", encoder="int8")
        return
    if given.what == "gpu":
        if given.processes > 1:
            share_gpu(given.model, given.path, given.rounds, given.device, given.copies, given.processes)
        else:
            gpu(given.model, given.path, given.rounds, given.device, given.copies)
        return
    if given.what == "memory":
        memory(given.model, names)
        return
    if given.what in ("curve", "long", "exact", "texts"):
        nlp = Disambiguator.load(given.model, precision=given.precision)
        for label, documents in read_sets(given.data, given.sets).items():
            some = documents[: given.limit]
            print(f"\n{label}: {len(some)} documents\n")
            if given.what == "exact":
                exact(nlp, some)
            elif given.what == "texts":
                torch.set_num_threads(given.threads[-1])
                texts(nlp, some, given.rounds)
            else:
                accuracies(nlp, some, COMMITS if given.what == "curve" else SPLITTINGS, given.redirects)
        return
    for threads in given.threads:
        torch.set_num_threads(threads)
        print(f"\n## {threads} thread(s), {'CPU time' if threads == 1 else 'wall time'}")
        ways = Ways(given.model, given.windows)
        if given.what == "sweep":
            sweep(ways, names, given.rounds, given.count, given.svg if threads == given.threads[-1] else None)
            continue
        nlp = ways.opened("own", "fp32")
        if given.what == "point":
            made = generate(nlp.tokenizer, short_titles(nlp.vocabulary, nlp.tokenizer), 20, 256, given.count)
            sets = {"20 mentions, 256 pieces": made}
        else:
            sets = read_sets(given.data, given.sets)
        for label, documents in sets.items():
            some = documents[: given.limit]
            print(
                f"\n{label}: {len(some)} documents\n\n{table(compare(ways, names, some, given.rounds, 2), some)}",
                flush=True,
            )
    if given.peak:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
