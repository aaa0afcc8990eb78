"""Inference precision: fp32, bf16 (GPUs) or int8 (CPUs).

    fp32    as trained
    bf16    rows and weights of the layers in bf16; at least twice as fast as fp32 where the hardware supports it
    int8    the layers' products in int8, everything between them in fp32:

            x (rows, in)  ≈ (q - z) · s · c          q: 0 to 255; s (rows,): one scale a row, found anew for each
            W (out, in)   ≈ W₈ · t / c               t (out,): one scale an output
            x·Wᵀ + b      ≈ ((q - z)·W₈ᵀ) · s · t + b    the sum in int32, exact

            c (in,) balances the inputs: a few are always larger than the rest, and would make the steps of all
            coarse. The range of each is measured once, when the network is opened. z is 128; after gelu, where x is
            hardly negative, the least value is subtracted first, and z is 0.

A row has a scale of its own, so it does not depend on the rest of its batch: batches change no answer in int8 either.
`compute_in` drops the trained weights; it is for a network that was opened to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, get_args

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.errors import InputError
from deixis.network.batching import Batch, make_batch
from deixis.network.encoding import Tokenizer, windows_of
from deixis.network.layers import SelfAttention
from deixis.network.model import Network
from deixis.network.quantisation import quantise_rows
from deixis.network.special import MASK, SPECIAL

if TYPE_CHECKING:  # machines that only compute need not have what settings are checked with
    from deixis.settings import Precision

__all__ = ["calibration_batch", "check_precision", "compute_in"]

CALIBRATION_NAMES = 128  # enough to see which inputs are large
PLAIN: tuple[str, list[float], str] = ("none", [], "")  # nothing is done after a product
LEAST = -0.17  # of gelu, in either form, and of relu


def check_precision(name: str, device: torch.device) -> None:
    """Refuse a precision that does not exist, or not on a device."""
    from deixis.settings import Precision

    if name not in get_args(Precision):
        raise InputError(f"the precision is {name!r}; expected one of {', '.join(get_args(Precision))}")
    if name == "int8" and device.type != "cpu":
        raise InputError(f"int8 runs on CPUs only; use bf16 or fp32 on {device.type}")
    if name == "int8" and not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        raise InputError("int8 needs oneDNN, which this torch was built without; use fp32")


def compute_in(network: Network, precision: Precision, calibration: Batch | None = None) -> None:
    """Make a network compute its layers in a precision from now on; except for fp32, the trained weights are dropped.

    int8 measures the ranges of its inputs on the calibration batch; any text will do.
    """
    if precision == "fp32":
        return
    ranges = {} if calibration is None or precision != "int8" else _input_ranges(network, calibration)
    for layer in network.encoder.layers:
        layer.attention.self = _joint(layer.attention.self, precision, ranges)
        if precision == "int8":
            for block in (layer.attention.output, layer.intermediate, layer.output):
                least = LEAST if block is layer.output else None
                block.dense = Int8(block.dense.weight, block.dense.bias, ranges.get(block.dense), least)  # type: ignore[assignment]
    if precision == "bf16":
        network.precision = torch.bfloat16
        network.encoder.to(torch.bfloat16)


def calibration_batch(tokenizer: Tokenizer, titles: Sequence[str]) -> Batch:
    """Return windows of a text that every model can write: names of its entities."""
    some = titles[len(SPECIAL) :: max(1, len(titles) // CALIBRATION_NAMES)][:CALIBRATION_NAMES]
    texts = []
    for first in range(0, len(some), CALIBRATION_NAMES // 4):
        text, spans = "", []
        for title in some[first : first + CALIBRATION_NAMES // 4]:
            text += "and the "
            spans.append((len(text), len(text) + len(title)))
            text += f"{title}, "
        texts.append((text, spans))
    encoded = tokenizer.encode_many(texts)
    return make_batch([window for encoding in encoded for window in windows_of(tokenizer, encoding, "simple")])


@torch.inference_mode()
def _input_ranges(network: Network, batch: Batch) -> dict[nn.Module, Tensor]:
    """Return the largest absolute value of each input (in,) of each projection, over some windows."""
    ranges: dict[nn.Module, Tensor] = {}

    def measure(module: nn.Module, given: tuple[Tensor], _: Any) -> None:
        ranges.setdefault(module, given[0].abs().amax(0))  # words come first, and answers are like them

    hooks = [part.register_forward_hook(measure) for part in network.encoder.modules() if isinstance(part, nn.Linear)]
    network.answer(network.read(batch), torch.full_like(batch.starts, MASK))
    for hook in hooks:
        hook.remove()
    return ranges


def _joint(three: nn.Module, precision: Precision, ranges: dict[nn.Module, Tensor]) -> Joint:
    assert isinstance(three, SelfAttention), "compute_in was called before"
    parts = (three.query, three.key, three.value)
    weight, bias = torch.cat([part.weight for part in parts]), torch.cat([part.bias for part in parts])
    if precision == "int8":
        return Joint(Int8(weight, bias, ranges.get(three.key)))
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
    """A projection in int8; inputs with a known least value are overwritten."""

    def __init__(
        self, weight: Tensor, bias: Tensor, input_range: Tensor | None = None, least: float | None = None
    ) -> None:
        super().__init__()
        weight, bias = weight.detach(), bias.detach()
        largest = torch.ones_like(weight[0]) if input_range is None else input_range
        # An input that was small so far may become larger. The root: rows and weights share the loss of precision.
        largest = largest.clamp_min(2 * float(largest.median()) + 1e-6)
        even = (largest / weight.abs().amax(0).clamp_min(1e-6)).sqrt()
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
