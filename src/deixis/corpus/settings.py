"""What can be set where articles become training windows; `deixis wikipedia windows` has an option for each field."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deixis.settings import SettingsModel

__all__ = ["PackingConfig"]


class PackingConfig(SettingsModel):
    """What decides the windows, beside the articles, the vocabulary and the tokenizer."""

    max_pieces: Annotated[int, Field(ge=1, le=510, description="Word pieces a window holds at most.")] = 510
    min_sentence: Annotated[
        int, Field(ge=1, description="Word pieces under which a sentence is a heading or a crumb, and dropped.")
    ] = 5
    max_mentions: Annotated[int, Field(ge=1, le=128, description="Links a window holds at most.")] = 128
    candidates: Annotated[
        int, Field(ge=0, description="Candidate rows kept a mention, for a loss over candidates; needs --store.")
    ] = 0
    held_out: Annotated[float, Field(ge=0, lt=1, description="The fraction of articles kept out of training.")] = 0.01
    seed: Annotated[int, Field(description="Decides, with its title, whether an article is held out.")] = 0
    own_name: Annotated[bool, Field(description="Annotate an article's own name in its own text.")] = False
    repeats: Annotated[bool, Field(description="Annotate repeats of a surface that the article links once.")] = False
