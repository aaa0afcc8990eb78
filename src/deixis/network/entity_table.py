"""The entity table B: one row an entity, in one precision, or well-known entities in int8 and the others in codes.

    EntityTable   weight (entities, columns) in fp32, fp16, or int8 with a scale a row
    MixedTable    kinds, before: which part has the row of an entity, and at which place
                  parts.0, parts.1, …: an int8 table, product codes of 64 bytes, of 32, …

Whatever the parts, an entity is addressed by its number, and only the rows that are asked for are decoded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.errors import ArtefactError
from deixis.network.product_codes import ProductCodes
from deixis.network.quantisation import quantise_rows, round_rows

__all__ = ["CodedTable", "EntityTable", "MixedTable", "TablePrecision"]

TablePrecision = Literal["fp32", "fp16", "int8", "mixed"]

BLOCK = 64  # entities between two counts of what comes before
NOBODY = 255  # the kind of the places that fill the last block
AT_ONCE = 65_536  # rows that are decoded together where all are wanted
PRECISIONS: dict[torch.dtype, TablePrecision] = {torch.float32: "fp32", torch.float16: "fp16", torch.int8: "int8"}


class EntityTable(nn.Module):
    """B in one precision; rows come out in fp32."""

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        super().__init__()
        if weight.dtype == torch.int8 and scale is None:
            raise ArtefactError("an int8 entity table needs one scale a row")
        # Only a table in full precision is trained; the others are read as they lie on disk.
        self.weight = nn.Parameter(weight, requires_grad=weight.dtype == torch.float32)
        self.scale = None if scale is None else nn.Parameter(scale, requires_grad=False)

    @staticmethod
    def of(state: Mapping[str, Tensor]) -> EntityTable:
        """Make the table whose tensors these are: what its `state_dict` gave."""
        if "kinds" in state:
            return MixedTable.of(state)
        if "codes" in state:
            return CodedTable(state["codes"], state["book"], state["back"], state["mean"])
        if "weight" not in state:
            raise ArtefactError("the tensors of the entity table are missing; make the model folder again")
        return EntityTable(state["weight"], state.get("scale"))

    def __len__(self) -> int:
        return len(self.weight)

    @property
    def precision(self) -> TablePrecision:
        """How rows are stored."""
        return PRECISIONS[self.weight.dtype]

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows (…) of B as (…, entity_size)."""
        if self.weight.dtype == torch.float32:
            return F.embedding(rows, self.weight)
        x = self.weight[rows].float()
        return x if self.scale is None else x * self.scale[rows].unsqueeze(-1)

    def whole(self) -> Tensor:
        """Return all of B, (entities, entity_size)."""
        if self.precision == "fp32":
            return self.weight
        numbers = torch.arange(len(self), device=next(iter(self.state_dict().values())).device)
        return torch.cat([self(some) for some in torch.split(numbers, AT_ONCE)])

    def quantised(self, precision: TablePrecision, seen: Tensor | None = None) -> EntityTable:
        """Return the table in another precision; int8 is rounded for vectors m_e (seen, entity_size), if given."""
        if precision == self.precision and precision in ("int8", "mixed"):
            return self  # as it was rounded
        if precision == "mixed":
            raise ArtefactError("only a table that is mixed already can be stored so; expected fp32, fp16 or int8")
        x = self.whole().detach()
        if precision == "fp32":
            return EntityTable(x)
        if precision == "fp16":
            return EntityTable(x.half())
        return EntityTable(*(quantise_rows(x) if seen is None else round_rows(x, seen)))

    def stored(self, rows: Tensor) -> EntityTable:
        """Return rows (entities, entity_size) as a table of this one's make."""
        return EntityTable(rows.detach()).quantised(self.precision)

    def select(self, rows: Tensor) -> EntityTable:
        """Return the table of some rows (entities,), in this order; not a bit of them changes."""
        return EntityTable.of({name: x if name in SHARED else x[rows] for name, x in self.state_dict().items()})

    def append(self, rows: Tensor) -> EntityTable:
        """Return the table with more rows (entities, entity_size) behind its own."""
        own, more = self.state_dict(), self.stored(rows.to(next(iter(self.state_dict().values())).device)).state_dict()
        return EntityTable.of({name: x if name in SHARED else torch.cat([x, more[name]]) for name, x in own.items()})


