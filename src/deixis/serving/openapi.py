"""The OpenAPI document, made from the models of requests and answers; `GET /openapi.json` and the page `/docs` show it.

The models of answers are for this document alone: answers are written by `Document.to_record`, and the tests hold
that what is written fits the models.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from deixis import __version__
from deixis.documents import Candidate
from deixis.serving.http_errors import STATUSES
from deixis.serving.limits import Limits
from deixis.serving.requests import DISAMBIGUATE, LINK, CandidatesQuery, GivenMention, GivenText, shapes

__all__ = ["openapi"]


class Error(BaseModel):
    """What went wrong, in one sentence."""

    error: str


class State(BaseModel):
    """How the server is."""

    status: str


class CandidatesAnswer(BaseModel):
    """Candidates of a surface, most probable first, each [title, prior]."""

    surface: str
    candidates: list[Candidate]


class Resolution(BaseModel):
    """What a mention was decided to mean."""

    entity: str
    probability: float
    step: Annotated[int, Field(description="When it was decided; mentions decided together share a step.")]
    alternatives: Annotated[list[tuple[str, float]], Field(description="Every candidate with its probability.")]
    url: Annotated[str | None, Field(description="Given for an added entity and beside a Wikidata id.")] = None
    id: Annotated[str | None, Field(description="The id that an added entity was given.")] = None
    wikidata: Annotated[str | None, Field(description="The Wikidata id, such as Q615, where it is known.")] = None


class ResolvedMention(GivenMention):
    """A mention with its resolution; without one, the reason."""

    resolution: Resolution | None
    reason: str | None = None


class Step(BaseModel):
    """One step of the inference: what was decided, and the probabilities of all mentions open before it."""

    step: int
    decided: list[int]
    open: list[dict[str, Any]]


class Answer(GivenText):
    """The document with a resolution for each mention."""

    mentions: list[ResolvedMention]
    trace: Annotated[list[Step] | None, Field(description="The steps, if trace is true.")] = None


EXAMPLE = {
    "text": "Messi won the World Cup.",
    "mentions": [
        {"start": 0, "end": 5, "candidates": [["Lionel Messi", 0.9], ["Messi (film)", 0.1]]},
        {"start": 14, "end": 23, "candidates": [["FIFA World Cup", 0.8], ["Rugby World Cup", 0.2]]},
    ],
    "order": "confidence",
}
TURTLE = (
    "@prefix nif: <http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#> .\n"
    '<http://example.org/1#char=0,9> a nif:Context ; nif:isString "Messi won" .\n'
    "<http://example.org/1#char=0,5> a nif:Phrase ; nif:referenceContext <http://example.org/1#char=0,9> ;\n"
    '  nif:beginIndex "0" ; nif:endIndex "5" ; nif:anchorOf "Messi" .\n'
)
BODY_ERRORS = (400, 408, 413, 415, 422, 503)
JSON, TEXT = "application/json", "text/plain"
ADAPTERS: dict[str, TypeAdapter[Any]] = {
    "disambiguate": DISAMBIGUATE,
    "link": LINK,
    "answer": shapes(Answer, "ResolvedDocument", settings=False),
    "candidates": TypeAdapter(CandidatesAnswer),
    "state": TypeAdapter(State),
    "error": TypeAdapter(Error),
}


def openapi(limits: Limits, endpoints: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the OpenAPI document; `endpoints` maps a path to its method and description."""
    schemas, definitions = TypeAdapter.json_schemas(
        [(name, "validation", adapter) for name, adapter in ADAPTERS.items()],
        ref_template="#/components/schemas/{model}",
    )

    def content(name: str, media: str = JSON, **more: Any) -> dict[str, Any]:
        schema = schemas.get((name, "validation"), {"type": "string"})
        return {"content": {media: {"schema": schema} | more}}

    def operation(description: str, answer: dict[str, Any], *errors: int, **more: Any) -> dict[str, Any]:
        refused = {str(status): {"description": STATUSES[status]} | content("error") for status in errors}
        if 503 in errors:
            refused["503"]["headers"] = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}
        return {"description": description, "responses": {"200": {"description": "Done."} | answer} | refused} | more

    def body(name: str, example: Any, media: str = JSON) -> dict[str, Any]:
        return {"required": True} | content(name, media, example=example)

    known = {
        "/disambiguate": (content("answer"), BODY_ERRORS, {"requestBody": body("disambiguate", EXAMPLE)}),
        "/link": (content("answer"), (*BODY_ERRORS, 501), {"requestBody": body("link", {"text": EXAMPLE["text"]})}),
        "/nif": (
            content("", "application/x-turtle"),
            (*BODY_ERRORS, 501),
            {"requestBody": body("", TURTLE, "application/x-turtle")},
        ),
        "/candidates": (content("candidates"), (422, 501), {"parameters": _parameters(CandidatesQuery)}),
        "/health": (content("state"), (), {}),
        "/ready": (content("state"), (503,), {}),
        "/metrics": (content("", TEXT), (), {}),
    }
    paths = {
        path: {method.lower(): operation(described, known[path][0], *known[path][1], **known[path][2])}
        for path, (method, described) in endpoints.items()
    }
    asked = "; ".join(f"{Limits.model_fields[name].description} {value:,}" for name, value in limits)
    return {
        "openapi": "3.1.0",
        "info": {"title": "deixis", "version": __version__, "description": asked},
        "paths": paths,
        "components": {"schemas": definitions["$defs"]},
    }


def _parameters(query: type[BaseModel]) -> list[dict[str, Any]]:
    schema = query.model_json_schema()
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": field}
        for name, field in schema["properties"].items()
    ]
