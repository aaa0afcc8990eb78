"""Redirects: chains, loops, and the user's own table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.errors import InputError
from deixis.wikipedia.redirects import Redirects, read_redirects


def test_chains_are_followed_and_loops_are_lost() -> None:
    found = {"A": "B", "B": "C", "D": "C", "S": "S", "L": "M", "M": "N", "N": "L", "O": "L", "P": "S"}
    redirects = Redirects.build(found)
    assert redirects.table == {"A": "C", "B": "C", "D": "C"}
    assert redirects.lost == {"S": "self", "L": "loop", "M": "loop", "N": "loop", "O": "loop", "P": "loop"}
    assert redirects.counts == {"direct": 2, "chain": 1, "self": 1, "loop": 5}
    assert [redirects.resolve(title) for title in "ACS"] == ["C", "C", None]


def test_a_given_table_goes_first() -> None:
    """The dump leads from the newer name to the older one; the user's table says the opposite."""
    redirects = Redirects.build({"New": "Old", "Older": "Old"}, {"Old": "New"})
    assert redirects.table == {"Old": "New", "Older": "New"}
    assert not redirects.lost


@given(st.dictionaries(st.sampled_from("ABCDEFGH"), st.sampled_from("ABCDEFGH")))
def test_an_end_is_no_redirect(found: dict[str, str]) -> None:
    redirects = Redirects.build(found)
    assert set(redirects.table) | set(redirects.lost) == set(found)
    assert not set(redirects.table.values()) & set(found)


def test_tables_are_read_and_bad_lines_named(tmp_path: Path) -> None:
    path = tmp_path / "redirects.tsv"
    path.write_text("old_name\tNew&amp;name\n\nb\tC\tmore\n")
    assert read_redirects(path) == {"Old name": "New&name", "B": "C"}
    path.write_text("old_title\tNew_title\nSame_one\tSame one\n")
    other = tmp_path / "redirects.json"
    other.write_text('{"old_title": "New_title"}')
    assert read_redirects(path) == read_redirects(other) == {"Old title": "New title"}
    for wrong, expected in (("[]", "expected one object of old title"), ("{", "not JSON")):
        other.write_text(wrong)
        with pytest.raises(InputError, match=f"redirects.json: {expected}"):
            read_redirects(other)
    path.write_text("a\tb\nno tab\n")
    with pytest.raises(InputError, match=r"redirects.tsv, line 2: expected old title, a tab and new title"):
        read_redirects(path)
    path.write_bytes(b"\xff\tb\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_redirects(path)
