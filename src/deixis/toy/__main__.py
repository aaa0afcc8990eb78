"""`make demo-toy`: train the island of Velm and watch a text being resolved, step by step."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from deixis.inference import Disambiguator
from deixis.rendering import sequence_text, verdict
from deixis.toy import build, marked

# The same words but for the first name, which leads to one entity only and stands in no page's text.
TEXTS = [
    marked(
        "After the [Silver Oar|Velm Cup (rowing)], [Marlow|Ada Marlow (rower)] thanked [Brandt|Lena Brandt (coach)] "
        "and the [Harbour Club|Harbour Club (rowing)]. The [Falcon|Falcon (boat)] was praised, and nobody will forget "
        "[Orrin|Orrin (lake)]."
    ),
    marked(
        "After the [Golden Rook|Velm Cup (chess)], [Marlow|Ada Marlow (chess player)] thanked "
        "[Brandt|Lena Brandt (composer)] and the [Harbour Club|Harbour Club (chess)]. The [Falcon|Falcon (opening)] "
        "was praised, and nobody will forget [Orrin|Orrin (king)]."
    ),
]


def main(arguments: list[str] | None = None) -> None:
    """Train in a temporary folder, then resolve two texts in two orders."""
    argparse.ArgumentParser(prog="python -m deixis.toy", description=__doc__).parse_args(arguments)
    console = Console(highlight=False)
    console.print(
        "[bold]The island of Velm[/bold] is a small invented Wikipedia with two Ada Marlows (a rower and a chess "
        "player), two Velm Cups, two Falcons (a boat and an opening), two Orrins (a lake and a king). A small network "
        "learns it from the links of its pages.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        show(train(Path(folder), console), console)


def show(nlp: Disambiguator, console: Console) -> None:
    """Resolve the texts, and say what the global order changed."""
    console.print(
        "\n[bold]Now two texts it has never seen[/bold], the same but for their first name. That name leads to one "
        "entity only, so it is decided first; each answer becomes an input, and the next surest follows. Numbers are "
        "steps, ✓ and ✗ are right and wrong.\n"
    )
    for result in nlp.disambiguate_many(TEXTS):
        console.print(sequence_text(result))
    for name, order in (("local: one pass, no answer seen", "local"), ("confidence: the surest first", "confidence")):
        verdicts = [
            verdict(mention, resolution)
            for result in nlp.disambiguate_many(TEXTS, order=order)
            for mention, resolution in zip(result.document.mentions, result, strict=True)
        ]
        console.print(f"{verdicts.count('right'):3} of {len(verdicts)} right in [bold]{name}[/bold]")


def train(folder: Path, console: Console) -> Disambiguator:
    """Build everything, with a progress bar."""
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("training", total=None)
        for step in build(folder):
            progress.update(task, total=step.steps, completed=step.step)
    console.print(
        f"trained on {step.windows * step.steps:,} windows in {step.steps} steps: "
        f"{step.accuracy:.0%} of the masked entities of the last step are right"
    )
    return Disambiguator.load(folder / "model")


if __name__ == "__main__":
    main()
