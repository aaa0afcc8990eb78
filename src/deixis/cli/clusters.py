"""`--ray [ADDRESS]`: the work of a command over a Ray cluster, or over the processes of this machine."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from deixis.errors import InputError

if TYPE_CHECKING:
    from deixis.wikipedia.parallel import Spread

__all__ = ["HELP", "address_of", "spreading"]

HELP = (
    "Spread the work over a Ray cluster: at the ADDRESS (host:port) among the arguments, else RAY_ADDRESS, else here."
)
ADDRESS = re.compile(r"auto|local|[\w.-]+:\d+")
Given = TypeVar("Given", str, Path)


def address_of(inputs: Sequence[Given]) -> tuple[str | None, list[Given]]:
    """Return the address among the inputs, where there is one, and the rest."""
    addresses = [given for given in inputs if ADDRESS.fullmatch(str(given)) and not Path(given).exists()]
    rest = [given for given in inputs if given not in addresses[:1]]
    if not rest:
        raise InputError("there is nothing to read; give files behind --ray and its address")
    return str(addresses[0]) if addresses else None, rest


@contextmanager
def spreading(
    over_ray: bool, inputs: list[Path], workers: int | None
) -> Iterator[tuple[Spread, list[Path], int | None]]:
    """Give what spreads the work, the inputs without an address, and the number of workers where it is known."""
    if not over_ray:
        from deixis.wikipedia.parallel import in_order

        yield in_order, inputs, workers
        return
    from deixis.integrations import ray

    address, rest = address_of(inputs)
    with ray.cluster(address) as cpus:
        yield ray.in_order, rest, workers or cpus
