"""What a request may hold, as pydantic models, and how a body becomes documents and settings.

A body is a document, a list of documents, or `{"documents": […]}`; settings stand beside `text` or `documents`:

    {"text": "Messi won.", "mentions": [{"start": 0, "end": 5}], "order": "natural", "trace": true}

The answer has the shape of the question. The OpenAPI document is made from these models (openapi.py).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Annotated, Any, Literal

import orjson
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic_core import PydanticCustomError

from deixis.documents import Candidate, Document, Mention, Resolutions
from deixis.errors import InputError
from deixis.serving.http_errors import HttpError
from deixis.serving.limits import Limits
from deixis.settings import Settings, expected

__all__ = [
    "DISAMBIGUATE",
    "LINK",
    "SETTINGS_BESIDE",
    "Call",
    "CandidatesQuery",
    "GivenCandidates",
    "GivenMention",
    "GivenText",
    "at_most",
    "check_mentions",
    "check_query",
    "listed",
    "read_call",
    "read_query",
    "read_settings",
    "sentence",
    "shapes",
]

Shape = Literal["document", "documents", "list"]
SETTINGS = frozenset(Settings.model_fields)
SETTINGS_BESIDE: Any = {name: (field.annotation, field) for name, field in Settings.model_fields.items()}
FIELDS = ("text", "mentions", "documents", *Settings.model_fields)


def at_most(limit: str, unit: str) -> BeforeValidator:
    """Refuse what is longer than a limit of the server, before anything is built of it."""

    def check(value: Any, info: ValidationInfo) -> Any:
        most = getattr(info.context, limit, None)
        if most is not None and isinstance(value, list | str) and len(value) > most:
            size = f"{len(value):,} {'characters' if isinstance(value, str) else 'items'}"
            raise PydanticCustomError("limit", f"has {size}; this server takes at most {most:,} {unit}")
        return value

    return BeforeValidator(check)


class GivenText(BaseModel):
    """A document without mentions; unknown fields come back with the answer."""

    model_config = ConfigDict(strict=True, extra="allow", allow_inf_nan=False)

    id: str | None = None
    text: Annotated[str, at_most("max_text", "a document")]

    def document(self) -> Document:
        return Document(self.text, (), self.id, self.model_extra or {})


GivenCandidates = Annotated[
    list[str | Candidate] | None,
    at_most("max_candidates", "a mention"),
    Field(description="Titles or [title, prior]. If absent, the model's own names are asked; [] means none."),
]


def listed(given: list[str | Candidate] | None) -> tuple[Candidate, ...] | None:
    """Return candidates as mentions have them."""
    return None if given is None else tuple(Candidate(one) if isinstance(one, str) else one for one in given)


class GivenMention(BaseModel):
    """A span of the text that names something."""

    model_config = GivenText.model_config

    start: Annotated[int, Field(ge=0, description="The first character of the mention, counted from 0.")]
    end: Annotated[int, Field(ge=1, description="The character after its last.")]
    entity: Annotated[str | None, Field(description="The right answer, where known; it is not read.")] = None
    kind: Annotated[str | None, Field(description="What it names, as person or place; it is told in the answer.")] = (
        None
    )
    candidates: GivenCandidates = None

    def mention(self) -> Mention:
        return Mention(self.start, self.end, self.entity, listed(self.candidates), self.model_extra or {}, self.kind)


class GivenDocument(GivenText):
    """A text with its mentions; unknown fields come back with the answer."""

    mentions: Annotated[list[GivenMention], at_most("max_mentions", "a request")] = []

    def document(self) -> Document:
        return Document(self.text, tuple(one.mention() for one in self.mentions), self.id, self.model_extra or {})


class CandidatesQuery(BaseModel):
    """A name, and perhaps a text that has it."""

    model_config = ConfigDict(extra="forbid")

    surface: Annotated[str, Field(min_length=1, max_length=1000, description="The name as a text has it.")]
    text: Annotated[
        str | None,
        Field(max_length=10_000, description="A text that has the name: its other words and names count too."),
    ] = None


def _shape(value: Any) -> Shape | None:
    if isinstance(value, dict):
        return "documents" if "documents" in value else "document"
    return "list" if isinstance(value, list) else None


def shapes(document: type[BaseModel], name: str, *, settings: bool = True) -> TypeAdapter[Any]:
    """Return what reads a document, a list of documents, or an object with documents, with settings beside them."""
    beside = SETTINGS_BESIDE if settings else {}
    several: Any = Annotated[list[document], at_most("max_documents", "a request")]  # type: ignore[valid-type]
    one = create_model(name, __base__=document, __doc__=document.__doc__, **beside)
    config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)
    many = create_model(f"{name}s", __config__=config, __doc__="Several documents.", documents=(several, ...), **beside)
    kinds: Any = Annotated[one, Tag("document")] | Annotated[many, Tag("documents")] | Annotated[several, Tag("list")]
    return TypeAdapter(Annotated[kinds, Discriminator(_shape)])


LINK = shapes(GivenText, "TextToLink")
DISAMBIGUATE = shapes(GivenDocument, "DocumentToDisambiguate")


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks."""

    documents: tuple[Document, ...]
    settings: Settings
    shape: Shape

    def answer(self, results: Sequence[Resolutions]) -> bytes:
        """Return the body of the answer, in the shape of the question."""
        records: Any = [result.document.to_record(result) for result in results]
        shaped = {"documents": records} if self.shape == "documents" else records
        try:
            return orjson.dumps(records[0] if self.shape == "document" else shaped)
        except TypeError as error:  # of unknown fields, which are passed through
            raise HttpError(422, f"the body cannot be written back: {error}".lower()) from None


