"""Surfaces to candidates: whatever can answer for all mentions of a document."""

from __future__ import annotations

from typing import Protocol

from deixis.documents import Candidate, Document

__all__ = ["CandidateSource"]


class CandidateSource(Protocol):
    """Answers with one candidate list a mention, most probable first; it sees the whole document."""

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        """Return the candidates of every mention of the document, in the order of its mentions."""
