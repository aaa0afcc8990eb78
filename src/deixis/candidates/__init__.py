"""Surfaces to candidates: the store, how it is built, and how it is asked for a whole document."""

from deixis.candidates.source import CandidateSource
from deixis.candidates.store import CandidateStore

__all__ = ["CandidateSource", "CandidateStore"]
