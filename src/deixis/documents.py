"""The nouns: documents, mentions, candidates, resolutions; and the document JSONL they travel in."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, get_args, overload
from urllib.parse import quote

from deixis.errors import InputError, shown

__all__ = [
    "DOMAIN",
    "KNOWN_BY",
    "LEAST_PRIOR",
    "Candidate",
    "Document",
    "Evidence",
    "Identity",
    "KnownBy",
    "Mention",
    "NameMatch",
    "Reason",
    "Resolution",
    "Resolutions",
    "Step",
    "normalise_title",
    "wikipedia_url",
]


def normalise_title(title: str) -> str:
    """Return a Wikipedia title as deixis names entities: spaces, no HTML escapes, first letter upper-case.

    Examples:
        >>> normalise_title("lionel_Messi &amp; friends")
        'Lionel Messi & friends'
    """
    title = " ".join(html.unescape(title).replace("_", " ").split())
    first = title[:1].upper()
    if len(first) != 1 or "Ა" <= first <= "Ჿ":  # as MediaWiki: no capital is "SS", and Georgian has none in titles
        return title
    return first + title[1:]


DOMAIN = "en.wikipedia.org"


def wikipedia_url(title: str, domain: str = DOMAIN) -> str:
    """Return the page of an entity in Wikipedia, the English one if no domain is given.

    Examples:
        >>> wikipedia_url("Lionel Messi")
        'https://en.wikipedia.org/wiki/Lionel_Messi'
        >>> wikipedia_url("Köln", "de.wikipedia.org")
        'https://de.wikipedia.org/wiki/K%C3%B6ln'
    """
    return f"https://{domain}/wiki/" + quote(title.replace(" ", "_"), safe="(),:'!*_")


class Identity(NamedTuple):
    """How an entity is known elsewhere, where that is not its page in Wikipedia alone.

    Examples:
        >>> Identity("https://example.org/staff/17", id="17")
        Identity(url='https://example.org/staff/17', id='17', wikidata=None)
    """

    url: str | None = None
    id: str | None = None  # the user's own
    wikidata: str | None = None  # as Q615


KnownBy = Literal["links", "description", "title"]  # what is known of an entity: that it is linked, described, titled
KNOWN_BY: tuple[KnownBy, ...] = get_args(KnownBy)

Reason = Literal[
    "no candidates",  # nothing is known that has this name
    "none fits",  # the best candidate is less likely than the answer threshold asks for
    "no names",  # the model has no names to look candidates up in, and none were given
    "too long",  # the mention is longer than a window
]

LEAST_PRIOR = 1e-3  # of a candidate that lists do not know: published priors have three decimals


class Candidate(NamedTuple):
    """An entity a surface may mean, with its prior p(e|m) where one is known.

    Examples:
        >>> Candidate("Lionel Messi", 0.93)
        Candidate(entity='Lionel Messi', prior=0.93)
    """

    entity: str  # its title
    prior: float | None = None  # of all links with this surface, the share that leads to it


class NameMatch(NamedTuple):
    """The name that our detector found where a mention stands, so that it is not looked up a second time."""

    key: str  # of the surface, as names are stored
    number: int  # of the name
    names: str  # the digest of the names that it is a number of


@dataclass(frozen=True, slots=True)
class Mention:
    """A span `[start, end)` of a text, in characters, that names something.

    Examples:
        >>> Mention(0, 5).candidates is None  # the store will be asked
        True
        >>> Mention(0, 5, candidates=(Candidate("Lionel Messi", 0.93), Candidate("Messi (film)"))).candidates[1].entity
        'Messi (film)'
    """

    start: int
    end: int  # behind its last character
    entity: str | None = None  # the gold, where known
    candidates: tuple[Candidate, ...] | None = None  # None: ask the store; (): there are none
    extra: Mapping[str, Any] = field(default_factory=dict)  # unknown keys of the JSON, passed through
    kind: str | None = None  # what it names, as "person" or "place", where the detector or the reader says so
    name: NameMatch | None = field(default=None, repr=False, compare=False)  # not part of the JSON


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its mentions; a mention that does not fit the text is refused.

    Examples:
        >>> document = Document("Messi won the World Cup.", (Mention(0, 5), Mention(14, 23)), id="one")
        >>> [document.surface(mention) for mention in document.mentions]
        ['Messi', 'World Cup']
    """

    text: str
    mentions: tuple[Mention, ...] = ()
    id: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)  # unknown keys of the JSON, passed through

    def __post_init__(self) -> None:
        for index, mention in enumerate(self.mentions):
            if not 0 <= mention.start < mention.end <= len(self.text):
                raise InputError(
                    f"mentions[{index}] is [{mention.start}, {mention.end}) but the text has {len(self.text)} "
                    "characters; spans are [start, end) in characters and not empty"
                )

    def surface(self, mention: Mention) -> str:
        """Return the text of a mention.

        Examples:
            >>> Document("Messi won.").surface(Mention(0, 5))
            'Messi'
        """
        return self.text[mention.start : mention.end]

    def with_candidates(self, candidates: Sequence[tuple[Candidate, ...]]) -> Document:
        """Return the document with one candidate list a mention.

        Examples:
            >>> document = Document("Messi won.", (Mention(0, 5),)).with_candidates([(Candidate("Lionel Messi"),)])
            >>> document.mentions[0].candidates
            (Candidate(entity='Lionel Messi', prior=None),)
        """
        pairs = zip(self.mentions, candidates, strict=True)
        return replace(self, mentions=tuple(replace(mention, candidates=given) for mention, given in pairs))

    @classmethod
    def from_json(cls, line: str | bytes) -> Document:
        """Read one line of document JSONL; errors name the field.

        Examples:
            >>> Document.from_json('{"text": "Messi won.", "mentions": [{"start": 0, "end": 5}]}').mentions[0].end
            5
            >>> Document.from_json('{"text": "Messi won.", "mentions": [{"start": 0}]}')
            Traceback (most recent call last):
            deixis.errors.InputError: mentions[0].end is missing or null; expected a number of characters
        """
        import orjson  # only where it is needed: training runs without it

        try:
            record = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise InputError(f"not JSON ({error}); expected an object with a text and its mentions") from None
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Any) -> Document:
        """Read a decoded JSON object; errors name the field.

        Examples:
            >>> Document.from_record({"text": "Messi won.", "source": "a newspaper"}).extra
            {'source': 'a newspaper'}
        """
        record = dict(_typed(record, dict, "the document", "an object"))
        text = _typed(record.pop("text", None), str, "text", "a string")
        mentions = _typed(record.pop("mentions", []), list, "mentions", "a list")
        id_ = record.pop("id", None)
        if id_ is not None:
            _typed(id_, str, "id", "a string")
        return cls(text, tuple(_mention(m, f"mentions[{i}]") for i, m in enumerate(mentions)), id_, record)

    def to_record(self, resolutions: Resolutions | None = None) -> dict[str, Any]:
        """Return the JSON object of the document, each mention with its resolution where given.

        Examples:
            >>> Document("Messi won.", (Mention(0, 5, "Lionel Messi"),)).to_record()
            {'text': 'Messi won.', 'mentions': [{'start': 0, 'end': 5, 'entity': 'Lionel Messi'}]}
        """
        record: dict[str, Any] = {} if self.id is None else {"id": self.id}
        record["text"] = self.text
        record["mentions"] = [_mention_record(mention) for mention in self.mentions]
        if resolutions is not None:
            for mention, resolution in zip(record["mentions"], resolutions, strict=True):
                mention.update(resolution.to_record())
            if resolutions.trace is not None:
                record["trace"] = [step.to_record() for step in resolutions.trace]
        return record | dict(self.extra)

    def to_json(self, resolutions: Resolutions | None = None) -> bytes:
        """Return one line of document JSONL, without the newline.

        Examples:
            >>> Document("Messi won.", (Mention(0, 5),), id="one").to_json()
            b'{"id":"one","text":"Messi won.","mentions":[{"start":0,"end":5}]}'
        """
        import orjson

        return orjson.dumps(self.to_record(resolutions))


