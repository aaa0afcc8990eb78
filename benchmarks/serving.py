"""The server under load: throughput against `disambiguate_many`, latency, twice the load, and recovery.

python benchmarks/serving.py MODEL --data BENCHMARKS --set aida-b --longest 1700
python benchmarks/serving.py --random BERT

The documents are those of benchmarks, or of document JSONL that --set names: texts and mentions, and candidates where
the file has them, else the model's store is asked. --random makes a model and documents: a network from a BERT folder
with random entity rows, and generated texts. Everything stays on loopback; every part is bounded in time.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

import httpx
import torch

from deixis.datasets import open_dataset
from deixis.documents import Candidate, Document, Mention
from deixis.folder.model_folder import ModelFolder, network_from_bert
from deixis.inference import Disambiguator
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer
from deixis.serving.limits import Limits

PATIENCE = 1.0  # seconds a refused client waits, less than Retry-After asks for, so that the overload lasts
WORDS = ("the", "team", "played", "in", "a", "city", "with", "players", "and", "won", "game", "after", "war", "river")


@dataclass
class Load:
    """What clients saw."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    hints: Counter[str] = field(default_factory=Counter)  # Retry-After of refusals

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    def line(self) -> str:
        """Say it in a line."""
        cuts = quantiles(self.latencies, n=100)
        refused = f", Retry-After {dict(self.hints)}" if self.hints else ""
        return (
            f"{self.rate:.2f} documents/s, p50 {median(self.latencies):.2f} s, p99 {cuts[98]:.2f} s, "
            f"statuses {dict(self.statuses)}{refused}"
        )


def read_documents(data: Path, sets: list[str], count: int, longest: int | None) -> list[Document]:
    """Return documents of the sets up to a length, spread evenly, without their golds."""
    found = [
        document
        for name in sets
        for document in open_dataset(data, name).documents
        if document.mentions and (longest is None or len(document.text) <= longest)
    ]
    share = len(found) // min(count, len(found))
    bare = (replace(d, mentions=tuple(replace(m, entity=None, extra={}) for m in d.mentions)) for d in found[::share])
    return list(islice(bare, count))


def make_world(bert: Path, folder: Path, count: int) -> tuple[Path, list[Document]]:
    """Write a model folder with random entity rows, and make documents of 40 to 250 words."""
    entities = 5000
    network = network_from_bert(
        bert, entities + 3, torch.Generator().manual_seed(0), words_see="placeholders", answer_layers=2
    )
    vocabulary = Vocabulary.of(f"Entity {number}" for number in range(entities))
    ModelFolder(network, Tokenizer.load(bert), vocabulary).save(folder / "model")
    dice = random.Random(0)
    return folder / "model", [make_document(dice, entities) for _ in range(count)]


