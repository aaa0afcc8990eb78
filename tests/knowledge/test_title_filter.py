"""The filter of titles: it holds all that was put in, and hardly anything else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.errors import ArtefactError
from deixis.knowledge.title_filter import TitleFilter


@settings(max_examples=60, deadline=None)
@given(st.sets(st.text(max_size=20), max_size=200))
def test_whatever_is_put_in_is_found_again(titles: set[str]) -> None:
    found = TitleFilter.build(titles)
    assert all(title in found for title in titles)
    assert all(title.lower() in found for title in titles)


def test_one_in_256_of_other_strings_is_taken_for_a_title(tmp_path: Path) -> None:
    found = TitleFilter.build(f"Title {number}" for number in range(60_000))
    assert found.titles == 60_000 and len(found.table) < 1.2 * 60_000
    found.save(tmp_path / "titles.filter")
    mapped = TitleFilter.open(tmp_path / "titles.filter")
    assert isinstance(mapped.table, np.memmap) and all(f"title_{number}" in mapped for number in range(0, 60_000, 97))
    false = sum(f"no title {number}" in mapped for number in range(20_000))
    assert 40 < false < 125  # 78 are expected; five standard deviations are 44


def test_nothing_is_in_an_empty_filter() -> None:
    assert "Ada Marlow" not in TitleFilter.build([])


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "titles.filter"
    with pytest.raises(ArtefactError, match="does not exist"):
        TitleFilter.open(path)
    TitleFilter.build(["Ada Marlow", "Lena Brandt"]).save(path)
    whole = path.read_bytes()
    for content, said in ((whole[:-1], "cut short"), (whole[:20], "not a filter"), (b"x" * 99, "not a filter")):
        path.write_bytes(content)
        with pytest.raises(ArtefactError, match=said):
            TitleFilter.open(path)
    path.write_bytes(whole[:8] + b"\x07" + whole[9:])
    with pytest.raises(ArtefactError, match="another version"):
        TitleFilter.open(path)


def test_a_name_is_found_as_a_title_is_written() -> None:
    titles = TitleFilter.build(["velm cup", "the silver oar", "zoe brandt", "st. olaf's church", "ada marlow", "rower"])
    for name, title in {
        "Velm Cup": "Velm Cup",
        "the Velm\nCup": "Velm Cup",  # the article is none of the title's
        "The Silver Oar": "The Silver Oar",  # and here it is
        "Zoë Brandt’s": "Zoë Brandt",  # accents are kept that the list does not have
        "St. Olaf’s Church": "St. Olaf's Church",  # as Wikipedia writes apostrophes
        "ADA MARLOW 's": "Ada Marlow",
        "velm cup": "Velm cup",
        "rower": None,  # a single word may be anything
        "the rower": None,
        "Lena Brandt": None,
    }.items():
        assert titles.find(name) == title


def test_only_the_small_words_of_capitals_stay_small() -> None:
    titles = TitleFilter.build(["bank of velm"])
    assert titles.find("BANK OF VELM") == "Bank of Velm"
    assert titles.find("Bank Of Velm") == "Bank Of Velm"  # as the text has it
    assert TitleFilter.build(["uk fta"]).find("UK FTA") == "UK FTA"  # an abbreviation


def test_any_seed_spreads_titles_without_overflow() -> None:
    for seed in (0, 2, 99):
        slots, _ = TitleFilter(np.empty(0, np.uint8), seed, 8, 1, 1).slots(np.array([2**64 - 1], np.uint64))
        assert len(set(slots[:, 0].tolist())) == 3 and slots.max() < 24
