"""Several processes as one: each reads its share of every step, gradients are summed (torchrun starts them)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

__all__ = ["Processes", "processes"]

BUCKET = 1 << 26  # numbers summed in one message


@dataclass(frozen=True, slots=True)
class Processes:
    """Which process this is, of how many, and where it computes."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009 - a value, not a shared object

    @property
    def leads(self) -> bool:
        """Whether this is the process that writes and prints."""
        return self.rank == 0

    def sum(self, numbers: Tensor) -> Tensor:
        """Sum a tensor over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(numbers)
        return numbers

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients over all processes; a process without one gives zeros."""
        if self.size == 1:
            return
        bucket: list[Tensor] = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            bucket.append(parameter.grad)
            if sum(grad.numel() for grad in bucket) >= BUCKET:
                self._sum_together(bucket)
                bucket = []
        self._sum_together(bucket)

    def _sum_together(self, bucket: list[Tensor]) -> None:
        if len(bucket) == 1:
            dist.all_reduce(bucket[0])
        elif bucket:
            flat = torch.cat([grad.flatten() for grad in bucket])
            dist.all_reduce(flat)
            for grad, part in zip(bucket, torch.split(flat, [grad.numel() for grad in bucket]), strict=True):
                grad.copy_(part.view_as(grad))

    def wait(self) -> None:
        """Wait until every process is here."""
        if self.size > 1:
            dist.barrier()


@contextmanager
def processes(device: str | None = None) -> Iterator[Processes]:
    """Join the processes that torchrun started, or be the only one."""
    name = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if "WORLD_SIZE" not in os.environ:
        yield Processes(device=torch.device(name))
        return
    place = torch.device(name)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Processes(dist.get_rank(), dist.get_world_size(), place)
    finally:
        dist.destroy_process_group()
