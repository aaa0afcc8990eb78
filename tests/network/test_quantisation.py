"""Matrices in int8: what comes back is within half a step of its group, whatever else is in the row."""

from __future__ import annotations

import pytest
import torch

from deixis.network.quantisation import GROUP, Bits, dequantise, quantise, quantise_rows, round_rows


@pytest.mark.parametrize("bits", [8, 12])
def test_every_number_is_within_half_a_step_of_its_group(bits: Bits) -> None:
    x = torch.randn(40, 2 * GROUP, generator=torch.Generator().manual_seed(0)) * 0.03
    x[3, 5], x[4] = 40.0, 0.0  # a large number, and a row of nothing
    stored = quantise({"a.weight": x, "a.bias": x[0]}, bits)
    assert stored["a.weight"].dtype == torch.int8 and stored["a.scale"].shape == (40, 2)
    assert ("a.low" in stored) == (bits == 12)
    back = dequantise(stored)
    assert set(back) == {"a.weight", "a.bias"} and torch.equal(back["a.bias"], x[0])
    step = x.view(40, 2, GROUP).abs().amax(-1, keepdim=True).expand(-1, -1, GROUP).reshape_as(x) / (2 ** (bits - 1) - 1)
    assert bool(((back["a.weight"] - x).abs() <= 0.501 * step).all())
    # The large number coarsens its own group alone.
    assert float((back["a.weight"][3, GROUP:] - x[3, GROUP:]).abs().max()) < 1e-3


def test_odd_widths_share_a_scale_a_row_and_small_tensors_stay() -> None:
    x = torch.randn(200, GROUP + 2)
    stored = quantise({"a.weight": x, "b.weight": x[:3], "mask": x[:, 0]}, 8)
    assert stored["a.scale"].shape == (200, 1) and stored["b.weight"] is not None
    assert torch.equal(stored["b.weight"], x[:3]) and "b.scale" not in stored
    assert torch.equal(dequantise(stored)["mask"], x[:, 0])


def test_half_precision_comes_back_in_full() -> None:
    x = torch.randn(4, 4)
    assert dequantise({"a.weight": x.half()})["a.weight"].dtype == torch.float32


def test_quantising_twice_changes_nothing() -> None:
    weight, scale = quantise_rows(torch.randn(50, 16))
    again, _ = quantise_rows(weight * scale.unsqueeze(-1))
    assert torch.equal(weight, again)


def test_rows_rounded_for_what_was_seen_keep_their_products() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(300, 32, generator=generator)
    few = torch.randn(8, 32, generator=generator)  # what is seen varies in few directions
    seen, others = (torch.randn(number, 8, generator=generator) @ few for number in (500, 200))
    errors = []
    for numbers, scale in (quantise_rows(x), round_rows(x, seen)):
        assert numbers.dtype == torch.int8 and int(numbers.abs().max()) <= 127
        errors.append(float(((numbers * scale.unsqueeze(-1) - x) @ others.T).square().mean().sqrt()))
    assert errors[1] < errors[0] / 2
    same = round_rows(x, torch.eye(32))  # where nothing varies together there is nothing to make up for
    assert all(torch.equal(a, b) for a, b in zip(same, quantise_rows(x), strict=True))
