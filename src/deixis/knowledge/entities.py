"""Entities as people describe them: a title, a description, names; and the JSONL they travel in.

    {"title": "Orrin Works", "description": "maker of rowing boats in Velm",
     "names": ["Orrin", ["OW", 0.2]], "url": "https://…", "examples": ["She rows an [[Orrin]]."]}

A name is a string, or a pair of it and its prior: the share of all mentions with that name that mean this entity. An
example marks its mention with double brackets, or is a document whose mentions are the entity's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from deixis.artefacts import read_lines
from deixis.documents import Document, Identity, Mention, normalise_title
from deixis.errors import InputError, shown
from deixis.network.special import SPECIAL

__all__ = ["Entity", "KnownEntity", "Name", "identities", "read_changes", "read_entities", "read_wikidata"]

MAX_NAME = 200  # characters of a title or a name
MAX_DESCRIPTION = 10_000  # characters; the describer reads the beginning
FIELDS = ("title", "description", "names", "url", "id", "wikidata", "examples")

_MARKED = re.compile(r"\[\[(.+?)\]\]")
_QID = re.compile(r"Q[1-9]\d*")


class Name(NamedTuple):
    """A name of an entity, with its prior p(e|m) where one was stated."""

    surface: str
    prior: float | None = None


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity as its own record describes it.

    Examples:
        >>> orrin = Entity.from_record({"title": "Orrin Works", "description": "maker of boats", "names": ["Orrin"]})
        >>> orrin.names
        (Name(surface='Orrin', prior=None),)
    """

    title: str
    description: str
    names: tuple[Name, ...] = ()  # beside the title
    url: str | None = None
    id: str | None = None
    wikidata: str | None = None
    examples: tuple[Document, ...] = ()  # every mention is one of the entity

    @property
    def identity(self) -> Identity:
        """What results say of it."""
        return Identity(self.url, self.id, self.wikidata)

    @classmethod
    def from_json(cls, line: bytes, known: Mapping[str, Entity] | None = None) -> Entity:
        """Read one line; errors name the field. What it lacks is taken from the entity of its title in `known`."""
        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            try:
                line.decode()
            except UnicodeDecodeError as wrong:
                raise InputError(f"not UTF-8: byte {wrong.start} of the line is {line[wrong.start]:#04x}") from None
            raise InputError(f"not JSON ({error}); expected an object with a title and a description") from None
        if known and isinstance(record, dict):
            before = known.get(normalise_title(str(record.get("title"))))
            record = record if before is None else orjson.loads(before.to_json()) | record
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Any) -> Entity:
        """Read a decoded JSON object; errors name the field."""
        if not isinstance(record, dict):
            raise InputError(f"{shown(record)} is no object; expected one with a title and a description")
        if unknown := set(record) - set(FIELDS):
            raise InputError(f"there is no field {min(unknown)!r}; expected {', '.join(FIELDS)}")
        title = normalise_title(_text(record, "title", MAX_NAME))
        if title in SPECIAL:
            raise InputError(f"title is {title}, which is reserved; choose another")
        names = record.get("names", [])
        if not isinstance(names, list):
            raise InputError(f"names is {shown(names)}; expected a list of names")
        wikidata = _optional(record, "wikidata")
        if wikidata is not None and not _QID.fullmatch(wikidata):
            raise InputError(f"wikidata is {shown(wikidata)}; expected an id as Q615")
        examples = record.get("examples", [])
        if not isinstance(examples, list):
            raise InputError(f"examples is {shown(examples)}; expected a list of sentences")
        return cls(
            title,
            _text(record, "description", MAX_DESCRIPTION),
            tuple(_name(name, f"names[{place}]") for place, name in enumerate(names)),
            _optional(record, "url"),
            _optional(record, "id"),
            wikidata,
            tuple(_example(example, f"examples[{place}]", title) for place, example in enumerate(examples)),
        )

    def to_json(self) -> bytes:
        """Return one line, without the newline; fields that say nothing are left out."""
        record: dict[str, Any] = {"title": self.title, "description": self.description}
        if self.names:
            record["names"] = [name.surface if name.prior is None else list(name) for name in self.names]
        record |= {name: value for name, value in self.identity._asdict().items() if value is not None}
        if self.examples:
            record["examples"] = [example.to_record() for example in self.examples]
        return orjson.dumps(record)


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """What a model can tell of an entity.

    Examples:
        >>> KnownEntity("Velm", links=31).to_record()
        {'entity': 'Velm', 'links': 31}
    """

    entity: str  # its title
    url: str | None = None
    wikidata: str | None = None
    id: str | None = None  # the user's own
    known_by: str | None = None  # "links", "description" or "title"
    links: int = 0  # annotations of it that training saw
    description: str | None = None  # of an added entity, and so its names
    names: tuple[str, ...] = ()

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object; what is not known is left out."""
        record = {name: value for name, value in asdict(self).items() if value not in (None, ())}
        return record | ({"names": list(self.names)} if self.names else {})


def read_entities(path: Path) -> Iterator[Entity]:
    """Yield the entities of a plain or compressed JSONL file; the first line that is wrong is refused by its number."""
    return read_changes(path, {})


def read_changes(path: Path, known: Mapping[str, Entity]) -> Iterator[Entity]:
    """Yield entities as `read_entities`; fields that a line does not have are those of the entity that is known."""
    lines: dict[str, int] = {}
    for number, line in read_lines(path):
        try:
            entity = Entity.from_json(line, known)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from None
        if entity.title in lines:
            raise InputError(f"{path}:{number}: title is {entity.title!r}, which line {lines[entity.title]} has too")
        lines[entity.title] = number
        yield entity


def identities(lines: Iterable[bytes]) -> dict[str, Identity]:
    """Return what results say of entities, from lines that were checked before: no more is read of them."""
    records = map(orjson.loads, lines)
    return {one["title"]: Identity(one.get("url"), one.get("id"), one.get("wikidata")) for one in records}


def read_wikidata(path: Path) -> Mapping[str, str]:
    """Read lines `title<TAB>id`; return the Wikidata id of each title."""
    found: dict[str, str] = {}
    for number, line in read_lines(path):
        fields = line.decode("utf-8", "replace").split("\t")
        if len(fields) < 2 or not _QID.fullmatch(fields[1]):
            raise InputError(f"{path}:{number} has no title and Wikidata id; expected title TAB Q615")
        found[normalise_title(fields[0])] = fields[1]
    return found


def _text(record: Mapping[str, Any], field: str, most: int) -> str:
    value = record.get(field)
    if not isinstance(value, str) or not value.strip():
        what = "empty" if isinstance(value, str) else shown(value)
        raise InputError(f"{field} is {what}; expected a text")
    return _limited(value.strip(), field, most)


def _limited(value: str, where: str, most: int) -> str:
    if len(value) > most:
        raise InputError(f"{where} has {len(value):,} characters; at most {most:,} are taken")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{where} has half of a surrogate pair, which is no character; write it whole") from None
    return value


def _optional(record: Mapping[str, Any], field: str) -> str | None:
    value = record.get(field)
    if value is not None and (not isinstance(value, str) or not value):
        raise InputError(f"{field} is {shown(value)}; expected a string")
    return value


def _name(value: Any, where: str) -> Name:
    surface, prior = value if isinstance(value, list) and len(value) == 2 else (value, None)
    if not isinstance(surface, str) or not any(map(str.isalnum, surface)):
        raise InputError(f"{where} is {shown(value)}; expected a name with a letter or digit, or [name, prior]")
    if prior is not None and (isinstance(prior, bool) or not isinstance(prior, int | float) or not 0 < prior <= 1):
        raise InputError(f"{where} has the prior {shown(prior)}; expected a number above 0 and at most 1")
    return Name(_limited(surface, where, MAX_NAME), None if prior is None else float(prior))


def _example(value: Any, where: str, title: str) -> Document:
    try:
        document = _marked(value) if isinstance(value, str) else Document.from_record(value)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    mentions = tuple(mention for mention in document.mentions if mention.entity in (None, title))
    if not mentions:
        raise InputError(f"{where} marks no mention; write it as [[name]]")
    return Document(document.text, tuple(Mention(mention.start, mention.end, title) for mention in mentions))


def _marked(text: str) -> Document:
    """Return a text whose mentions are in double brackets, without the brackets."""
    plain, mentions, at = "", [], 0
    for match in _MARKED.finditer(text):
        plain += text[at : match.start()]
        mentions.append(Mention(len(plain), len(plain) + len(match[1])))
        plain += match[1]
        at = match.end()
    return Document(plain + text[at:], tuple(mentions))
