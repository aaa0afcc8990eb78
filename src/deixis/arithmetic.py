"""In which numbers a network that only answers computes: fp32, bf16 (GPUs) or int8 (CPUs).

    fp32    as trained
    bf16    rows and weights of the layers in bf16; twice as fast as fp32 or more where the hardware multiplies it
    int8    the layers' products in int8, everything between them in fp32:

            x (rows, in)  ≈ round(x / s) · s        s (rows,): one scale a row, found anew for each
            W (out, in)   ≈ round(W / t) · t        t (out,): one scale an output
            x·Wᵀ + b      ≈ (x₈·W₈ᵀ) · s · t + b    the sum in int32, exact

A scale of its own makes a row independent of the others it is computed with: batches change no answer in int8 either.
Training keeps its weights: `compute_in` is for a network that was opened to answer.
"""

from __future__ import annotations

from typing import Literal, get_args

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.errors import InputError
from deixis.model import Network, SelfAttention
from deixis.quantisation import quantise_rows

__all__ = ["Arithmetic", "check_arithmetic", "compute_in"]

Arithmetic = Literal["fp32", "bf16", "int8"]


def check_arithmetic(name: str, device: torch.device) -> None:
    """Refuse an arithmetic that does not exist, or not on a device."""
    if name not in get_args(Arithmetic):
        raise InputError(f"the arithmetic is {name!r}; expected one of {', '.join(get_args(Arithmetic))}")
    if name == "int8" and device.type != "cpu":
        raise InputError(f"int8 arithmetic is for CPUs; on {device.type} take bf16 or fp32")


def compute_in(network: Network, arithmetic: Arithmetic) -> None:
    """Let a network compute its layers in some arithmetic from now on; but for fp32, its former weights are gone."""
    if arithmetic == "fp32":
        return
    for layer in network.encoder.layers:
        layer.attention.self = _joint(layer.attention.self, arithmetic)
        if arithmetic == "int8":
            for block in (layer.attention.output, layer.intermediate, layer.output):
                block.dense = Int8(block.dense.weight, block.dense.bias)  # type: ignore[assignment]
    if arithmetic == "bf16":
        network.precision = torch.bfloat16
        network.encoder.to(torch.bfloat16)


def _joint(three: nn.Module, arithmetic: Arithmetic) -> Joint:
    assert isinstance(three, SelfAttention), "compute_in is for a network as it was opened"
    parts = (three.query, three.key, three.value)
    weight, bias = torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
    if arithmetic == "int8":
        return Joint(Int8(weight, bias))
    joint = nn.Linear(1, 1, device="meta")
    joint.weight, joint.bias = nn.Parameter(weight, requires_grad=False), nn.Parameter(bias, requires_grad=False)
    return Joint(joint)


class Joint(nn.Module):
    """The three projections of attention with their weights in one piece."""

    def __init__(self, dense: nn.Linear | Int8) -> None:
        super().__init__()
        self.dense = dense

    def forward(self, rows: Tensor, first: int = 0, last: int = 3) -> tuple[Tensor, ...]:
        """Return query, key and value, `first` to before `last`, each (rows, hidden)."""
        size = rows.shape[-1]
        part = slice(first * size, last * size)
        joint: Tensor
        if isinstance(self.dense, Int8):
            joint = self.dense(rows, part)
        else:
            joint = F.linear(rows, self.dense.weight[part], self.dense.bias[part])
        return joint.chunk(last - first, -1)


class Int8(nn.Module):
    """A projection in int8."""

    weight: Tensor
    scale: Tensor
    bias: Tensor

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        super().__init__()
        rows, scale = quantise_rows(weight.detach())
        self.register_buffer("weight", rows)  # (out, in)
        self.register_buffer("scale", scale)  # (out,)
        self.register_buffer("bias", bias.detach())

    def forward(self, x: Tensor, part: slice = slice(None)) -> Tensor:
        """Project rows (rows, in) to some of the outputs (rows, out)."""
        given, x = x.dtype, x.float()
        largest = x.abs().amax(-1, keepdim=True).clamp_min_(1e-12)
        rows = (x * (127 / largest)).round_().to(torch.int8)
        sums = torch._int_mm(rows, self.weight[part].t()).float()
        return torch.addcmul(self.bias[part], sums.mul_(largest / 127), self.scale[part]).to(given)
