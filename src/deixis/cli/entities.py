"""`deixis entities`: add, change and remove the entities of a model, or build a knowledge base of one's own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deixis.cli.options import ModelOutput
from deixis.errors import InputError

if TYPE_CHECKING:
    from deixis.artefacts import Manifest
    from deixis.folder.model_folder import ModelFolder

__all__ = ["entities"]

entities = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    help="Which entities a model knows: add, update, remove, list, show; build a knowledge base of your own.",
)

Model = Annotated[Path, typer.Argument(help="The model folder, or default: the packaged one. It stays as it is.")]
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
    output: ModelOutput,
    replace: Annotated[
        bool, typer.Option("--replace", help="Make entities anew that the model has already; else they are refused.")
    ] = False,
) -> None:
    """Add entities by title, description and names; no training.

    Rows of B come from the descriptions, sharpened by examples (sentences that mark the entity as `[[name]]`). A name
    may state its prior, as `["Nova", 0.3]`: the share of its mentions that mean this entity. Without one, new meanings
    of a known name take half together.

    Example: `deixis entities add default new.jsonl -o bigger`
    """
    from deixis.folder.edit import add as add_entities
    from deixis.knowledge.entities import read_entities

    found = list(read_entities(new))
    opened = _load(model)
    changed = add_entities(opened, found, clashes=replace, progress=_progress)
    _tell(_save(changed, output, [new]), output, f"{len(found):,} added")


@entities.command()
def update(
    model: Model,
    changes: Annotated[Path, typer.Argument(help="One JSON a line: the title, and the fields that change.")],
    output: ModelOutput,
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
    if strange := [entity.title for entity in found if entity.title not in opened.knowledge]:
        raise InputError(f"{changes}: {strange[0]!r} is not an entity of {model}; `deixis entities add` adds it")
    changed = add_entities(opened, found, clashes=True, progress=_progress)
    _tell(_save(changed, output, [changes]), output, f"{len(found):,} updated")


@entities.command()
def remove(
    model: Model,
    output: ModelOutput,
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
    _tell(_save(remove_entities(opened, gone), output, []), output, f"{len(set(gone)):,} removed")


@entities.command()
def build(
    knowledge: Records,
    output: ModelOutput,
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
    output: ModelOutput,
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
    manifest = _save(fitted, output, descriptions)
    explained = fitted.describer.explained if fitted.describer is not None else 0.0
    _tell(manifest, output, f"{explained:.1%} of the variance of rows not fitted on is explained")


@entities.command("list")
def list_(
    model: Model,
    json: Annotated[bool, typer.Option("--json", help="Print the records as they were given, one a line.")] = False,
) -> None:
    """List the entities that were added to a model.

    Example: `deixis entities list model`
    """
    from rich import box
    from rich.table import Table

    from deixis.cli.terminal import console
    from deixis.folder.model_folder import KNOWN, opened
    from deixis.knowledge.entities import read_entities

    path = opened(model)[0] / KNOWN
    found = list(read_entities(path)) if path.exists() else []
    if json:
        for entity in found:
            typer.echo(entity.to_json().decode())
        return
    table = Table("entity", "names", "url", "description", box=box.SIMPLE)
    for entity in found:
        names, text = ", ".join(name.surface for name in entity.names), entity.description
        table.add_row(
            entity.title, names, entity.url or entity.wikidata or "", text if len(text) <= 80 else text[:79] + "…"
        )
    console(160).print(table if found else f"{model} has no entity beside those it was trained with")


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
    number = opened.knowledge.number(wanted)
    if number is None:
        raise InputError(f"{wanted!r} is not an entity of {model}; titles are as in Wikipedia")
    wanted = opened.knowledge.title(number)
    own = next((e for e in map(Entity.from_json, opened.known) if e.title == wanted), None)
    typer.echo(f"{wanted}: number {number:,}, {'added' if own is not None else _origin(opened, number)}")
    if own is not None:
        typer.echo(own.to_json().decode())
    if near := alike(opened, wanted, top):
        typer.echo("like " + ", ".join(f"{other} ({cosine:.2f})" for other, cosine in near))


def _load(folder: Path) -> ModelFolder:
    from deixis.folder.model_folder import ModelFolder

    return ModelFolder.load(folder)


def _origin(model: ModelFolder, number: int) -> str:
    from deixis.knowledge.vocabulary import Vocabulary

    if isinstance(model.knowledge, Vocabulary):
        return f"trained, {model.knowledge.counts[number]:,} annotations"
    links = model.knowledge.links(number)
    return f"known by {model.knowledge.known_by(number)}" + (f", {links:,} annotations" if links else "")


def _save(changed: ModelFolder, target: Path, inputs: list[Path]) -> Manifest:
    from deixis.corpus.counting import digests

    return changed.save_edited(target, digests(entities=inputs))


def _progress(batches: Sequence[list[int]]) -> Iterator[list[int]]:
    from deixis.cli.progress import track

    return track(batches, "descriptions", len(batches))


def _tell(manifest: Manifest, output: Path, what: str) -> None:
    typer.echo(f"{what}; {manifest.counts['entities']:,} entities in all")
    typer.echo(f"written: {output}")
