"""The spaCy pipe over the island of Velm: after a recogniser, with our detector, in batches, saved and loaded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from deixis.documents import Identity
from deixis.errors import ArtefactError, InputError
from deixis.folder.model_folder import ModelFolder, with_detector
from deixis.inference import Disambiguator
from deixis.network.detector import KINDS
from deixis.training.detector import DetectorRecipe, MarkedText, lessons_of, train_detector

spacy = pytest.importorskip("spacy")

from spacy import displacy  # noqa: E402 - after the test for spaCy above
from spacy.tokens import Doc, DocBin  # noqa: E402

from deixis.integrations.spacy import CONFIG, SpacyDetector, displacy_ents  # noqa: E402

TEXT = "After the Silver Oar came Marlow and Brandt."
ADDED = b'{"title": "Velm Cup (rowing)", "url": "https://example.org/oar", "id": "17"}'
RULES = [{"label": "PERSON", "pattern": "Marlow"}, {"label": "DATE", "pattern": "Brandt"}]


def pipeline(island: Path, rules: bool = False, **config: object) -> Any:
    nlp = spacy.blank("en")
    if rules:
        nlp.add_pipe("entity_ruler").add_patterns(RULES)
    nlp.add_pipe("deixis", config={"model": str(island / "model"), **config})
    return nlp


@pytest.fixture(scope="module")
def kinds(island: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose model has learned what is a person and what an event."""
    marked = []
    for event in ("Silver Oar", "Golden Rook", "Velm Cup"):
        for person in ("Marlow", "Brandt", "Tilda Quist"):
            text = f"After the {event} came {person}."
            at = text.index(person)
            spans = ((10, 10 + len(event), "event"), (at, at + len(person), "person"))
            marked.append(MarkedText(text, spans, frozenset(KINDS)))
    parts = ModelFolder.load(island / "model")
    recipe = DetectorRecipe(epochs=40, batch_pieces=256, rate=2e-2, size=16, cases=0.0)
    folder = tmp_path_factory.mktemp("kinds")
    with_detector(
        island / "model",
        folder / "model",
        train_detector(parts.network, parts.tokenizer, lessons_of(parts.tokenizer, marked), recipe),
        {},
    )
    return folder


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
    there = Doc(nlp.vocab).from_bytes(docs[0].to_bytes())
    assert there._.deixis == docs[0]._.deixis and there.ents[0].kb_id_ == "Velm Cup (rowing)"


def test_an_added_entity_keeps_its_identity(island: Path) -> None:
    nlp = pipeline(island)
    pipe = nlp.get_pipe("deixis")
    pipe.disambiguator.wikidata = {"Velm Cup (rowing)": "Q1"}
    for doc in (nlp(TEXT), Doc(nlp.vocab).from_bytes(nlp(TEXT).to_bytes())):
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
    with pytest.raises(InputError, match="kb_id is 'iri'; expected one of title, wikidata"):
        pipeline(island, kb_id="iri")


def test_wikidata_ids(island: Path) -> None:
    nlp = pipeline(island, kb_id="wikidata")
    nlp.get_pipe("deixis").disambiguator.wikidata = {"Velm Cup (rowing)": "Q1"}
    assert [ent.kb_id_ for ent in nlp(TEXT).ents] == ["Q1", "", ""]  # of the others no id is known
    assert nlp(TEXT)._.deixis[1].entity == "Ada Marlow (rower)"


def test_labels_are_the_detectors_kinds(kinds: Path) -> None:
    doc = pipeline(kinds)("After the Silver Oar came Tilda Quist.")
    assert [(ent.text, ent.label_, ent.kb_id_) for ent in doc.ents] == [
        ("Silver Oar", "EVENT", "Velm Cup (rowing)"),
        ("Tilda Quist", "PERSON", ""),  # whom nobody here knows
    ]
    assert [r.kind for r in doc._.deixis] == ["event", "person"]


def test_labels_without_kinds(island: Path) -> None:
    assert [ent.label_ for ent in pipeline(island)(TEXT).ents] == ["ENTITY"] * 3


def test_a_recognisers_entities_keep_what_they_have(kinds: Path) -> None:
    nlp = spacy.blank("en")
    rules = [{"label": "GPE", "pattern": "Marlow", "id": "mine"}, {"label": "DATE", "pattern": "Brandt"}]
    nlp.add_pipe("entity_ruler").add_patterns(rules)
    nlp.add_pipe("deixis", config={"model": str(kinds / "model"), "mentions": "deixis"})
    doc = nlp("After the Silver Oar came Marlow.")
    assert [(ent.text, ent.label_, ent.ent_id_) for ent in doc.ents] == [
        ("Silver Oar", "EVENT", ""),  # ours beside the recogniser's
        ("Marlow", "GPE", "mine"),
    ]
    assert doc.ents[1].kb_id_ == "Ada Marlow (rower)"
    nlp.get_pipe("entity_ruler").add_patterns([{"label": "FAC", "pattern": "Oar", "id": "yours"}])
    longer = nlp("After the Silver Oar came Marlow.").ents[0]
    assert (longer.text, longer.label_, longer.kb_id_) == ("Silver Oar", "FAC", "Velm Cup (rowing)")
    behind = pipeline(kinds, rules=True)("After the Silver Oar came Marlow.")
    assert [(ent.text, ent.label_) for ent in behind.ents] == [("Marlow", "PERSON")]
    assert behind._.deixis[0].kind == "person"  # as the recogniser said


