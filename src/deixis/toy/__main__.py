"""`make demo`: train the island of Velm and watch a text being resolved, step by step."""

from __future__ import annotations

import tempfile
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from deixis.documents import Resolutions
from deixis.inference import Disambiguator
from deixis.rendering import sequence_text
from deixis.toy import RECIPE, build, marked

TEXT = marked(
    "After the [Silver Oar|Velm Cup (rowing)] [Marlow|Ada Marlow (rower)] thanked [Brandt|Lena Brandt (coach)] and the "
    "[Harbour Club|Harbour Club (rowing)]. The [Falcon|Falcon (boat)] was praised by [Quill|Tom Quill]. Nobody will "
    "forget [Orrin|Orrin (lake)]."
)


def main() -> None:
    """Train in a temporary folder, then resolve one text in two orders."""
    console = Console(highlight=False)
    console.print(
        "[bold]The island of Velm[/bold] is a small invented Wikipedia: two Ada Marlows (a rower, a chess player), "
        "two Velm Cups,\ntwo Falcons (a boat, an opening), two Orrins (a lake, a king). A small network learns it "
        "from the links of its pages.\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        nlp = train(Path(folder), console)
        local, confidence = nlp.disambiguate(TEXT, order="local"), nlp.disambiguate(TEXT)
    console.print(
        "\n[bold]Now a text it has never seen.[/bold] [underline]Silver Oar[/underline] is a name that leads to one "
        "entity only, so it is decided first;\neach answer becomes an input, and the next surest follows. Numbers are "
        "steps, ✓ and ✗ are right and wrong.\n"
    )
    console.print(sequence_text(confidence))
    compare(local, confidence, console)


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


def compare(local: Resolutions, confidence: Resolutions, console: Console) -> None:
    """Say what the global order changed."""
    golds = [mention.entity for mention in confidence.document.mentions]
    for name, result in (("local: one pass, no answer seen", local), ("confidence: the surest first", confidence)):
        right = sum(resolution.entity == gold for resolution, gold in zip(result, golds, strict=True))
        console.print(f"{right} of {len(golds)} right in [bold]{name}[/bold]")
    for one, other in zip(local, confidence, strict=True):
        if one.entity != other.entity:
            console.print(f"  {one.text}: local says {one.entity}, confidence {other.entity}")
    console.print(f"\nrecipe: {RECIPE.epochs:g} epochs at {RECIPE.learning_rate:g}; see src/deixis/toy/__init__.py")


if __name__ == "__main__":
    main()
