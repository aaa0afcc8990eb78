"""Knowledge: what a store knows is found again by number, whatever its titles; damage is said in one sentence."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.documents import Document, Mention
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.assemble import FromEntities, FromStore, assemble
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.entities import Entity
from deixis.knowledge.knowledge import Knowledge, NumberedCandidate
from deixis.knowledge.mapped import Lists, amounts, map_arrays, to_bytes, write_arrays
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from tests.knowledge.test_names import builder
from tests.worlds import all_of


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Names:
    folder = tmp_path_factory.mktemp("stores") / "store"
    builder().save(folder, {}, {})
    return Names.open(folder)


@pytest.fixture(scope="module")
def known(store: Names) -> Knowledge:
    assemble(store.folder.with_name("knowledge"), all_of(store))
    return Knowledge.open(store.folder.with_name("knowledge"))


def test_what_the_store_knows_is_known(store: Names, known: Knowledge) -> None:
    assert set(known.titles()) == {title for title, _ in store.titles()}
    for name, _ in store.numbered_names():
        ours, theirs = known.lookup(name, 100), store.lookup(name, 100)
        assert {c.entity: c.prior for c in theirs} == pytest.approx({c.entity: c.prior for c in ours}, abs=0.03)
    for part, _ in store.numbered_parts():
        assert {known.title(n): links for n, links in known.parts(part)} == pytest.approx(
            dict(store.parts(part)), rel=0.04
        )
    document = Document("Chicago beat Clinton.", (Mention(0, 7), Mention(13, 20)))
    for listed, expected in zip(known.candidates(document), store.candidates(document), strict=True):
        assert {c.entity for c in listed} == {c.entity for c in expected}
        for candidate in listed:
            assert isinstance(candidate, NumberedCandidate) and known.number(candidate.entity) == candidate.number


@given(st.lists(st.sampled_from("ABCDEFGH"), min_size=1), st.data())
@settings(max_examples=30, deadline=None)
def test_numbers_and_titles_lead_to_each_other(letters: list[str], data: st.DataObject) -> None:
    titles = sorted({a + b for a, b in zip(letters, reversed(letters), strict=True)})
    made = NamesBuilder()
    for title in titles:
        made.add_link(data.draw(st.sampled_from("xyz")), title, data.draw(st.integers(1, 10**6)))
    with tempfile.TemporaryDirectory() as scratch:
        made.save(Path(scratch) / "store", {}, {})
        numbers = assemble(
            Path(scratch) / "known", FromStore.of(Vocabulary.of(titles), Names.open(Path(scratch) / "store"))
        )
        known = Knowledge.open(Path(scratch) / "known")
        assert sorted(numbers) == list(range(3, 3 + len(titles))) and len(known) == 3 + len(titles)
        assert [known.title(number) for number in numbers] == titles
        assert [known.number(title) for title in titles] == numbers.tolist()
        assert known.vocabulary.row(titles[0]) == known.number(titles[0])
        for name in "xyz":
            found = known.lookup(name, 100)
            assert sum(candidate.prior or 0 for candidate in found) == pytest.approx(1.0 if found else 0.0)


def test_entities_are_found_by_other_titles_and_other_names_stay_behind(store: Names, tmp_path: Path) -> None:
    entities = Vocabulary.of(["Chicago", "Chicago White Sox", "William Clinton", "Köln", "Unheard of"])
    table = {"Bill Clinton": "William Clinton", "Köln": "Cologne", "Nowhere": "Neverland"}  # the second leads away
    assemble(tmp_path / "known", FromStore.of(entities, store, table, wikidata={"Köln": "Q365"}))
    known = Knowledge.open(tmp_path / "known")
    assert set(known.titles()) == set(entities.entities)
    assert known.number("Bill Clinton") == known.number("William Clinton")
    assert known.number("Cologne") == known.number("Köln") and known.number("Nowhere") is None
    assert dict(known.redirects) == {"Bill Clinton": "William Clinton", "Cologne": "Köln"}
    assert [(c.entity, c.prior) for c in known.lookup("Chicago")] == [("Chicago", 1.0)]  # the musical is gone
    assert [c.entity for c in known.lookup("Bill Clinton")] == ["William Clinton"]
    assert known.lookup("netherlands") == ()
    assert {known.title(n) for n, _ in known.parts("chicago")} == {"Chicago White Sox"}
    assert (
        known.wikidata(known.number("Cologne") or 0) == "Q365" and known.wikidata(known.number("Chicago") or 0) is None
    )
    assert dict(known.wikidata_ids) == {"Köln": "Q365"} and known.wikidata_ids["Cologne"] == "Q365"
    assert known.wikidata_ids.get("Chicago") is None
    assert {known.known_by(number) for number in range(3, len(known))} == {"description"}


def test_two_titles_of_one_page_are_one_entity(tmp_path: Path) -> None:
    made = NamesBuilder()
    made.add_link("Cologne", "Cologne", 3)
    made.add_link("Cologne", "Köln", 5)
    made.add_link("Cologne", "Cologne, Minnesota", 2)
    made.save(tmp_path / "store", {}, {})
    entities = Vocabulary(["[PAD]", "[UNK]", "[MASK]", "Cologne", "Köln", "Cologne, Minnesota"], [0, 0, 0, 3, 5, 2])
    source = FromStore.of(entities, Names.open(tmp_path / "store"), {"Cologne": "Köln"})
    assemble(tmp_path / "known", source)
    known = Knowledge.open(tmp_path / "known")
    assert set(known.titles()) == {"Köln", "Cologne, Minnesota"}
    assert [c.entity for c in known.lookup("Cologne")] == ["Köln", "Cologne, Minnesota"]
    assert known.lookup("Cologne")[0].prior == pytest.approx(10 / 12.5, abs=0.02)  # titles count beside links
    assert known.links(known.number("Cologne") or 0) == 5


def test_entities_of_ones_own(tmp_path: Path) -> None:
    records = [
        {"title": "Zed (cup)", "description": "a cup", "names": [["Z", 0.6]], "wikidata": "Q5"},
        {"title": "Zed (team)", "description": "a team", "names": [["Z", 0.2]]},
    ]
    assemble(tmp_path / "known", FromEntities([Entity.from_record(record) for record in records]))
    known = Knowledge.open(tmp_path / "known")
    assert {c.entity: c.prior for c in known.lookup("Z")} == pytest.approx(
        {"Zed (cup)": 0.75, "Zed (team)": 0.25}, abs=0.02
    )
    assert {c.entity: c.prior for c in known.lookup("Zed")} == {"Zed (cup)": 0.5, "Zed (team)": 0.5}
    assert known.wikidata(known.number("Zed (cup)") or 0) == "Q5"


@given(st.lists(st.floats(0, 1e6)))
def test_amounts_survive_as_bytes(values: list[float]) -> None:
    again = np.array(amounts(1 / 16))[to_bytes(np.array(values), 1 / 16)]
    np.testing.assert_allclose(again, values, rtol=0.036, atol=1 / 16)
    assert all((found > 0) == (value > 0) for found, value in zip(again, values, strict=True))


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=300), min_size=1, max_size=200))
@settings(max_examples=30, deadline=None)
def test_lists_come_back_from_their_file(lists: list[list[int]]) -> None:
    owners = np.repeat(np.arange(len(lists)), [len(found) for found in lists])
    entries = np.array([entry for found in lists for entry in found], np.int64)
    with tempfile.TemporaryDirectory() as scratch:
        write_arrays(Path(scratch) / "a", Lists.arrays("x", owners, entries, len(lists)))
        again = Lists.of(map_arrays(Path(scratch) / "a"), "x")
        for number, found in enumerate(lists):
            start, end = again.range(number)
            assert again.entries[start:end].tolist() == found[:255]


@pytest.mark.parametrize("file", ["titles.marisa", "names.marisa", "numbers.safetensors", "manifest.json"])
def test_damage_is_said(known: Knowledge, tmp_path: Path, file: str) -> None:
    folder = tmp_path / "known"
    shutil.copytree(known.folder, folder)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(ArtefactError, match=f"{file} (is damaged or cut off|is no manifest)"):
        Knowledge.open(folder)
    (folder / file).unlink()
    with pytest.raises(ArtefactError, match=f"{file} (is missing|does not exist)"):
        Knowledge.open(folder)


def test_a_newer_version_and_a_full_disk_are_said(
    known: Knowledge, store: Names, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "known"
    shutil.copytree(known.folder, folder)
    told = (folder / "manifest.json").read_text()
    (folder / "manifest.json").write_text(told.replace('"version": 1', '"version": 99'))
    with pytest.raises(ArtefactError, match="written by a newer deixis"):
        Knowledge.open(folder)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deixis.knowledge.assemble.write_arrays", full)
    with pytest.raises(InputError, match=r"cannot write .*: No space left on device"):
        assemble(tmp_path / "more", all_of(store))
    assert not (tmp_path / "more").exists() and not list(tmp_path.glob("*.part"))


def test_titles_come_once(tmp_path: Path) -> None:
    source = FromStore(["A", "A"], np.zeros(2))
    with pytest.raises(InputError, match="1 titles of the entities come twice"):
        assemble(tmp_path / "known", source)
