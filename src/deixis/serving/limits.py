"""The limits of a server; `deixis serve` has an option for each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deixis.settings import SettingsModel

__all__ = ["Limits"]

Count = Annotated[int, Field(ge=1)]


class Limits(SettingsModel):
    """How much one request may ask, and how much may wait."""

    max_body: Annotated[Count, Field(description="Largest body of a request, in bytes.")] = 8 << 20
    max_documents: Annotated[Count, Field(description="Most documents of a request.")] = 64
    max_text: Annotated[Count, Field(description="Most characters of a document.")] = 100_000
    max_mentions: Annotated[Count, Field(description="Most mentions of a request.")] = 1000
    max_candidates: Annotated[Count, Field(description="Most candidates given with a mention.")] = 100
    max_traced: Annotated[Count, Field(description="Most mentions of a request with a trace.")] = 100
    max_seconds: Annotated[Count, Field(description="Most seconds that a body may take to arrive.")] = 60
    queue: Annotated[Count, Field(description="Most documents that wait; further requests get 503.")] = 128
    batch_rows: Annotated[Count, Field(description="Word pieces and mentions that one batch may hold.")] = 8192
