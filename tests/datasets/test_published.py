"""Protocol 1–3 on a folder with every trap."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import open_dataset
from deixis.datasets.dataset import Dataset
from deixis.datasets.published import read_published
from deixis.documents import Candidate
from deixis.errors import InputError

from .traps import HEAD, write_traps


def told(dataset: Dataset) -> list[tuple[str, str | None, list[str]]]:
    return [
        (document.surface(m), m.entity, [c.entity for c in m.candidates or ()])
        for document in dataset.documents
        for m in document.mentions
    ]


def test_every_trap(tmp_path: Path) -> None:
    dataset = read_published(write_traps(tmp_path), "msnbc")
    assert told(dataset) == [
        ("John Smith", "John Smith", ["John Smith", "John Smith (footballer)"]),
        ("Smith", "John Smith", ["John Smith", "John Smith (footballer)"]),
        ("Paris", "Paris, Texas", ["Paris", "Paris, Texas"]),
        ("Tom & Jerry", "Tom & Jerry", ["Tom & Jerry"]),
        ("Nowhere", "Nowhere, Oklahoma", []),
    ]
    assert dataset.report.annotations == 7
    assert dataset.report.removed == {"the gold has no title (NIL)": 2}
    assert dataset.report.noted == {
        "candidates without a title, dropped": 1,
        "mentions of the text file that are not in the candidate file": 1,
    }
    assert dataset.documents[0].mentions[0].extra == {"page": 2}


def test_a_repeated_surface_after_a_dropped_one(tmp_path: Path) -> None:
    write_traps(tmp_path)
    ours = read_published(tmp_path, "msnbc").documents[0]
    released = read_published(tmp_path, "msnbc", drop_first=True).documents[0]
    second, first = ours.mentions[2].start, released.mentions[2].start
    assert ours.text.find("Paris") == first < second == ours.text.rfind("Paris")


def test_without_coreference_the_own_list_stays(tmp_path: Path) -> None:
    dataset = read_published(write_traps(tmp_path), "msnbc", coreference="none")
    assert told(dataset)[1] == ("Smith", "John Smith", ["Smith (surname)"])


def test_the_excluded_document(tmp_path: Path) -> None:
    dataset = read_published(write_traps(tmp_path, "wiki"), "wiki")
    assert len(dataset.documents) == 1
    assert dataset.report.removed["of the document Jiří_Třanovský, which is left out by everybody"] == 1


def test_chains_of_persons_differ_in_place(tmp_path: Path) -> None:
    rows = [
        ("John Smith", "1,0.8,John Smith", "0,1,0.8,John Smith"),
        ("Mr John Smith", "4,0.6,Jane Roe", "0,4,0.6,Jane Roe"),
        ("Smith", "3,0.9,Smith (surname)", "-1,1,John Smith"),
    ]
    (tmp_path / "wned-msnbc.csv").write_text("".join(HEAD.format(*row) + "\n" for row in rows))
    mentions = ["John", "Smith"], ["Mr", "John", "Smith"], ["Smith"]
    tokens = [f"{word}\t{'B' if k == 0 else 'I'}\tx\tx\tx\tx" for words in mentions for k, word in enumerate(words)]
    (tmp_path / "msnbc.conll").write_text("-DOCSTART- (doc1\n" + "\n".join(tokens) + "\n")
    (tmp_path / "persons.txt").write_text("John Smith\nJane Roe\n")
    original = read_published(tmp_path, "msnbc").documents[0].mentions[2].candidates
    in_place = read_published(tmp_path, "msnbc", coreference="in_place").documents[0].mentions[2].candidates
    assert original == (Candidate("John Smith", 0.4), Candidate("Jane Roe", 0.3))  # the sums over both, halved
    assert in_place == (Candidate("Jane Roe", 0.6),)  # "John Smith" had been replaced by then


def test_redirects_merge_and_titles_filter(tmp_path: Path) -> None:
    dataset = read_published(write_traps(tmp_path), "msnbc")
    moved = dataset.redirected({"John Smith (footballer)": "John Smith", "Nowhere, Oklahoma": "Nowhere"})
    assert moved.documents[0].mentions[0].candidates == (Candidate("John Smith", 0.7),)
    assert moved.report.repaired == {"gold title mapped through a redirect": 1}
    valid = moved.among({"John Smith", "Paris, Texas", "Tom & Jerry"})
    assert (valid.mentions, valid.report.removed["the gold is not in the list of titles"]) == (4, 1)


def test_the_catalogue_prefers_the_published_folder(tmp_path: Path) -> None:
    (tmp_path / "generated").mkdir()
    write_traps(tmp_path / "generated")
    assert open_dataset(tmp_path, "msnbc", "kb+yago").candidates == "KB+YAGO (published)"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("doc1 doc1\tx", "line 8: expected id, id, mention"),
        (HEAD.format("Smith", "12;0.5", "-1"), "line 8: the candidate '12;0.5'; expected id,prior,title"),
        (HEAD.format("Absent", "EMPTYCAND", "-1"), "line 8: 'Absent' is no further mention of 'doc1'"),
        (HEAD.format("Smith", "EMPTYCAND", "-1").replace("doc1", "doc9"), "line 8: the document 'doc9 doc9' is not in"),
    ],
)
def test_malformed_lines(tmp_path: Path, line: str, expected: str) -> None:
    write_traps(tmp_path)
    with (tmp_path / "wned-msnbc.csv").open("a") as file:
        file.write(line + "\n")
    with pytest.raises(InputError) as error:
        read_published(tmp_path, "msnbc")
    assert "wned-msnbc.csv" in str(error.value)
    assert expected in str(error.value)


def test_two_texts_of_one_name(tmp_path: Path) -> None:
    write_traps(tmp_path)
    with (tmp_path / "msnbc.conll").open("a") as file:
        file.write("\n-DOCSTART- (doc1\n\nx\n")
    with pytest.raises(InputError, match=r"msnbc.conll, line 23: a second document 'doc1'"):
        read_published(tmp_path, "msnbc")


def test_missing_persons(tmp_path: Path) -> None:
    write_traps(tmp_path)
    (tmp_path / "persons.txt").unlink()
    with pytest.raises(InputError, match=r"persons.txt does not exist"):
        read_published(tmp_path, "msnbc")
