"""The real files: counts, candidate recall and the leak of PPRforNED's order (protocol 4–5)."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import open_dataset, read_redirects
from deixis.datasets.dataset import Dataset, Report
from deixis.datasets.pprforned import attach_pprforned

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "annotations", "mentions", "documents"),
    [
        ("aida-train", 23_396, 18_541, 946),
        ("aida-a", 5_917, 4_791, 216),
        ("aida-b", 5_616, 4_485, 231),
        ("msnbc", 739, 656, 20),
        ("aquaint", 727, 727, 50),
        ("ace2004", 306, 257, 36),
        ("cweb", 11_154, 11_154, 320),
        ("wiki", 6_821, 6_821, 320),
        ("zelda-cweb", 11_116, 11_116, 320),
        ("zelda-wiki", 6_765, 6_764, 319),
        ("zelda-aida-b", 4_485, 4_485, 231),
    ],
)
def test_counts(benchmarks: Path, name: str, annotations: int, mentions: int, documents: int) -> None:
    dataset = open_dataset(benchmarks, name)
    assert (dataset.report.annotations, dataset.mentions, len(dataset.documents)) == (annotations, mentions, documents)
    assert len({document.id for document in dataset.documents}) == documents


def test_repairs_are_counted(benchmarks: Path) -> None:
    assert open_dataset(benchmarks, "cweb").report.repaired == {
        "broken offset moved to the nearest occurrence of the mention": 22
    }
    assert open_dataset(benchmarks, "wiki").report.noted == {
        "text holds an HTML escape inside the mention, span kept": 12,
        "documents with the name of an earlier one, kept apart": 1,
    }


def test_the_one_mention_that_ppr_does_not_have(benchmarks: Path) -> None:
    train = open_dataset(benchmarks, "aida-train")
    document = next(document for document in train.documents if document.extra["number"] == 370)
    only = Dataset("one", (document,), Report(len(document.mentions)))
    attached = attach_pprforned(only, benchmarks / "PPRforNED")
    assert attached.report.unmatched == {"no candidates: the mention is absent from PPRforNED": 1}
    last = attached.documents[0].mentions[-1]
    assert (document.surface(last), last.candidates) == ("United News of India", ())


def recall(dataset: Dataset) -> float:
    listed = [m.entity in [c.entity for c in m.candidates or ()] for d in dataset.documents for m in d.mentions]
    return sum(listed) / len(listed)


@pytest.mark.parametrize("name", ["aida-a", "aida-b"])
def test_ppr_recall(benchmarks: Path, name: str) -> None:
    dataset = open_dataset(benchmarks, name, "ppr")
    assert recall(dataset) >= 0.997
    redirects = read_redirects(benchmarks / "aida" / "aida_canonical_redirects.json")
    assert recall(dataset.redirected(redirects)) >= 0.997


@pytest.mark.parametrize(("name", "expected"), [("msnbc", 0.986), ("aquaint", 0.950), ("ace2004", 0.907)])
def test_kb_yago_recall(benchmarks: Path, name: str, expected: float) -> None:
    assert recall(open_dataset(benchmarks, name, "kb+yago").top(30)) == pytest.approx(expected, abs=0.005)


def test_aida_offsets_are_those_of_zelda(benchmarks: Path) -> None:
    ours, theirs = open_dataset(benchmarks, "aida-b"), open_dataset(benchmarks, "zelda-aida-b")
    for mine, other in zip(ours.documents, theirs.documents, strict=True):
        assert mine.id == other.id
        assert [(m.start, m.end) for m in mine.mentions] == [(m.start, m.end) for m in other.mentions]


def test_ppr_order_is_not_the_files(benchmarks: Path) -> None:
    dataset = open_dataset(benchmarks, "aida-b", "ppr")
    lists = [m.candidates or () for d in dataset.documents for m in d.mentions]
    assert all(list(given) == sorted(given, key=lambda c: (-(c.prior or 0), c.entity)) for given in lists)
