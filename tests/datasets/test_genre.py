"""GENRE's ordered lists: what is attached to mentions, and what is said of malformed files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from deixis.datasets.genre import attach_genre
from deixis.errors import InputError

from .test_aida import standoff


def genre_line(mention: str, answer: str, *candidates: str) -> str:
    return json.dumps({"output": [{"answer": answer}], "meta": {"mention": mention}, "candidates": candidates}) + "\n"


def test_genre(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text(
        genre_line("Phil Mickelson", "", "Phil", "Phil")
        + genre_line("US", "USA", "USA", "%22US%22")
        + genre_line("people party", "People's Party")
    )
    dataset = attach_genre(standoff(tmp_path), tmp_path / "g.jsonl")
    told = [(m.entity, [c.entity for c in m.candidates or ()]) for m in dataset.documents[0].mentions]
    assert told == [("Phil Mickelson", ["Phil"]), ("USA", ["USA", '"US"']), ("People's Party", [])]
    assert (dataset.report.repaired.total(), dataset.report.noted.total()) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (genre_line("Phil Mickelson", "") * 3, "line 2: the mention 'Phil Mickelson'; expected 'U.S.'"),
        (genre_line("Phil Mickelson", ""), "1 lists; expected one for each of the 3 mentions"),
        ("{}\n", "line 1: expected output[0].answer"),
        ("{\n", "line 1: not JSON"),
    ],
)
def test_malformed_genre(tmp_path: Path, lines: str, expected: str) -> None:
    (tmp_path / "g.jsonl").write_text(lines)
    with pytest.raises(InputError) as error:
        attach_genre(standoff(tmp_path), tmp_path / "g.jsonl")
    assert expected in str(error.value)
