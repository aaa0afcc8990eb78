"""The spaCy pipe over the island of Velm: after a recogniser, with our detector, in batches, saved and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from deixis.documents import Identity
from deixis.errors import ArtefactError, InputError

spacy = pytest.importorskip("spacy")

from deixis.integrations.spacy import SpacyDetector  # noqa: E402 - after the test for spaCy above

TEXT = "After the Silver Oar came Marlow and Brandt."
ADDED = b'{"title": "Velm Cup (rowing)", "url": "https://example.org/oar", "id": "17"}'
RULES = [{"label": "PERSON", "pattern": "Marlow"}, {"label": "DATE", "pattern": "Brandt"}]


def pipeline(island: Path, rules: bool = False, **config: object) -> Any:
    nlp = spacy.blank("en")
    if rules:
        nlp.add_pipe("entity_ruler").add_patterns(RULES)
    nlp.add_pipe("deixis", config={"model": str(island / "model"), **config})
    return nlp


def test_our_own_detector(island: Path) -> None:
    doc = pipeline(island)(TEXT)
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
        ("Silver Oar", "Velm Cup (rowing)"),
        ("Marlow", "Ada Marlow (rower)"),
        ("Brandt", "Lena Brandt (coach)"),
    ]
    assert [(r.text, r.entity) for r in doc._.deixis] == [(ent.text, ent.kb_id_) for ent in doc.ents]
    assert doc._.deixis[1].alternatives[0][0] == "Ada Marlow (rower)"
    assert spacy.blank("en")(TEXT)._.deixis is None


def test_after_a_recogniser(island: Path) -> None:
    doc = pipeline(island, rules=True)(TEXT)
    assert [(ent.text, ent.label_) for ent in doc.ents] == [("Marlow", "PERSON"), ("Brandt", "DATE")]
    assert doc.ents[0].kb_id_.startswith("Ada Marlow") and doc.ents[1].kb_id_ == ""  # a date is no mention
    unsure = pipeline(island, rules=True, answer_threshold=1.0)(TEXT)
    assert unsure.ents[0].kb_id_ == "" and unsure._.deixis[0].reason == "none fits"


def test_batches_give_the_same_and_documents_travel(island: Path) -> None:
    nlp = pipeline(island)
    docs = list(nlp.pipe([TEXT, "", "Nothing."] * 3, batch_size=2))
    assert [[ent.kb_id_ for ent in doc.ents] for doc in docs[:3]] == [[e.kb_id_ for e in nlp(TEXT).ents], [], []]
    there = spacy.tokens.Doc(nlp.vocab).from_bytes(docs[0].to_bytes())
    assert there._.deixis == docs[0]._.deixis and there.ents[0].kb_id_ == "Velm Cup (rowing)"


def test_an_added_entity_keeps_its_identity(island: Path) -> None:
    nlp = pipeline(island)
    pipe = nlp.get_pipe("deixis")
    pipe.disambiguator.wikidata = {"Velm Cup (rowing)": "Q1"}
    for doc in (nlp(TEXT), spacy.tokens.Doc(nlp.vocab).from_bytes(nlp(TEXT).to_bytes())):
        assert doc._.deixis[0].identity.wikidata == "Q1" and doc._.deixis[1].identity is None
    own = Identity("https://example.org/oar", id="17", wikidata="Q1")
    pipe.disambiguator = replace(pipe.disambiguator, added=(ADDED,))
    assert nlp(TEXT)._.deixis[0].identity == own and nlp(TEXT)._.deixis[0].url == own.url


def test_saved_and_loaded(island: Path, tmp_path: Path) -> None:
    nlp = pipeline(island, order="natural")
    nlp.to_disk(tmp_path / "pipeline")
    for again in (spacy.load(tmp_path / "pipeline"), pipeline(island).from_bytes(nlp.to_bytes())):
        assert again.get_pipe("deixis").config["order"] == "natural"
        assert again(TEXT)._.deixis == nlp(TEXT)._.deixis


def test_the_entities_of_a_pipeline_are_mentions() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns(RULES)
    assert SpacyDetector(nlp).detect(TEXT) == [(26, 32)]
    with pytest.raises(InputError, match="spacy download nothing_like_it"):
        SpacyDetector.load("nothing_like_it")


def test_what_cannot_be_is_said(island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deixis.folder.model_folder.PACKAGED", island / "nothing")
    with pytest.raises(ArtefactError, match="comes without a model"):
        spacy.blank("en").add_pipe("deixis")
    with pytest.raises(InputError, match="mentions is 'all'"):
        pipeline(island, mentions="all")
