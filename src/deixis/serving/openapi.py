"""The OpenAPI document, made from the models of requests and answers; `GET /openapi.json` and the page `/docs` show it.

The models of answers are for this document alone: answers are written by `Document.to_record`, and the tests hold
that what is written fits the models.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter

from deixis import __version__
from deixis.documents import Candidate, KnownBy, Reason
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


class EntityAnswer(BaseModel):
    """What is known of an entity."""

    entity: Annotated[str, Field(description="Its title.")]
    url: str | None = None
    wikidata: Annotated[str | None, Field(description="The Wikidata id, such as Q615, where it is known.")] = None
    id: Annotated[str | None, Field(description="The id that an added entity was given.")] = None
    known_by: Annotated[
        str | None, Field(description="By what the model knows it best: links, description, or title alone.")
    ] = None
    links: Annotated[int, Field(description="Links to it that training saw: how well it is known.")] = 0
    description: Annotated[str | None, Field(description="Of an added entity.")] = None
    names: Annotated[list[str] | None, Field(description="Other names of an added entity.")] = None


class CandidatesAnswer(BaseModel):
    """Candidates of a surface, most probable first, each [title, prior]."""

    surface: str
    candidates: list[Candidate]
    entities: Annotated[list[EntityAnswer], Field(description="What is known of each, in the same order.")]


class Resolution(BaseModel):
    """What a mention was decided to mean."""

    entity: str
    probability: float
    step: Annotated[int, Field(description="When it was decided; mentions decided together share a step.")]
    alternatives: Annotated[list[tuple[str, float]], Field(description="Every candidate with its probability.")]
    url: Annotated[
        str | None, Field(description="Its page in Wikipedia, or the one that an added entity was given.")
    ] = None
    known_by: Annotated[
        KnownBy | None,
        Field(description="By what the model knows it: links to it, its description, or nothing but its title."),
    ] = None
    id: Annotated[str | None, Field(description="The id that an added entity was given.")] = None
    wikidata: Annotated[str | None, Field(description="The Wikidata id, such as Q615, where it is known.")] = None


class ResolvedMention(GivenMention):
    """A mention with its resolution; without one, the reason."""

    resolution: Resolution | None
    reason: Annotated[Reason | None, Field(description="Why the mention was left open.")] = None
    alternatives: Annotated[
        list[tuple[str, float]] | None, Field(description="Where none fits, every candidate with its probability.")
    ] = None


class Step(BaseModel):
    """One step of the inference: what was decided, and the probabilities of all mentions open before it."""

    step: int
    decided: list[int]
    open: list[dict[str, Any]]


class Answer(GivenText):
    """The document with a resolution for each mention."""

    mentions: list[ResolvedMention]
    trace: Annotated[list[Step] | None, Field(description="The steps, if trace is true.")] = None


ANSWER = shapes(Answer, "ResolvedDocument", settings=False)
EXAMPLE: dict[str, Any] = {
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
BODY = (400, 408, 413, 415, 422, 503)
# The body with an example, the answer and the errors of each endpoint: a type for JSON, None for text.
CALLS: dict[str, tuple[tuple[Any, Any] | None, Any, tuple[int, ...]]] = {
    "/disambiguate": ((DISAMBIGUATE, EXAMPLE), ANSWER, BODY),
    "/link": ((LINK, {"text": EXAMPLE["text"]}), ANSWER, (*BODY, 501)),
    "/nif": ((None, TURTLE), None, (*BODY, 501)),
    "/candidates": (None, TypeAdapter(CandidatesAnswer), (422, 501)),
    "/health": (None, TypeAdapter(State), ()),
    "/ready": (None, TypeAdapter(State), (503,)),
    "/metrics": (None, None, ()),
}


def openapi(limits: Limits, endpoints: dict[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the OpenAPI document; `endpoints` maps a path to its method and description."""
    error, query = TypeAdapter(Error), CandidatesQuery.model_json_schema()
    bodies = [body[0] for body, _, _ in CALLS.values() if body]
    adapters = {id(one): one for one in (error, *bodies, *(answer for _, answer, _ in CALLS.values())) if one}
    schemas, shared = TypeAdapter.json_schemas(
        [(name, "validation", one) for name, one in adapters.items()], ref_template="#/components/schemas/{model}"
    )

    def content(adapter: Any, text: str, **more: Any) -> dict[str, Any]:
        schema = schemas[id(adapter), "validation"] if adapter else {"type": "string"}
        return {"content": {"application/json" if adapter else text: {"schema": schema} | more}}

    paths: dict[str, Any] = {}
    for path, (method, description) in endpoints.items():
        body, answer, errors = CALLS[path]
        text = "application/x-turtle" if path == "/nif" else "text/plain"
        responses = {str(status): {"description": STATUSES[status]} | content(error, text) for status in errors}
        operation: dict[str, Any] = {"description": description, "responses": responses}
        responses["200"] = {"description": "The answer."} | content(answer, text)
        if body:
            operation["requestBody"] = {"required": True} | content(body[0], text, example=body[1])
        if path == "/candidates":
            operation["parameters"] = [
                {"name": name, "in": "query", "required": name in query["required"], "schema": schema}
                for name, schema in query["properties"].items()
            ]
        paths[path] = {method.lower(): operation}
    told = "\n".join(f"- {Limits.model_fields[name].description} {value:,}" for name, value in limits)
    info = {"title": "deixis", "version": __version__, "description": told}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": {"schemas": shared["$defs"]}}
