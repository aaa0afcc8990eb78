"""The OpenAPI schemas of what the endpoints take and give; the checks themselves are in `calls` and `documents`."""

from __future__ import annotations

from typing import Any

from deixis.serving.requests import Limits

__all__ = ["answers", "json_body", "linking_body", "turtle_body"]

Schema = dict[str, Any]

ERROR: Schema = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
TITLE_AND_NUMBER: Schema = {
    "type": "array",
    "items": {"type": ["string", "number", "null"]},  # OpenAPI's tools know no prefixItems yet
    "minItems": 2,
    "maxItems": 2,
}
SETTINGS: Schema = {
    "order": {"enum": ["local", "natural", "confidence"], "default": "confidence"},
    "windows": {
        "enum": ["simple", "overlapping", "per_mention", None],
        "default": None,
        "description": "how a long document is split; null: per_mention, and in /link overlapping",
    },
    "commit": {
        "anyOf": [{"const": "one"}, {"type": "number", "exclusiveMinimum": 0, "maximum": 1}],
        "default": "one",
        "description": "'one' mention a step, or also all of at least this probability",
    },
    "released": {"enum": ["2021", "2022", None], "default": None, "description": "as the released code of this year"},
    "top": {"type": ["integer", "null"], "minimum": 1, "default": 30, "description": "candidates that take part"},
    "answer_threshold": {
        "type": ["number", "null"],
        "minimum": 0,
        "maximum": 1,
        "default": None,
        "description": "leave a mention unresolved under this probability; null: never, and in /link as the model says",
    },
    "prior": {
        "type": ["number", "null"],
        "minimum": 0,
        "default": None,
        "description": "times log p(e|m) is added to every score; null: 0 (the paper), and in /link as the model says",
    },
    "trace": {"type": "boolean", "default": False, "description": "answer with the probabilities of every step"},
}
RESOLUTION: Schema = {
    "type": ["object", "null"],
    "required": ["entity", "probability", "step", "alternatives"],
    "properties": {
        "entity": {"type": "string"},
        "probability": {"type": "number"},
        "step": {"type": "integer"},
        "alternatives": {"type": "array", "items": TITLE_AND_NUMBER},
        "url": {"type": "string", "description": "of an entity that was added, or beside a Wikidata id"},
        "id": {"type": "string", "description": "the one that an added entity was given"},
        "wikidata": {"type": "string", "description": "where ids are known, as Q615"},
    },
}
EXAMPLE: Schema = {
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


def _mention(limits: Limits, answered: bool) -> Schema:
    candidates = {
        "type": ["array", "null"],
        "maxItems": limits.candidates,
        "items": {"anyOf": [{"type": "string"}, TITLE_AND_NUMBER]},
        "description": "titles or [title, prior]; absent: the store is asked; []: there are none",
    }
    properties: Schema = {
        "start": {"type": "integer", "minimum": 0, "description": "first character of the mention"},
        "end": {"type": "integer", "minimum": 1, "description": "the character after its last"},
        "entity": {"type": ["string", "null"], "description": "the gold, where known"},
        "candidates": candidates,
    }
    if answered:
        properties |= {"resolution": RESOLUTION, "reason": {"type": ["string", "null"]}}
    return {"type": "object", "required": ["start", "end"], "properties": properties}


def _document(limits: Limits, *, mentions: bool = True, answered: bool = False) -> Schema:
    properties: Schema = {
        "id": {"type": ["string", "null"]},
        "text": {"type": "string", "maxLength": limits.text},
    }
    if mentions:
        listed = {"type": "array", "maxItems": limits.mentions, "items": _mention(limits, answered)}
        properties["mentions"] = listed
    if answered:
        properties["trace"] = {"type": "array", "items": {"type": "object"}}
    return {"type": "object", "required": ["text"], "properties": properties}


def _shapes(document: Schema, settings: Schema) -> Schema:
    """A document, a list of documents, or an object with documents; settings beside `text` or `documents`."""
    listed = {"type": "array", "items": document}
    alone = {**document, "properties": document["properties"] | settings}
    named = {"type": "object", "required": ["documents"], "properties": {"documents": listed} | settings}
    return {"anyOf": [alone, named, listed]}


def json_body(limits: Limits) -> Schema:
    """The body of /disambiguate."""
    return _body("application/json", _shapes(_document(limits), SETTINGS), EXAMPLE)


def linking_body(limits: Limits) -> Schema:
    """The body of /link."""
    schema = _shapes(_document(limits, mentions=False), SETTINGS)
    return _body("application/json", schema, {"text": "Messi won the World Cup."})


def turtle_body() -> Schema:
    """The body of /nif."""
    return _body("application/x-turtle", {"type": "string"}, TURTLE)


def _body(media: str, schema: Schema, example: Any) -> Schema:
    return {"requestBody": {"required": True, "content": {media: {"schema": schema, "example": example}}}}


def answers(limits: Limits, *statuses: int) -> dict[int | str, Schema]:
    """The answers of an endpoint that takes documents: themselves with resolutions, or an error."""
    known = {
        413: "The body is over the limit",
        422: "A field is wrong or over a limit; the message names it",
        501: "The model folder has no candidate store",
        503: "The queue is full; Retry-After says when to come back",
    }
    found: dict[int | str, Schema] = {
        status: {"description": known[status], "content": {"application/json": {"schema": ERROR}}}
        for status in statuses
    }
    if 503 in found:
        found[503]["headers"] = {"Retry-After": {"description": "seconds", "schema": {"type": "integer"}}}
    documents = _shapes(_document(limits, answered=True), {})
    found[200] = {
        "description": "The documents with resolutions",
        "content": {"application/json": {"schema": documents}},
    }
    return found
