"""Vocabulary, candidates and windows: time and memory to build them, and the store's speed (recall: recall.py).

python benchmarks/candidates.py build FOLDER --enwik8 ARTICLES --wikipedia FOLDER --tokenizer FOLDER
python benchmarks/candidates.py speed STORE BENCHMARKS

ARTICLES is what `deixis wikipedia articles` made of enwik8; --wikipedia is the folder with articles-en.jsonl.xz and its
neighbours; BENCHMARKS the folder with the unpacked benchmark files.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from deixis.datasets import read_set
from deixis.knowledge.names import Names
from deixis.knowledge.surfaces import key, variants

SETS = ("aida-a", "aida-b", "msnbc", "aquaint", "ace2004", "cweb", "wiki")
PAGES = ("articles-en.jsonl.xz", "articles-2023-en.jsonl.xz")
ANNOTATED = ("news-silver-en.jsonl.xz", "tables-en.jsonl.xz", "on-this-day-en.jsonl.xz")
DESCRIPTIONS = ("descriptions-en.tsv.xz", "descriptions-more-en.tsv.xz")


# --- building -----------------------------------------------------------------------------------------------------


def build(folder: Path, enwik8: Path, wikipedia: Path, tokenizer: Path) -> None:
    """Run the four commands and print what each took."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = [str(enwik8), *(str(wikipedia / name) for name in PAGES)]
    annotated = [str(wikipedia / name) for name in ANNOTATED]
    table = folder / "redirects.tsv"
    redirects = ["--redirects", str(table)]
    seen = ["--redirects", str(wikipedia / "redirects" / "page-redirects-en.tsv.xz")]
    described = [word for name in DESCRIPTIONS for word in ("--descriptions", str(wikipedia / name))]
    vocabulary, store, windows = folder / "vocabulary.jsonl", folder / "store", folder / "windows"
    names = [word for path in annotated for word in ("--annotated", path)]
    aliases = ["--aliases", str(wikipedia / "redirects" / "aliases-en.tsv.xz")]
    commands = {
        "redirects": ["wikipedia", "redirects", *pages, *names, *seen, *aliases, *described, "-o", str(table)],
        "vocabulary": ["wikipedia", "vocabulary", *pages, *annotated, *redirects, "-o", str(vocabulary)],
        "candidates": ["candidates", "build", *pages, *names, *redirects, *aliases, *described, "-o", str(store)],
        "windows": [
            *("wikipedia", "windows", *pages, *annotated, *redirects, "--vocabulary", str(vocabulary)),
            *("--tokenizer", str(tokenizer), "-o", str(windows)),
        ],
    }
    total = 0.0
    print(f"{'command':12} {'wall s':>8} {'CPU s':>8} {'peak MB, all processes':>24}")
    for name, words in commands.items():
        wall, cpu, peak = _timed([sys.executable, "-m", "deixis.cli", *words])
        total += wall
        print(f"{name:12} {wall:8.1f} {cpu:8.1f} {peak:24,.0f}", flush=True)
    print(f"{'together':12} {total:8.1f}")


def _timed(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return its wall and CPU seconds and the most memory that its processes held together."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)
    peak = [0.0]
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            peak[0] = max(peak[0], sum(_resident(process.pid)))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        code = process.wait()
    finally:
        process.kill()  # where we are interrupted it must not go on by itself
    wall = time.perf_counter() - start
    done.set()
    watcher.join()
    if code:
        sys.exit(f"{' '.join(command)} ended with {code}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, peak[0]


def _resident(session: int) -> Iterator[float]:
    """Yield the resident megabytes of every process of a session."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                yield int((folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        except OSError:
            continue  # it ended while we looked


# --- speed --------------------------------------------------------------------------------------------------------


def speed(folder: Path, benchmarks: Path) -> None:
    """Print the store's size, how long it takes to open, and how many surfaces it answers a second."""
    size = sum(path.stat().st_size for path in folder.iterdir())
    start = time.perf_counter()
    store = Names.open(folder)
    store.lookup("World Cup")
    opened = time.perf_counter() - start
    documents = [document for name in SETS for document in read_set(benchmarks, name).documents]
    surfaces = [document.surface(mention) for document in documents for mention in document.mentions]
    distinct = list(dict.fromkeys(surfaces))
    print(f"store {size / 1e6:.1f} MB, opened and first asked in {opened * 1000:.1f} ms")
    # CPU seconds of one core, so that what else the machine does is not counted.
    for name, asked in (
        ("all mentions of the seven sets, in order", surfaces),
        ("each distinct surface once", distinct),
    ):
        best = 0.0
        for _ in range(3):
            key.cache_clear()
            variants.cache_clear()
            store.forget()
            start = time.process_time()
            for surface in asked:
                store.lookup(surface)
            best = max(best, len(asked) / (time.process_time() - start))
        print(f"{best:10,.0f} look-ups/s: {name} ({len(asked):,}), caches empty at the start, best of 3")
    start = time.process_time()
    for document in documents:
        store.candidates(document)
    print(f"{len(surfaces) / (time.process_time() - start):10,.0f} mentions/s with the document's help")


def main() -> None:
    """Run one part of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    building = parts.add_parser("build")
    building.add_argument("folder", type=Path)
    for name in ("enwik8", "wikipedia", "tokenizer"):
        building.add_argument(f"--{name}", type=Path, required=True)
    part = parts.add_parser("speed")
    part.add_argument("store", type=Path)
    part.add_argument("benchmarks", type=Path)
    given = parser.parse_args()
    if given.part == "build":
        build(given.folder, given.enwik8, given.wikipedia, given.tokenizer)
    else:
        speed(given.store, given.benchmarks)


if __name__ == "__main__":
    main()
