"""The entity table: a row is found by its number, whatever it is stored in, and editing leaves the others alone."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from deixis.errors import ArtefactError
from deixis.network.entity_table import CodedTable, EntityTable, MixedTable
from deixis.network.product_codes import ProductCodes, Usage


def rows_of(number: int, columns: int = 12) -> Tensor:
    return torch.randn(number, columns, generator=torch.Generator().manual_seed(number))


@cache
def books() -> ProductCodes:
    return ProductCodes.fit(rows_of(400), 4, Usage.of(rows_of(100), rows_of(101)[1:]), torch.Generator().manual_seed(0))


def mixed(kinds: Tensor) -> tuple[MixedTable, Tensor]:
    """Return a table with an exact part, an int8 part and a coded part, and the rows that it should give."""
    rows = rows_of(len(kinds))
    parts = [
        EntityTable(rows[kinds == 0]),
        EntityTable(rows[kinds == 1]).quantised("int8"),
        CodedTable.encode(rows[kinds == 2], books()),
    ]
    table = MixedTable.join(kinds, parts)
    expected = rows.clone()
    for kind, part in enumerate(parts):
        expected[kinds == kind] = part.whole().detach()
    return table, expected


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=1, max_size=300))
def test_every_number_finds_its_row_in_whichever_part(kinds: list[int]) -> None:
    table, expected = mixed(torch.tensor(kinds))
    assert len(table) == len(kinds) and table.precision == "mixed"
    torch.testing.assert_close(table.whole(), expected, atol=1e-6, rtol=0)
    wanted = torch.randint(len(kinds), (3, 5), generator=torch.Generator().manual_seed(len(kinds)))
    torch.testing.assert_close(table(wanted), expected[wanted], atol=1e-6, rtol=0)
    again = EntityTable.of(table.state_dict())
    torch.testing.assert_close(again.whole(), expected, atol=1e-6, rtol=0)
    some = torch.randperm(len(kinds), generator=torch.Generator().manual_seed(1))[: len(kinds) // 2 + 1]
    torch.testing.assert_close(table.select(some).whole(), expected[some], atol=1e-6, rtol=0)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8", "mixed"])
def test_appending_leaves_the_other_rows_to_the_bit(precision: str) -> None:
    kinds = torch.arange(150) % 3
    table: EntityTable
    if precision == "mixed":
        table, _ = mixed(kinds)
    else:
        table = EntityTable(rows_of(150)).quantised(precision)  # type: ignore[arg-type]  # a parameter of the test
    before, new = table.whole().detach(), rows_of(7)
    longer = table.append(new)
    assert len(longer) == 157 and longer.precision == precision
    assert torch.equal(longer.whole()[:150], before)
    torch.testing.assert_close(longer.whole()[150:].detach(), new, atol=0.03, rtol=0)
    assert torch.equal(table.whole().detach(), before)  # the table itself stays as it is


def test_parts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArtefactError, match="rows"):
        MixedTable.join(torch.zeros(5, dtype=torch.uint8), [EntityTable(rows_of(4))])
    with pytest.raises(ArtefactError, match="scale"):
        EntityTable(torch.zeros(2, 4, dtype=torch.int8))
    with pytest.raises(ArtefactError, match="missing"):
        EntityTable.of({})
    with pytest.raises(ArtefactError, match="int8"):
        EntityTable(rows_of(4)).quantised("mixed")
