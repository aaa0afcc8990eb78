"""The titles that have a row whatever their count: those of the lists that recipe.toml includes, as in the paper.

python recipes/default/include.py BENCHMARKS include.txt      # the folder with the unpacked benchmarks
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from deixis.artefacts import write_aside
from deixis.datasets import open_dataset
from deixis.errors import DeixisError

RECIPE = Path(__file__).with_name("recipe.toml")


def write_titles(benchmarks: Path, included: dict[str, str], path: Path) -> int:
    """Write the candidates of sets, each with its kind of lists; return how many titles these are."""
    titles = {
        candidate.entity
        for name, lists in included.items()
        for document in open_dataset(benchmarks, name, lists).documents
        for mention in document.mentions
        for candidate in mention.candidates or ()
    }
    with write_aside(path) as file:
        file.writelines(f"{title}\n".encode() for title in sorted(titles))
    return len(titles)


def main() -> int:
    """Write the titles of the recipe's lists."""
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        number = write_titles(Path(sys.argv[1]), tomllib.loads(RECIPE.read_text())["include"], Path(sys.argv[2]))
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    print(f"{number:,} titles")
    return 0


if __name__ == "__main__":
    sys.exit(main())
