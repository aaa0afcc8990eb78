"""A made-up wiki of any size: what its folder costs to build, to open, to ask and to change.

python benchmarks/wiki_scale.py build ENTITIES --work FOLDER       names and rows -> FOLDER/wiki, each step timed
python benchmarks/wiki_scale.py ask --work FOLDER                  open, link, look up; the packaged model beside it
python benchmarks/wiki_scale.py add --work FOLDER [--count 1000]   `deixis entities add`, as a user calls it

An entity has a title, a title that leads to it and two link texts, of which the shorter is shared with others, as
surnames are: three names an entity in all. Words are made of syllables; first names are drawn by Zipf's law, so that
tries share what those of a wiki share; links fall off by rank. Rows are random numbers: what they say changes no time.
Nothing of what is made is kept but the folder itself. The steps are those of `deixis wikipedia` once the dump is read
(folder/wiki.py), without the counting of names in texts.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

CONSONANTS, VOWELS = "b d f g h k l m n p r s t v z br st tr", "a e i o u an er il on us"
SYLLABLES = [first + then for first in CONSONANTS.split() for then in VOWELS.split()]
KINDS = ("film", "album", "village", "footballer", "river", "novel", "politician", "band")
SMOOTHING = 0.25  # as folder/wiki.py has it


def words(number: int, seed: int) -> list[str]:
    """Return different words of two to four syllables."""
    drawn = random.Random(seed)
    found: dict[str, None] = {}
    while len(found) < number:
        found["".join(drawn.choices(SYLLABLES, k=drawn.choice((2, 2, 3, 3, 4)))).capitalize()] = None
    return list(found)


def titles(size: int) -> Iterator[str]:
    """Yield different titles: two words, or two words and what kind of thing it is where somebody has the name."""
    first, last = words(max(64, size // 50), 1), words(max(128, size // 4), 2)
    drawn, seen = np.random.default_rng(3), set[int]()
    while len(seen) < size:
        ranks = (drawn.zipf(1.2, 65_536) - 1) % len(first), drawn.integers(len(last), size=65_536)
        kinds = drawn.integers(len(KINDS), size=65_536)
        for a, b, kind in zip(*map(np.ndarray.tolist, ranks), kinds.tolist(), strict=True):
            code = (a * len(last) + b) * (len(KINDS) + 1)
            code = code if code not in seen else code + 1 + kind
            if code not in seen and len(seen) < size:
                seen.add(code)
                end = code % (len(KINDS) + 1)
                yield f"{first[a]} {last[b]}" + (f" ({KINDS[end - 1]})" if end else "")


def build(given: argparse.Namespace) -> None:
    """Build the folder, and tell what each step took."""
    from deixis.artefacts import Manifest
    from deixis.folder.model_folder import packaged_model
    from deixis.folder.wiki import Base, write_folder
    from deixis.knowledge.assemble import FromStore
    from deixis.knowledge.build import NamesBuilder
    from deixis.knowledge.names import Names
    from deixis.knowledge.vocabulary import Vocabulary
    from deixis.network.special import SPECIAL

    work = given.work / "work"
    shutil.rmtree(work, ignore_errors=True)
    (work / "rows").mkdir(parents=True)
    clock = Clock()
    entities = list(titles(given.entities))
    clock.tell("titles made up (not counted)", count=False)
    base = Base.open(packaged_model(), "cpu")
    shards = list(rows(work / "rows", given.entities, base.model.network.config.entity_size))
    clock.tell("random rows written (not counted)", count=False)
    between = words(max(64, given.entities // 50), 5)
    led = {}
    for place, title in enumerate(entities):
        first, last = title.partition(" (")[0].split()
        led[f"{first} {between[place % len(between)]} {last}{title[len(first) + len(last) + 1 :]}"] = title
    builder = NamesBuilder(led)
    for place, title in enumerate(entities):
        links, last = 1 + 10_000 // (place + 1), title.partition(" (")[0].split()[1]
        builder.add_title(title)
        builder.add_link(last, title, links)
        builder.add_link(f"{between[place % len(between)]} {last}", title, links)
    clock.tell("names collected")
    told = builder.save(work / "names", {}, {}, smoothing=SMOOTHING)
    del builder
    clock.tell(f"names written: {told.counts['names']:,}, and {told.counts['parts']:,} parts of titles")
    store = Names.open(work / "names")
    counts = dict(store.titles())
    vocabulary = Vocabulary([*SPECIAL, *entities], [0] * len(SPECIAL) + [counts[title] for title in entities])
    names = FromStore.of(vocabulary, store, led, described=frozenset(entities))
    del vocabulary, counts, led
    clock.tell("names and entities joined")
    told = Manifest("model", {"language": "en", "domain": "made-up.example.org"})
    write_folder(entities, shards, base, names, told, given.work / "wiki")
    clock.tell("folder written")
    shutil.rmtree(work)
    print(f"{clock.seconds:,.0f} s in all, {clock.work:,.0f} s of a core, {peak():,.0f} MB at most")
    for path in sorted((given.work / "wiki").rglob("*")):
        if path.is_file():
            print(f"{path.stat().st_size:>15,}  {path.relative_to(given.work / 'wiki')}")


class Clock:
    """Tells the seconds of steps."""

    def __init__(self) -> None:
        self.seconds = self.work = 0.0
        self._last = time.monotonic(), time.process_time()

    def tell(self, what: str, count: bool = True) -> None:
        """Print what was done since it was last asked."""
        now = time.monotonic(), time.process_time()
        seconds, work = now[0] - self._last[0], now[1] - self._last[1]
        self.seconds, self.work = self.seconds + seconds * count, self.work + work * count
        print(f"{seconds:8.2f} s  {work:8.2f} s of a core  {peak():8,.0f} MB  {what}", flush=True)
        self._last = now


def rows(folder: Path, size: int, columns: int) -> Iterator[Path]:
    """Write random rows in shards as `deixis wikipedia` does."""
    from deixis.folder.wiki import SHARD

    drawn = np.random.default_rng(4)
    for number, start in enumerate(range(0, size, SHARD)):
        count = min(SHARD, size - start)
        path, shape = folder / f"{number:06}.npz", (count, columns)
        np.savez(
            path,
            rows=drawn.integers(-127, 128, shape, np.int8),
            scales=np.full(count, 0.01, np.float32),
            biases=drawn.normal(size=count).astype(np.float32),
            leads=np.ones(count, np.uint32),
        )
        yield path


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def resident() -> tuple[float, float]:
    """Return the memory of this process and what of it are no mapped files, in MB."""
    told = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return tuple(int(told[name].split()[0]) / 1e3 for name in ("VmRSS", "RssAnon"))  # type: ignore[return-value]


# --- Asking -----------------------------------------------------------------------------------------------------------


def ask(given: argparse.Namespace) -> None:
    """Measure the folder and the packaged model, each in a process of its own."""
    from deixis.folder.model_folder import opened, packaged_model

    for folder in (given.work / "wiki", opened(packaged_model())[0]):
        command = [sys.executable, __file__, "asked", "--work", str(folder), "--texts", str(given.texts)]
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})


def asked(given: argparse.Namespace) -> None:
    """Open a folder, link texts of its own names, look names up."""
    import torch

    from deixis.folder.model_folder import KNOWLEDGE, ModelFolder
    from deixis.inference import Disambiguator
    from deixis.knowledge.knowledge import Knowledge

    torch.set_num_threads(1)
    print(f"{given.work}: {sum(p.stat().st_size for p in given.work.rglob('*') if p.is_file()):,} bytes")
    clock = Clock()
    knowledge = Knowledge.open(given.work / KNOWLEDGE)
    clock.tell(f"knowledge open: {len(knowledge):,} rows")
    ModelFolder.load(given.work)
    clock.tell("model folder open")
    nlp = Disambiguator.load(given.work)
    clock.tell("model open")
    texts = list(made_up(knowledge, given.texts))
    clock.tell("texts made up")
    found = sum(map(len, nlp.link_many(texts, answer_threshold=0)))
    clock.tell(f"{len(texts):,} texts linked, {found:,} mentions")
    print("resident {:,.0f} MB, {:,.0f} of it no mapped file".format(*resident()))
    print(f"{lookups(knowledge):,.0f} look-ups a second")


def some(knowledge: object, number: int, seed: int) -> list[str]:
    """Return names that the knowledge has, all alike probable."""
    tries = knowledge._names  # type: ignore[attr-defined]
    return [tries.restore_key(place) for place in random.Random(seed).sample(range(len(tries)), number)]


def made_up(knowledge: object, number: int) -> Iterator[str]:
    """Yield texts of ten names each."""
    names = iter(some(knowledge, 10 * number, 1))
    while told := list(islice(names, 10)):
        yield ". ".join(f"Then came {name.title()}" for name in told) + "."


def lookups(knowledge: object, number: int = 50_000) -> float:
    """Return how many names are looked up in a second of a core, each the first time; the best of three."""
    best = 0.0
    for seed in (2, 3, 4):
        names = some(knowledge, number, seed)
        knowledge.named.cache_clear()  # type: ignore[attr-defined]
        begun = time.process_time()
        for name in names:
            knowledge.lookup(name)  # type: ignore[attr-defined]
        best = max(best, number / (time.process_time() - begun))
    return best


# --- Adding -----------------------------------------------------------------------------------------------------------


def add(given: argparse.Namespace) -> None:
    """Add, change and remove entities with the command."""
    deixis = [sys.executable, "-m", "deixis.cli", "entities"]
    records = [
        {"title": f"Newcomer {title}", "description": "a village on an invented island", "names": [title.split()[0]]}
        for title in islice(titles(max(2 * given.count, 1000)), given.count)
    ]
    new, removed = given.work / "new.jsonl", given.work / "removed.txt"
    new.write_text("".join(json.dumps(record) + "\n" for record in records))
    removed.write_text("".join(f"{record['title']}\n" for record in records))
    wiki, more, less = given.work / "wiki", given.work / "more", given.work / "less"
    steps: Sequence[tuple[str, list[object]]] = (
        ("added", ["add", wiki, new, "-o", more]),
        ("updated", ["update", more, new, "-o", given.work / "other"]),
        ("removed", ["remove", more, "--from", removed, "-o", less]),
    )
    for what, command in steps:
        begun, before = time.monotonic(), worked()
        subprocess.run([*deixis, *map(str, command)], check=True, stdout=subprocess.DEVNULL)
        print(
            f"{time.monotonic() - begun:8.2f} s  {worked() - before:8.2f} s of a core  {given.count:,} {what}",
            flush=True,
        )


def worked() -> float:
    """Return the CPU seconds of the commands that have ended."""
    told = resource.getrusage(resource.RUSAGE_CHILDREN)
    return told.ru_utime + told.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for run in (build, ask, asked, add):
        command = commands.add_parser(run.__name__, help=run.__doc__)
        command.set_defaults(run=run)
        command.add_argument("--work", type=Path, required=True, help="where the folder is made")
        if run is build:
            command.add_argument("entities", type=int)
        elif run is add:
            command.add_argument("--count", type=int, default=1000)
        else:
            command.add_argument("--texts", type=int, default=1000)
    given = parser.parse_args()
    given.run(given)


if __name__ == "__main__":
    main()
