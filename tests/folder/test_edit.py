"""Entities of a model: added from text, changed, removed, saved; what others answer stays the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

from deixis.documents import Candidate, Document, Identity, Mention
from deixis.errors import ArtefactError, InputError
from deixis.folder.edit import add, alike, build_folder, fit, remove
from deixis.folder.model_folder import ModelFolder
from deixis.folder.sharpen import read_mentions
from deixis.inference import Disambiguator
from deixis.knowledge import describe as describing
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.describe import TAKEN_OFF, Describer, read_texts
from deixis.knowledge.entities import Entity
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.overlay import Overlay
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import Batch
from deixis.network.entity_table import MixedTable
from deixis.network.precision import compute_in
from deixis.settings import Precision as Inference
from tests.worlds import ENTITIES, make_document, make_network, make_tokenizer

DESCRIPTIONS = {f"Entity {number}": f"the {number} of a city team" for number in range(ENTITIES)}
NEW = Entity.from_record(
    {
        "title": "Zed Cup",
        "description": "a rugby final of the world",
        "names": ["Zed"],
        "url": "https://example.org/zed",
        "examples": ["The team won the [[Zed]] in a city.", "[[Zed]] final played."],
    }
)


def make_model(tmp_path: Path) -> ModelFolder:
    titles = Vocabulary.of(f"Entity {number}" for number in range(ENTITIES))
    known = Vocabulary(titles.titles, [0, 0, 0, *range(1, ENTITIES + 1)])
    builder = NamesBuilder()
    for title in known.entities:
        builder.add_link("cup", title)
    builder.save(tmp_path / "store", {}, {})
    names = FromStore.of(known, Names.open(tmp_path / "store"))
    model = fit(ModelFolder(make_network(), make_tokenizer(), known), DESCRIPTIONS, 1000)
    model.save(tmp_path / "made", source=names)
    made = ModelFolder.load(tmp_path / "made")
    made.network.eval()
    return made


def knowledge_of(model: ModelFolder) -> Knowledge:
    assert isinstance(model.knowledge, Knowledge)
    return model.knowledge


def number_of(model: ModelFolder, title: str) -> int:
    number = model.knowledge.number(title)
    assert number is not None
    return number


def linker(model: ModelFolder, **more: Any) -> Disambiguator:
    return Disambiguator(
        model.network, model.tokenizer, model.knowledge, model.names, describer=model.describer, **more
    )


@pytest.fixture
def model(tmp_path: Path) -> ModelFolder:
    return make_model(tmp_path)


def answers(model: ModelFolder, documents: list[Document]) -> list[list[tuple[str | None, float]]]:
    nlp = Disambiguator(model.network, model.tokenizer, model.knowledge)
    return [[(r.entity, r.probability) for r in result] for result in nlp.disambiguate_many(documents)]


def test_the_map_learns_what_depends_on_the_text() -> None:
    """Rows made by a linear map of features come back for texts that it was not fitted on."""
    network, tokenizer = make_network(entities=403), make_tokenizer()
    texts = {f"Entity {n}": f"{n % 7} {n % 11} the cup of {n} team {n * n}" for n in range(400)}
    features = read_texts(network, tokenizer, list(texts.items()))
    true = torch.randn(features.shape[1], 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.entity_embeddings.entity_embeddings.weight[3:] = features @ true
    vocabulary = Vocabulary(["[PAD]", "[UNK]", "[MASK]", *texts], [0, 0, 0, *([9] * 300), *([0] * 100)])
    describer = Describer.fit(network, tokenizer, vocabulary, texts)
    rows, _ = describer.rows(network, tokenizer, list(texts.items())[300:])  # these have no links: not fitted on
    expected = (features @ true)[300:]
    assert describer.explained > 0.5
    left = (rows - expected).square().sum() / (expected - expected.mean(0)).square().sum()
    assert left < 0.3


def test_an_added_entity_is_answered_and_the_others_stay_the_same(model: ModelFolder) -> None:
    documents = [make_document(seed) for seed in range(8)]
    before = answers(model, documents)
    bigger = add(model, [NEW])
    assert answers(bigger, documents) == before
    assert bigger.knowledge.number("Zed Cup") == len(model.knowledge)
    assert knowledge_of(bigger).lookup("Zed") == (Candidate("Zed Cup", 1.0),)
    with pytest.raises(InputError, match="'Zed Cup' is an entity of the model already; leave it out"):
        add(bigger, [NEW])
    again = add(bigger, [replace(NEW, description="a city")], clashes=True)
    assert len(again.knowledge) == len(bigger.knowledge)
    assert not torch.equal(row_of(again, "Zed Cup"), row_of(bigger, "Zed Cup"))


def row_of(model: ModelFolder, title: str) -> torch.Tensor:
    return model.network.candidate_rows(torch.tensor(number_of(model, title)))[0].detach()


def test_dropout_has_no_part_in_it(model: ModelFolder) -> None:
    plain = add(model, [NEW])
    model.network.train()
    assert torch.equal(row_of(add(model, [NEW]), "Zed Cup"), row_of(plain, "Zed Cup"))


def test_many_descriptions_are_read_by_a_faster_copy(model: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may compute in int8; the network itself goes on in what it was opened in."""
    documents = [make_document(seed) for seed in range(3)]
    before, row = answers(model, documents), row_of(add(model, [NEW]), "Zed Cup")
    monkeypatch.setattr(describing, "MANY", 1)
    assert torch.cosine_similarity(row_of(add(model, [NEW]), "Zed Cup"), row, dim=0) > 0.98
    assert answers(model, documents) == before


