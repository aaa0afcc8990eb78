"""PPRforNED's lists: their order is not used, newer titles come by page id, malformed files are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets.dataset import Dataset
from deixis.datasets.pprforned import attach_pprforned
from deixis.documents import Candidate
from deixis.errors import InputError

from .test_aida import standoff

PPR = (
    "ENTITY\ttext:Phil\torigText:Phil Mickelson\turl:http://en.wikipedia.org/wiki/Phil\n"
    "CANDIDATE\tid:7\tinCount:1\turl:http://en.wikipedia.org/wiki/Phil_M.\n"
    "CANDIDATE\tid:70\tinCount:3\turl:http://en.wikipedia.org/wiki/Phil\n"
    "ENTITY\ttext:Bob\torigText:Bob\turl:NIL\n"
    "ENTITY\ttext:US\torigText:U.S.\turl:http://en.wikipedia.org/wiki/United_States\n"
)


def ppr(folder: Path, lines: str) -> Dataset:
    part = folder / "AIDA_candidates" / "PART_1_1000"
    part.mkdir(parents=True, exist_ok=True)
    (part / "947").write_text(lines)
    return attach_pprforned(standoff(folder), folder)


def test_ppr(tmp_path: Path) -> None:
    dataset = ppr(tmp_path, PPR)
    first, second, third = dataset.documents[0].mentions
    assert (first.entity, first.candidates) == ("Phil M.", (Candidate("Phil", 0.75), Candidate("Phil M.", 0.25)))
    assert second.candidates == third.candidates == ()
    assert dataset.report.repaired.total() == 1  # found by its page id under a newer title
    assert dataset.report.unmatched.total() == 1  # the third is absent from the file


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("origText:U.S.", "origText:Mars", "947, line 5: origText 'Mars'; expected 'U.S.'"),
        ("inCount:3\t", "", "947, line 3: CANDIDATE without inCount:"),
        ("id:70", "id:x", "947, line 3: expected the url"),
        ("ENTITY\ttext:Phil", "THING\ttext:Phil", "947, line 1: 'THING'; expected ENTITY"),
        ("url:NIL", "url:http://en.wikipedia.org/wiki/Bob", "line 4: origText 'Bob'; expected 'U.S.'"),
    ],
)
def test_malformed_ppr(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        ppr(tmp_path, PPR.replace(old, new))
    assert expected in str(error.value)