def make_document(dice: random.Random, entities: int) -> Document:
    """Return a document with a mention in each twelve words, of 2 to 30 candidates."""
    words = [dice.choice(WORDS) for _ in range(dice.randint(40, 250))]
    named = set(dice.sample(range(len(words)), len(words) // 12))
    text, mentions = "", []
    for place, word in enumerate(words):
        if place in named:
            titles = [f"Entity {number}" for number in dice.sample(range(entities), dice.randint(2, 30))]
            candidates = tuple(Candidate(title, 1 / (rank + 2)) for rank, title in enumerate(titles))
            mentions.append(Mention(len(text), len(text) + len(word), candidates=candidates))
        text += word + " "
    return Document(text, tuple(mentions))


@contextmanager
def server(model: Path, queue: int, rows: int) -> Iterator[str]:
    """Run `deixis serve` on a free port of loopback."""
    limits = ["--queue", str(queue), "--batch-rows", str(rows)]
    command = [sys.executable, "-m", "deixis.cli", "serve", "--model", str(model), "--port", "0", *limits]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"http://127\.0\.0\.1:\d+", process.stderr.readline())
    assert found, "the server did not start"
    try:
        yield found[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


async def load(url: str, bodies: list[bytes], clients: int, seconds: float) -> Load:
    """Let clients send the bodies, each its next when it has its answer, until all are sent or time is up."""
    seen, todo = Load(), iter(bodies)
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    start = time.perf_counter()
    async with httpx.AsyncClient(base_url=url, limits=limits, timeout=120) as session:

        async def client() -> None:
            for body in todo:
                while time.perf_counter() - start < seconds:
                    begin = time.perf_counter()
                    answer = await session.post("/disambiguate", content=body)
                    seen.statuses[answer.status_code] += 1
                    if answer.status_code == 200:
                        seen.latencies.append(time.perf_counter() - begin)
                        break
                    hint = answer.headers.get("retry-after", "no Retry-After")
                    seen.hints[hint] += 1
                    await asyncio.sleep(PATIENCE)

        await asyncio.gather(*(client() for _ in range(clients)))
    seen.seconds = time.perf_counter() - start
    return seen


def measure(model: Path, documents: list[Document], given: argparse.Namespace) -> None:
    """Alternate the library and the server on the same documents, then double the load, then halve it."""
    clients, rounds, seconds = given.clients, given.rounds, given.seconds
    lines = [document.to_json() for document in documents]
    nlp = Disambiguator.load(model)
    list(nlp.disambiguate_many(documents[:8]))
    mentions = sum(len(document.mentions) for document in documents)
    print(f"{len(documents)} documents, {mentions} mentions; {os.cpu_count()} cores; {clients} clients")
    shares, costs = [], []
    with server(model, queue=clients, rows=given.rows) as url:
        asyncio.run(load(url, lines[:8], 8, seconds))
        for number in range(1, rounds + 1):
            begin, used = time.perf_counter(), time.process_time()
            expected = list(nlp.disambiguate_many(documents))
            direct = len(expected) / (time.perf_counter() - begin)
            cost = time.process_time() - used
            before = figure(url, "process_cpu_seconds_total")
            served = asyncio.run(load(url, lines, clients, seconds))
            shares.append(served.rate / direct)
            costs.append((figure(url, "process_cpu_seconds_total") - before) / cost)
            print(
                f"round {number}: disambiguate_many {direct:.2f} documents/s; server {served.line()}: {shares[-1]:.0%}"
            )
            print(
                f"         CPU: {1000 * cost / len(lines):.0f} ms a document; the server's {costs[-1]:.2f} times that"
            )
        print(f"server / disambiguate_many, median of {rounds}: {median(shares):.0%}; CPU {median(costs):.2f} times")
        twice = asyncio.run(load(url, 2 * lines, 2 * clients, seconds))
        print(f"{2 * clients} clients: {twice.line()}")
        again = asyncio.run(load(url, lines, clients, seconds))
        print(f"{clients} clients again: {again.line()}")
        odd = {*twice.statuses} - {200, 503} | {*again.statuses} - {200} | ({"no Retry-After"} & {*twice.hints})
        print(f"answers that should not be: {', '.join(map(str, odd)) or 'none'}")
        for name in ("queue_seconds", "inference_seconds", "batch_documents"):
            total, count = (figure(url, f"deixis_{name}_{part}") for part in ("sum", "count"))
            print(f"/metrics: deixis_{name} mean {total / count:.2f} over {count:.0f}")


def figure(url: str, name: str) -> float:
    """Return one of the server's figures."""
    found = re.search(rf"^{name} (\S+)", httpx.get(f"{url}/metrics").text, re.M)
    assert found, f"/metrics has no {name}"
    return float(found[1])


def main() -> None:
    """Parse, make what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--data", type=Path, default=Path(), help="the folder with the benchmarks")
    parser.add_argument("--set", dest="sets", action="append", metavar="SET", help="a set, or document JSONL; several")
    parser.add_argument("--random", type=Path, metavar="BERT", help="a BERT folder to make a model and documents from")
    parser.add_argument("--count", type=int, default=128, help="documents: spread over the sets, or made")
    parser.add_argument(
        "--longest", type=int, metavar="CHARACTERS", help="of a document of the sets; longer are left out"
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument(
        "--rows", type=int, default=Limits().batch_rows, help="of `deixis serve`: how much is run together"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=60.0, help="the most a part may take")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the server is stopped too
    with tempfile.TemporaryDirectory() as folder:
        if given.random is not None:
            model, documents = make_world(given.random, Path(folder), given.count)
        elif given.model is None:
            parser.error("give a model folder, or --random BERT")
        else:
            sets = given.sets or ["aida-a"]
            model, documents = given.model, read_documents(given.data, sets, given.count, given.longest)
        measure(model, documents, given)


if __name__ == "__main__":
    main()