def read_call(body: bytes, limits: Limits, *, plain: bool = False) -> Call:
    """Read a body; `plain` texts have no mentions yet. Errors name the field."""
    record = _json(body)
    try:
        asked = (LINK if plain else DISAMBIGUATE).validate_python(record, context=limits)
    except ValidationError as error:
        raise HttpError(422, sentence(error)) from None
    shape = _shape(record)
    assert shape is not None
    given = [asked] if shape == "document" else getattr(asked, "documents", asked)
    settings = Settings() if shape == "list" else read_settings(asked)
    documents = []
    for at, item in enumerate(given):
        where = "" if shape == "document" else f"documents[{at}]."
        for name in item.model_extra if shape == "document" else ():
            # A misspelt setting would be taken for a field of the document, and passed through.
            if (close := get_close_matches(name, FIELDS, 1, 0.85)) and name not in FIELDS:
                raise HttpError(422, f"there is no field {name!r}; did you mean {close[0]!r}?")
        if plain and item.model_extra.get("mentions"):
            raise HttpError(422, f"{where}mentions is given, but /link finds them; POST /disambiguate takes mentions")
        try:
            documents.append(item.document())
        except InputError as error:
            raise HttpError(422, f"{where}{error}") from None
    check_mentions(documents, limits, settings)
    return Call(tuple(documents), settings, shape)


def read_settings(asked: BaseModel) -> Settings:
    """Return the settings that stand beside a text."""
    return Settings(**{name: getattr(asked, name) for name in SETTINGS & asked.model_fields_set})


def check_mentions(documents: Iterable[Document], limits: Limits, settings: Settings) -> None:
    """Refuse a request of too many mentions: those given, or those found."""
    count = sum(len(document.mentions) for document in documents)
    most, traced = (limits.max_traced, " with a trace") if settings.trace else (limits.max_mentions, "")
    if count > most:
        what = f"the request has {count:,} mentions; this server takes at most {most:,} a request{traced}"
        raise HttpError(422, what)


def read_query(given: Mapping[str, str]) -> CandidatesQuery:
    """Read the parameters of `/candidates`."""
    try:
        query = CandidatesQuery.model_validate(dict(given))
    except ValidationError as error:
        raise HttpError(422, sentence(error)) from None
    check_query(query)
    return query


def check_query(query: CandidatesQuery) -> None:
    """Refuse a name that its text does not have."""
    if query.text is not None and query.surface not in query.text:
        raise HttpError(422, "surface does not occur in text; expected a text that has it")


def _json(body: bytes) -> Any:
    if not body.strip():
        raise HttpError(422, 'the body is empty; expected JSON such as {"text": "Messi won."}')
    try:
        return orjson.loads(body.removeprefix(codecs.BOM_UTF8))
    except orjson.JSONDecodeError as error:
        try:
            body.decode()
        except UnicodeDecodeError as wrong:
            what = f"the body is not UTF-8: byte {wrong.start} is {body[wrong.start]:#04x}"
            raise HttpError(422, what) from None
        raise HttpError(422, f"the body is not JSON: {error}") from None


_EXPECTED = {
    "string_type": "a text",
    "list_type": "a list",
    "model_type": "an object",
    "int_type": "a whole number",
    "greater_than_equal": "a whole number of at least {ge}",
    "too_short": "at least {min_length} item",
    "string_too_short": "at least {min_length} character",
    "string_too_long": "at most {max_length} characters",
    "union_tag_not_found": "a document, a list of documents, or an object with documents",
}


def sentence(error: ValidationError) -> str:
    """Say what is wrong with the first wrong field, where it is, and what was expected."""
    problem = error.errors(include_url=False)[0]
    kind, path = problem["type"], [*problem["loc"]]
    if path and path[0] in ("document", "documents", "list"):  # the tag of the shape
        path = ["documents", *path[1:]] if path[0] == "list" else path[1:]
    wanted = _EXPECTED.get(kind, problem["msg"].lower()).format(**problem.get("ctx", {}))
    if path and path[0] in SETTINGS:
        path, wanted = path[:1], expected(Settings, str(path[0]))
    elif "candidates" in path[:-1]:  # of its alternatives, a title and a pair, none fits: say both
        path, wanted = path[: path.index("candidates") + 2], "a title or [title, prior]"
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".") or "the body"
    if kind == "missing":
        return f"{where} is missing"
    if kind == "extra_forbidden":
        return f"there is no field {where!r} here"
    if kind == "limit":
        return f"{where} {problem['msg']}"
    shown = orjson.dumps(problem["input"]).decode()
    return f"{where} is {shown if len(shown) <= 60 else shown[:57] + '...'}; expected {wanted}"
