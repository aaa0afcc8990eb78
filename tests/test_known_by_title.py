"""Names of which nothing but the title is known: answered by it in every way that links texts, and counted."""

from __future__ import annotations

import lzma
from dataclasses import replace
from pathlib import Path
from typing import get_args

import httpx
import orjson
import pytest
from typer.testing import CliRunner

import deixis
from deixis.cli import app
from deixis.datasets.dataset import Dataset, Report
from deixis.documents import KNOWN_BY, Candidate, Document, Mention, Reason
from deixis.evaluation.known_by_title import LEAST_TITLES, judge_titles
from deixis.folder.edit import remove
from deixis.folder.model_folder import TITLE_PROBABILITY, ModelFolder
from deixis.serving.nif import write_nif
from deixis.toy import marked
from tests.serving.world import serving

TEXT = "After the Silver Oar came Tilda Fenn and Nobody Else."
MENTIONS = (Mention(10, 20), Mention(26, 36, kind="person"), Mention(41, 52))


@pytest.fixture(scope="module")
def titled(island: Path) -> Path:
    """The model of Velm with a list of titles, of which its names know one."""
    folder = island.with_name("titled")
    folder.mkdir()
    (folder / "titles.txt.xz").write_bytes(lzma.compress(b"tilda fenn\nsilver oar\nvelm marina\n"))
    arguments = ["assemble", str(island / "model"), "--names", str(island / "store"), "-o", str(folder / "model")]
    done = CliRunner().invoke(app, [*arguments, "--titles", str(folder / "titles.txt.xz")])
    assert done.exit_code == 0, done.exception
    (folder / "latin.txt").write_bytes("Zürich town\n".encode("latin-1"))
    bad = CliRunner().invoke(app, [*arguments[:-1], str(folder / "bad"), "--titles", str(folder / "latin.txt")])
    assert "latin.txt, line 1: not UTF-8" in str(bad.exception) and not (folder / "bad").exists()
    return folder / "model"


def test_a_name_that_is_only_a_title(titled: Path) -> None:
    nlp = deixis.load(titled)
    oar, tilda, nobody = nlp.link(Document(TEXT, MENTIONS))
    assert (oar.entity, oar.known_by) == ("Velm Cup (rowing)", "links")
    assert (tilda.entity, tilda.known_by, tilda.kind) == ("Tilda Fenn", "title", "person")
    assert (tilda.probability, tilda.alternatives) == (TITLE_PROBABILITY, (("Tilda Fenn", TITLE_PROBABILITY),))
    assert tilda.url == "https://en.wikipedia.org/wiki/Tilda_Fenn"
    assert (nobody.entity, nobody.reason, nobody.known_by) == (None, "no candidates", None)
    assert tilda.to_record()["resolution"]["known_by"] == "title"
    strict = nlp.link(Document(TEXT, MENTIONS), answer_threshold=TITLE_PROBABILITY + 0.01)[1]
    assert (strict.entity, strict.reason, strict.known_by) == (None, "none fits", None)
    assert strict.to_record()["alternatives"] == [["Tilda Fenn", TITLE_PROBABILITY]]
    traced = nlp.link(Document(TEXT, MENTIONS), trace=True).trace
    assert traced is not None and 1 in traced[0].decided and 1 not in traced[0].open


def test_a_title_answers_alone_and_changes_nothing_else(titled: Path, island: Path) -> None:
    with_titles, without = (deixis.load(folder).link(Document(TEXT, MENTIONS)) for folder in (titled, island / "model"))
    assert with_titles[0].entity == without[0].entity and with_titles[0].probability == without[0].probability
    assert without[1].entity is None and without[1].reason == "no candidates"


def test_no_title_where_the_user_says_otherwise(titled: Path) -> None:
    nlp = deixis.load(titled)
    given = Document(TEXT, (Mention(26, 36, candidates=()), Mention(26, 36, candidates=(Candidate("Tilda (boat)"),))))
    assert [(r.entity, r.known_by) for r in nlp.link(given)] == [(None, None), ("Tilda (boat)", None)]

    class Own:
        def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
            return [()] * len(document.mentions)

    own = replace(nlp, candidates=Own())
    assert [r.reason for r in own.link(Document(TEXT, MENTIONS))] == ["no candidates"] * 3


def test_what_was_removed_is_no_title(titled: Path, tmp_path: Path) -> None:
    parts = ModelFolder.load(titled)
    less = remove(parts, ["Velm Cup (rowing)"])
    less.save_edited(tmp_path / "less", {})
    nlp = deixis.load(tmp_path / "less")
    oar, tilda, _ = nlp.link(Document(TEXT, MENTIONS))
    assert (oar.entity, oar.reason) == (None, "no candidates")
    assert tilda.known_by == "title"  # the filter travels with edits


