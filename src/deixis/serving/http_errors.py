"""What the server refuses: one sentence, an HTTP status, and when to come back.

Refusal
├── TooLarge       413   the body is over the limit
├── Unusable       422   a field is wrong or over a limit; the sentence names it
├── Overloaded     503   the queue is full, or the server is going down; Retry-After says when to come back
└── NotProvided    501   this model folder has not what the endpoint needs
"""

from __future__ import annotations

from deixis.errors import DeixisError

__all__ = ["NotProvided", "Overloaded", "Refusal", "TooLarge", "Unusable"]


class Refusal(DeixisError):  # noqa: N818 - said to a client, not a fault
    """A request that gets no answer; its text is meant for the client."""

    status = 400
    retry_after: int | None = None  # seconds


class TooLarge(Refusal):
    """The body is over the limit."""

    status = 413


class Unusable(Refusal):
    """A field is wrong or over a limit."""

    status = 422


class Overloaded(Refusal):
    """There is no room for this request now."""

    status = 503

    def __init__(self, what: str, retry_after: int) -> None:
        super().__init__(f"{what}; try again in {retry_after} s")
        self.retry_after = retry_after


class NotProvided(Refusal):
    """The model folder has not what the endpoint needs."""

    status = 501
