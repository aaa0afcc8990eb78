"""`deixis entities`: add, change and remove the entities of a model, or build a knowledge base of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deixis.errors import InputError

if TYPE_CHECKING:
    from deixis.artefacts import Manifest
    from deixis.folder.model_folder import ModelFolder

__all__ = ["entities"]

entities = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Which entities a model knows: add, update, describe, remove, list, show; build a knowledge base of your own.",
)

Model = Annotated[Path, typer.Argument(help="The model folder; it stays as it is.")]
Output = Annotated[Path, typer.Option("--output", "-o", help="The model folder to write.")]
Descriptions = Annotated[list[Path], typer.Argument(metavar="DESCRIPTIONS...", help="Lines title<TAB>description.")]
Records = Annotated[
    Path,
    typer.Argument(
        help='One JSON a line: {"title", "description", "names"?, "url"?, "id"?, "wikidata"?, "examples"?}.'
    ),
]


@entities.command()
def add(
    model: Model,
    new: Records,
    output: Output,
    replace: Annotated[
        bool, typer.Option("--replace", help="Make entities anew that the model has already; else they are refused.")
    ] = False,
) -> None:
    """Add entities by title, description and names; no training.

    Rows of B come from the descriptions, sharpened by examples (sentences that mark the entity as `[[name]]`). A name
    may state its prior, as `["Nova", 0.3]`: the share of its mentions that mean this entity. Without one, new meanings
    of a known name take half together.

    Example: `deixis entities add model new.jsonl -o bigger`
    """
    from deixis.folder.edit import add as add_entities
    from deixis.knowledge.entities import read_entities

    found = list(read_entities(new))
    opened = _load(model)
    changed = add_entities(opened, found, clashes=replace, progress=_progress)
    _tell(_save(changed, model, output, [new]), output, f"{len(found):,} added")


@entities.command()
def update(
    model: Model,
    changes: Annotated[Path, typer.Argument(help="One JSON a line: the title, and the fields that change.")],
    output: Output,
) -> None:
    """Change entities that were added: fields that are given replace the old ones, and the row is made anew.

    An entity that training made has no record; it needs a description, and its row is replaced.

    Example: `deixis entities update model changes.jsonl -o newer`
    """
    from deixis.folder.edit import add as add_entities
    from deixis.knowledge.entities import Entity, read_changes

    opened = _load(model)
    known = {entity.title: entity for entity in map(Entity.from_json, opened.known)}
    found = list(read_changes(changes, known))
    if strange := [entity.title for entity in found if entity.title not in opened.vocabulary]:
        raise InputError(f"{changes}: {strange[0]!r} is no entity of {model}; `deixis entities add` adds it")
    changed = add_entities(opened, found, clashes=True, progress=_progress)
    _tell(_save(changed, model, output, [changes]), output, f"{len(found):,} updated")


@entities.command()
def remove(
    model: Model,
    output: Output,
    titles: Annotated[list[str] | None, typer.Argument(metavar="[TITLE]...", help="Entities to remove.")] = None,
    listed: Annotated[Path | None, typer.Option("--from", help="A list of more titles, one a line.")] = None,
) -> None:
    """Remove entities, trained or added: they lose their rows, and no name means them any more.

    Example: `deixis entities remove model "Velm Cup (chess)" -o smaller`
    """
    from deixis.documents import normalise_title
    from deixis.folder.edit import remove as remove_entities
    from deixis.wikipedia.titles import read_titles

    gone = [*map(normalise_title, titles or []), *(read_titles(listed) if listed else ())]
    if not gone:
        raise InputError("there is no title to remove; give some, or a list with --from")
    opened = _load(model)
    _tell(_save(remove_entities(opened, gone), model, output, []), output, f"{len(set(gone)):,} removed")


@entities.command()
def build(
    knowledge: Records,
    output: Output,
    base: Annotated[
        Path | None,
        typer.Option(
            help="The model folder whose encoder reads texts and descriptions; the packaged one if not given."
        ),
    ] = None,
) -> None:
    """Build a model that knows only your entities: a catalogue, a staff list, a taxonomy.

    Example: `deixis entities build products.jsonl --base model -o products`
    """
    from deixis.corpus.counting import digests
    from deixis.folder.edit import build_folder
    from deixis.folder.model_folder import packaged_model
    from deixis.knowledge.entities import read_entities

    found = list(read_entities(knowledge))
    if not found:
        raise InputError(f"{knowledge} has no entity; expected one JSON object a line")
    parents = digests(entities=[knowledge])
    _tell(build_folder(base or packaged_model(), found, output, parents, _progress), output, f"{len(found):,} entities")


@entities.command()
def fit(
    model: Model,
    descriptions: Descriptions,
    output: Output,
    limit: Annotated[int, typer.Option(min=10, help="Entities that are fitted on, chosen by seed.")] = 20_000,
    device: Annotated[str, typer.Option(help="Where descriptions are read, e.g. cpu or cuda.")] = "cpu",
) -> None:
    """Fit the map from descriptions to rows that `add` and `build` need, on the entities the model knows well.

    Example: `deixis entities fit model descriptions.tsv -o model-that-can-add`
    """
    from deixis.folder.edit import fit as fit_map
    from deixis.training.descriptions import read_descriptions

    opened = _load(model)
    opened.network.to(device).eval()
    fitted = fit_map(opened, read_descriptions(descriptions), limit, _progress)
    manifest = _save(fitted, model, output, descriptions)
    explained = fitted.describer.explained if fitted.describer is not None else 0.0
    _tell(manifest, output, f"{explained:.1%} of the variance of rows not fitted on is explained")


@entities.command()
def describe(
    model: Model,
    descriptions: Descriptions,
    output: Output,
    links: Annotated[
        int, typer.Option(min=0, help="Rows of entities with at most so many links in training are moved.")
    ] = 4,
    part: Annotated[
        float, typer.Option(min=0, max=1, help="How far: 0 leaves a row as training made it, 1 is the description's.")
    ] = 0.5,
) -> None:
    """Move rows of entities that training hardly saw towards what their descriptions say; no training.

    For descriptions that training did not have. Titles that the model does not know are passed over. What is described
    once more moves further, so begin with a model that was not given these descriptions yet.

    Example: `deixis entities describe model more.tsv -o better`
    """
    from deixis.artefacts import MANIFEST, Manifest
    from deixis.folder.edit import describe as describe_entities
    from deixis.training.descriptions import read_descriptions

    if before := Manifest.load(model / MANIFEST, "model").parameters.get("described"):
        said = f"{before['entities']:,} rows of {model} were moved before; those described again move further"
        typer.echo(said, err=True)
    changed, moved = describe_entities(
        _load(model), read_descriptions(descriptions), links=links, part=part, progress=_progress
    )
    if not moved:
        raise InputError(
            f"{descriptions[0]} describes no entity of {model} with {links} links or less; "
            "titles are as in its vocabulary"
        )
    told = {"described": {"entities": moved, "links": links, "part": part}}
    _tell(_save(changed, model, output, descriptions, told), output, f"{moved:,} rows moved")


@entities.command("list")
def list_(
    model: Model,
    json: Annotated[bool, typer.Option("--json", help="Print the records as they were given, one a line.")] = False,
) -> None:
    """List the entities that were added to a model.

    Example: `deixis entities list model`
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from deixis.folder.model_folder import KNOWN
    from deixis.knowledge.entities import read_entities

    path = model / KNOWN
    if not (model / "manifest.json").exists():
        raise InputError(f"{model} is no model folder")
    found = list(read_entities(path)) if path.exists() else []
    if json:
        for entity in found:
            typer.echo(entity.to_json().decode())
        return
    table = Table("entity", "names", "url", "description", box=box.SIMPLE)
    for entity in found:
        names = ", ".join(name.surface for name in entity.names)
        table.add_row(entity.title, names, entity.url or entity.wikidata or "", _short(entity.description))
    console = Console()
    if not console.is_terminal:
        console = Console(width=160)
    console.print(table if found else f"{model} has no entity beside those it was trained with", highlight=False)


