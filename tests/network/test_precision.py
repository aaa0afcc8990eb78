"""Networks that compute in fewer bits answer nearly alike, and alike in every batch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from deixis.errors import InputError
from deixis.inference import Disambiguator
from deixis.network.precision import Int8, check_precision, compute_in
from deixis.settings import Precision
from tests.worlds import make_disambiguator, make_document

SHAPE = {"words_see": "placeholders", "answer_layers": 2}


def disambiguator(precision: Precision | None, **settings: object) -> Disambiguator:
    nlp = make_disambiguator(7, **settings)
    if precision is not None:
        compute_in(nlp.network, precision)
    return nlp


@pytest.mark.parametrize("settings", [{}, SHAPE], ids=["answers", "placeholders"])
@pytest.mark.parametrize(("precision", "least"), [("fp32", 1.0), ("bf16", 0.9), ("int8", 0.9)])
def test_answers_in_other_precisions(precision: Precision, least: float, settings: dict[str, object]) -> None:
    documents = [make_document(seed, mentions=8) for seed in range(12)]
    exact = list(disambiguator(None, **settings).disambiguate_many(documents, order="local"))
    found = list(disambiguator(precision, **settings).disambiguate_many(documents, order="local"))
    pairs = [pair for one, other in zip(exact, found, strict=True) for pair in zip(one, other, strict=True)]
    same = sum(one.entity == other.entity for one, other in pairs) / len(pairs)
    assert same >= least
    differences = [abs(one.probability - other.probability) for one, other in pairs if one.entity == other.entity]
    assert max(differences) < (1e-5 if precision == "fp32" else 0.2)
    assert precision == "fp32" or max(differences) > 1e-5  # else it was not used


def test_int8_rows_do_not_depend_on_their_batch() -> None:
    nlp = disambiguator("int8", **SHAPE)
    documents = [make_document(seed, mentions=1 + seed % 9, words=20 + 3 * seed) for seed in range(20)]
    together = list(replace(nlp, batch_rows=100_000).disambiguate_many(documents))
    for one, other in zip(together, map(nlp.disambiguate, documents), strict=True):
        assert [r.entity for r in one] == [r.entity for r in other]
        # What lies between the products is rounded as ever, and now and then that takes a number to the next step.
        assert [r.probability for r in one] == pytest.approx([r.probability for r in other], abs=0.01)


def test_int8_projects_within_its_steps() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((9, 48), (16, 48), (16,)))
    x[3] *= 1000.0  # a row of large numbers coarsens no other
    found, exact = Int8(weight, bias)(x), torch.nn.functional.linear(x, weight, bias)
    error = (found - exact).norm(dim=1) / exact.norm(dim=1)
    assert float(error.max()) < 0.02
    torch.testing.assert_close(Int8(weight, bias)(x, 4, 8), found[:, 4:8])
    assert torch.equal(Int8(weight, bias)(torch.zeros(1, 48)), bias[None])


def error_of(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


def test_int8_inputs_that_are_always_large_take_no_steps_from_others() -> None:
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((64, 48), (16, 48), (16,)))
    x[:, 5] *= 100.0
    weight[:, 5] *= 0.01
    exact = torch.nn.functional.linear(x, weight, bias)
    assert error_of(Int8(weight, bias, x.abs().amax(0))(x), exact) < 0.5 * error_of(Int8(weight, bias)(x), exact)


@pytest.mark.parametrize("vnni", [True, False])
def test_int8_numbers_that_are_never_negative_have_all_steps(vnni: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: vnni and torch.cpu.get_capabilities()["avx512_vnni"])
    generator = torch.Generator().manual_seed(0)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((64, 48), (16, 48), (16,)))
    x = torch.nn.functional.gelu(4 * x)
    exact = torch.nn.functional.linear(x, weight, bias)
    signed = error_of(Int8(weight, bias)(x), exact)
    assert error_of(Int8(weight, bias, least=-0.17)(x.clone()), exact) < min(signed, 0.02)


def test_a_precision_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of fp32, bf16, int8"):
        check_precision("int4", torch.device("cpu"))
    with pytest.raises(InputError, match="int8 runs on CPUs only"):
        check_precision("int8", torch.device("cuda"))
