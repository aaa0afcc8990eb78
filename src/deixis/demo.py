"""`make demo`: link a news-like text with the packaged model and show in which order its names were decided."""

from __future__ import annotations

from rich.console import Console

from deixis.checkpoints import packaged_model
from deixis.errors import ArtefactError
from deixis.inference import Disambiguator
from deixis.rendering import linked_text
from deixis.toy.__main__ import main as toy

__all__ = ["TEXT", "main", "show"]

# Written for this purpose. Cities and countries stand for their teams, and only the other names say so.
TEXT = (
    "Chelsea beat Liverpool by two goals to one at Anfield on Saturday and moved above Arsenal in the Premier League. "
    "Didier Drogba scored twice for the visitors after Steven Gerrard had put Liverpool ahead from the penalty spot. "
    "Barcelona, who meet Chelsea in the Champions League next month, drew with Real Madrid. In Tbilisi, Georgia held "
    "Ireland to a draw, a result that leaves Italy ahead in their World Cup group. The evening was watched by the "
    "president of Georgia, who will fly to Washington on Monday to speak with the White House about gas from "
    "Azerbaijan. Turkey and Russia, whose pipelines cross the Black Sea, sent their ministers. The New York Times "
    "reported that Moscow would rather talk in Paris."
)


def main() -> None:
    """Link the text, or fall back to the toy world where this copy has no model."""
    console = Console(highlight=False)
    try:
        folder = packaged_model()
    except ArtefactError as error:
        console.print(f"{error}. Until then, a toy world that is trained on the spot:\n", markup=False)
        toy()
        return
    show(Disambiguator.load(folder), console)


def show(nlp: Disambiguator, console: Console) -> None:
    """Print the text with its links in the order of decisions, and what that order changed."""
    console.print(
        "[bold]A text that no model has seen[/bold]: its names are found, then decided, the surest first; each answer "
        "is an input of the next. Numbers are steps.\n"
    )
    found = nlp(TEXT)
    console.print(linked_text(found))
    alone = nlp(TEXT, order="local")
    changed = [(one, other) for one, other in zip(found, alone, strict=True) if one.entity != other.entity]
    console.print(f"In one pass, without seeing any answer, {len(changed)} of {len(found)} would be another.")
    for one, other in changed:
        console.print(f"  {one.text} → {other.entity}, not {one.entity}", markup=False)


if __name__ == "__main__":
    main()
