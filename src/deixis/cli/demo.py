"""`make demo`: link a news-like text with the packaged model and show in which order its names were decided."""

from __future__ import annotations

import argparse

from rich.console import Console

from deixis.errors import ArtefactError
from deixis.folder.model_folder import packaged_model
from deixis.inference import Disambiguator
from deixis.rendering import linked_text
from deixis.toy.__main__ import main as toy

__all__ = ["TEXT", "main", "show"]

# Written for this purpose. Cities and countries stand for their teams, and only the other names say so.
TEXT = (
    "Chicago beat New York 5-3 on Tuesday; the White Sox had lost to the Yankees the night before. Boston lost to "
    "Detroit in ten innings, and the Red Sox fell three games behind Toronto. The game was watched by the president of "
    "Georgia, who will fly to Washington on Monday to speak with the White House about gas from Azerbaijan. Turkey and "
    "Russia, whose pipelines cross the Black Sea, sent their ministers to Tbilisi. The New York Times reported that "
    "Moscow would rather talk in Paris, where President Chirac meets Blair and Bush this week."
)


def main(arguments: list[str] | None = None) -> None:
    """Link the text, or fall back to the toy world where this copy has no model."""
    argparse.ArgumentParser(prog="python -m deixis.cli.demo", description=__doc__).parse_args(arguments)
    console = Console(highlight=False)
    try:
        folder = packaged_model()
    except ArtefactError as error:
        console.print(f"{error}. Until then, a toy world that is trained on the spot:\n", markup=False)
        toy([])
        return
    show(Disambiguator.load(folder), console)


def show(nlp: Disambiguator, console: Console) -> None:
    """Print the text with its links in the order of decisions, and what that order changed."""
    console.print(
        "[bold]A text that no model has seen[/bold]: its names are found, then decided, the surest first; each answer "
        "is an input of the next. Numbers are steps.\n"
    )
    console.print(linked_text(nlp(TEXT)))
    # Every name answered, however unsure: what one pass makes of it against what the order makes of it.
    together, alone = (nlp(TEXT, order=order, answer_threshold=0) for order in ("confidence", "local"))
    changed = [(one, other) for one, other in zip(together, alone, strict=True) if one.entity != other.entity]
    console.print(f"In one pass, without seeing any answer, {len(changed)} of {len(together)} would be another.")
    for one, other in changed:
        console.print(f"  {one.text} → {other.entity}, not {one.entity}", markup=False)


if __name__ == "__main__":
    main()
