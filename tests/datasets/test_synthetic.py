"""Every format of the same invented texts gives the same spans and golds."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets import SETS, open_dataset, read_redirects, read_texts
from deixis.datasets.catalogue import AIDA, WNED, ZELDA
from deixis.datasets.dataset import Dataset

from .synthetic import OLDER, Text, make_sets, older, write_benchmarks

Made = tuple[Path, dict[str, list[Text]]]  # the folder, and what was written into it
Golds = list[tuple[str, list[tuple[int, int, str | None]]]]


@pytest.fixture(scope="module", params=range(4))
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Made:
    sets = make_sets(request.param)
    return write_benchmarks(tmp_path_factory.mktemp("synthetic"), sets), sets


def expected(texts: list[Text], *, nil: bool, old: bool = False) -> Golds:
    found: Golds = []
    for text in texts:
        joined, spans = text.joined()
        titles = [a.title if a.title is None or not old else older(a.title) for a in text.annotations]
        golds = [(*span, title) for span, title in zip(spans, titles, strict=True) if nil or title is not None]
        found.append((joined, golds))
    return found


def read(dataset: Dataset) -> Golds:
    return [(d.text, [(m.start, m.end, m.entity) for m in d.mentions]) for d in dataset.documents]


@pytest.mark.parametrize("name", [*AIDA, *WNED])
def test_every_reader_gives_the_texts_that_were_written(made: Made, name: str) -> None:
    folder, sets = made
    old = name in AIDA
    assert read(read_texts(folder, name)) == expected(sets[name], nil=True, old=old)
    assert read(open_dataset(folder, name)) == expected(sets[name], nil=False, old=old)
    kinds = [[m.kind for m in d.mentions] for d in read_texts(folder, name).documents] if old else []
    named = {"PER": "person", "ORG": "organisation", "LOC": "place", "MISC": "other"}
    assert kinds == [[named[a.kind] for a in text.annotations] for text in sets[name]] * old


@pytest.mark.parametrize("name", [*AIDA, *WNED])
def test_the_published_folder(made: Made, name: str) -> None:
    folder, sets = made
    dataset = open_dataset(folder, name, "kb+yago")
    assert dataset.candidates == "KB+YAGO (published)"
    assert read(dataset) == expected(sets[name], nil=False)
    listed = [[m.candidates and m.candidates[0].entity for m in d.mentions] for d in dataset.documents]
    best = [
        [a.candidates[0][0] if a.candidates else () for a in t.annotations if a.title is not None] for t in sets[name]
    ]
    assert listed == best
    if name in AIDA:  # its text file alone is a set too
        assert read(open_dataset(folder / "published", name)) == expected(sets[name], nil=False)


@pytest.mark.parametrize("name", list(AIDA))
def test_pprforned(made: Made, name: str) -> None:
    folder, sets = made
    dataset = open_dataset(folder, name, "ppr")
    golds = [m for d in dataset.documents for m in d.mentions]
    written = [a for text in sets[name] for a in text.annotations if a.title is not None]
    assert [[c.entity for c in m.candidates or ()] for m in golds] == [[t for t, _ in a.candidates] for a in written]
    titles = [a.title if a.title in dict(a.candidates) else older(str(a.title)) for a in written]
    assert [m.entity for m in golds] == titles  # the newer title where the list has the page of the gold
    newer = read_redirects(folder / "aida" / "aida_canonical_redirects.json")
    assert newer == {old: new for new, old in OLDER.items()}
    assert [m.entity for d in dataset.redirected(newer).documents for m in d.mentions] == [a.title for a in written]


@pytest.mark.parametrize("name", ["msnbc", "aquaint", "ace2004"])
def test_genres_lists(made: Made, name: str, tmp_path: Path) -> None:
    folder, sets = made
    for part in ("wned-datasets", "genre_kilt"):
        (tmp_path / part).symlink_to(folder / part)
    dataset = open_dataset(tmp_path, name, "kb+yago")
    assert dataset.candidates == "KB+YAGO (GENRE's lists)" and read(dataset) == expected(sets[name], nil=False)
    written = [a for text in sets[name] for a in text.annotations if a.title is not None]
    listed = [[c.entity for c in m.candidates or ()] for d in dataset.documents for m in d.mentions]
    assert listed == [[title for title, _ in a.candidates] for a in written]


def test_every_split_of_zelda(made: Made) -> None:
    folder, sets = made
    for k, name in enumerate(ZELDA):
        assert read(read_texts(folder, name)) == expected(list(sets.values())[k % len(sets)], nil=False)
    assert len(ZELDA) == 9 and set(ZELDA) < set(SETS)
