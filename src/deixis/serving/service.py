"""What the endpoints and the tools answer with: one model behind one queue, within the limits of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from deixis.documents import Candidate, Document, Mention, Resolutions
from deixis.inference import Disambiguator
from deixis.serving.batcher import Batcher
from deixis.serving.http_errors import HttpError
from deixis.serving.limits import Limits
from deixis.serving.metrics import Metrics
from deixis.serving.requests import CandidatesQuery, check_mentions
from deixis.settings import Settings

__all__ = ["Service"]


class Service:
    """A model with its queue; what waits is answered together."""

    def __init__(self, nlp: Disambiguator, limits: Limits) -> None:
        self.nlp, self.limits, self.metrics = nlp, limits, Metrics()
        self.batcher = Batcher(nlp.disambiguate_many, self.metrics, queue=limits.queue, rows=limits.batch_rows)

    async def disambiguate(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Answer documents with mentions, together with what else waits."""
        return await asyncio.wrap_future(self.batcher.submit(documents, settings))

    async def link(self, documents: Sequence[Document], settings: Settings) -> list[Resolutions]:
        """Find the mentions of plain texts and answer them."""
        self.check_names()
        found = [await run_in_threadpool(self.nlp.find, document) for document in documents]
        check_mentions(found, self.limits, settings)
        return await self.disambiguate(found, self.nlp.for_texts(settings))

    async def candidates(self, query: CandidatesQuery) -> tuple[Candidate, ...]:
        """Return the candidates that linking considers for a name, in a text if one is given."""
        self.check_names()
        return await run_in_threadpool(self._lookup, query.surface, query.text)

    def known(self, title: str) -> dict[str, Any]:
        """Return what is known of a candidate; it may be none of the model's entities."""
        entity = self.nlp.entity(title)
        return {"entity": title} if entity is None else entity.to_record()

    def check_names(self) -> None:
        """Refuse what needs names where the model has none."""
        if self.nlp.detector is None or self.nlp.candidates is None:
            raise HttpError(
                501, "this model has no names to find mentions by; give candidates of mentions to POST /disambiguate"
            )

    async def close(self) -> None:
        """Take no more, answer what waits, and stop."""
        await run_in_threadpool(self.batcher.close)

    def _lookup(self, surface: str, text: str | None) -> tuple[Candidate, ...]:
        document = Document(surface if text is None else text)
        start = document.text.index(surface)
        mention = Mention(start, start + len(surface))
        found = () if text is None else self.nlp.find(document).mentions
        others = (one for one in found if (one.start, one.end) != (mention.start, mention.end))
        asked = Document(document.text, (mention, *others))
        assert self.nlp.candidates is not None
        return self.nlp.candidates.candidates(asked)[0]
