"""Settings as options: a command that takes settings gets an option for each of their fields.

    @with_settings
    def link(text: str, settings: Settings) -> None: ...      # link TEXT --order … --top … --trace

Help, choices and limits come from the fields; an option that is not given leaves the field's default. Settings are
pydantic's (deixis/settings.py) or, of training, plain dataclasses (training/fields.py), whose fields may be arguments.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable
from dataclasses import MISSING
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import typer
from pydantic import Field

from deixis.settings import Precision, SettingsModel
from deixis.training.fields import Field as TrainingField
from deixis.training.fields import Fields, fields_of

if TYPE_CHECKING:
    from deixis.inference import Disambiguator

__all__ = [
    "Articles",
    "Machine",
    "Model",
    "ModelOutput",
    "Output",
    "Redirects",
    "Wikidata",
    "open_model",
    "with_settings",
]


Articles = Annotated[list[Path], typer.Argument(metavar="ARTICLES...", help="Article JSONL, plain, .gz, .xz or .zst.")]
Model = Annotated[Path | None, typer.Option("--model", "-m", help="Model folder (default: the packaged model).")]
ModelOutput = Annotated[Path, typer.Option("--output", "-o", help="The model folder to write.")]
Output = Annotated[Path | None, typer.Option("--output", "-o", help="Where to write; standard output if not given.")]
Redirects = Annotated[
    list[Path] | None, typer.Option(help="A redirect table, lines from<TAB>to; redirect pages are known anyway.")
]
Wikidata = Annotated[Path | None, typer.Option(help="TSV of title and Wikidata id; adds the id to results.")]


class Machine(SettingsModel):
    """Where the network computes, and in which precision."""

    device: Annotated[str, Field(description="Where the network runs, e.g. cpu or cuda.")] = "cpu"
    precision: Annotated[
        Precision | None,
        Field(description="What the network computes in, int8 on CPUs only; if not given, on a GPU bf16, else fp32."),
    ] = None


def open_model(model: Path | None, machine: Machine, wikidata: Path | None = None, **settings: Any) -> Disambiguator:
    """Open a model folder, by default the packaged one, with a table of Wikidata ids that results are to tell."""
    from deixis.inference import Disambiguator
    from deixis.knowledge.entities import read_wikidata

    nlp = Disambiguator.load(model, machine.device, precision=machine.precision, **settings)
    if wikidata is not None:
        nlp.wikidata = read_wikidata(wikidata)
    return nlp


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each parameter of the command that is annotated with settings by one option a field."""
    hints = typing.get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    models: dict[str, type[SettingsModel] | type[Fields]] = {}
    for name, parameter in inspect.signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and issubclass(kind, SettingsModel):
            models[name] = kind
            parameters += [_option(field, kind) for field in kind.model_fields]
        elif isinstance(kind, type) and issubclass(kind, Fields):
            models[name] = kind
            parameters += map(_training_option, fields_of(kind))
        else:
            parameters.append(parameter.replace(annotation=kind, kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, model in models.items():
            fields = [one.name for one in fields_of(model)] if issubclass(model, Fields) else model.model_fields
            given = {field: values.pop(field) for field in fields}
            given = {field: value for field, value in given.items() if value not in (None, [])}
            values[name] = model(**{field: _read(model, field, value) for field, value in given.items()})
        command(**values)

    run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
    del run.__wrapped__
    return run


def _read(model: type[SettingsModel] | type[Fields], field: str, value: Any) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if issubclass(model, Fields):
        return value
    return model.parse(field, value) if isinstance(value, str) else value


def _option(name: str, model: type[SettingsModel]) -> inspect.Parameter:
    field = model.model_fields[name]
    kind = _plain(field.annotation)
    flags = [f"--{name.replace('_', '-')}"]
    option = typer.Option(*flags, help=field.description, show_default=_shown(field.default))
    annotation = Annotated[kind | None, option]  # type: ignore[valid-type]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _shown(default: Any) -> str | bool:
    if default in (None, False, (), "", MISSING):
        return False
    return ", ".join(map(str, default)) if isinstance(default, tuple) else str(default)


def _training_option(field: TrainingField) -> inspect.Parameter:
    about, required = field.about, field.default is MISSING
    given: Any = typer.Option(*field.flags, help=about.help, metavar=about.metavar, show_default=_shown(field.default))
    if about.positional:
        given = typer.Argument(help=about.help, metavar=about.metavar or field.name.upper())
    kind = _plain(field.kind) if required else _plain(field.kind) | None
    default = inspect.Parameter.empty if required else None
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, given]
    )


def _plain(kind: Any) -> Any:
    """Return the type that typer reads from the command line: a choice, a number, or a text where several are meant."""
    if typing.get_origin(kind) is Annotated:
        return _plain(typing.get_args(kind)[0])
    if typing.get_origin(kind) is tuple:  # several values; typer takes no list of choices, the settings check them
        each = _plain(typing.get_args(kind)[0])
        return list[str] if typing.get_origin(each) is Literal else list[each]  # type: ignore[valid-type]
    if typing.get_origin(kind) in (Union, types.UnionType):
        kinds = [part for part in typing.get_args(kind) if part is not type(None)]
        return _plain(kinds[0]) if len(kinds) == 1 else str
    if typing.get_origin(kind) is Literal and not all(isinstance(value, str) for value in typing.get_args(kind)):
        return str
    return kind
