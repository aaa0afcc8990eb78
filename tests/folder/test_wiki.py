"""A wiki's dump becomes a folder that links: killed on the way, the same bytes; of a newer dump, rows are kept."""

from __future__ import annotations

import bz2
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from deixis.artefacts import Manifest
from deixis.cli import app
from deixis.documents import Document, Mention
from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder
from deixis.folder.wiki import LEADS, licence
from deixis.inference import Disambiguator
from deixis.knowledge.knowledge import Knowledge
from deixis.wikipedia import dump as module
from tests.disk import files_of_at_most
from tests.folder.test_edit import make_model
from tests.wikipedia.samples import TAIL, dump, page, sample_dumps

pytestmark = pytest.mark.slow

PAGES = [
    page("City cup", "The '''City cup''' is played by a [[team]] in the [[Final|final]]. It has a goal.", 1),
    page("Team", "Team, also known as Goal Eleven, is a team that won the [[city cup]].", 2),
    page("Entity 5", "The five of a world.", 3),
    page("Final (rugby)", "A final of rugby. The [[Team|team]] played.", 4),
    page("Final", "{{Disambig}}\n* [[Final (rugby)]]\n* [[Final goal]]", 5),
    page("Cup", "#REDIRECT [[City cup]]", 6, redirect="City cup"),
    page("Meanings", "* [[Team]]", 7),
]
ENTITIES = ["City cup", "Team", "Entity 5", "Final (rugby)", "Meanings"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A model that can read descriptions, of the English Wikipedia."""
    make_model(tmp_path).save(tmp_path / "base", table="int8")
    return tmp_path / "base"


def write(path: Path, pages: list[str]) -> Path:
    path.write_bytes(dump(pages).replace(b'xml:lang="de"', b'xml:lang="en"'))
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["wikipedia", *map(str, arguments)])


def built(*arguments: object) -> Path:
    done = run(*arguments, "--workers", 1)
    assert done.exit_code == 0, done.exception
    return Path(str(arguments[arguments.index("-o") + 1]))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def row(folder: Path, title: str) -> list[float]:
    model = ModelFolder.load(folder)
    place = model.knowledge.number(title)
    assert place is not None
    return model.network.entity_embeddings.entity_embeddings.whole()[place].tolist()


def titles(folder: Path) -> set[str]:
    return set(ModelFolder.load(folder).vocabulary.entities)


def lead_of(folder: Path, title: str) -> int:
    return int(np.load(folder / LEADS)[ModelFolder.load(folder).knowledge.number(title)])


def test_a_dump_becomes_a_folder_that_links(base: Path, tmp_path: Path) -> None:
    folder = built(write(tmp_path / "dump.xml", PAGES), "--base", base, "-o", tmp_path / "wiki")
    assert titles(folder) == set(ENTITIES)
    told = Manifest.load(folder / "manifest.json", "model")
    assert told.counts["entities"] == 5
    assert told.parameters["rows"] == {"kept from the base": 1, "titles alone": 0}
    nlp = Disambiguator.load(folder, detection_threshold=0)
    found = {one.text: one.entity for one in nlp("The Cup was won by Goal Eleven, a Team, in the Final.")}
    assert found == {"Cup": "City cup", "Goal Eleven": "Team", "Team": "Team", "Final": "Final (rugby)"}
    assert not (tmp_path / "wiki.work").exists()
    before = contents(folder)
    assert built(tmp_path / "dump.xml", "--base", base, "-o", folder)
    assert contents(folder) == before


def test_a_wiki_of_another_language_is_not_read_by_the_words_of_english(base: Path, tmp_path: Path) -> None:
    pages = [page("Netherlands", "The land of a [[Team|team]].", 1), page("Team", "A team.", 2)]
    english = built(write(tmp_path / "en.xml", pages), "--base", base, "-o", tmp_path / "en")
    (tmp_path / "de.xml").write_bytes(dump(pages))
    german = built(tmp_path / "de.xml", "--base", base, "-o", tmp_path / "de")
    found = [Knowledge.open(folder / "knowledge").lookup("Dutch") for folder in (english, german)]
    assert [[one.entity for one in candidates] for candidates in found] == [["Netherlands"], []]
    (answer,) = Disambiguator.load(german).disambiguate(Document("Team", (Mention(0, 4),)))
    assert answer.url == "https://de.wikipedia.org/wiki/Team"


def test_a_newer_dump_keeps_the_rows_of_what_has_not_changed(base: Path, tmp_path: Path) -> None:
    first = built(write(tmp_path / "old.xml", PAGES), "--base", base, "-o", tmp_path / "first")
    changed = [
        page("City cup", "The city cup is a goal of the world. It is new.", 1),
        page("Team", "Team, also known as Goal Eleven, is a team that won the [[city cup]]. It is old.", 2),
        page("New", "A new final.", 8),
        page("Entity 5", "Another lead of what training knows.", 3),
    ]
    second = built("update", first, write(tmp_path / "new.xml", changed), "-o", tmp_path / "second")
    assert titles(second) == {"City cup", "Team", "New", "Entity 5"}
    for title in ("Team", "Entity 5"):
        assert row(second, title) == row(first, title)
    assert row(second, "City cup") != row(first, "City cup")
    same = {title: lead_of(second, title) == lead_of(first, title) for title in ("City cup", "Team", "Entity 5")}
    assert same == {"City cup": False, "Team": True, "Entity 5": True}
    refused = run("update", base, tmp_path / "new.xml", "-o", tmp_path / "third")
    assert "was not made by `deixis wikipedia`" in str(refused.exception)


def test_what_another_dump_left_behind_is_not_used(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise InputError("the disk is full")

    first, second = write(tmp_path / "old.xml", PAGES), write(tmp_path / "new.xml", [*PAGES[:2], PAGES[3]])
    with monkeypatch.context() as patch:
        patch.setattr("deixis.folder.wiki.write_folder", full)
        assert run(first, "--base", base, "-o", tmp_path / "wiki", "--workers", 1).exit_code == 1
    assert (tmp_path / "wiki.work").exists()
    after = built(second, "--base", base, "-o", tmp_path / "wiki")
    assert contents(after) == contents(built(second, "--base", base, "-o", tmp_path / "other"))


def page_props(path: Path, database: str = "ltgwiki", end: str = ";\n-- Dump completed\n") -> Path:
    values = "(1,'page_image','X.jpg',NULL),(1,'wikibase_item','Q17',NULL),(4,'wikibase_item','Q8',NULL),"
    head = f"-- Host: db1    Database: {database}\nCREATE TABLE `page_props` (\n);\n"
    path.write_text(head + f"INSERT INTO `page_props` VALUES {values}(7,'disambiguation','',NULL)" + end)
    return path


def test_page_props_have_wikidata_ids_and_say_which_pages_list_meanings(base: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "dump.xml", PAGES)
    given = [source, "--base", base, "--page-props"]
    folder = built(*given, page_props(tmp_path / "props.sql"), "-o", tmp_path / "wiki")
    assert titles(folder) == set(ENTITIES[:-1])
    (cup,) = Disambiguator.load(folder).disambiguate(Document("City cup", (Mention(0, 8),)))
    assert cup.identity is not None and cup.identity.wikidata == "Q17"
    for path, said in (
        (page_props(tmp_path / "cut.sql", end=""), "is cut off"),
        (source, "is not the table page_props"),
    ):
        refused = run(*given, path, "-o", tmp_path / "other", "--workers", 1)
        assert refused.exit_code == 1 and said in str(refused.exception), refused.output


def test_page_props_of_another_wiki_are_refused(base: Path, tmp_path: Path) -> None:
    source = next(path for path in sample_dumps() if "tinywiki" in path.name)
    given = [source, "--base", base, "--page-props", page_props(tmp_path / "props.sql", "enwiki")]
    refused = run(*given, "-o", tmp_path / "wiki", "--workers", 1)
    assert "is of enwiki, the dump of tmp-wp" in str(refused.exception)


def test_dumps_of_two_wikis_are_refused(base: Path, tmp_path: Path) -> None:
    dumps = [path for path in sample_dumps() if "bgwiki" in path.name or "latgalian" in path.name]
    refused = run(*dumps, "--base", base, "-o", tmp_path / "wiki", "--workers", 1)
    assert "is of ltg.wikipedia.org" in str(refused.exception) and "read each wiki by itself" in str(refused.exception)


def test_a_dump_that_is_cut_in_a_page_is_read_to_there(base: Path, tmp_path: Path) -> None:
    path = write(tmp_path / "dump.xml", PAGES)
    path.write_bytes(path.read_bytes()[: -len(TAIL) - 20])
    done = run(path, "--base", base, "-o", tmp_path / "wiki", "--workers", 1)
    assert done.exit_code == 0 and "is cut off" in done.output
    assert titles(tmp_path / "wiki") == set(ENTITIES[:-1])


def test_a_bz2_file_that_is_cut_off_is_read_to_there(base: Path, tmp_path: Path) -> None:
    whole = write(tmp_path / "dump.xml", [*PAGES, page("Last", "".join(map(chr, range(0x4E00, 0x9000))), 8)])
    path = tmp_path / "dump.xml.bz2"
    path.write_bytes(bz2.compress(whole.read_bytes()[:-8000]) + bz2.compress(whole.read_bytes()[-8000:])[:-900])
    done = run(path, "--base", base, "-o", tmp_path / "wiki", "--workers", 1)
    assert done.exit_code == 0 and f"deixis: {path} is cut off" in done.output
    assert titles(tmp_path / "wiki") == set(ENTITIES)
    path.write_bytes(path.read_bytes()[:40])
    refused = run(path, "--base", base, "-o", tmp_path / "none", "--workers", 1)
    assert refused.exit_code == 1 and f"{path} is no MediaWiki XML dump" in str(refused.exception)


def test_a_folder_of_another_version_is_refused_and_stays(base: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "dump.xml", PAGES)
    made = built(source, "--base", base, "-o", tmp_path / "wiki")
    manifest = made / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 1', '"version": 99'))
    before = contents(made)
    for given in (["--base", made, "-o", tmp_path / "new"], ["--base", base, "-o", made]):
        refused = run(source, *given, "--workers", 1)
        assert f"{manifest} was written by a newer deixis (format 99); upgrade deixis" in str(refused.exception)
    refused = run("update", made, source, "-o", tmp_path / "new")
    assert "was written by a newer deixis" in str(refused.exception)
    Manifest("model", files={"candidates/manifest.json": ""}).save(manifest)
    refused = run(source, "--base", made, "-o", tmp_path / "new")
    assert f"{made} was written by an earlier deixis; convert it: deixis assemble" in str(refused.exception)
    assert not (tmp_path / "new").exists()
    assert {name for name, data in contents(made).items() if data != before[name]} == {"manifest.json"}


def test_on_a_full_disk_nothing_is_lost(base: Path, tmp_path: Path) -> None:
    """Files may grow to a size and no further, so that each step fails once; then it goes on where it was."""
    source, output = write(tmp_path / "dump.xml", PAGES), tmp_path / "wiki"
    expected = contents(built(source, "--base", base, "-o", tmp_path / "whole"))
    steps = sorted({len(data) for data in expected.values()} | {100, 400})
    failed = set()
    for size in steps:
        with files_of_at_most(size - 1):
            done = run(source, "--base", base, "-o", output, "--workers", 1)
        if done.exit_code:
            assert isinstance(done.exception, InputError) and "cannot write" in str(done.exception)
            failed.add(str(done.exception).split(":")[0].rpartition("/")[2])
            assert not output.exists()
    assert len(failed) > 3, failed
    assert contents(built(source, "--base", base, "-o", output)) == expected
    with files_of_at_most(1000):  # the folder that was there stays
        done = run(write(tmp_path / "new.xml", PAGES[:2]), "--base", base, "-o", output, "--workers", 1)
    assert isinstance(done.exception, InputError) and contents(output) == expected


def test_licences_go_by_date() -> None:
    dates = {"2006-03-03": "GFDL", "2017-09-01": "CC BY-SA 3.0 and GFDL", "2026-01-01": "CC BY-SA 4.0 and GFDL"}
    assert {date: licence("en.wikipedia.org", date) for date in dates} == dates
    assert licence("wiki.example.org", "2026-01-01") == "as the wiki says"


SMALL = (
    "from deixis.wikipedia import dump; dump.CHUNK = dump.BLOCK = dump.STREAMS = 1 << 16; from deixis.folder import "
    "wiki; wiki.SHARD = 16; from deixis.cli import main; main()"
)


def start(*arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SMALL, "wikipedia", *map(str, arguments), "--workers", "1"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


@pytest.mark.parametrize("wiki", ["enwiki-latest", "bgwiki", "latgalian"])
def test_killed_twice_it_ends_with_the_same_bytes(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wiki: str
) -> None:
    source = next(path for path in sample_dumps() if wiki in path.name)
    work = tmp_path / "killed.work"
    for reached in ("articles.jsonl.zst.parts/000000.zst", "*/rows/000000.npz"):
        process = start(source, "--base", base, "-o", tmp_path / "killed")
        while process.poll() is None and not list(work.glob(reached)):
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start(source, "--base", base, "-o", tmp_path / "killed")
    _, said = process.communicate()
    assert process.returncode == 0, said
    for name in ("CHUNK", "BLOCK", "STREAMS"):
        monkeypatch.setattr(module, name, 1 << 16)
    monkeypatch.setattr("deixis.folder.wiki.SHARD", 16)
    assert contents(tmp_path / "killed") == contents(built(source, "--base", base, "-o", tmp_path / "whole"))
    domain = {"enwiki-latest": "en", "bgwiki": "bg", "latgalian": "ltg"}[wiki] + ".wikipedia.org"
    nlp = Disambiguator.load(tmp_path / "killed")
    assert nlp.domain == domain
    assert nlp.candidates is not None
    whole = (Document(title, (Mention(0, len(title)),)) for title in nlp.vocabulary.entities)
    # The network is untrained: a name that means one entity alone.
    document = next(one for one in whole if len(nlp.candidates.candidates(one)[0]) == 1)
    (answer,) = nlp.disambiguate(document)
    assert answer.entity == document.text
    assert answer.identity is not None or domain == "en.wikipedia.org"
