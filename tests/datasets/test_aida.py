"""AIDA-CoNLL, stand-off and in one file: what is read, and what is said of malformed files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from deixis.datasets import read_set
from deixis.datasets.aida import read_single_file, read_standoff
from deixis.datasets.dataset import Dataset
from deixis.errors import InputError

ANNOTATIONS = (
    "-DOCSTART- (947testa GOLF)\r\n"
    "0\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1\r\n"
    "2\t--NME--\r\n"
    "3\tU.S.\thttp://en.wikipedia.org/wiki/United_States\t8\r\n"
    "4\tPeople\\u0027s\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2\r\n\r\n"
)
CONLL = """-DOCSTART- -X- O O

Phil NNP I-NP I-PER

Mickelson NNP I-NP I-PER
Bob NNP I-NP B-PER
U.S. NNP I-NP I-LOC
People NNP I-NP B-LOC
Party NNP I-NP I-LOC
. . O O
"""


def standoff(folder: Path, annotations: str = ANNOTATIONS, conll: str = CONLL) -> Dataset:
    (folder / "a.tsv").write_text(annotations, newline="")
    (folder / "eng.testa").write_text(conll)
    return read_standoff(folder / "a.tsv", folder / "eng.testa", "testa").in_kb()


def test_aida_standoff(tmp_path: Path) -> None:
    dataset = standoff(tmp_path)
    (document,) = dataset.documents
    assert document.text == "Phil Mickelson Bob U.S. People Party ."  # the break inside a mention is a space
    assert [(document.surface(m), m.entity, m.kind, m.extra) for m in document.mentions] == [
        ("Phil Mickelson", "Phil Mickelson", "person", {"page": 7}),
        ("U.S.", "United States", "place", {"page": 8}),
        ("People Party", "People's Party", "place", {"page": 9}),
    ]
    assert document.extra == {"number": 947}
    assert dataset.report.to_record()["removed"] == {"not in the knowledge base (--NME--)": 1}


def test_aida_single_file_is_the_same(tmp_path: Path) -> None:
    lines = [
        "-DOCSTART- (946 OTHER)\nx\n",
        "-DOCSTART- (947testa GOLF)",
        "Phil\tB\tPhil Mickelson\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1",
        "",
        "Mickelson\tI\tPhil Mickelson\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1",
        "Bob\tB\tBob\t--NME--",
        "U.S.\tB\tU.S.\tU.S.\thttp://en.wikipedia.org/wiki/United_States\t8\t/m/3",
        "People\tB\tPeople Party\tx\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2",
        "Party\tI\tPeople Party\tx\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2",
        ".",
    ]
    (tmp_path / "AIDA-YAGO2-dataset.tsv").write_text("\n".join(lines) + "\n")
    (single,) = read_single_file(tmp_path / "AIDA-YAGO2-dataset.tsv", "testa").in_kb().documents
    (document,) = standoff(tmp_path).documents  # which also knows the kinds of the mentions
    without_kinds = (replace(m, kind=None) for m in document.mentions)
    assert single == replace(document, mentions=tuple(without_kinds))
    assert read_set(tmp_path, "aida-a").mentions == 3
    (tmp_path / "AIDA-YAGO2-dataset.tsv").rename(tmp_path / "testa_testb_aggregate_original")
    assert read_set(tmp_path, "aida-a").mentions == 3  # the published folder has the same lines


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0\tPhil", "zero\tPhil", "a.tsv, line 2: expected the number of a token"),
        ("\t7\t", "\tseven\t", "a.tsv, line 2: expected an entity, the URL"),
        ("3\tU.S.", "30\tU.S.", "a.tsv, line 4: token 30 of a document with 7 tokens"),
        ("(947testa GOLF)", "(GOLF)", "a.tsv, line 1: the heading (GOLF); expected a number"),
        ("947testa", "947testb", "1 documents, but"),
    ],
)
def test_malformed_aida(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        standoff(tmp_path, ANNOTATIONS.replace(old, new))
    assert expected in str(error.value)
