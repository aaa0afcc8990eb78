"""The default model from nothing, in one command; what is there already is not made again.

    python recipes/default/make.py BUILD --data DATA --enwik8 FILE --encoder FOLDER --benchmarks FOLDER

DATA has the folders `wikipedia`, `ner` and `wild`; FILE is the first 10⁸ bytes of the English dump of March 2006; the
encoder is e5-small, a BERT folder. All numbers are in recipe.toml. Where a GPU is needed, the command says what goes
there and what is to come back, and stops; given again, it goes on.

    enwik8.jsonl.zst   articles of the dump
    include.txt        titles in the benchmarks' candidate lists
    known/             aliases.tsv, redirects.tsv, texts.tsv.zst, everything (names), ship.txt
    vocabulary.jsonl   the entities that ship, by their links
    simple.jsonl.zst   first sentences of Simple English Wikipedia
    windows/           what is trained on
    marked.jsonl.xz    texts with marked names
    back/              what the GPU made: the network, the rows, the detector
    full/              the model folder, rows in fp16, network in fp32
    packed/            the same in few bytes
    shipped/           with thresholds and the answer rule, fitted on AIDA testa
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tomllib
from collections.abc import Callable
from itertools import islice
from pathlib import Path

HERE = Path(__file__).parent
SETTINGS = tomllib.loads((HERE / "recipe.toml").read_text())
PAGES = ("articles-en", "articles-2023-en", "articles-html-en", "lists-html-en", "tables-en", "on-this-day-en")
NEWS = "news-silver-en"

GPU = """
What comes next needs a GPU, for 15 minutes of one H200. Bring the repository and the folder {parts} there, with torch,
numpy, tokenizers and safetensors installed:

    export PYTHONPATH=src
    python recipes/default/gpu.py prepare parts/first WORK
    python recipes/default/gpu.py train parts/second WORK --seconds {seconds}
    python recipes/default/gpu.py names WORK

Then bring WORK/back and WORK/names to {back}, and give the same command again."""


class Making:
    """The artefacts in their order."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given, self.build = given, given.build
        self.wikipedia = given.data / "wikipedia"

    def steps(self) -> dict[str, Callable[[Path], None]]:
        """Return what makes each artefact."""
        return {
            "enwik8.jsonl.zst": lambda out: deixis("wikipedia", "articles", self.given.enwik8, "-o", out),
            "include.txt": lambda out: script("include", self.given.benchmarks, out),
            "known/ship.txt": self.known,
            "vocabulary.jsonl": self.vocabulary,
            "simple.jsonl.zst": lambda out: script("simple_english", self.wikipedia / "simple-en.jsonl.xz", out),
            "windows": self.windows,
            "marked.jsonl.xz": lambda out: script("marked_texts", self.given.data / "ner", self.wikipedia, out),
            "back": self.trained,
            "full": self.full,
            "packed": self.packed,
            "shipped": self.shipped,
        }

    @property
    def articles(self) -> list[Path]:
        """The files of articles with links."""
        return [self.build / "enwik8.jsonl.zst", *(self.wikipedia / f"{name}.jsonl.xz" for name in (*PAGES, NEWS))]

    def known(self, out: Path) -> None:
        """Make everything that is known (known.py)."""
        build = self.build
        files = ("--enwik8", build / "enwik8.jsonl.zst", "--include", build / "include.txt")
        script("known", out.parent, "--wikipedia", self.wikipedia, *files)

    def vocabulary(self, out: Path) -> None:
        """Count the links of the entities that ship."""
        limit = SETTINGS["vocabulary"]["entities"]
        top = out.with_name("top.txt")
        with (self.build / "known" / "ship.txt").open() as lines:
            top.write_text("".join(islice(lines, limit)))
        redirects = self.build / "known" / "redirects.tsv"
        options = ("--include", top, "--limit", limit, "--redirects", redirects, "-o", out)
        deixis("wikipedia", "vocabulary", *self.articles, *options)
        top.unlink()

    def windows(self, out: Path) -> None:
        """Pack articles into windows."""
        build = self.build
        deixis(
            *("wikipedia", "windows", *self.articles, build / "simple.jsonl.zst", "--own-name", "--repeats"),
            *("--vocabulary", build / "vocabulary.jsonl", "--tokenizer", self.given.encoder),
            *("--redirects", build / "known" / "redirects.tsv", "--store", build / "known" / "everything"),
            *("--candidates", SETTINGS["windows"]["candidates"], "-o", out),
        )

    def trained(self, out: Path) -> None:
        """Say what is to be done on a GPU."""
        parts, given = self.build / "parts", self.given
        if not parts.exists():
            script("send", self.build, given.encoder, given.benchmarks, given.data / "wild", parts)
        raise SystemExit(GPU.format(parts=parts, back=out, seconds=795))

    def full(self, out: Path) -> None:
        """Put together what came back."""
        tables = (
            "--wikidata",
            self.wikipedia / "wikidata-en.tsv.xz",
            "--titles",
            self.wikipedia / "titles-lower-en.txt.xz",
        )
        script("folder", "take", self.build, self.given.encoder, self.build / "back", *tables, "-o", out)

    def packed(self, out: Path) -> None:
        """Store rows in codes, the network in int8."""
        articles = (self.build / "enwik8.jsonl.zst", self.wikipedia / "articles-en.jsonl.xz")
        script("folder", "pack", self.build / "full", *articles, "-o", out)

    def shipped(self, out: Path) -> None:
        """Fit thresholds and the answer rule."""
        priors = [option for prior in SETTINGS["calibrate"]["prior"] for option in ("--prior", prior)]
        data = ("--data", self.given.benchmarks, "--set", "aida-a")
        deixis("calibrate", self.build / "packed", *data, *priors, "-o", out)


def deixis(*words: object) -> None:
    """Run a command of the package."""
    _run([sys.executable, "-m", "deixis.cli", *map(str, words)])


def script(name: str, *words: object) -> None:
    """Run a script of the recipe."""
    _run([sys.executable, str(HERE / f"{name}.py"), *map(str, words)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def main() -> int:
    """Make what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path, help="the folder for everything that is made")
    parser.add_argument("--data", type=Path, required=True, help="the folder with wikipedia, ner and wild")
    parser.add_argument("--enwik8", type=Path, required=True, help="the dump, unpacked")
    parser.add_argument("--encoder", type=Path, required=True, help="the BERT folder of e5-small")
    parser.add_argument("--benchmarks", type=Path, required=True, help="the folder with the unpacked benchmarks")
    given = parser.parse_args()
    given.build.mkdir(parents=True, exist_ok=True)
    for name, make in Making(given).steps().items():
        if not (given.build / name).exists():
            print(f"making {name}", file=sys.stderr, flush=True)
            make(given.build / name)
    print(f"made: {given.build / 'shipped'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
