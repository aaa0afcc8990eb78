"""The tools that agents call: what each takes and answers, without the protocol they travel by (mcp.py).

    link_text              a text                       -> its mentions, found and resolved
    disambiguate_mentions  a text and mentions          -> the mentions resolved
    find_candidates        a name, and perhaps a text   -> what the name may mean
    entity                 a title                      -> what is known of it

What a tool takes is checked as requests of the server are, with the same settings beside a text. A model that writes
a call counts characters badly, so mentions may be given by their names. Answers leave out the text, which the caller
has, and all but the best alternatives: they are read at a price by the word.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from deixis.documents import Document, Mention, Resolutions
from deixis.errors import InputError
from deixis.serving.openapi import EntityAnswer, Resolution, Step
from deixis.serving.requests import (
    SETTINGS_BESIDE,
    CandidatesQuery,
    GivenCandidates,
    at_most,
    check_mentions,
    check_query,
    listed,
    read_settings,
    sentence,
)
from deixis.serving.service import Service

__all__ = ["TOOLS", "TextToLink", "Tool", "call"]

ALTERNATIVES = 5  # of a mention that are told
DIGITS = 4  # of probabilities


class _Given(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False)


class _Told(BaseModel):
    """Models of answers describe them only; more may be told."""


class TextToLink(_Given):
    """A text."""

    text: Annotated[str, at_most("max_text", "a document"), Field(description="The text, at best whole.")]


class NamedMention(_Given):
    """A mention of the text: by its name, or by its place."""

    surface: Annotated[
        str | None,
        Field(min_length=1, description="The name as the text has it; listed again, its next occurrence is meant."),
    ] = None
    start: Annotated[int | None, Field(ge=0, description="In place of surface: the first character, from 0.")] = None
    end: Annotated[int | None, Field(ge=1, description="Beside start: the character after its last.")] = None
    candidates: GivenCandidates = None


class TextToDisambiguate(TextToLink):
    """A text with its mentions."""

    mentions: Annotated[
        list[NamedMention],
        at_most("max_mentions", "a request"),
        Field(min_length=1, description="What is to be decided; all mentions of a text help one another."),
    ]


class Title(_Given):
    """An entity."""

    title: Annotated[
        str, Field(min_length=1, max_length=1000, description="Its title in Wikipedia, or one that redirects to it.")
    ]


class LinkedMention(_Told):
    """A mention with its resolution; without one, the reason."""

    surface: str
    start: int
    end: int
    kind: Annotated[str | None, Field(description="What it names, as person or place, where that is known.")] = None
    resolution: Resolution | None
    reason: str | None = None


class LinkedText(_Told):
    """The mentions of the text."""

    mentions: list[LinkedMention]
    trace: Annotated[list[Step] | None, Field(description="The steps, if trace is true.")] = None


class FoundCandidate(EntityAnswer):
    """An entity that a name may mean."""

    prior: Annotated[float | None, Field(description="The share of the name's links that lead to it.")] = None


class FoundCandidates(_Told):
    """What a name may mean, most probable first."""

    surface: str
    candidates: list[FoundCandidate]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what it says of itself, takes and answers."""

    title: str
    description: str
    takes: type[BaseModel]
    answers: type[BaseModel]
    answer: Callable[[Service, Any], Awaitable[dict[str, Any]]]


async def link_text(service: Service, asked: Any) -> dict[str, Any]:
    """Find the mentions of a text and decide them."""
    (result,) = await service.link([Document(asked.text)], read_settings(asked))
    return _linked(result)


async def disambiguate_mentions(service: Service, asked: Any) -> dict[str, Any]:
    """Decide given mentions."""
    document, settings = Document(asked.text, _placed(asked.text, asked.mentions)), read_settings(asked)
    check_mentions([document], service.limits, settings)
    (result,) = await service.disambiguate([document], settings)
    return _linked(result)