class CodedTable(EntityTable):
    """Rows in product codes of one size."""

    codes: Tensor
    book: Tensor
    back: Tensor
    mean: Tensor

    def __init__(self, codes: Tensor, book: Tensor, back: Tensor, mean: Tensor) -> None:
        nn.Module.__init__(self)
        for name, tensor in {"codes": codes, "book": book, "back": back, "mean": mean}.items():
            self.register_buffer(name, tensor)

    @classmethod
    def encode(cls, rows: Tensor, books: ProductCodes) -> CodedTable:
        """Store rows (entities, entity_size)."""
        return cls(books.encode(rows), books.book, books.back, books.mean)

    @property
    def books(self) -> ProductCodes:
        """What the codes stand for."""
        return ProductCodes(self.book, self.back, self.mean, self.codes.shape[1])

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def precision(self) -> TablePrecision:
        return "mixed"

    def forward(self, rows: Tensor) -> Tensor:
        return self.books.decode(self.codes[rows])

    def stored(self, rows: Tensor) -> EntityTable:
        return CodedTable.encode(rows, self.books)


class MixedTable(EntityTable):
    """Rows in several tables, found by the number of their entity."""

    kinds: Tensor
    before: Tensor

    def __init__(self, kinds: Tensor, before: Tensor, parts: Sequence[EntityTable]) -> None:
        nn.Module.__init__(self)
        self.register_buffer("kinds", kinds)  # (blocks, BLOCK) uint8: the part of each entity
        self.register_buffer("before", before)  # (blocks, parts) int32: rows of each part before the block
        self.parts = nn.ModuleList(parts)

    @classmethod
    def join(cls, kinds: Tensor, parts: Sequence[EntityTable]) -> MixedTable:
        """Put a table together: the part of each entity (entities,), and the parts, rows by rising number."""
        counts = kinds.long().bincount(minlength=len(parts)).tolist()
        if counts != [len(part) for part in parts]:
            raise ArtefactError(f"the parts of the entity table have {[len(p) for p in parts]} rows, not {counts}")
        blocks = F.pad(kinds.to(torch.uint8), (0, -len(kinds) % BLOCK), value=NOBODY).view(-1, BLOCK)
        inside = torch.stack([(blocks == kind).sum(-1) for kind in range(len(parts))], -1)
        return cls(blocks, (inside.cumsum(0) - inside).int(), parts)

    @staticmethod
    def of(state: Mapping[str, Tensor]) -> EntityTable:
        numbers = sorted({int(name.split(".")[1]) for name in state if name.startswith("parts.")})
        parts = []
        for number in numbers:
            start = f"parts.{number}."
            parts.append(EntityTable.of({n.removeprefix(start): x for n, x in state.items() if n.startswith(start)}))
        return MixedTable(state["kinds"], state["before"], parts)

    def __len__(self) -> int:
        return sum(map(len, self.tables))

    @property
    def tables(self) -> list[EntityTable]:
        """The parts."""
        return list(self.parts)  # type: ignore[arg-type]  # ModuleList is untyped in its items

    @property
    def precision(self) -> TablePrecision:
        return "mixed"

    def places(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the part of each entity (rows,), and its place there (rows,)."""
        block, inside = rows // BLOCK, rows % BLOCK
        near = self.kinds[block]  # (rows, BLOCK)
        kind = near.gather(1, inside.unsqueeze(1)).long()
        earlier = torch.arange(BLOCK, device=rows.device) < inside.unsqueeze(1)
        place = self.before[block].gather(1, kind).squeeze(1) + ((near == kind) & earlier).sum(-1)
        return kind.squeeze(1), place

    def forward(self, rows: Tensor) -> Tensor:
        kind, place = self.places(rows.flatten())
        out: Tensor | None = None
        for number, part in enumerate(self.tables):
            at = (kind == number).nonzero().squeeze(1)
            if len(at) == len(kind):
                out = part(place)
                break
            found = part(place[at])
            out = found.new_zeros(len(kind), found.shape[-1]) if out is None else out
            out[at] = found
        assert out is not None, "a table has parts"
        return out.view(*rows.shape, out.shape[-1])

    def select(self, rows: Tensor) -> MixedTable:
        kind, place = self.places(rows.to(self.kinds.device))
        return MixedTable.join(kind, [part.select(place[kind == n]) for n, part in enumerate(self.tables)])

    def append(self, rows: Tensor) -> MixedTable:
        """Return the table with more rows behind its own, in its first part: the most exact one."""
        kinds = self.kinds.flatten()[: len(self)]
        first, *others = self.tables
        return MixedTable.join(F.pad(kinds, (0, len(rows))), [first.append(rows), *others])


SHARED = ("book", "back", "mean")  # tensors that all rows of a table have together
