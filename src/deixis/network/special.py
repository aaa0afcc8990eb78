"""The first rows of B, which are no entities: padding, what is outside the vocabulary, what is not decided yet."""

from __future__ import annotations

__all__ = ["MASK", "PAD", "SPECIAL", "UNK"]

PAD, UNK, MASK = 0, 1, 2
SPECIAL = ("[PAD]", "[UNK]", "[MASK]")  # their names, in the order of their rows
