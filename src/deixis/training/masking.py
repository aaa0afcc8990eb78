"""Which entities become [MASK] (paper 3.4; protocol 11 and 12).

The choice is a function of seed, epoch and mention alone: neither the order of batches nor the number of processes
changes it, and a resumed run needs no state.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose", "choose_masked", "mix"]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def mix(numbers: Ints, *salts: int) -> NDArray[np.uint64]:
    """Hash numbers with salts into 64 even bits (the finaliser of SplitMix64)."""
    x = numbers.astype(np.uint64)
    with np.errstate(over="ignore"):  # arithmetic modulo 2^64 is meant
        for salt in (*salts, 0):
            x = x + np.uint64((0x9E3779B97F4A7C15 * (salt + 1)) % 2**64)
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x = x ^ (x >> np.uint64(31))
    return x


def choose_masked(mentions: Ints, window: Ints, can: Bools, rates: tuple[float, float], seed: int, epoch: int) -> Bools:
    """Choose max(1, round(rate · n)) of the n mentions of each window that can be masked.

    `mentions` are numbers of the mentions in the data, `window` the window of each from 0, rising; a window's rate
    is drawn between the two.
    """
    windows = int(window[-1]) + 1 if len(window) else 0
    key = mix(mentions, seed, epoch)
    order = np.lexsort((key, ~can, window))  # by window; who can be masked first, by chance
    counts = np.bincount(window, minlength=windows)
    place = np.arange(len(window)) - np.repeat(np.cumsum(counts) - counts, counts)
    able = np.bincount(window[can], minlength=windows)
    low, high = rates
    first = mentions[np.minimum(np.cumsum(counts) - counts, max(len(mentions) - 1, 0))] if windows else mentions
    chance = mix(first, seed, epoch, 1) / 2.0**64
    wanted = np.maximum(1, np.rint((low + (high - low) * chance) * able))
    masked = np.zeros(len(window), bool)
    masked[order] = place < np.minimum(wanted, able)[window]
    return masked


def choose(numbers: Ints, rate: float, seed: int, epoch: int, salt: int) -> Bools:
    """Choose a part of numbers by chance; another salt chooses others."""
    chosen: Bools = mix(numbers, seed, epoch, salt) < rate * 2.0**64
    return chosen
