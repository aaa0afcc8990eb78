"""Texts that nobody writes, linked whole: memory stays bounded and every span is that of a name, to the letter."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.documents import Resolutions
from deixis.inference import Disambiguator
from deixis.knowledge.detection import UnitedDetector
from deixis.network.detector import DetectorHead
from deixis.network.word_features import SECTION
from tests.test_one_read import LAYERS, make_linker

TITLE = 1  # the feature of a word in title case
NAME = re.compile(r"[A-Z][a-z]+")


def make_reader(**pattern: Any) -> Disambiguator:
    """Return a disambiguator that takes each word in title case for the name of a person, and no other."""
    nlp = make_linker(**(pattern or LAYERS))
    detector = nlp.detector
    assert isinstance(detector, UnitedDetector)
    head = DetectorHead(32, (1,), 4).eval()
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.zero_()
        head.input.weight[0, 32 + TITLE] = 20.0
        head.tags.weight[1, 0] = 1.0  # a person begins
        head.tags.bias[0] = 10.0
    detector.learned.head = head
    return nlp


def assert_exact(found: Resolutions) -> None:
    text = found.document.text
    assert [(r.start, r.end) for r in found] == [match.span() for match in NAME.finditer(text)]
    assert all(r.text == text[r.start : r.end] and r.entity is not None for r in found)


TEXTS = {
    "empty": "",
    "white": " \n\t " * 50,
    "emoji": "😀👍🏽 Messi 👩‍👩‍👧 won 🇳🇴 Qatar ☃️ " * 40,
    "only emoji": "👩‍👩‍👧😀🇳🇴☃️" * 300,
    "right to left": "قال Messi مرحبا بالعالم שלום Qatar עולם‎ " * 60,
    "one word": "A" + "a" * 99_999,
    "one word among others": "Messi met " + "M" + "o" * 99_999 + " in Qatar",
    "combining": "e\u0301a\u0301 Messi o\u0308 Qatar " * 50,
    "no space": "Messi,Qatar." * 1000,
}


@pytest.mark.parametrize("pattern", [LAYERS, {"words_see": "placeholders"}], ids=["words", "placeholders"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_span_is_a_name(text: str, pattern: dict[str, object]) -> None:
    found = make_reader(**pattern).link(text, order="local")
    assert_exact(found)
    assert len(found) == len(NAME.findall(text))


pieces_of_text = st.lists(
    st.sampled_from(["Messi", "won", " ", "\n", ". ", "😀", "مرحبا", "עולם", "é", "\u200f", "-", "9", "\t", "’"])
    | st.characters(categories=["So", "Lo", "Mn", "Zs", "Po"]),
    max_size=60,
)


@settings(max_examples=40, deadline=None)
@given(pieces_of_text)
def test_spans_stay_inside_words(parts: list[str]) -> None:
    """Whatever stands between, a name has no white space at its ends, and names follow each other."""
    text = "".join(parts)
    end = 0
    for resolution in READER.link(text, order="local"):
        assert end <= resolution.start < resolution.end <= len(text)
        assert resolution.text == text[resolution.start : resolution.end] == resolution.text.strip()
        end = resolution.end


READER = make_reader()


def peak_since_reset() -> Iterator[int]:
    """Yield nothing of use first, then by how many bytes memory rose at most since."""
    Path("/proc/self/clear_refs").write_text("5")
    begun = _status("VmRSS")
    yield 0
    yield _status("VmHWM") - begun


def _status(name: str) -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="memory is measured as Linux tells it")
def test_a_text_of_ten_megabytes() -> None:
    """Mostly long words, so that few windows make it; sections and windows are cut as of any text."""
    dice = random.Random(0)
    parts, size = [], 0
    while size < 10_000_000:
        parts.append("x" * dice.randint(101, 250) if dice.random() < 0.99 else "Messi")
        size += len(parts[-1]) + 1
    text = " ".join(parts)
    nlp = replace(make_reader(), batch_rows=2048)
    nlp.link(text[: 2 * SECTION], order="local")  # what is made once is made
    peak = peak_since_reset()
    next(peak)
    found = nlp.link(text, order="local")
    assert next(peak) < 50e6
    assert_exact(found)
    assert len(found) > 400