def test_an_odd_name_earns_no_more_than_a_usual_one(model: ModelFolder) -> None:
    describer = model.describer
    assert describer is not None and 0 < describer.spread < 100
    parts = (model.network, model.tokenizer, [("Zed Cup", "a rugby final of the world")])
    _, usual = describer.rows(*parts)
    # The level so high that every name scores far under it.
    _, odd = replace(describer, level=describer.level + 1000).rows(*parts)
    _, plain = replace(describer, level=describer.level + 1000, spread=0.0).rows(*parts)
    assert odd - plain == pytest.approx(TAKEN_OFF * describer.spread, rel=1e-3)
    assert abs(usual - plain) < 100


def test_examples_move_the_row_towards_their_mentions(model: ModelFolder) -> None:
    assert NEW.examples
    document = NEW.examples[0].with_candidates([(Candidate("Zed Cup"), *map(Candidate, list(DESCRIPTIONS)[:20]))])
    plain = add(model, [replace(NEW, examples=())])
    sharp = add(model, [NEW])

    def chance(of: ModelFolder) -> float:
        nlp = Disambiguator(of.network, of.tokenizer, of.knowledge)
        return dict(nlp.disambiguate(document)[0].alternatives)["Zed Cup"]

    def by_itself(of: ModelFolder) -> float:
        weight, bias = of.network.candidate_rows(torch.tensor(number_of(of, "Zed Cup")))
        return (read_texts(of.network, of.tokenizer, [("Zed", None)])[0] @ weight + bias).item()

    assert chance(sharp) > chance(plain) + 0.1
    assert by_itself(sharp) == pytest.approx(by_itself(plain), abs=1e-3)  # only the sentences count, not the name
    for title in DESCRIPTIONS:
        assert torch.equal(row_of(sharp, title), row_of(plain, title))


def test_a_removed_entity_is_gone_from_table_and_names(model: ModelFolder) -> None:
    smaller = remove(model, ["Entity 7", "Entity 9"])
    assert "Entity 7" not in smaller.knowledge and "Entity 8" in smaller.knowledge
    assert set(knowledge_of(smaller).titles()) == set(DESCRIPTIONS) - {"Entity 7", "Entity 9"}
    assert torch.equal(row_of(smaller, "Entity 8"), row_of(model, "Entity 8"))
    assert not {"Entity 7", "Entity 9"} & {entity for entity, _ in knowledge_of(smaller).lookup("cup", 100)}
    assert knowledge_of(smaller).lookup("Entity 7") == ()
    back = add(smaller, [replace(NEW, title="Entity 7")])
    assert knowledge_of(back).lookup("Entity 7")[0].entity == "Entity 7"
    with pytest.raises(InputError, match=r"'Nobody' is not an entity of the model \(and 1 more\)"):
        remove(model, ["Nobody", "None"])


@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
def test_a_folder_keeps_what_was_added(tmp_path: Path, precision: Literal["fp32", "fp16", "int8"]) -> None:
    model = make_model(tmp_path)
    told = {"linking": {"set": "aida-a"}, "other": 0.7}
    model.save(tmp_path / "model", table=precision, encoder=precision, parameters=told)
    source = ModelFolder.load(tmp_path / "model")
    add(source, [NEW]).save_edited(tmp_path / "bigger", {"entities new.jsonl": "0" * 64})
    bigger = ModelFolder.load(tmp_path / "bigger")
    assert bigger.known == (NEW.to_json(),)
    table = bigger.network.entity_embeddings.entity_embeddings
    assert isinstance(table, MixedTable) and [part.precision for part in table.tables] == [precision] * 2
    manifest = (tmp_path / "bigger" / "manifest.json").read_text()
    assert "entities new.jsonl" in manifest and '"entities added": 1' in manifest
    assert '"set": "aida-a"' in manifest, "linking stays as it was calibrated"
    documents = [make_document(seed) for seed in range(3)]
    expected = answers(source, documents)
    for got, wanted in zip(answers(bigger, documents), expected, strict=True):
        assert [entity for entity, _ in got] == [entity for entity, _ in wanted]
    nlp = Disambiguator.load(tmp_path / "bigger")
    (resolution,) = nlp.disambiguate(Document("Zed won.", (Mention(0, 3),)))
    assert (resolution.entity, resolution.url) == ("Zed Cup", "https://example.org/zed")
    assert resolution.to_record()["resolution"]["url"] == "https://example.org/zed"
    remade = remove(bigger, ["Zed Cup"])
    assert remade.known == ()
    assert knowledge_of(remade).lookup("Zed") == () and len(remade.knowledge) == len(source.knowledge)
    remade.save(tmp_path / "whole", table=precision, encoder=precision)
    assert (tmp_path / "whole" / "entities.safetensors").read_bytes() == (
        tmp_path / "model" / "entities.safetensors"
    ).read_bytes()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_in_memory_with_entities(model: ModelFolder, precision: Inference) -> None:
    compute_in(model.network, precision)
    nlp = linker(model)
    bigger = nlp.with_entities([{"title": "Zed Cup", "description": "a final", "names": ["Zed"], "id": "z1"}])
    (resolution,) = bigger.disambiguate(Document("Zed won.", (Mention(0, 3),)))
    assert resolution.identity == Identity(id="z1")
    assert resolution.url is None  # it is no page of Wikipedia
    assert "Zed Cup" not in nlp.knowledge
    twice = bigger.with_entities([Entity("Why Cup", "a final")])
    assert "Zed Cup" in twice.knowledge and len(twice.added) == 2


