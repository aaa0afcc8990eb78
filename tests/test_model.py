"""The network against independent implementations, and its two attention patterns against each other."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import BertConfig, BertModel

from deixis.attention import Padded
from deixis.batching import Batch, make_batch
from deixis.encoding import windows_of
from deixis.errors import ArtefactError
from deixis.model import Config, EntityTable, Layer
from deixis.vocabulary import MASK
from tests.reference import Luke
from tests.worlds import make_document, make_network, make_tokenizer

TOLERANCE = 1e-4


def batch_of(seeds: list[int], words: int = 30) -> Batch:
    tokenizer = make_tokenizer()
    windows = []
    for seed in seeds:
        document = make_document(seed, words=words + seed)
        encoding = tokenizer.encode(document.text, [(m.start, m.end) for m in document.mentions])
        windows += list(windows_of(tokenizer, encoding, "simple"))
    return make_batch(windows)


def words_only(batch: Batch) -> Batch:
    none = torch.zeros((len(batch), 0), dtype=torch.long)
    return Batch(batch.pieces, batch.is_piece, none, none, none.bool())


def whole_pass(layer: Layer, rows: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    query, seen = layer.attention.project(rows)
    out: torch.Tensor = layer(rows, query, seen, Padded(mask))
    return out


def test_without_entities_it_is_bert() -> None:
    network = make_network()
    shape = network.config
    bert = BertModel(
        BertConfig(
            vocab_size=shape.vocab_size,
            hidden_size=shape.hidden_size,
            num_hidden_layers=shape.num_hidden_layers,
            num_attention_heads=shape.num_attention_heads,
            intermediate_size=shape.intermediate_size,
        ),
        add_pooling_layer=False,
    ).eval()
    state = {name: x for name, x in network.state_dict().items() if name.startswith(("embeddings.", "encoder."))}
    bert.load_state_dict(state)
    batch = words_only(batch_of([1]))
    with torch.no_grad():
        theirs = bert(input_ids=batch.pieces).last_hidden_state
        torch.testing.assert_close(network.words(batch), theirs, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("entity_size", [32, 16])
def test_with_entities_it_is_luke(entity_size: int) -> None:
    network = make_network(entity_size=entity_size)
    luke = Luke(network)
    batch = batch_of([1, 5, 9])
    generator = torch.Generator().manual_seed(3)
    entities = torch.randint(MASK, network.config.entities, batch.starts.shape, generator=generator)
    with torch.no_grad():
        hidden = network.answer(network.read(batch), entities)
        rows = torch.arange(network.config.entities).expand(*entities.shape, -1)
        scores = network.score(hidden, network.candidate_rows(rows))
    for index in range(len(batch)):
        pieces = batch.pieces[index][batch.is_piece[index]]
        count = int(batch.is_mention[index].sum())
        spans = list(zip(batch.starts[index, :count].tolist(), batch.ends[index, :count].tolist(), strict=True))
        _, theirs, all_scores = luke(pieces, spans, entities[index, :count])
        torch.testing.assert_close(hidden[index, :count], theirs, atol=TOLERANCE, rtol=0)
        # Row MASK of LUKE's decoder is its input vector; as a target it never occurs.
        wanted = torch.arange(network.config.entities) != MASK
        torch.testing.assert_close(
            scores[index, :count][:, wanted], all_scores[:, wanted], atol=TOLERANCE, rtol=TOLERANCE
        )


def test_the_static_side_does_not_see_answers() -> None:
    """With placeholders, what `read` caches gives the answers of one joint pass under the drawn mask."""
    network = make_network(words_see="placeholders")
    batch = batch_of([2])
    entities = torch.full_like(batch.starts, MASK)
    entities[0, 1] = 7
    with torch.no_grad():
        cached = network.answer(network.read(batch), entities)
        words = network.embeddings(batch.pieces)
        positions = network.entity_embeddings.positions(batch)
        static = torch.cat((words, network.entity_embeddings(torch.full_like(entities, MASK), positions)), 1)
        rows = torch.cat((static, network.entity_embeddings(entities, positions)), 1)
        mask = torch.ones(rows.shape[1], rows.shape[1], dtype=torch.bool)
        mask[: static.shape[1], static.shape[1] :] = False
        for layer in network.encoder.layers:
            rows = whole_pass(layer, rows, mask)
    torch.testing.assert_close(cached, rows[:, static.shape[1] :], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("answer_layers", [1, 2, 3])
def test_answers_start_from_their_placeholders(answer_layers: int) -> None:
    network = make_network(words_see="placeholders", answer_layers=answer_layers)
    batch = batch_of([2])
    entities = torch.full_like(batch.starts, MASK)
    layers = network.encoder.layers
    with torch.no_grad():
        hidden = network.answer(network.read(batch), entities)
        words = network.embeddings(batch.pieces)
        embedded = network.entity_embeddings(entities, network.entity_embeddings.positions(batch))
        static = torch.cat((words, embedded), 1)
        for layer in layers[: 3 - answer_layers]:
            static = whole_pass(layer, static)
        answers = embedded if answer_layers == 3 else static[:, words.shape[1] :] + embedded
        for layer in layers[3 - answer_layers :]:
            seen = layer.attention.keys_values(torch.cat((static, answers), 1))
            query, _ = layer.attention.project(answers)
            static, answers = whole_pass(layer, static), layer(answers, query, seen, Padded(None))
    torch.testing.assert_close(hidden, answers, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("words_see", ["answers", "placeholders"])
def test_padding_changes_nothing(words_see: str) -> None:
    network = make_network(words_see=words_see)
    together = batch_of([1, 17])
    with torch.no_grad():
        hidden = network.answer(network.read(together), torch.full_like(together.starts, MASK))
        for index, seed in enumerate([1, 17]):
            alone = batch_of([seed])
            single = network.answer(network.read(alone), torch.full_like(alone.starts, MASK))[0]
            torch.testing.assert_close(hidden[index, : len(single)], single, atol=TOLERANCE, rtol=0)


def test_entity_positions_are_averages_of_at_most_30_pieces() -> None:
    network = make_network()
    batch = batch_of([1])
    wide = Batch(batch.pieces, batch.is_piece, torch.tensor([[1, 4]]), torch.tensor([[2, 9]]), torch.ones(1, 2).bool())
    table = network.entity_embeddings.position_embeddings.weight
    with torch.no_grad():
        positions = network.entity_embeddings.positions(wide)
    torch.testing.assert_close(positions[0, 0], table[1].detach())
    torch.testing.assert_close(positions[0, 1], table[4:9].mean(0).detach())
    tokenizer = make_tokenizer()
    encoding = tokenizer.encode("messi " * 50, [(0, 6 * 50)])
    long = make_batch(list(windows_of(tokenizer, encoding, "simple")))
    assert (int(long.starts[0, 0]), int(long.ends[0, 0])) == (1, 31)


def test_quantised_tables_stay_close() -> None:
    table = EntityTable(torch.randn(50, 16, generator=torch.Generator().manual_seed(0)))
    rows = torch.arange(50)
    exact = table(rows).detach()
    torch.testing.assert_close(table.quantised("fp16")(rows).detach(), exact, atol=2e-3, rtol=0)
    torch.testing.assert_close(
        table.quantised("int8")(rows).detach(), exact, atol=float(exact.abs().max()) / 127, rtol=0
    )
    assert table.quantised("int8").weight.dtype == torch.int8
    again = table.quantised("int8").quantised("int8")
    assert torch.equal(again.weight, table.quantised("int8").weight)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"words_see": "everything"}, "words_see"),
        ({"words_see": "answers", "answer_layers": 2}, "placeholders"),
        ({"words_see": "placeholders", "answer_layers": 9}, "1 to 3"),
        ({"hidden_act": "swish"}, "hidden_act"),
    ],
)
def test_impossible_shapes_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ArtefactError, match=said):
        make_network(**settings)


def test_other_encoders_are_refused() -> None:
    with pytest.raises(ArtefactError, match="roberta"):
        Config.of_bert({"model_type": "roberta"}, 5)
