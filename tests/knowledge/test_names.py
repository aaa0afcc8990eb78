"""Candidates: surfaces to keys, a store built, asked, merged and imported, and names resolved in documents."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.corpus.names import NameSources, build_store
from deixis.documents import Candidate, Document, Mention
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.names import Kind, Names
from deixis.knowledge.surfaces import INITIALS, initials, is_initials, key, short_titles, splits, variants
from deixis.wikipedia.articles import Article, Link
from tests.disk import files_of_at_most


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("CHICAGO", "chicago"),
        ("Kühbauer", "kuhbauer"),
        ("São Tomé", "sao tome"),
        ("Łódź", "lodz"),
        ("Sotheby's", "sotheby"),
        ("Clinton 's", "clinton"),
        ("the Bahamas’", "bahamas"),
        ("AT&T Corp.", "at and t corp"),
        ("Jean-Paul", "jean paul"),
        ("U.S.", "us"),
        ("U. S.", "us"),
        ("J. R. R. Tolkien", "jrr tolkien"),
        ("O'Neill", "oneill"),
        ("The", "the"),
        ("!?", ""),
        ("Москва", "москва"),
    ],
)
def test_keys(surface: str, expected: str) -> None:
    assert key(surface) == expected


@pytest.mark.parametrize(
    ("surface", "expected"),
    [
        ("Johnson Controls Inc", "johnson controls"),
        ("Boston-based", "boston"),
        ("Brazilian-born", "brazil"),
        ("Dutch", "netherlands"),
        ("Tajiks", "tajikistan"),
        ("Frenchmen", "france"),
        ("S. Korean", "south korea"),
        ("U.S. Navy", "united states navy"),
        ("Agriculture Department", "department of agriculture"),
        ("President Ramos", "ramos"),
        ("S. Waugh", "waugh"),
        ("Juergen Schult", "jurgen schult"),
        ("Wallabies", "wallaby"),
        ("Carroll A. Campbell Jr.", "carroll campbell"),
        ("Reader's Digest magazine", "reader digest"),
        ("Vice President Harris", "harris"),
        ("Lille, France", "lille"),
        ("Long Beach, NY", "long beach new york"),
        ("Pasadena, CA", "pasadena"),
    ],
)
def test_variants(surface: str, expected: str) -> None:
    assert expected in variants(key(surface))


def test_a_full_disk_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deixis.knowledge.build.SPOOLED", 100)
    builder = NamesBuilder()
    with files_of_at_most(1000), pytest.raises(InputError, match=r"cannot write names to .*; make room, or set TMPDIR"):
        for number in range(10_000):
            builder.add_link(f"the name of {number}", "Team")


def test_english_words_are_no_rule_elsewhere() -> None:
    for surface in ("Dutch", "President Ramos", "Agriculture Department", "Lille, France", "U.S. Navy", "Wallabies"):
        assert variants(key(surface)) and not variants(key(surface), "de")
    assert variants(key("S. Müller GmbH"), "de") == ("s muller", "muller gmbh", "s gmbh")


@given(st.text(max_size=30))
def test_a_key_split_is_the_key(surface: str) -> None:
    name = key(surface)
    assert all(split.replace(" ", "", 1) == name for split in splits(name))


@given(st.text(max_size=30))
def test_a_key_is_its_own_key_and_never_among_its_variants(surface: str) -> None:
    name = key(surface)
    assert key(name) in (name, name.removeprefix("the "))
    assert INITIALS not in name
    assert name not in variants(name)
    assert all(variants(name))


def test_short_titles_and_initials() -> None:
    assert short_titles("Paris, Texas (film)") == ["Paris, Texas", "Paris"]
    assert short_titles("Bonn") == []
    assert "afp" in initials("Agence France-Presse")
    assert initials("Kurdistan Democratic Party (Iraq)") == {"kdp"}
    assert {"boj"} <= initials("Bank of Japan")
    assert is_initials("A.F.P.")
    assert not is_initials("Afp")


def builder() -> NamesBuilder:
    made = NamesBuilder({"Koeln": "Cologne"})
    for surface, target, count in [
        ("Chicago", "Chicago", 90),
        ("Chicago", "Chicago (musical)", 10),
        ("the Sox", "Chicago White Sox", 5),
        ("Chicago White Sox", "Chicago White Sox", 40),
        ("Bill Clinton", "Bill Clinton", 30),
        ("Clinton", "Clinton, Iowa", 4),
        ("Köln", "Koeln", 3),
        ("AFP", "Alkaline phosphatase", 1),
        ("Agence France-Presse", "Agence France-Presse", 7),
        ("Netherlands", "Netherlands", 8),
    ]:
        made.add_link(surface, target, count)
    made.add_alias("windy city", "Chicago")
    made.add_meanings("Clinton (disambiguation)", ["Bill Clinton", "Iowa", "Clinton, Iowa"])
    made.add_description("Department of Trade and Industry", "The Department (Filipino: Kagawaran, DTI) is a thing.")
    return made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Names:
    folder = tmp_path_factory.mktemp("stores") / "store"
    builder().save(folder, {}, {})
    return Names.open(folder)


def entities(found: tuple[Candidate, ...]) -> list[str]:
    return [candidate.entity for candidate in found]


def test_priors_are_shares_of_what_is_known(store: Names) -> None:
    found = store.lookup("CHICAGO")
    assert entities(found) == ["Chicago", "Chicago (musical)"]
    assert found[0].prior == pytest.approx((90 + 1) / (91 + 10.5))
    assert sum(candidate.prior or 0 for candidate in found) == pytest.approx(1)
    assert store.lookup("chicago", k=1) == found[:1]
    assert entities(store.lookup("windy city")) == ["Chicago"]
    assert entities(store.lookup("Dutch")) == ["Netherlands"]
    assert entities(store.lookup("dti")) == ["Department of Trade and Industry"]
    assert store.lookup("nobody knows this") == ()
    assert store.lookup("") == ()


def test_redirects_lead_on_and_meanings_share_a_word(store: Names) -> None:
    assert entities(store.lookup("Köln")) == entities(store.lookup("Koeln")) == ["Cologne"]
    assert set(entities(store.lookup("Clinton"))) == {"Bill Clinton", "Clinton, Iowa"}
    assert dict(store.titles())["Cologne"] == 3
    assert "Koeln" not in dict(store.titles())
    kinds = {entry.entity: entry.kind for entry in store.entries("clinton")}
    assert kinds["Bill Clinton"] == Kind.DISAMBIGUATION
    assert kinds["Clinton, Iowa"] == Kind.LINK | Kind.SHORT | Kind.DISAMBIGUATION


def resolved(store: Names, text: str, *surfaces: str) -> list[list[str]]:
    mentions = []
    at = 0
    for surface in surfaces:
        at = text.index(surface, at)
        mentions.append(Mention(at, at + len(surface)))
        at += len(surface)
    return [entities(found) for found in store.candidates(Document(text, tuple(mentions)))]


def test_a_surname_means_the_person_named_before(store: Names) -> None:
    assert resolved(store, "Clinton is a town.", "Clinton") == [["Clinton, Iowa", "Bill Clinton"]]
    found = resolved(store, "Bill Clinton spoke. Clinton left.", "Bill Clinton", "Clinton")
    assert found[1][0] == "Bill Clinton"


def test_a_place_may_stand_for_its_team_and_initials_for_a_name(store: Names) -> None:
    (found,) = resolved(store, "CHICAGO 3 Boston 2", "CHICAGO")
    assert found[0] == "Chicago"
    assert "Chicago White Sox" in found
    (found,) = resolved(store, "AFP said", "AFP")
    assert "Agence France-Presse" in found
    assert resolved(store, "said 12 and !", "!") == [[]]


def test_the_document_decides_only_by_its_content(store: Names) -> None:
    text = "Bill Clinton went to Chicago; Clinton saw AFP and Chicago White Sox"
    names = ["Bill Clinton", "Chicago", "Clinton", "AFP", "Chicago White Sox"]
    first = resolved(store, text, *names)
    assert first == resolved(store, text, *names)
    mentions = tuple(Mention(text.index(name), text.index(name) + len(name)) for name in names)
    for found in store.candidates(Document(text, mentions)):
        assert list(found) == sorted(found, key=lambda one: (-(one.prior or 0), one.entity))
        assert len(found) <= 30
        assert sum(one.prior or 0 for one in found) == pytest.approx(1)


def test_the_same_names_make_the_same_bytes_and_merging_adds_counts(tmp_path: Path, store: Names) -> None:
    manifest = builder().save(tmp_path / "again", {}, {})
    assert manifest == store.manifest
    manifest.verify(tmp_path / "again")
    merged = NamesBuilder()
    merged.add_store(store)
    merged.add_store(Names.open(tmp_path / "again"))
    merged.save(tmp_path / "merged", {}, {})
    both = Names.open(tmp_path / "merged")
    assert dict(both.titles())["Chicago White Sox"] == 90
    assert [(entry.entity, entry.count) for entry in both.entries("chicago")] == [
        ("Chicago", 180),
        ("Chicago (musical)", 20),
    ]
    assert len(both) == len(store)
    assert dict(both.parts("chicago")) == {title: 2 * links for title, links in store.parts("chicago")}


def test_what_is_missing_or_damaged_is_said(tmp_path: Path, store: Names) -> None:
    with pytest.raises(ArtefactError, match="does not exist"):
        Names.open(tmp_path)
    builder().save(tmp_path / "store", {}, {})
    (tmp_path / "store" / "names.marisa").write_bytes(b"no trie")
    with pytest.raises(ArtefactError, match=r"names\.marisa is damaged"):
        Names.open(tmp_path / "store")
    (tmp_path / "store" / "names-counts.npy").unlink()
    (tmp_path / "store" / "names.marisa").write_bytes((store.folder / "names.marisa").read_bytes())
    with pytest.raises(ArtefactError, match=r"names-counts\.npy is missing"):
        Names.open(tmp_path / "store")
    with pytest.raises(InputError, match="would be empty"):
        NamesBuilder().save(tmp_path / "empty", {}, {})


def write_sources(folder: Path) -> list[str]:
    pages = [
        Article("Clinton (disambiguation)", "Bill Clinton", (Link(0, 12, "Bill Clinton"),), disambiguation=True),
        Article("Koeln", redirect="Cologne"),
        Article("Rhine", "Köln", (Link(0, 4, "Koeln"),)),
    ]
    news = Article("~news", "In Kölle", (Link(3, 8, "Cologne"),))
    (folder / "pages.jsonl").write_bytes(b"".join(page.to_json() + b"\n" for page in pages))
    (folder / "news.jsonl").write_bytes(news.to_json() + b"\n")
    (folder / "aliases.tsv").write_text("colonia\tCologne\n")
    (folder / "descriptions.tsv").write_text("British Airways\tBritish Airways (BA) is an airline.\tx\n")
    return [
        "pages.jsonl",
        "--annotated",
        "news.jsonl",
        "--aliases",
        "aliases.tsv",
        "--descriptions",
        "descriptions.tsv",
    ]


def test_all_sources_reach_the_store(tmp_path: Path) -> None:
    write_sources(tmp_path)
    sources = NameSources(
        [tmp_path / "pages.jsonl"],
        [tmp_path / "news.jsonl"],
        [],
        [tmp_path / "aliases.tsv"],
        [tmp_path / "descriptions.tsv"],
    )
    manifest = build_store(sources, tmp_path / "store")
    store = Names.open(tmp_path / "store")
    for surface in ("Köln", "Koeln", "Kölle", "Colonia", "Cologne"):
        assert entities(store.lookup(surface)) == ["Cologne"], surface
    assert entities(store.lookup("BA")) == ["British Airways"]
    assert "Bill Clinton" in entities(store.lookup("Clinton"))
    assert "~news" not in store
    assert manifest.counts["links"] == 3
    assert set(manifest.parents) == {
        "articles pages.jsonl",
        "annotated news.jsonl",
        "aliases aliases.tsv",
        "descriptions descriptions.tsv",
    }
    (tmp_path / "aliases.tsv").write_text("colonia\n")
    with pytest.raises(InputError, match=r"aliases\.tsv:1 is not an alias"):
        build_store(sources, tmp_path / "store")
    store.manifest.verify(tmp_path / "store")  # the old one is whole


def test_the_command_killed_and_run_again_writes_the_same_bytes(tmp_path: Path) -> None:
    given = write_sources(tmp_path)
    command = [sys.executable, "-m", "deixis.cli", "candidates", "build", *given, "-o"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    subprocess.run([*command, "whole"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    killed = subprocess.Popen([*command, "killed"], cwd=tmp_path, env=environment, stdout=subprocess.DEVNULL)
    while killed.poll() is None and not (tmp_path / "killed.part").exists():
        time.sleep(0.001)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    subprocess.run([*command, "killed"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    names = sorted(path.name for path in (tmp_path / "whole").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "killed").iterdir())
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "killed" / name).read_bytes()
    shown = subprocess.run(
        [sys.executable, "-m", "deixis.cli", "candidates", "show", "whole", "Cologne"],
        cwd=tmp_path,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "Cologne" in shown.stdout
    assert "title" in shown.stdout
