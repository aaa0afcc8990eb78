"""What can be set in an evaluation: how sets are read, and how they are answered (protocol 1–10)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from deixis.settings import Order, Released, Settings, SettingsModel, Splitting

__all__ = ["TOP", "CalibrationSettings", "DataSettings", "SetsSettings"]

TOP = 30  # candidates a mention


class DataSettings(SettingsModel):
    """How golds and candidate lists are read; the defaults follow the paper's text."""

    top: Annotated[
        Annotated[int, Field(ge=1)] | None,
        Field(description=f"Candidates kept per mention (default {TOP}; PPRforNED lists are not cut)."),
    ] = None
    coreference: Annotated[
        Literal["original", "none"],
        Field(
            description="Coreference of persons in the published lists: from the original lists (with --released 2021: "
            "from lists already replaced), or none."
        ),
    ] = "original"
    released: Annotated[
        Released | None,
        Field(
            description="Do as the authors' released code of this year: golds without a title are dropped before "
            "aligning, natural order starts with the centred mention, mentions without candidates are read as [PAD]."
        ),
    ] = None
    redirects: Annotated[
        Path | None,
        Field(
            description="Redirect table for golds, lists and answers: lines of old title TAB new title, or a JSON file."
        ),
    ] = None
    titles: Annotated[
        Path | None, Field(description="List of valid titles, one per line; mentions with another gold are removed.")
    ] = None
    limit: Annotated[
        Annotated[int, Field(ge=1)] | None, Field(description="Read only the first documents of each set.")
    ] = None


class SetsSettings(DataSettings):
    """How sets with given mentions are read and answered; the defaults follow the paper's text."""

    order: Annotated[
        tuple[Order, ...],
        Field(description="Order in which mentions are decided: local, natural, confidence; may be repeated."),
    ] = ("local", "natural", "confidence")
    prior: Annotated[
        tuple[Annotated[float, Field(ge=0)], ...],
        Field(description="Add this weight times log p(e|m) to the scores; may be repeated, 0 is the paper."),
    ] = (0.0,)
    windows: Annotated[Splitting, Field(description="How documents over 510 word pieces are split.")] = "per_mention"
    commit: Annotated[
        Literal["one"] | Annotated[float, Field(gt=0, le=1)],
        Field(description=Settings.model_fields["commit"].description),
    ] = "one"


class CalibrationSettings(SettingsModel):
    """What is tried to link plain texts with, and how the best of it is chosen."""

    precision: Annotated[
        Annotated[float, Field(ge=0, le=1)] | None,
        Field(description="Choose the highest recall at this precision, not the highest F1."),
    ] = None
    detection_threshold: Annotated[
        tuple[Annotated[float, Field(ge=0, le=1)], ...],
        Field(description="Detection threshold to try, may be repeated; the model's own if not given."),
    ] = ()
    prior: Annotated[
        tuple[Annotated[float, Field(ge=0)], ...],
        Field(description="Weight of log p(e|m) to try, may be repeated; the model's own if not given."),
    ] = ()
    order: Annotated[Order, Field(description="The order of the decisions.")] = "confidence"
    redirects: Annotated[
        Path | None, Field(description="Redirect table for golds and answers: lines of old title TAB new title.")
    ] = None
    limit: Annotated[Annotated[int, Field(ge=1)] | None, Field(description="Read only the first documents.")] = None
