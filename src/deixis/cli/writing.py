"""Results into a file or onto standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from deixis.errors import InputError

__all__ = ["writing"]


@contextmanager
def writing(output: Path | None) -> Iterator[BinaryIO]:
    """Open the output; a file gets its name when it is whole, and what an interrupted run did is kept beside it."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    aside = output.with_name(output.name + ".part")
    try:
        with aside.open("wb") as file:
            yield file
        aside.replace(output)
    except OSError as error:
        raise InputError(f"cannot write {output}: {error.strerror or error}") from None
    except (KeyboardInterrupt, InputError):
        print(f"deixis: what was done until here is in {aside}", file=sys.stderr)
        raise