@entities.command()
def show(
    model: Model,
    title: Annotated[str, typer.Argument(help="The entity.")],
    top: Annotated[
        int, typer.Option("--top", "-k", min=0, help="How many of the entities with like rows are told.")
    ] = 5,
) -> None:
    """Show what a model knows of an entity: its row, its record where it was added, and what is like it.

    Example: `deixis entities show model "Ada Marlow (rower)"`
    """
    from deixis.documents import normalise_title
    from deixis.folder.edit import alike
    from deixis.knowledge.entities import Entity

    opened = _load(model)
    wanted = normalise_title(title)
    row = opened.vocabulary.row(wanted)
    if row is None:
        raise InputError(f"{wanted!r} is no entity of {model}; titles are as in its vocabulary")
    own = next((e for e in map(Entity.from_json, opened.known) if e.title == wanted), None)
    origin = "added" if own is not None else f"trained, {opened.vocabulary.counts[row]:,} annotations"
    typer.echo(f"{wanted}: row {row:,}, {origin}")
    if own is not None:
        typer.echo(own.to_json().decode())
    if near := alike(opened, wanted, top):
        typer.echo("like " + ", ".join(f"{other} ({cosine:.2f})" for other, cosine in near))


def _load(folder: Path) -> ModelFolder:
    from deixis.folder.model_folder import ModelFolder

    return ModelFolder.load(folder)


def _save(
    changed: ModelFolder, source: Path, target: Path, inputs: list[Path], told: Mapping[str, Any] | None = None
) -> Manifest:
    from deixis.corpus.counting import digests
    from deixis.folder.edit import save_edited

    return save_edited(changed, source, target, digests(entities=inputs), told)


def _progress(batches: Sequence[list[int]]) -> Iterator[list[int]]:
    from deixis.cli.progress import track

    return track(batches, "descriptions", len(batches))


def _tell(manifest: Manifest, output: Path, what: str) -> None:
    typer.echo(f"{what}; {manifest.counts['entities']:,} entities in all")
    typer.echo(f"written: {output}")


def _short(text: str, most: int = 80) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
