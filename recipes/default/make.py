"""The default model, from corpora to a finished folder: each step a command of deixis, skipped where its artefact is.

    python recipes/default/make.py OUT --wikipedia FOLDER --enwik8 FILE --bert FOLDER --benchmarks FOLDER
    python recipes/default/make.py OUT … --until windows       # stop there; the next run goes on
    python recipes/default/make.py OUT … --finetuned           # and the variant fine-tuned on AIDA, with its report

All parameters are in recipe.toml beside this file. What is made, in OUT:

    enwik8.jsonl.zst → redirects.tsv, include.txt → vocabulary.jsonl → store → windows → vectors.npy
    → stage1 → stage2 → cut → shortened, shortened-vectors.npy → stage3 → mean       one teacher
    → named → named1 → named2 → named-cut → named-mean                               the other
    → unlinked → pupil1 → pupil2 → taught → fitted → quantised → assembled
    → model (calibrated, its card in README.md) ← reports/*.json

Change a parameter, delete what was made with it, and run again: what deixis made refuses strangers.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from card import write_card

from deixis.artefacts import open_text, write_aside
from deixis.cli import app
from deixis.datasets import open_dataset
from deixis.documents import normalise_title
from deixis.errors import DeixisError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.training.__main__ import main as training

HERE = Path(__file__).parent
Table = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """What makes an artefact."""

    artefact: Path
    make: Callable[[], None]

    @property
    def name(self) -> str:
        return self.artefact.name.split(".")[0]


def options(table: Table) -> list[str]:
    """Return a table as options of a command; tables in it are not for the command."""
    words: list[str] = []
    for name, value in table.items():
        if value is True:
            words.append(f"--{name}")
        elif isinstance(value, list):
            words += [word for item in value for word in (f"--{name}", str(item))]
        elif not isinstance(value, dict | bool):
            words += [f"--{name}", str(value)]
    return words


def fields(table: Table) -> list[str]:
    """Return the fields of a training recipe as options."""
    return [word for name, value in table.get("fields", {}).items() for word in ("--set", f"{name}={value}")]


def run(*words: object) -> None:
    """Run a command of deixis."""
    arguments = [str(word) for word in words]
    print("deixis", " ".join(arguments), file=sys.stderr, flush=True)
    app(arguments, standalone_mode=False)


class Recipe:
    """The steps, given the recipe's tables and the paths of its inputs."""

    def __init__(self, tables: Table, given: argparse.Namespace) -> None:
        self.tables, self.out, self.bert, self.benchmarks = tables, given.out, given.bert, given.benchmarks
        inputs = {name: [given.wikipedia / path for path in paths] for name, paths in tables["inputs"].items()}
        self.enwik8 = given.enwik8
        self.pages = [self.out / "enwik8.jsonl.zst", *inputs["pages"]]
        self.annotated, self.described = inputs["annotated"], inputs["descriptions"]
        self.aliases, self.moved = inputs["aliases"], inputs["redirects"]
        self.redirects = self.out / "redirects.tsv"

    def steps(self, finetuned: bool) -> Iterator[Step]:
        """Yield the steps in their order."""
        out, tables = self.out, self.tables
        yield Step(self.pages[0], lambda: run("articles", self.enwik8, "-o", self.pages[0]))
        yield Step(self.redirects, self.make_redirects)
        yield Step(out / "include.txt", self.make_include)
        yield Step(out / "vocabulary.jsonl", self.make_vocabulary)
        yield Step(out / "store", self.make_store)
        yield Step(out / "descriptions.tsv", self.make_descriptions)
        whole, cut = out / "vocabulary.jsonl", out / "cut" / "vocabulary.jsonl"
        yield Step(out / "windows", lambda: self.make_windows("windows", whole))
        yield Step(out / "vectors.npy", lambda: self.make_vectors(whole, out / "vectors.npy"))
        yield Step(out / "stage1", lambda: self.train("stage1", self.bert, "--vocabulary", whole))
        yield Step(out / "stage2", lambda: self.train("stage2", out / "stage1"))
        yield Step(out / "cut", lambda: self.make_cut("cut", out / "stage2"))
        yield Step(out / "shortened", lambda: self.make_windows("shortened", cut))
        vectors = out / "shortened-vectors.npy"
        yield Step(vectors, lambda: self.make_vectors(cut, vectors))
        yield Step(out / "stage3", lambda: self.train("stage3", out / "cut", windows="shortened", vectors=vectors))
        yield Step(out / "mean", lambda: self.make_mean("mean"))
        yield Step(out / "named", lambda: self.make_windows("named", whole))
        yield Step(out / "named1", lambda: self.train("named1", self.bert, "--vocabulary", whole, windows="named"))
        yield Step(out / "named2", lambda: self.train("named2", out / "named1", windows="named"))
        yield Step(out / "named-cut", lambda: self.make_cut("named-cut", out / "named2"))
        yield Step(out / "named-mean", lambda: self.make_mean("named-mean"))
        named = out / "named-mean"
        yield Step(out / "unlinked", lambda: self.make_windows("unlinked", named / "vocabulary.jsonl", self.described))
        yield Step(out / "pupil1", lambda: self.teach("pupil1", named))
        yield Step(out / "pupil2", lambda: self.teach("pupil2", out / "pupil1"))
        yield Step(out / "taught", lambda: self.make_mean("taught"))
        yield Step(out / "fitted", self.make_fitted)
        yield Step(out / "quantised", self.make_quantised)
        yield Step(out / "assembled", self.make_named)
        yield Step(out / "model", self.make_model)
        for name in tables["reports"]:
            path = out / "reports" / f"{name}.json"
            yield Step(path, lambda name=name, path=path: self.evaluate(name, out / "model", path))  # type: ignore[misc]
        yield Step(out / "model" / "README.md", self.make_card)
        if finetuned:
            yield Step(out / "tuned", self.finetune)
            path = out / "reports" / "finetuned" / "aida.json"
            yield Step(path, lambda: self.evaluate("aida", out / "tuned", path))

    def make_redirects(self) -> None:
        aliases, described = self.repeated("aliases", self.aliases), self.repeated("descriptions", self.described)
        names = [*self.repeated("annotated", self.annotated), *self.repeated("redirects", self.moved)]
        run("redirects", *self.pages, *names, *aliases, *described, "-o", self.redirects)

    def make_include(self) -> None:
        titles = {
            candidate.entity
            for name, lists in self.tables["include"].items()
            for document in open_dataset(self.benchmarks, name, lists).documents
            for mention in document.mentions
            for candidate in mention.candidates or ()
        }
        with write_aside(self.out / "include.txt") as file:
            file.writelines(f"{title}\n".encode() for title in sorted(titles))

    def make_vocabulary(self) -> None:
        chosen = ["--include", self.out / "include.txt", "--redirects", self.redirects]
        own = options(self.tables["vocabulary"])
        run("vocabulary", *self.pages, *self.annotated, *chosen, *own, "-o", self.out / "vocabulary.jsonl")

    def make_store(self) -> None:
        aliases, described = self.repeated("aliases", self.aliases), self.repeated("descriptions", self.described)
        names = [*self.repeated("annotated", self.annotated), "--redirects", self.redirects]
        run("candidates", "build", *self.pages, *names, *aliases, *described, "-o", self.out / "store")

    def make_descriptions(self) -> None:
        """Keep the descriptions of entities that have a row, the first of each."""
        left = set(Vocabulary.load(self.out / "vocabulary.jsonl").entities)
        with write_aside(self.out / "descriptions.tsv") as written:
            for path in self.described:
                with open_text(path) as file:
                    for line in file:
                        title = normalise_title(line.split(b"\t")[0].decode())
                        if title in left:
                            left.remove(title)
                            written.write(line)

    def make_windows(self, name: str, vocabulary: Path, described: list[Path] | None = None) -> None:
        own = {**self.tables["windows"], **self.tables[name]}
        texts = self.repeated("descriptions", described or [self.out / "descriptions.tsv"])
        run(
            *("windows", *self.pages, *self.annotated, *texts),
            *("--vocabulary", vocabulary, "--tokenizer", self.bert, "--redirects", self.redirects),
            *("--store", self.out / "store", *options(own), "-o", self.out / name),
        )

    def make_vectors(self, vocabulary: Path, path: Path) -> None:
        made = [self.bert, vocabulary, self.out / "descriptions.tsv", path]
        self.run_training("describe", *made, *options(self.tables["describe"]))

    def train(
        self, stage: str, start: Path, *given: object, windows: str = "windows", vectors: Path | None = None
    ) -> None:
        table, out = self.tables[stage], self.out
        described = ["--descriptions", vectors or out / "vectors.npy"]
        run("pretrain", start, out / windows, out / stage, *given, *described, *options(table), *fields(table))

    def teach(self, stage: str, start: Path) -> None:
        table = self.tables[stage]
        given = [f"{self.out / name}={part}" for name, part in table["teachers"].items()]
        teachers = [word for teacher in given for word in ("--teacher", teacher)]
        run("pretrain", start, self.out / "unlinked", self.out / stage, *teachers, *options(table), *fields(table))

    def make_cut(self, name: str, source: Path) -> None:
        given = ["--keep", self.out / "include.txt", *options(self.tables[name])]
        run("quantise", source, "-o", self.out / name, *given)

    def make_mean(self, name: str) -> None:
        table = self.tables[name]
        models = [f"{self.out / part}={weight}" for part, weight in table["models"].items()]
        start = ["--start", f"{self.bert}={table['start']}"] if "start" in table else []
        trust = ["--trust", table["trust"]] if "trust" in table else []
        self.run_training("average", self.out / name, *models, *start, *trust)

    def make_fitted(self) -> None:
        own = options(self.tables["fitted"])
        described = self.out / "descriptions.tsv"
        run("entities", "fit", self.out / "taught", described, "-o", self.out / "fitted", *own)

    def make_quantised(self) -> None:
        news = [*self.annotated, *self.pages][0]  # what the table is rounded for
        keep = ["--keep", self.out / "include.txt", "--articles", news]
        own = options(self.tables["quantised"])
        run("quantise", self.out / "fitted", "-o", self.out / "quantised", *keep, *own)

    def make_named(self) -> None:
        names = ["--names", self.out / "store", "--redirects", self.redirects]
        run("assemble", self.out / "quantised", *names, "-o", self.out / "assembled")

    def make_model(self) -> None:
        given = ["--data", self.benchmarks, "--redirects", self.redirects, *options(self.tables["model"])]
        run("calibrate", self.out / "assembled", "-o", self.out / "model", *given)

    @staticmethod
    def run_training(*words: object) -> None:
        """Run a command of deixis.training."""
        arguments = [str(word) for word in words]
        print("python -m deixis.training", " ".join(arguments), file=sys.stderr, flush=True)
        if training(arguments):
            sys.exit(1)

    def evaluate(self, name: str, model: Path, path: Path) -> None:
        table = dict(self.tables["reports"][name])
        sets, own = table.pop("sets"), options(table)
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_suffix(".part")
        with aside.open("w") as file, contextlib.redirect_stdout(file):
            given = ["--data", self.benchmarks, "--model", model, "--redirects", self.redirects]
            run("evaluate", "sets", *sets, *given, *own, "--json")
        aside.replace(path)

    def make_card(self) -> None:
        reports = [
            orjson.loads((self.out / "reports" / f"{name}.json").read_bytes()) for name in self.tables["reports"]
        ]
        write_card(self.out / "model", reports)

    def finetune(self) -> None:
        table = dict(self.tables["finetune"])
        documents, data = table.pop("documents"), ["--data", self.benchmarks, "--redirects", self.redirects]
        run("finetune", self.out / "model", documents, self.out / "tuned", *data, *options(table), *fields(table))

    @staticmethod
    def repeated(name: str, paths: list[Path]) -> list[object]:
        return [word for path in paths for word in (f"--{name}", path)]


def main(arguments: list[str] | None = None) -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder for everything that is made")
    parser.add_argument("--wikipedia", type=Path, required=True, help="the folder with articles, descriptions, aliases")
    parser.add_argument("--enwik8", type=Path, required=True, help="a dump, e.g. enwik8")
    parser.add_argument("--bert", type=Path, required=True, help="the encoder to start from, a Hugging Face folder")
    parser.add_argument("--benchmarks", type=Path, required=True, help="the folder with the unpacked benchmarks")
    parser.add_argument("--recipe", type=Path, default=HERE / "recipe.toml", help="recipe.toml beside this file")
    parser.add_argument("--until", help="the last artefact to make, e.g. windows")
    parser.add_argument("--finetuned", action="store_true", help="also fine-tune on AIDA, and report that")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    steps = list(Recipe(tomllib.loads(given.recipe.read_text()), given).steps(given.finetuned))
    if given.until not in (None, *(step.name for step in steps)):
        parser.error(f"--until {given.until}: the artefacts are {', '.join(step.name for step in steps)}")
    try:
        for step in steps:
            if step.artefact.exists():
                print(f"{step.artefact} is there", file=sys.stderr)
            else:
                step.make()
            if step.name == given.until:
                break
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
