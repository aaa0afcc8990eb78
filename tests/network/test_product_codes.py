"""Product codes: few bytes a row, spent where products with the rows need them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from deixis.network.product_codes import ProductCodes, Usage, bytes_of_columns


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def usage(seen: Tensor) -> Usage:
    """Return the usage of vectors that have nothing to do with the rows that they are scored with."""
    return Usage.of(seen, torch.randn(seen.shape, generator=generator(9)))


def change(rows: Tensor, books: ProductCodes, seen: Tensor) -> float:
    """Return the root mean square of what coding changes in products, besides what a bias makes good."""
    lost = rows - books.decode(books.encode(rows))
    return float((lost @ (seen - seen.mean(0)).T).square().mean().sqrt())


def test_biases_make_good_what_is_lost_where_a_row_is_expected() -> None:
    rows = torch.randn(2000, 16, generator=generator())
    seen = rows @ torch.randn(16, 16, generator=generator(1)) / 4 + 1  # mentions resemble the rows they are scored with
    found = Usage.of(seen, rows)
    books = ProductCodes.fit(rows, 4, found, generator(2))
    stored = books.decode(books.encode(rows))
    lost = ((rows - stored) * seen).sum(-1)
    assert float((lost - found.correction(rows, stored)).std()) < float(lost.std()) / 10


def test_as_many_rows_as_values_are_coded_without_loss() -> None:
    rows = torch.randn(256, 16, generator=generator())[torch.arange(512) % 256 // 8 * 8]  # 32 different rows
    books = ProductCodes.fit(rows, 8, usage(torch.randn(100, 16, generator=generator(1))), generator(2))
    codes = books.encode(rows)
    assert codes.shape == (512, 8) and codes.dtype == torch.uint8
    torch.testing.assert_close(books.decode(codes), rows, atol=5e-2, rtol=0)


def test_more_bytes_lose_less_and_coding_again_loses_nothing() -> None:
    rows, seen = torch.randn(3000, 16, generator=generator()), torch.randn(500, 16, generator=generator(1))
    lost = []
    for size in (2, 5, 8, 16):
        books = ProductCodes.fit(rows, size, usage(seen), generator(2))
        lost.append(change(rows, books, seen))
        codes = books.encode(rows)
        assert torch.equal(books.encode(books.decode(codes)), codes)
    assert lost == sorted(lost, reverse=True) and lost[-1] < lost[0] / 20


def test_errors_are_put_where_they_change_no_product() -> None:
    rows = torch.randn(3000, 16, generator=generator())
    few = torch.randn(4, 16, generator=generator(3))  # what is seen varies in few directions
    seen, others = (torch.randn(500, 4, generator=generator(seed)) @ few + 2 for seed in (4, 5))
    alike = Usage(torch.zeros(16, 16), torch.zeros(16), torch.eye(16, dtype=torch.float64))
    fitted, plain = (ProductCodes.fit(rows, 4, one, generator(6)) for one in (usage(seen), alike))
    assert change(rows, fitted, others) < change(rows, plain, others) / 2


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 64), st.data())
def test_columns_are_shared_out_evenly(columns: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, columns))
    counts = bytes_of_columns(columns, size).bincount(minlength=size)
    assert int(counts.sum()) == columns and int(counts.max() - counts.min()) <= 1 and int(counts.min()) > 0


def test_an_impossible_number_of_bytes_is_refused() -> None:
    with pytest.raises(ValueError, match="1 to 16 bytes"):
        ProductCodes.fit(torch.zeros(4, 16), 17, usage(torch.zeros(4, 16)), generator())