def test_rows_are_added_where_the_table_is(model: ModelFolder) -> None:
    """New rows come from the CPU; the network may be elsewhere."""
    size = model.network.config.entity_size
    model.network.to("meta")
    overlay = Overlay.of({"Zed Cup": ()}, len(model.knowledge))
    more = model.with_overlay(overlay, (), torch.zeros(1, size), torch.zeros(1))
    assert {parameter.device.type for parameter in more.network.parameters()} == {"meta"}


def test_examples_are_read_where_the_network_is(model: ModelFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[torch.device] = []

    def read(batch: Batch) -> None:
        seen.append(batch.pieces.device)
        raise InputError("enough")

    model.network.to("meta")
    monkeypatch.setattr(model.network, "read", read)
    with pytest.raises(InputError, match="enough"):
        read_mentions(model.network, model.tokenizer, NEW.examples)
    assert [device.type for device in seen] == ["meta"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_entities_are_added_on_a_gpu(model: ModelFolder) -> None:
    plain = linker(model).with_entities([NEW])
    document = Document("Zed won.", (Mention(0, 3),))
    expected = plain.disambiguate(document)[0]
    there = linker(model, device=torch.device("cuda")).with_entities([NEW])
    found = there.disambiguate(document)[0]
    assert found.entity == expected.entity == "Zed Cup"
    assert found.probability == pytest.approx(expected.probability, abs=0.02)


def test_wikidata_ids_are_told(model: ModelFolder) -> None:
    nlp = linker(model, wikidata={"Entity 3": "Q3", "Zed": "Q1"})
    document = Document("cup", (Mention(0, 3, candidates=(Candidate("Entity 3"),)),))
    (resolution,) = nlp.disambiguate(document)
    assert resolution.identity == Identity("https://en.wikipedia.org/wiki/Entity_3", wikidata="Q3")
    assert resolution.to_record()["resolution"]["wikidata"] == "Q3"


def test_a_knowledge_base_from_nothing(tmp_path: Path) -> None:
    make_model(tmp_path)
    entities = [
        Entity.from_record({"title": f"Zed ({kind})", "description": f"a {kind} of the world", "names": [["Zd", 0.4]]})
        for kind in ("cup", "city", "team")
    ]
    build_folder(tmp_path / "made", entities, tmp_path / "own", {})
    own = Disambiguator.load(tmp_path / "own")
    assert set(own.vocabulary.entities) == {"Zed (cup)", "Zed (city)", "Zed (team)"}
    assert own.candidates is not None
    found = own.candidates.candidates(Document("Zed", (Mention(0, 3),)))[0]
    assert {entity for entity, _ in found} == {"Zed (cup)", "Zed (city)", "Zed (team)"}
    results = own("The Zed won.")
    assert [r.text for r in results] == ["Zed"] and results[0].url is None
    again = add(ModelFolder.load(tmp_path / "own"), [NEW])  # the map came along
    assert len(again.known) == 4


def test_what_cannot_be_is_said(tmp_path: Path, model: ModelFolder) -> None:
    with pytest.raises(InputError, match="the model has no map from descriptions to rows; fit one with"):
        add(replace(model, describer=None), [NEW])
    with pytest.raises(InputError, match="2 entities have both a description and 5 links"):
        fit(model, {"Entity 30": "a", "Entity 31": "b"}, 100)
    assert model.describer is not None
    other = replace(model, describer=replace(model.describer, weight=model.describer.weight[1:]))
    with pytest.raises(ArtefactError, match="made for another table than this one of 32 columns; fit it again"):
        add(other, [NEW])
    (tmp_path / "map.safetensors").write_bytes(b"no")
    with pytest.raises(ArtefactError, match=r"map.safetensors is damaged; make it again"):
        Describer.load(tmp_path / "map.safetensors")


def test_like_rows_are_told(model: ModelFolder) -> None:
    near = alike(model, "Entity 3", 4)
    assert len(near) == 4 and "Entity 3" not in dict(near)
    assert [cosine for _, cosine in near] == sorted((cosine for _, cosine in near), reverse=True)