def test_a_mention_within_a_token_is_the_whole_token(island: Path) -> None:
    nlp = spacy.blank("en")
    nlp.tokenizer.token_match = "Oar/Rook".__eq__
    nlp.add_pipe("deixis", config={"model": str(island / "model")})
    doc = nlp("After the Silver Oar/Rook came Marlow.")
    assert [(ent.text, ent.kb_id_) for ent in doc.ents] == [
        ("Silver Oar/Rook", "Velm Cup (rowing)"),
        ("Marlow", "Ada Marlow (rower)"),
    ]


def test_displacy_shows_links(island: Path) -> None:
    nlp = pipeline(island)
    pipe = nlp.get_pipe("deixis")
    pipe.disambiguator = replace(pipe.disambiguator, added=(ADDED,))
    doc = nlp(TEXT)
    drawn = displacy.render(displacy_ents(doc), style="ent", manual=True, jupyter=False)
    assert 'href="https://example.org/oar">Velm Cup (rowing)</a>' in drawn
    assert 'href="https://en.wikipedia.org/wiki/Ada_Marlow_(rower)">Ada Marlow (rower)</a>' in drawn
    ids = {"kb_url_template": "https://en.wikipedia.org/wiki/{}"}
    assert drawn.count("<a ") == displacy.render(doc, style="ent", options=ids, jupyter=False).count("<a ") == 3
    open_ = displacy_ents(pipeline(island, answer_threshold=1.0)("Marlow was there."))
    assert open_["ents"] == [{"start": 0, "end": 6, "label": "ENTITY"}]


def test_displacy_gets_what_it_can_write_into_a_page(island: Path) -> None:
    nlp = pipeline(island)
    pipe = nlp.get_pipe("deixis")
    page = b'{"title": "Velm Cup (rowing)", "url": "https://example.org/?a=\\"1\\"&b"}'
    pipe.disambiguator = replace(pipe.disambiguator, added=(page,))
    drawn = displacy.render(displacy_ents(nlp(TEXT)), style="ent", manual=True, jupyter=False)
    assert 'href="https://example.org/?a=&quot;1&quot;&amp;b"' in drawn


def test_a_batch_is_found_and_decided_together(island: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    linked = Disambiguator.link_many

    def counted(self: Disambiguator, texts: list[str], settings: Any) -> Any:
        calls.append(len(texts))
        return linked(self, texts, settings)

    monkeypatch.setattr(Disambiguator, "link_many", counted)
    docs = list(pipeline(island).pipe([TEXT, "Nobody.", "Marlow came."] * 5, batch_size=6))
    assert calls == [6, 6, 3]
    assert [len(doc.ents) for doc in docs] == [3, 0, 1] * 5


def test_doc_bins_round_trip(kinds: Path, tmp_path: Path) -> None:
    nlp = pipeline(kinds)
    nlp.get_pipe("deixis").disambiguator.wikidata = {"Velm Cup (rowing)": "Q1"}
    docs = list(nlp.pipe([TEXT, "", "After the Silver Oar came Tilda Quist."]))
    DocBin(docs=docs, store_user_data=True).to_disk(tmp_path / "docs.spacy")
    again = list(DocBin().from_disk(tmp_path / "docs.spacy").get_docs(spacy.blank("en").vocab))
    for there, here in zip(again, docs, strict=True):
        assert [(e.text, e.label_, e.kb_id_) for e in there.ents] == [(e.text, e.label_, e.kb_id_) for e in here.ents]
        assert there._.deixis == here._.deixis
        assert displacy_ents(there) == displacy_ents(here)
    bare = next(iter(DocBin(docs=docs).get_docs(nlp.vocab)))  # without user data the ids stay
    assert bare.ents[0].kb_id_ == "Velm Cup (rowing)" and bare._.deixis is None


def test_a_pipeline_of_an_earlier_deixis_opens(island: Path, tmp_path: Path) -> None:
    nlp = pipeline(island)
    nlp.to_disk(tmp_path / "pipeline")
    path = tmp_path / "pipeline" / "deixis" / CONFIG
    path.write_bytes(orjson.dumps({k: v for k, v in orjson.loads(path.read_bytes()).items() if k != "kb_id"}))
    assert spacy.load(tmp_path / "pipeline")(TEXT).ents[0].kb_id_ == "Velm Cup (rowing)"
