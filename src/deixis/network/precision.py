"""In which numbers a network that only answers computes: fp32, bf16 (GPUs) or int8 (CPUs).

    fp32    as trained
    bf16    rows and weights of the layers in bf16; twice as fast as fp32 or more where the hardware multiplies it
    int8    the layers' products in int8, everything between them in fp32:

            x (rows, in)  ≈ (q - z) · s · c          q: 0 to 255; s (rows,): one scale a row, found anew for each
            W (out, in)   ≈ W₈ · t / c               t (out,): one scale an output
            x·Wᵀ + b      ≈ ((q - z)·W₈ᵀ) · s · t + b    the sum in int32, exact

            c (in,) evens the inputs out: a few are always larger than the rest, and would make the steps of all
            coarse. How far each goes is seen once, when the network is opened. z is 128; behind gelu, where x is
            hardly negative, its least number is taken off first, and z is 0.

A scale of its own makes a row independent of the others it is computed with: batches change no answer in int8 either.
Training keeps its weights: `compute_in` is for a network that was opened to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.errors import InputError
from deixis.network.batching import Batch, make_batch
from deixis.network.encoding import Tokenizer, windows_of
from deixis.network.model import Network, SelfAttention
from deixis.network.quantisation import quantise_rows
from deixis.network.special import MASK, SPECIAL

__all__ = ["Arithmetic", "check_arithmetic", "compute_in", "usual_windows"]

Arithmetic = Literal["fp32", "bf16", "int8"]
USUAL = 128  # names are enough to see which inputs are large
PLAIN: tuple[str, list[float], str] = ("none", [], "")  # nothing is done behind a product
LEAST = -0.17  # of gelu, in either form, and of relu


def check_arithmetic(name: str, device: torch.device) -> None:
    """Refuse an arithmetic that does not exist, or not on a device."""
    if name not in get_args(Arithmetic):
        raise InputError(f"the arithmetic is {name!r}; expected one of {', '.join(get_args(Arithmetic))}")
    if name == "int8" and device.type != "cpu":
        raise InputError(f"int8 arithmetic is for CPUs; on {device.type} take bf16 or fp32")
    if name == "int8" and not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        raise InputError("int8 arithmetic needs oneDNN, which this torch was built without; take fp32")


def compute_in(network: Network, arithmetic: Arithmetic, usual: Batch | None = None) -> None:
    """Let a network compute its layers in some arithmetic from now on; but for fp32, its former weights are gone.

    `usual` are windows that show int8 what the inputs of its products are like; any text does.
    """
    if arithmetic == "fp32":
        return
    far = {} if usual is None or arithmetic != "int8" else _look(network, usual)
    for layer in network.encoder.layers:
        layer.attention.self = _joint(layer.attention.self, arithmetic, far)
        if arithmetic == "int8":
            for block in (layer.attention.output, layer.intermediate, layer.output):
                least = LEAST if block is layer.output else None
                block.dense = Int8(block.dense.weight, block.dense.bias, far.get(block.dense), least)  # type: ignore[assignment]
    if arithmetic == "bf16":
        network.precision = torch.bfloat16
        network.encoder.to(torch.bfloat16)


def usual_windows(tokenizer: Tokenizer, titles: Sequence[str]) -> Batch:
    """Return windows of a text that every model has: names of its entities."""
    some = titles[len(SPECIAL) :: max(1, len(titles) // USUAL)][:USUAL]
    texts = []
    for first in range(0, len(some), USUAL // 4):
        text, spans = "", []
        for title in some[first : first + USUAL // 4]:
            text += "and the "
            spans.append((len(text), len(text) + len(title)))
            text += f"{title}, "
        texts.append((text, spans))
    encoded = tokenizer.encode_many(texts)
    return make_batch([window for encoding in encoded for window in windows_of(tokenizer, encoding, "simple")])


@torch.inference_mode()
def _look(network: Network, batch: Batch) -> dict[nn.Module, Tensor]:
    """Return how far each input (in,) of each projection goes when some windows are read."""
    far: dict[nn.Module, Tensor] = {}

    def look(module: nn.Module, given: tuple[Tensor], _: Any) -> None:
        far.setdefault(module, given[0].abs().amax(0))  # words come first, and answers are like them

    hooks = [part.register_forward_hook(look) for part in network.encoder.modules() if isinstance(part, nn.Linear)]
    network.answer(network.read(batch), torch.full_like(batch.starts, MASK))
    for hook in hooks:
        hook.remove()
    return far


def _joint(three: nn.Module, arithmetic: Arithmetic, far: dict[nn.Module, Tensor]) -> Joint:
    assert isinstance(three, SelfAttention), "compute_in is for a network as it was opened"
    parts = (three.query, three.key, three.value)
    weight, bias = torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
    if arithmetic == "int8":
        return Joint(Int8(weight, bias, far.get(three.key)))
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
        joint: Tensor
        if isinstance(self.dense, Int8):
            joint = self.dense(rows, first * size, last * size)
        else:
            part = slice(first * size, last * size)
            joint = F.linear(rows, self.dense.weight[part], self.dense.bias[part])
        return joint.chunk(last - first, -1)


class Int8(nn.Module):
    """A projection in int8; where its inputs have a least number, they are spent."""

    def __init__(self, weight: Tensor, bias: Tensor, far: Tensor | None = None, least: float | None = None) -> None:
        super().__init__()
        weight, bias = weight.detach(), bias.detach()
        far = torch.ones_like(weight[0]) if far is None else far
        # An input that was not seen far out may go there yet. The root: rows and weights have steps alike.
        far = far.clamp_min(2 * float(far.median()) + 1e-6)
        even = (far / weight.abs().amax(0).clamp_min(1e-6)).sqrt()
        self.least = least
        self.factor = 1 / even  # (in,)
        self.weight, self.scale = quantise_rows(weight * even)  # (out, in), (out,)
        self.bias = bias if least is None else bias + least * weight.sum(1)  # (out,)
        # Without VNNI two products are added in 16 bits, where only seven bits have room.
        self.zero = 128 if torch.cpu._is_vnni_supported() else 64
        self._packed: dict[tuple[int, int | None], tuple[Tensor, ...]] = {}

    def forward(self, x: Tensor, first: int = 0, last: int | None = None) -> Tensor:
        """Project rows (rows, in) to the outputs from `first` to before `last` (rows, out)."""
        weight, scale, none, bias = self._packed.get((first, last)) or self._pack(first, last)
        given, x = x.dtype, x.float()
        if self.least is None:
            x = x * self.factor
            largest, steps = torch.maximum(x.amax(-1, keepdim=True), -x.amin(-1, keepdim=True)), self.zero - 1
            x.mul_(steps / largest.clamp_min_(1e-12))
        else:
            x = x.sub_(self.least).mul_(self.factor)
            largest, steps = x.amax(-1, keepdim=True), 2 * self.zero - 1
            x.mul_(steps / largest.clamp_min_(1e-12)).sub_(self.zero)
        # By way of int8, to which torch converts fastest.
        rows = x.round_().to(torch.int8).view(torch.uint8).add_(self.zero)
        sums: Tensor = torch.ops.onednn.qlinear_pointwise(
            rows, 1.0, self.zero if self.least is None else 0, weight, scale, none, None, 1.0, 0, torch.float32, *PLAIN
        )
        return torch.addcmul(bias, sums, largest.div_(steps), out=sums).to(given)

    def _pack(self, first: int, last: int | None) -> tuple[Tensor, ...]:
        """Lay the weights of some outputs out as oneDNN wants them, when they are first asked for."""
        part = slice(first, last)
        packed: Tensor = torch.ops.onednn.qlinear_prepack(self.weight[part], None)
        scale = self.scale[part]
        self._packed[first, last] = packed, scale, torch.zeros_like(scale, dtype=torch.int64), self.bias[part]
        return self._packed[first, last]
