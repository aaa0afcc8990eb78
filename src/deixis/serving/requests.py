"""A request's body to documents and settings, checked against the limits before anything is built.

A body is a document, a list of documents, or `{"documents": […]}`; settings stand beside `text` or `documents`:

    {"text": "Messi won.", "mentions": [{"start": 0, "end": 5}], "order": "natural", "trace": true}

The answer has the shape of the question.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson

from deixis.documents import Document, Resolutions
from deixis.errors import InputError
from deixis.serving.http_errors import Unusable
from deixis.settings import Settings

__all__ = ["Call", "Limits", "read_call"]

Shape = Literal["document", "documents", "list"]
SETTINGS = tuple(Settings.model_fields)


@dataclass(frozen=True, slots=True)
class Limits:
    """How much one request may ask, and how much may wait."""

    body: int = 8 << 20  # bytes of a request
    documents: int = 64  # of a request
    text: int = 100_000  # characters of a document
    mentions: int = 1000  # of a request
    candidates: int = 100  # of a mention: every mention of a batch is padded to the longest list
    traced: int = 100  # mentions of a request with a trace, which grows with their square
    queue: int = 128  # documents that wait for the network
    rows: int = 8192  # word pieces and mentions that are collected for one run of the network


@dataclass(frozen=True, slots=True)
class Call:
    """What a request asks."""

    documents: tuple[Document, ...]
    settings: Settings
    shape: Shape

    def answer(self, results: Sequence[Resolutions]) -> bytes:
        """Return the body of the answer, in the shape of the question."""
        records = [result.document.to_record(result) for result in results]
        if self.shape == "document":
            return orjson.dumps(records[0])
        return orjson.dumps({"documents": records} if self.shape == "documents" else records)


def read_call(body: bytes, limits: Limits, *, plain: bool = False) -> Call:
    """Read a body; `plain` texts have no mentions yet. Errors name the field."""
    record = _json(body)
    if isinstance(record, list):
        shape: Shape = "list"
        settings, listed = Settings(), record
    elif isinstance(record, dict):
        settings = _settings({name: record.pop(name) for name in SETTINGS if name in record})
        shape = "documents" if "documents" in record else "document"
        listed = record["documents"] if shape == "documents" else [record]
    else:
        raise Unusable("the body is no JSON object; expected a document, a list, or an object with documents")
    if not isinstance(listed, list):
        raise Unusable("documents is no list; expected a list of documents")
    _check_size(listed, limits, settings)
    where = [""] if shape == "document" else [f"documents[{place}]: " for place in range(len(listed))]
    documents = [_document(item, limits, plain, at) for item, at in zip(listed, where, strict=True)]
    return Call(tuple(documents), settings, shape)


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        try:
            body.decode()
        except UnicodeDecodeError as wrong:
            raise Unusable(f"the body is not UTF-8: byte {wrong.start} is {body[wrong.start]:#04x}") from None
        raise Unusable(f"the body is not JSON: {error}") from None


def _settings(given: dict[str, Any]) -> Settings:
    try:
        return Settings(**given)
    except InputError as error:
        raise Unusable(str(error)) from None


def _check_size(listed: list[Any], limits: Limits, settings: Settings) -> None:
    if len(listed) > limits.documents:
        raise Unusable(f"documents has {len(listed):,} items; this server takes at most {limits.documents:,} a request")
    given = [item["mentions"] for item in listed if isinstance(item, dict) and isinstance(item.get("mentions"), list)]
    count = sum(map(len, given))
    if count > limits.mentions:
        raise Unusable(f"mentions has {count:,} items; this server takes at most {limits.mentions:,} a request")
    if settings.trace and count > limits.traced:
        raise Unusable(f"trace is true with {count:,} mentions; this server traces at most {limits.traced:,} a request")


def _document(item: Any, limits: Limits, plain: bool, where: str) -> Document:
    try:
        document = Document.from_record(item)
    except InputError as error:
        raise Unusable(f"{where}{error}") from None
    if len(document.text) > limits.text:
        raise Unusable(
            f"{where}text has {len(document.text):,} characters; this server takes at most {limits.text:,} a document"
        )
    if plain and document.mentions:
        raise Unusable(f"{where}mentions is given, but /link finds them; POST /disambiguate takes mentions")
    for place, mention in enumerate(document.mentions):
        if mention.candidates is not None and len(mention.candidates) > limits.candidates:
            raise Unusable(
                f"{where}mentions[{place}].candidates has {len(mention.candidates):,} items; "
                f"this server takes at most {limits.candidates:,} a mention"
            )
    return document