class Evidence(NamedTuple):
    """What speaks for an answer."""

    softmax: float  # logit of its probability among the candidates; 0 where it is the only one
    lone: float  # 1: it is the only candidate
    fit: float  # by how many standard deviations it scores above arbitrary entities
    prior: float  # logarithm of its share of the name's links


@dataclass(frozen=True, slots=True)
class Resolution:
    """What was decided for a mention.

    `probability` is the one at the time of the decision; `step` counts from 1, and mentions decided by one pass
    share it. Where a mention is left open `entity` is None and `reason` says why; if none of its candidates fits, they
    are in `alternatives`.

    Examples:
        >>> import deixis
        >>> oar, marlow = deixis.load("velm/model")("After the Silver Oar came Marlow.")
        >>> marlow.text, marlow.entity, marlow.step, marlow.probability > 0.9
        ('Marlow', 'Ada Marlow (rower)', 2, True)
        >>> [title for title, probability in marlow.alternatives]
        ['Ada Marlow (rower)', 'Ada Marlow (chess player)']
    """

    start: int
    end: int
    text: str  # of the mention
    entity: str | None
    probability: float
    step: int
    alternatives: tuple[tuple[str, float], ...] = ()  # every candidate scored, most probable first
    reason: Reason | None = None
    identity: Identity | None = None  # None: a page of the English Wikipedia and nothing else
    kind: str | None = None  # what it names, as "person" or "place", where that is known
    known_by: KnownBy | None = None  # of the entity; None: it is none of the model's
    evidence: Evidence | None = field(default=None, repr=False, compare=False)  # where it was asked for

    @property
    def url(self) -> str | None:
        """The page of the entity: its own where it was given one, else Wikipedia's.

        Examples:
            >>> Resolution(0, 5, "Messi", "Lionel Messi", 0.98, 1).url
            'https://en.wikipedia.org/wiki/Lionel_Messi'
        """
        if self.entity is None:
            return None
        return wikipedia_url(self.entity) if self.identity is None else self.identity.url

    @property
    def wikidata(self) -> str | None:
        """The Wikidata id of the entity, as Q615, where it is known.

        Examples:
            >>> Resolution(0, 5, "Messi", "Lionel Messi", 0.98, 1, identity=Identity(wikidata="Q615")).wikidata
            'Q615'
        """
        return None if self.entity is None or self.identity is None else self.identity.wikidata

    def to_record(self) -> dict[str, Any]:
        """Return the keys that a mention gains in the document JSONL.

        Examples:
            >>> Resolution(0, 5, "Messi", None, 0.0, 0, reason="no candidates").to_record()
            {'resolution': None, 'reason': 'no candidates'}
        """
        alternatives = [list(pair) for pair in self.alternatives]
        if self.entity is None:
            return {"resolution": None, "reason": self.reason} | (
                {"alternatives": alternatives} if alternatives else {}
            )
        told = {
            "url": self.url,
            "known_by": self.known_by,
            "wikidata": self.wikidata,
            "id": (self.identity or Identity()).id,
        }
        return {
            "resolution": {
                "entity": self.entity,
                "probability": self.probability,
                "step": self.step,
                "alternatives": alternatives,
            }
            | {name: value for name, value in told.items() if value is not None}
        }


