"""Articles: pages as plain text with links at character offsets, and the JSONL they travel in."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from deixis.artefacts import read_lines
from deixis.errors import InputError, shown

__all__ = ["Article", "Link", "read_articles"]

log = logging.getLogger(__name__)


class Link(NamedTuple):
    """A span `[start, end)` of an article's text, in characters, that links to the article `target`."""

    start: int
    end: int
    target: str


@dataclass(frozen=True, slots=True)
class Article:
    """A Wikipedia page; a redirect page has a `redirect` and no text."""

    title: str
    text: str = ""
    links: tuple[Link, ...] = ()
    id: int | str | None = None
    redirect: str | None = None  # the title a redirect page leads to in the end
    disambiguation: bool = False

    def surface(self, link: Link) -> str:
        return self.text[link.start : link.end]

    def to_json(self) -> bytes:
        """Return one line of article JSONL, without the newline; keys that say nothing are left out."""
        record: dict[str, Any] = {"title": self.title}
        if self.id is not None:
            record["id"] = self.id
        if self.redirect is not None:
            record["redirect"] = self.redirect
        if self.disambiguation:
            record["disambiguation"] = True
        record["text"] = self.text
        record["links"] = [tuple(link) for link in self.links]  # orjson knows no named tuples
        return orjson.dumps(record)

    @classmethod
    def from_json(cls, line: str | bytes) -> Article:
        """Read one line of article JSONL; errors name the field, unknown keys are passed over."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"not JSON ({error}); expected an object with a title, a text and its links") from None
        if not isinstance(record, dict):
            raise InputError("not an object; expected one with a title, a text and its links")
        redirect = record.get("redirect")
        if redirect is not None and not isinstance(redirect, str):
            raise InputError(f"redirect is {shown(redirect)}; expected a title")
        text = record.get("text", "" if redirect is not None else None)
        title, id_, disambiguation = record.get("title"), record.get("id"), record.get("disambiguation", False)
        if not isinstance(title, str) or not title:
            raise InputError(f"title is {shown(title)}; expected a title")
        if not isinstance(text, str):
            raise InputError(f"text is {shown(text)}; expected a string")
        if not isinstance(disambiguation, bool):
            raise InputError(f"disambiguation is {shown(disambiguation)}; expected true or false")
        if id_ is not None and not isinstance(id_, int | str):
            raise InputError(f"id is {shown(id_)}; expected a number or a string")
        return cls(title, text, _links(record.get("links", []), len(text)), id_, redirect, disambiguation)


def read_articles(
    path: Path, *, strict: bool = False, report: Callable[[str], None] | None = None
) -> Iterator[Article]:
    """Yield the articles of a plain, .gz, .xz or .zst JSONL file.

    A bad line is given to `report` as one sentence with file, line and field (by default it is logged) and reading
    goes on; with `strict` it is raised as an InputError.
    """
    for number, line in read_lines(path):
        try:
            article = Article.from_json(line)
        except InputError as error:
            sentence = f"{path}:{number}: {error}"
            if strict:
                raise InputError(sentence) from None
            (report or log.warning)(sentence)
            continue
        yield article


def _links(given: Any, length: int) -> tuple[Link, ...]:
    if not isinstance(given, list):
        raise InputError(f"links is {shown(given)}; expected a list of [start, end, target]")
    links = []
    for index, item in enumerate(given):
        try:
            link = Link(*item)
        except TypeError:
            raise InputError(f"links[{index}] is {shown(item)}; expected [start, end, target]") from None
        # `type is int` and not isinstance: true and false are no offsets
        if type(link.start) is not int or type(link.end) is not int or type(link.target) is not str:
            raise InputError(f"links[{index}] is {shown(item)}; expected [start, end, target]")
        if not 0 <= link.start < link.end <= length:
            raise InputError(
                f"links[{index}] is [{link.start}, {link.end}) but the text has {length} characters; "
                "spans are [start, end) in characters and not empty"
            )
        links.append(link)
    return tuple(links)