async def find_candidates(service: Service, asked: CandidatesQuery) -> dict[str, Any]:
    """List what a name may mean."""
    check_query(asked)
    found = []
    for title, prior in await service.candidates(asked):
        found.append(service.known(title) | ({} if prior is None else {"prior": round(prior, DIGITS)}))
    return {"surface": asked.surface, "candidates": found}


async def entity(service: Service, asked: Title) -> dict[str, Any]:
    """Tell what is known of an entity."""
    known = service.nlp.entity(asked.title)
    if known is None:
        raise InputError(
            f"title is {asked.title[:60]!r}, which no entity here has; find_candidates lists what a name may mean"
        )
    return known.to_record()


TOOLS = {
    "link_text": Tool(
        "Link a text",
        "Find the names in a text and decide which Wikipedia entity each means, all of them together. A mention left "
        "open has the resolution null and a reason.",
        create_model("TextToLinkWithSettings", __base__=TextToLink, __doc__=TextToLink.__doc__, **SETTINGS_BESIDE),
        LinkedText,
        link_text,
    ),
    "disambiguate_mentions": Tool(
        "Decide given mentions",
        "Decide which Wikipedia entity each given mention of a text means, all of them together, among its candidates "
        "where they are given.",
        create_model(
            "TextToDisambiguateWithSettings",
            __base__=TextToDisambiguate,
            __doc__=TextToDisambiguate.__doc__,
            **SETTINGS_BESIDE,
        ),
        LinkedText,
        disambiguate_mentions,
    ),
    "find_candidates": Tool(
        "Find candidates",
        "List the entities that a name may mean, by how often links with that name lead to each. With a text that has "
        "the name, its other words and names count too.",
        CandidatesQuery,
        FoundCandidates,
        find_candidates,
    ),
    "entity": Tool(
        "Look up an entity",
        "Tell what is known of an entity by its title: address, Wikidata id, and how well the model knows it.",
        Title,
        EntityAnswer,
        entity,
    ),
}


async def call(service: Service, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer a call; what is wrong with it is a DeixisError of one sentence."""
    tool = TOOLS.get(name)
    if tool is None:
        raise InputError(f"there is no tool {name[:60]!r}; expected one of {', '.join(TOOLS)}")
    try:
        asked = tool.takes.model_validate(arguments, context=service.limits)
    except ValidationError as error:
        raise InputError(sentence(error)) from None
    return await tool.answer(service, asked)


def _placed(text: str, given: list[NamedMention]) -> tuple[Mention, ...]:
    """Return mentions in the order of the call, those given by names at their next occurrences."""
    behind: dict[str, int] = {}  # where the next occurrence of a name is looked for
    placed = []
    for number, one in enumerate(given):
        start, end = one.start, one.end
        if one.surface is not None:
            if start is not None or end is not None:
                raise InputError(f"mentions[{number}] has a surface and a place; give one of both")
            start = text.find(one.surface, behind.get(one.surface, 0))
            if start < 0:
                often = " so often" if one.surface in behind else ""
                raise InputError(f"mentions[{number}].surface is {one.surface[:60]!r}, which text does not have{often}")
            end = behind[one.surface] = start + len(one.surface)
        if start is None or end is None:
            raise InputError(f"mentions[{number}] has no surface; expected it, or start and end")
        placed.append(Mention(start, end, candidates=listed(one.candidates)))
    return tuple(placed)


def _linked(result: Resolutions) -> dict[str, Any]:
    """Return the answer for a text."""
    mentions = []
    for resolution in result:
        record = resolution.to_record()
        if decided := record["resolution"]:
            decided |= {"probability": round(resolution.probability, DIGITS), "url": resolution.url}
            best = resolution.alternatives[:ALTERNATIVES]
            decided["alternatives"] = [[title, round(chance, DIGITS)] for title, chance in best]
        place: dict[str, Any] = {"surface": resolution.text, "start": resolution.start, "end": resolution.end}
        mentions.append(place | ({} if resolution.kind is None else {"kind": resolution.kind}) | record)
    answer: dict[str, Any] = {"mentions": mentions}
    if result.trace is not None:
        answer["trace"] = [step.to_record() for step in result.trace]
    return answer