@dataclass(frozen=True, slots=True)
class Step:
    """One step of inference as it was taken.

    `open` has the candidates of every mention that was undecided before the step, given all that was decided
    earlier; it is empty where mentions of one candidate were decided without asking the network.
    """

    step: int
    decided: tuple[int, ...]  # places of mentions
    open: Mapping[int, tuple[tuple[str, float], ...]] = field(default_factory=dict)  # place -> (title, probability)

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of the step; probabilities to six places, as there are many."""
        lists = [
            {"mention": place, "candidates": [[title, round(chance, 6)] for title, chance in candidates]}
            for place, candidates in self.open.items()
        ]
        return {"step": self.step, "decided": list(self.decided), "open": lists}


@dataclass(frozen=True, slots=True)
class Resolutions(Sequence[Resolution]):
    """The resolutions of a document, one a mention, in the order of its mentions; a notebook shows them as a text.

    Examples:
        >>> import deixis
        >>> linked = deixis.load("velm/model")("After the Silver Oar came Marlow.", trace=True)
        >>> len(linked), linked[0].entity
        (2, 'Velm Cup (rowing)')
        >>> [step.decided for step in linked.trace]  # the places of the mentions decided in each step
        [(0,), (1,)]
    """

    document: Document
    items: tuple[Resolution, ...]
    passes: int = 0  # of the network over the document's windows
    trace: tuple[Step, ...] | None = None  # the steps as they were taken, where they were asked for

    @overload
    def __getitem__(self, index: int) -> Resolution: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Resolution, ...]: ...
    def __getitem__(self, index: int | slice) -> Resolution | tuple[Resolution, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Resolution]:
        return iter(self.items)

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        from deixis.rendering import linked_html

        return linked_html(self)

    def to_json(self) -> bytes:
        """Return the document with its resolutions as one line of document JSONL, without the newline.

        Examples:
            >>> import deixis
            >>> deixis.load("velm/model")("Nobody was there.").to_json()
            b'{"text":"Nobody was there.","mentions":[]}'
        """
        return self.document.to_json(self)


def _typed(value: Any, kind: type, where: str, expected: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InputError(f"{where} is {shown(value)}; expected {expected}")
    return value


def _mention(value: Any, where: str) -> Mention:
    record = dict(_typed(value, dict, where, "an object with start and end"))
    start = _typed(record.pop("start", None), int, f"{where}.start", "a number of characters")
    end = _typed(record.pop("end", None), int, f"{where}.end", "a number of characters")
    entity = record.pop("entity", None)
    if entity is not None:
        _typed(entity, str, f"{where}.entity", "a title")
    given = record.pop("candidates", None)
    candidates = None
    if given is not None:
        listed = _typed(given, list, f"{where}.candidates", "a list of titles or of [title, prior]")
        candidates = tuple(_candidate(item, f"{where}.candidates[{i}]") for i, item in enumerate(listed))
    kind = record.pop("kind") if isinstance(record.get("kind"), str) else None
    return Mention(start, end, entity, candidates, record, kind)


def _candidate(value: Any, where: str) -> Candidate:
    if isinstance(value, str):
        return Candidate(value)
    pair = _typed(value, list, where, "a title or [title, prior]")
    if len(pair) != 2 or not isinstance(pair[0], str) or isinstance(pair[1], bool):
        raise InputError(f"{where} is {shown(value)}; expected a title or [title, prior]")
    if pair[1] is not None and not isinstance(pair[1], int | float):
        raise InputError(f"{where} has the prior {shown(pair[1])}; expected a number")
    return Candidate(pair[0], None if pair[1] is None else float(pair[1]))


def _mention_record(mention: Mention) -> dict[str, Any]:
    record: dict[str, Any] = {"start": mention.start, "end": mention.end}
    if mention.entity is not None:
        record["entity"] = mention.entity
    if mention.kind is not None:
        record["kind"] = mention.kind
    if mention.candidates is not None:
        record["candidates"] = [list(candidate) for candidate in mention.candidates]
    return record | dict(mention.extra)
