"""Product codes: rows of the entity table in a few bytes each, chosen for what rows are multiplied with.

    codes (rows, bytes) uint8      one byte stands for some columns of the turned row
    book  (256, columns)           what each value of a byte stands for, columns of all bytes side by side
    back  (columns, columns)       turns a row back
    mean  (columns,)               of all rows

    row ≈ book[codes] · back + mean

A row is multiplied with vectors m_e (scores, equation 3) and with the layer that reads answers (inputs). Half of what
an m_e is can be told from the rows that it is scored with: mentions resemble their candidates. What an error changes
there is made good by the bias; the rest matters as far as m_e varies along the error. `Usage` holds both, and rows are
turned and stretched so that plain squared error is the mean squared change of a product (optimised product
quantisation: Ge et al., 2013).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["ProductCodes", "Usage"]

VALUES = 256  # of a byte
SAMPLE = 32_768  # rows that code books are fitted on
STEPS = 24  # of turning and k-means in turn
AT_ONCE = 8192  # rows that are encoded together
DAMPING = 0.2  # of the mean moment: directions that were never seen to vary still count a little
RIDGE = 0.03  # likewise, of the map from a row to the m_e that is expected with it
INPUTS = 0.1  # the share of the weight that rows as inputs have


@dataclass(frozen=True, slots=True)
class Usage:
    """What rows are multiplied with: errors are weighed by it."""

    weight: Tensor  # (columns, columns): row · weight + offset is the m_e that is expected where the row is scored
    offset: Tensor  # (columns,)
    moments: Tensor  # (columns, columns) of what else is in m_e, and of the layer that reads answers

    @classmethod
    def of(cls, seen: Tensor, rows: Tensor, shares: Tensor | None = None, inputs: Tensor | None = None) -> Usage:
        """Measure vectors m_e (pairs, columns) and the rows (pairs, columns) that they were multiplied with.

        `shares` (pairs,) says how much a change of each product matters: p · (1 - p) of a candidate with probability
        p. `inputs` (hidden, columns) is the layer that reads answers.
        """
        shares = torch.ones(len(seen)) if shares is None else shares
        share = (shares.double() / shares.double().sum()).unsqueeze(-1)
        vectors, x = seen.double(), rows.double()
        mean, center = (share * vectors).sum(0), (share * x).sum(0)
        vectors, x = vectors - mean, x - center
        weight = torch.linalg.solve(_damped(x.T @ (share * x), RIDGE), x.T @ (share * vectors))
        left = vectors - x @ weight
        moments = left.T @ (share * left)
        if inputs is not None:
            read = inputs.double().T @ inputs.double()
            level = moments.diagonal().mean() / read.diagonal().mean().clamp_min(1e-12)
            moments = (1 - INPUTS) * moments + INPUTS * level * read
        return cls(weight.float(), (mean - center @ weight).float(), _damped(moments, DAMPING))

    def expected(self, rows: Tensor) -> Tensor:
        """Return the m_e (rows, columns) that is expected where rows are scored."""
        return rows @ self.weight + self.offset

    def correction(self, rows: Tensor, stored: Tensor) -> Tensor:
        """Return what biases lack (rows,) so that rows as they are stored score what they did, on average."""
        return ((rows - stored) * self.expected(rows)).sum(-1)


@dataclass(frozen=True, slots=True)
class ProductCodes:
    """Code books, and the turn between rows and what the books hold."""

    book: Tensor  # (256, columns)
    back: Tensor  # (columns, columns)
    mean: Tensor  # (columns,)
    size: int  # bytes a row

    @classmethod
    def fit(cls, rows: Tensor, size: int, usage: Usage, generator: torch.Generator) -> ProductCodes:
        """Fit books of `size` bytes a row to a sample of rows (rows, columns)."""
        columns = rows.shape[1]
        if not 0 < size <= columns:
            raise ValueError(f"a row of {columns} columns has 1 to {columns} bytes, not {size}")
        chosen = torch.randperm(len(rows), generator=generator)[:SAMPLE].to(rows.device)
        mean = rows.mean(0)
        stretch = torch.linalg.cholesky(usage.moments.to(rows.device)).float()
        x = (rows[chosen] - mean) @ stretch
        turn = _balanced_axes(x, size)
        starts = torch.randint(len(x), (VALUES,), generator=generator).to(rows.device)
        book = (x @ turn)[starts]
        for _ in range(STEPS):
            turned = x @ turn
            book, codes = _means(turned, book, size)
            u, _, v = torch.linalg.svd(x.T @ _read(book, codes))
            turn = u @ v
        book, codes = _means(x @ turn, book, size)
        back = turn.T @ torch.linalg.inv(stretch)
        # Means are shorter than what they stand for, and would score less: rows score on average as they did.
        expected = usage.expected(rows[chosen])
        scored = ((_read(book, codes) @ back) * expected).sum()
        longer = ((rows[chosen] - mean) * expected).sum() / scored if scored > 0 else 1.0
        return cls(book * longer, back, mean, size)

    def encode(self, rows: Tensor) -> Tensor:
        """Return the codes (rows, bytes) of rows (rows, columns)."""
        forward = torch.linalg.inv(self.back.double()).float()
        parts = [_nearest((part - self.mean) @ forward, self.book, self.size) for part in torch.split(rows, AT_ONCE)]
        return torch.cat(parts) if parts else torch.empty(0, self.size, dtype=torch.uint8, device=rows.device)

    def decode(self, codes: Tensor) -> Tensor:
        """Return what codes (…, bytes) stand for: rows (…, columns)."""
        turned = _read(self.book, codes.flatten(0, -2)).float()
        return (turned @ self.back.float() + self.mean).view(*codes.shape[:-1], len(self.mean))


def _damped(moments: Tensor, part: float) -> Tensor:
    level = moments.diagonal().mean().clamp_min(1e-12)
    return moments + part * level * torch.eye(len(moments), dtype=moments.dtype, device=moments.device)


def bytes_of_columns(columns: int, size: int) -> Tensor:
    """Return which byte each column belongs to (columns,): neighbours, shared out evenly."""
    return torch.arange(columns) * size // columns


def _read(book: Tensor, codes: Tensor) -> Tensor:
    places = bytes_of_columns(book.shape[1], codes.shape[1]).to(codes.device)
    return book.gather(0, codes[:, places].long())


def _spans(columns: int, size: int) -> list[tuple[int, int]]:
    """Return the columns [start, end) of each byte."""
    counts = bytes_of_columns(columns, size).bincount(minlength=size).cumsum(0).tolist()
    return list(zip([0, *counts[:-1]], counts, strict=True))


def _nearest(turned: Tensor, book: Tensor, size: int) -> Tensor:
    """Return codes (rows, bytes) of the nearest values."""
    codes = torch.empty(len(turned), size, dtype=torch.uint8, device=turned.device)
    for place, (start, end) in enumerate(_spans(turned.shape[1], size)):
        values = book[:, start:end].float()
        codes[:, place] = torch.addmm(values.square().sum(-1), turned[:, start:end], values.T, alpha=-2).argmin(-1)
    return codes


def _means(turned: Tensor, book: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Take one step of k-means: return the means of the rows nearest to each value, and the codes of the rows."""
    codes = _nearest(turned, book, size)
    places = bytes_of_columns(turned.shape[1], size).to(turned.device)
    wide = codes[:, places].long()
    sums = torch.zeros_like(book).scatter_add_(0, wide, turned)
    counts = torch.zeros_like(book).scatter_add_(0, wide, torch.ones_like(turned))
    return torch.where(counts > 0, sums / counts.clamp_min(1), book), codes


def _balanced_axes(x: Tensor, size: int) -> Tensor:
    """Return the principal axes of x (columns, columns), shared out so that all bytes have as much to tell.

    From the longest down, each goes to the byte with room whose product of variances is the least (Ge et al., 2013).
    """
    values, axes = torch.linalg.eigh((x.T @ x).double() / len(x))
    told = values.clamp_min(float(values.max()) * 1e-9).log().tolist()
    spans = _spans(x.shape[1], size)
    sums, taken = [0.0] * size, [0] * size
    order = [0] * x.shape[1]
    for axis in reversed(range(x.shape[1])):
        open_ = (place for place, (start, end) in enumerate(spans) if taken[place] < end - start)
        place = min(open_, key=lambda one: (sums[one], one))
        order[spans[place][0] + taken[place]] = axis
        sums[place], taken[place] = sums[place] + told[axis] - told[0], taken[place] + 1
    ordered: Tensor = axes[:, order].float()
    return ordered