def test_the_command_and_the_wikis_domain(titled: Path, tmp_path: Path) -> None:
    (tmp_path / "text.jsonl").write_bytes(Document(TEXT, MENTIONS).to_json())
    for command in ("link", "disambiguate"):
        done = CliRunner().invoke(app, [command, str(tmp_path / "text.jsonl"), "--model", str(titled)])
        assert done.exit_code == 0, done.exception
        tilda = orjson.loads(done.stdout_bytes)["mentions"][1]
        assert tilda["kind"] == "person" and tilda["resolution"]["known_by"] == "title"
    nlp = replace(deixis.load(titled), domain="velm.example")
    assert nlp.link(Document(TEXT, MENTIONS))[1].url == "https://velm.example/wiki/Tilda_Fenn"


def test_the_server_tells_what_is_known(titled: Path) -> None:
    with serving(deixis.load(titled)) as address:
        given = {"text": TEXT, "mentions": [{"start": m.start, "end": m.end} for m in MENTIONS]}
        oar, tilda, nobody = httpx.post(f"{address}/disambiguate", json=given).json()["mentions"]
        assert (oar["resolution"]["known_by"], tilda["resolution"]["known_by"]) == ("links", "title")
        assert tilda["resolution"]["url"] == "https://en.wikipedia.org/wiki/Tilda_Fenn"
        assert (nobody["resolution"], nobody["reason"]) == (None, "no candidates")
        unsure = httpx.post(f"{address}/disambiguate", json=given | {"answer_threshold": 1.0}).json()["mentions"][1]
        assert (unsure["reason"], unsure["alternatives"]) == ("none fits", [["Tilda Fenn", TITLE_PROBABILITY]])
        schemas = httpx.get(f"{address}/openapi.json").json()["components"]["schemas"]
        assert schemas["Resolution"]["properties"]["known_by"]["anyOf"][0]["enum"] == list(KNOWN_BY)
        assert schemas["ResolvedMention"]["properties"]["reason"]["anyOf"][0]["enum"] == list(get_args(Reason))


def test_nif_tells_what_is_known(titled: Path) -> None:
    turtle = write_nif([deixis.load(titled).link(Document(TEXT, MENTIONS, "http://velm.example/1"))])
    oar, tilda, nobody = turtle.split("a nif:Phrase")[1:]
    assert 'rdfs:comment "known by links"' in oar and 'rdfs:comment "known by title"' in tilda
    assert (
        "taIdentRef <http://en.wikipedia.org/wiki/Tilda_Fenn>" in tilda and "nerd.eurecom.fr/ontology#Person" in tilda
    )
    assert 'rdfs:comment "left open: no candidates"' in nobody and "taIdentRef" not in nobody


def test_spacy_tells_what_is_known(titled: Path) -> None:
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    names = ("Silver Oar", "Tilda Fenn", "Nobody Else")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "PERSON", "pattern": name} for name in names])
    nlp.add_pipe("deixis", config={"model": str(titled)})
    doc = nlp(TEXT)
    oar, tilda, nobody = doc.ents
    assert (oar._.deixis.known_by, tilda._.deixis.known_by, nobody._.deixis.known_by) == ("links", "title", None)
    assert tilda.kb_id_ == "Tilda Fenn" and nobody.kb_id_ == "" and nobody._.deixis.reason == "no candidates"
    assert doc[0:1]._.deixis is None  # no mention
    there = spacy.tokens.Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert there.ents[1]._.deixis == tilda._.deixis


def _set(count: int, right: int) -> Dataset:
    documents = [marked(f"She met [Tilda Fenn|{'Tilda Fenn' if at < right else 'Tilda'}].") for at in range(count - 1)]
    documents.append(marked("[Velm Marina|The Marina] and [Silver Oar|Velm Cup (rowing)] and [Nobody Else|Nobody]."))
    return Dataset("velm", tuple(documents), Report(count + 2))


def test_right_titles_are_counted(titled: Path, island: Path) -> None:
    nlp = deixis.load(titled)
    judged = judge_titles(nlp, _set(4, 2), {"Velm Marina": "The Marina"})
    assert judged[2:] == [("Tilda Fenn", "Tilda", False), ("Velm Marina", "The Marina", True)]
    assert len(judged) == 4 and sum(right for *_, right in judged) == 3
    assert judge_titles(deixis.load(island / "model"), _set(4, 2)) == []


@pytest.mark.parametrize(("count", "probability"), [(LEAST_TITLES, 0.5), (LEAST_TITLES - 1, TITLE_PROBABILITY)])
def test_the_probability_is_measured_and_kept(titled: Path, tmp_path: Path, count: int, probability: float) -> None:
    mine = tmp_path / "mine.jsonl"
    mine.write_bytes(b"".join(document.to_json() + b"\n" for document in _set(count, LEAST_TITLES // 2).documents))
    arguments = ["calibrate", str(titled), "--set", str(mine), "-o", str(tmp_path / "calibrated")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    assert f"only a title: {probability:g}, measured on {count}" in done.stderr
    assert ("too few, it stays" in done.stderr) == (count < LEAST_TITLES)
    nlp = deixis.load(tmp_path / "calibrated")
    assert nlp.title_probability == probability
    assert nlp.disambiguate(Document(TEXT, MENTIONS))[1].probability == probability
