"""Matrices as whole numbers with a scale, for storing a model in a quarter or three eighths of its size.

    weight (rows, columns) int8            round(x / scale), between -127 and 127
    scale  (rows,) fp32                    of the entity table: whole rows are read, so each has one
    scale  (rows, columns / GROUP) fp32    of the encoder: a few large numbers in a row coarsen their group alone
    low    (rows, columns / 2) uint8       where a number has twelve bits: the lower four, two a byte

Probabilities of a 12×384 encoder in int8 moved by 0.0074 (root mean square) with one scale a row, by 0.0014 with one a
group of 64; with twelve bits by 0.0004, almost all of it from the word embeddings, which stay at eight. Cutting the
largest numbers off for finer steps gains nothing at eight bits. Scores multiply rows of the entity table with
vectors of one kind, m_e: rounded with these in view the rows keep their scores better (benchmarks/quantisation.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor

__all__ = ["Bits", "dequantise", "quantise", "quantise_rows", "round_rows"]

Bits = Literal[8, 12]
GROUP = 64  # columns that share a scale; a matrix that has no multiple of it shares one a row
SMALL = 4096  # tensors with fewer numbers stay as they are: they weigh nothing
DAMPING = 0.01  # of the mean moment: columns that were never seen to vary are not put upon
WEIGHT, SCALE, LOW = ".weight", ".scale", ".low"
WORDS = "word_embeddings.weight"  # a third of the numbers and a tenth of the error: always eight bits


def quantise_rows(x: Tensor, bits: Bits = 8) -> tuple[Tensor, Tensor]:
    """Return rows (…, columns) as whole numbers, int8 or of twelve bits int16, and their scales (…)."""
    largest = 2 ** (bits - 1) - 1
    scale = (x.abs().amax(-1) / largest).clamp_min(1e-12)
    return (x / scale.unsqueeze(-1)).round().to(torch.int8 if bits == 8 else torch.int16), scale


def round_rows(x: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Return rows (rows, columns) as int8 and their scales; products with vectors (seen, columns) change least.

    Column by column (GPTQ: Frantar et al., 2023): what rounding takes from a product is made up for by the columns that
    are still to come, as far as they vary together in what was seen.
    """
    _, scale = quantise_rows(x)
    moments = seen.double().T @ seen.double()
    moments = moments / moments.diagonal().mean() + DAMPING * torch.eye(x.shape[1], dtype=torch.float64)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(moments))
    share = torch.linalg.cholesky(inverse, upper=True).float()
    left, numbers = x.clone(), torch.empty_like(x, dtype=torch.int8)
    for column in range(x.shape[1]):
        rounded = (left[:, column] / scale).round_().clamp_(-127, 127)
        numbers[:, column] = rounded
        lost = (left[:, column] - rounded * scale) / share[column, column]
        left[:, column + 1 :].addr_(lost, share[column, column + 1 :], alpha=-1)
    return numbers, scale


def quantise(state: Mapping[str, Tensor], bits: Bits) -> dict[str, Tensor]:
    """Return named tensors with every matrix quantised: `x.weight`, `x.scale` and, of twelve bits, `x.low`."""
    out: dict[str, Tensor] = {}
    for name, x in state.items():
        if x.ndim != 2 or x.numel() < SMALL or x.shape[1] % 2 or not name.endswith(WEIGHT):
            out[name] = x
            continue
        groups = x.float().reshape(len(x), -1, GROUP if x.shape[1] % GROUP == 0 else x.shape[1])
        exact = bits == 12 and not name.endswith(WORDS)
        numbers, scale = quantise_rows(groups, 12 if exact else 8)
        numbers, own = numbers.flatten(1), name.removesuffix(WEIGHT)
        if exact:
            low = (numbers & 15).to(torch.uint8)
            out[own + LOW] = low[:, ::2] | low[:, 1::2] << 4
            numbers = numbers >> 4
        out[name], out[own + SCALE] = numbers.to(torch.int8), scale
    return out


def dequantise(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return named tensors in fp32, whatever precision they are stored in; scales and lower bits are used up."""
    out: dict[str, Tensor] = {}
    for name, x in state.items():
        own = name.removesuffix(WEIGHT)
        if x.dtype == torch.int8 and own + SCALE in state:
            scale, low = state[own + SCALE], state.get(own + LOW)
            numbers = x.float()
            if low is not None:
                numbers.mul_(16).add_(torch.stack((low & 15, low >> 4), -1).flatten(1))
            # In place: three times as fast as a product of int8 and fp32.
            out[name] = numbers.view(*scale.shape, -1).mul_(scale.unsqueeze(-1)).flatten(1)
        elif not name.endswith((SCALE, LOW)):
            out[name] = x.to(torch.float32, copy=True)  # so that nothing holds the file that is mapped
    return out
