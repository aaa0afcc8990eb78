"""Document JSONL as a set: bad lines are named, or counted and skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import read_jsonl, stream_documents
from deixis.datasets.dataset import Report
from deixis.documents import Document, Mention
from deixis.errors import InputError


def test_jsonl_names_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    good = Document("Bern is.", (Mention(0, 4, "bern"), Mention(5, 7)), "one").to_json().decode()
    path.write_text(f'{good}\n\n{{"text": 3}}\n{good}\n')
    with pytest.raises(InputError, match=r"d.jsonl, line 3: text is 3; expected a string"):
        list(stream_documents(path))
    report = Report()
    assert len(list(stream_documents(path, strict=False, report=report))) == 2
    assert report.unmatched.total() == 1
    dataset = read_jsonl(path, strict=False).in_kb()
    assert [m.entity for d in dataset.documents for m in d.mentions] == ["Bern", "Bern"]
    assert dataset.report.removed == {"no gold entity": 2}
