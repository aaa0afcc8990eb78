"""Model folders: what is saved loads with the same answers, and damage is said in one sentence."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

from deixis.artefacts import MANIFEST, Manifest, digest_file
from deixis.cli import app
from deixis.documents import Candidate, Document, Mention
from deixis.errors import ArtefactError, InputError
from deixis.folder.model_folder import ModelFolder, assemble_folder, convert_luke, network_from_bert, quantise_folder
from deixis.folder.sharpen import read_mentions
from deixis.inference import Disambiguator
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.overlay import Overlay
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.entity_table import CodedTable, EntityTable, MixedTable
from deixis.network.product_codes import ProductCodes, Usage
from tests.reference import Luke, confidence_order
from tests.worlds import make_disambiguator, make_document, make_network, make_tokenizer, make_vocabulary

DOCUMENTS = [make_document(seed) for seed in range(10)]


def parts(**settings: Any) -> ModelFolder:
    return ModelFolder(make_network(4, **settings), make_tokenizer(), make_vocabulary())


def answers(nlp: Disambiguator) -> list[bytes]:
    return [result.to_json() for result in nlp.disambiguate_many(DOCUMENTS)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"words_see": "placeholders", "answer_layers": 2},
        {"words_see": "words", "placeholder_layers": 2, "answer_layers": 1},
        {"entity_size": 8},
    ],
)
def test_a_saved_folder_gives_the_same_bytes(tmp_path: Path, settings: dict[str, Any]) -> None:
    parts(**settings).save(tmp_path / "model")
    assert answers(Disambiguator.load(tmp_path / "model")) == answers(make_disambiguator(4, **settings))
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".bin", ".pt", ".pkl", ".part")]


def test_a_lone_entity_has_none_to_be_compared_with(tmp_path: Path) -> None:
    title = make_vocabulary().titles[-1]
    parts().among(Vocabulary.of([title])).save(tmp_path / "model")
    document = Document("Messi won.", (Mention(0, 5, candidates=(Candidate(title),)),))
    (resolution,) = Disambiguator.load(tmp_path / "model").disambiguate(document, evidence=True)
    assert resolution.entity == title
    assert resolution.evidence is not None and resolution.evidence.fit == 0.0


@pytest.mark.parametrize("table", ["fp16", "int8"])
def test_a_quantised_table_is_read_as_it_lies_on_disk(tmp_path: Path, table: Any) -> None:
    folder = parts()
    folder.save(tmp_path / "model", table=table, encoder="fp16")
    loaded = ModelFolder.load(tmp_path / "model").network
    weight = loaded.entity_embeddings.entity_embeddings.weight
    assert weight.dtype == {"fp16": torch.float16, "int8": torch.int8}[table]
    rows = torch.arange(len(weight))
    exact = folder.network.entity_embeddings.entity_embeddings(rows).detach()
    torch.testing.assert_close(loaded.entity_embeddings.entity_embeddings(rows), exact, atol=0.01, rtol=0)
    assert (tmp_path / "model" / "entities.safetensors").stat().st_size < exact.numel() * 4


@pytest.mark.parametrize(("precision", "size", "error"), [("int8", 0.35, 0.01), ("int12", 0.48, 0.0006)])
def test_an_encoder_in_few_bits_is_almost_the_same(tmp_path: Path, precision: Any, size: float, error: float) -> None:
    folder = parts(hidden_size=128, intermediate_size=256)
    folder.save(tmp_path / "whole")
    folder.save(tmp_path / "model", encoder=precision)
    sizes = [(tmp_path / name / "encoder.safetensors").stat().st_size for name in ("whole", "model")]
    assert sizes[1] < size * sizes[0]
    exact, loaded = folder.network.state_dict(), ModelFolder.load(tmp_path / "model").network.state_dict()
    changed = 0
    for name, x in exact.items():
        assert loaded[name].dtype == torch.float32
        if not torch.equal(loaded[name], x):
            changed += 1
            least = 0.01 if "word_embeddings" in name else error
            assert x.ndim == 2 and float((loaded[name] - x).norm() / x.norm()) < least, name
    assert changed >= 6 * 3


def test_few_entities_keep_their_rows(tmp_path: Path) -> None:
    folder = parts()
    few = folder.vocabulary.cut(20, ["Entity 59", "Entity 40", "Nobody"])
    assert len(few.entities) == 20 and "Entity 59" in few and "Entity 0" in few
    asked = {c.entity for document in DOCUMENTS for m in document.mentions for c in m.candidates or ()}
    cut = folder.among(folder.vocabulary.cut(len(asked), asked))
    folder.save(tmp_path / "whole", table="int8")
    ModelFolder.load(tmp_path / "whole").among(cut.vocabulary).save(tmp_path / "cut", table="int8")
    assert answers(Disambiguator.load(tmp_path / "cut")) == answers(Disambiguator.load(tmp_path / "whole"))
    with pytest.raises(InputError, match="no row for 'Nobody'"):
        folder.among(Vocabulary.of(["Nobody"]))


def test_a_model_is_cut_given_names_and_quantised(tmp_path: Path) -> None:
    builder = NamesBuilder()
    for number in range(30):
        builder.add_link("cup", f"Entity {number}")
    builder.save(tmp_path / "store", {}, {})
    whole = parts(hidden_size=128, intermediate_size=256).save(tmp_path / "whole")

    def run(*words: object) -> None:
        done = CliRunner().invoke(app, [str(word) for word in words])
        assert done.exit_code == 0, done.output

    run("quantise", tmp_path / "whole", "-o", tmp_path / "cut", "--entities", 10)
    (tmp_path / "redirects.tsv").write_text("Nothing\tEntity 1\nNobody\tNowhere\n")
    run(
        *("assemble", tmp_path / "cut", "--names", tmp_path / "store", "--redirects", tmp_path / "redirects.tsv"),
        *("-o", tmp_path / "small"),
    )
    small = ModelFolder.load(tmp_path / "small")
    assert small.names is not None
    assert {c.entity for c in small.names.lookup("cup")} == set(small.vocabulary.entities)
    assert small.names.number("Nothing") == small.names.number("Entity 1") is not None
    assert dict(small.names.redirects) == {"Nothing": "Entity 1"}
    made = Manifest.load(tmp_path / "cut" / MANIFEST, "model")
    assert made.parents["model"] == whole.digest and made.parameters == {"table": "int8", "encoder": "int8"}
    assert Manifest.load(tmp_path / "small" / MANIFEST, "model").parents["model"] == made.digest
    quantise_folder(tmp_path / "small", tmp_path / "again", table="fp16")  # the names stay as they are
    again = ModelFolder.load(tmp_path / "again")
    assert again.names is not None and again.names.digest == small.names.digest
    assert {path.name for path in tmp_path.iterdir()} == {"again", "cut", "redirects.tsv", "small", "store", "whole"}
    with pytest.raises(InputError, match="has names for its entities; cut the model before"):
        quantise_folder(tmp_path / "small", tmp_path / "smaller", entities=5)
    with pytest.raises(InputError, match="has no names of its own; give a store with --names"):
        assemble_folder(tmp_path / "cut", tmp_path / "none")


def test_a_folder_of_before_is_converted(tmp_path: Path) -> None:
    builder = NamesBuilder()
    for number in range(30):
        builder.add_link("cup", f"Entity {number}", 30 - number)
    parts().save(tmp_path / "old", table="int8")
    quantised = ModelFolder.load(tmp_path / "old")
    builder.save(tmp_path / "old" / "candidates", {}, {})
    manifest = Manifest.load(tmp_path / "old" / MANIFEST, "model")
    names = [path.relative_to(tmp_path / "old") for path in (tmp_path / "old").rglob("*") if path.is_file()]
    files = {str(name): digest_file(tmp_path / "old" / name) for name in names if str(name) != MANIFEST}
    replace(manifest, files=files).save(tmp_path / "old" / MANIFEST)
    with pytest.raises(ArtefactError, match="was written by an earlier deixis; convert it: deixis assemble"):
        ModelFolder.load(tmp_path / "old")
    assemble_folder(tmp_path / "old", tmp_path / "new")
    new = ModelFolder.load(tmp_path / "new")
    ours, theirs = (answers(Disambiguator(m.network, m.tokenizer, m.knowledge)) for m in (new, quantised))
    assert [answer.replace(b',"known_by":"description"', b"") for answer in ours] == theirs
    assert new.names is not None
    assert [c.entity for c in new.names.lookup("cup", 3)] == ["Entity 0", "Entity 1", "Entity 2"]


def test_a_table_is_rounded_for_the_links_of_articles(tmp_path: Path) -> None:
    parts().save(tmp_path / "whole")
    links = [[[mention.start, mention.end, "A"] for mention in one.mentions] for one in DOCUMENTS]
    lines = [{"title": "A", "text": one.text, "links": own} for one, own in zip(DOCUMENTS, links, strict=True)]
    (tmp_path / "articles.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    given = ["quantise", str(tmp_path / "whole"), "--encoder", "fp32", "-o"]
    assert CliRunner().invoke(app, [*given, str(tmp_path / "plain")]).exit_code == 0
    done = CliRunner().invoke(app, [*given, str(tmp_path / "seen"), "--articles", str(tmp_path / "articles.jsonl")])
    assert done.exit_code == 0, done.output
    made = Manifest.load(tmp_path / "seen" / MANIFEST, "model")
    assert made.parents["articles"] == digest_file(tmp_path / "articles.jsonl")
    whole, plain, seen = (ModelFolder.load(tmp_path / name).network for name in ("whole", "plain", "seen"))
    tables = [network.entity_embeddings.entity_embeddings.whole().detach() for network in (whole, plain, seen)]
    states = read_mentions(whole.eval(), make_tokenizer(), DOCUMENTS)
    errors = [float(((table - tables[0]) @ states.T).square().mean()) for table in tables[1:]]
    assert 0 < errors[1] < errors[0]
    quantise_folder(tmp_path / "seen", tmp_path / "again", encoder="fp32")  # int8 stays as it was rounded
    again = ModelFolder.load(tmp_path / "again").network.entity_embeddings.entity_embeddings
    assert torch.equal(again.whole(), tables[2])
    refused = CliRunner().invoke(app, [*given, str(tmp_path / "no"), "--table", "fp16", "--articles", str(tmp_path)])
    assert "--articles is for rounding a table to int8" in str(refused.exception)
    (tmp_path / "articles.jsonl").write_text(json.dumps({"title": "A", "text": "No links."}) + "\n")
    done = CliRunner().invoke(app, [*given, str(tmp_path / "none"), "--articles", str(tmp_path / "articles.jsonl")])
    assert isinstance(done.exception, InputError) and "no article with links" in str(done.exception)


def test_the_card_is_no_part_of_the_digest(tmp_path: Path) -> None:
    before = parts().save(tmp_path / "model").digest
    (tmp_path / "model" / "README.md").write_text("# A model\n")
    Disambiguator.load(tmp_path / "model")
    assert Manifest.load(tmp_path / "model" / MANIFEST, "model").digest == before


def test_a_mixed_table_is_kept_as_it_is_and_edited(tmp_path: Path) -> None:
    whole = parts()
    own, number = whole.network.entity_embeddings, len(whole.vocabulary)
    rows, generator = own.entity_embeddings.whole().detach(), torch.Generator().manual_seed(0)
    books = ProductCodes.fit(rows, 4, Usage.of(rows, rows), generator)
    kinds = torch.arange(number) % 2
    codes = CodedTable.encode(rows[kinds == 1], books)
    own.entity_embeddings = MixedTable.join(kinds, [EntityTable(rows[kinds == 0]).quantised("int8"), codes])
    expected = own.entity_embeddings.whole()
    whole.save(tmp_path / "model", table="mixed")
    loaded = ModelFolder.load(tmp_path / "model")
    assert torch.equal(loaded.network.entity_embeddings.entity_embeddings.whole(), expected)
    fewer = loaded.among(Vocabulary.of(loaded.vocabulary.entities[:9]))
    assert torch.equal(fewer.network.entity_embeddings.entity_embeddings.whole(), expected[:12])
    fewer.save(tmp_path / "fewer", table="mixed", source=FromStore.of(fewer.vocabulary))
    named = ModelFolder.load(tmp_path / "fewer")
    more = named.with_overlay(Overlay.of({"New": ()}, len(named.knowledge)), (), rows[:1], torch.ones(1))
    more.save_edited(tmp_path / "more", {})
    again = ModelFolder.load(tmp_path / "more")
    table = again.network.entity_embeddings.entity_embeddings
    assert again.knowledge.number("New") == 12 and len(table) == 13
    for title in fewer.vocabulary.entities:
        there, here = again.knowledge.number(title), fewer.knowledge.number(title)
        assert there is not None and here is not None and torch.equal(table.whole()[there], expected[here])
    assert (tmp_path / "more" / "entities.safetensors").samefile(tmp_path / "fewer" / "entities.safetensors")


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's list of mapped files")
def test_the_entity_table_is_mapped_into_memory(tmp_path: Path) -> None:
    parts().save(tmp_path / "model", table="int8")
    table = ModelFolder.load(tmp_path / "model").network.entity_embeddings.entity_embeddings.weight
    mapped = Path("/proc/self/maps").read_text()
    assert table.is_cpu and str(tmp_path / "model" / "entities.safetensors") in mapped


def test_damage_is_named(tmp_path: Path) -> None:
    model = tmp_path / "model"
    parts().save(model)
    with (model / "encoder.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        last = file.read(1)
        file.seek(-1, 2)
        file.write(bytes([last[0] ^ 1]))
    with pytest.raises(ArtefactError, match=r"encoder.safetensors is damaged"):
        Disambiguator.load(model)
    (model / "encoder.safetensors").unlink()
    with pytest.raises(ArtefactError, match=r"encoder.safetensors is missing"):
        Disambiguator.load(model)
    with pytest.raises(ArtefactError, match="not a directory"):
        Disambiguator.load(tmp_path / "nothing")
    (model / MANIFEST).write_text("{}")
    with pytest.raises(ArtefactError, match="no manifest of deixis"):
        Disambiguator.load(model)


def test_a_failed_save_leaves_the_old_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "model"
    before = parts().save(model).digest

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("deixis.folder.model_folder.save_file", full)
    with pytest.raises(InputError, match=r"cannot write .*No space left"):
        parts(entity_size=8).save(model)
    assert Manifest.load(model / MANIFEST, "model").digest == before
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_strange_folder_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(InputError, match="did not write"):
        parts().save(tmp_path)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def bert_folder(folder: Path, prefix: str = "", **changes: Any) -> Path:
    """Write the encoder of a random network as a Hugging Face BERT folder."""
    network = make_network(8, num_attention_heads=2)
    folder.mkdir()
    kept = {name: x for name, x in network.state_dict().items() if name.startswith(("embeddings.", "encoder."))}
    save_file({prefix + name: tensor.contiguous() for name, tensor in kept.items()}, folder / "model.safetensors")
    shape = network.config.to_json() | {"model_type": "bert"} | changes
    (folder / "config.json").write_text(json.dumps(shape))
    make_tokenizer().save(folder)
    return folder


@pytest.mark.parametrize("prefix", ["", "bert."])
def test_any_bert_folder_starts_a_network(tmp_path: Path, prefix: str) -> None:
    folder = bert_folder(tmp_path / "bert", prefix)
    network = network_from_bert(folder, 99, torch.Generator().manual_seed(1), words_see="placeholders")
    given = load_file(folder / "model.safetensors")
    for name, tensor in network.state_dict().items():
        if name.startswith(("embeddings.", "encoder.")):
            assert torch.equal(tensor, given[prefix + name])
    assert network.config.entities == 99 and network.config.num_attention_heads == 2
    new = network.entity_embeddings.entity_embeddings.weight
    assert float(new.detach().std()) == pytest.approx(0.02, rel=0.1)
    assert float(network.entity_predictions.bias.detach().abs().sum()) == 0.0


def test_a_bert_folder_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    generator = torch.Generator()
    with pytest.raises(ArtefactError, match="asks for"):
        network_from_bert(bert_folder(tmp_path / "wide", hidden_size=64), 9, generator)
    with pytest.raises(ArtefactError, match=r"has no encoder.layer.3"):
        network_from_bert(bert_folder(tmp_path / "deep", num_hidden_layers=4), 9, generator)
    with pytest.raises(ArtefactError, match="roberta"):
        network_from_bert(bert_folder(tmp_path / "other", model_type="roberta"), 9, generator)


def luke_folder(folder: Path, luke: Luke, kind: str) -> Path:
    """Write a LUKE-ED checkpoint with transformers' own names and files."""
    folder.mkdir()
    state = {f"luke.{name}": tensor for name, tensor in luke.luke.state_dict().items()}
    state |= {f"entity_predictions.{name}": tensor for name, tensor in luke.entity_predictions.state_dict().items()}
    state = {name: tensor.contiguous().clone() for name, tensor in state.items()}
    if kind == "pytorch_model.bin":
        torch.save(state, folder / kind)
    else:
        save_file(state, folder / kind)
    luke.config.save_pretrained(folder)
    make_tokenizer().save(folder)
    lines = [
        json.dumps({"id": row, "entities": [[title, None if row < 3 else "en"]], "count": row})
        for row, title in enumerate(make_vocabulary())
    ]
    (folder / "entity_vocab.jsonl").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.parametrize("kind", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("entity_size", [32, 16])
def test_a_luke_folder_gives_lukes_answers(tmp_path: Path, kind: str, entity_size: int) -> None:
    luke = Luke(make_network(4, entity_size=entity_size))
    convert_luke(luke_folder(tmp_path / "luke", luke, kind), tmp_path / "model")
    nlp = Disambiguator.load(tmp_path / "model")
    assert nlp.vocabulary.counts[5] == 5
    for document in DOCUMENTS:
        theirs = confidence_order(luke, nlp.tokenizer, nlp.vocabulary, document)
        ours = nlp.disambiguate(document)
        assert [(r.entity, r.step) for r in ours] == [(d.entity, d.step) for d in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=1e-4)


def test_other_lukes_are_refused(tmp_path: Path) -> None:
    folder = luke_folder(tmp_path / "luke", Luke(make_network(4)), "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    for change, said in (
        ({"use_entity_aware_attention": True}, "use_entity_aware_attention"),
        ({"bert_model_name": "roberta-large"}, "stand on BERT"),
    ):
        (folder / "config.json").write_text(json.dumps(config | change))
        with pytest.raises(ArtefactError, match=said):
            convert_luke(folder, tmp_path / "model")
    shutil.rmtree(folder)
    with pytest.raises(ArtefactError, match=r"config.json does not exist"):
        convert_luke(folder, tmp_path / "model")
