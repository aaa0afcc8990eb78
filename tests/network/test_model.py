"""The network against independent implementations, and its attention patterns against whole passes."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertModel

from deixis.errors import ArtefactError
from deixis.network.attention import Packed
from deixis.network.batching import Batch, make_batch, pack
from deixis.network.config import Config
from deixis.network.encoding import windows_of
from deixis.network.entity_table import EntityTable
from deixis.network.layers import Layer
from deixis.network.special import MASK
from tests.reference import Luke
from tests.worlds import make_document, make_network, make_tokenizer

TOLERANCE = 1e-4
PATTERNS: list[dict[str, Any]] = [
    {},
    {"words_see": "placeholders"},
    {"words_see": "placeholders", "answer_layers": 1},
    {"words_see": "words"},
    {"words_see": "words", "placeholder_layers": 2, "answer_layers": 1},
]


def batch_of(seeds: list[int], words: int = 30) -> Batch:
    tokenizer = make_tokenizer()
    windows = []
    for seed in seeds:
        document = make_document(seed, words=words + seed)
        encoding = tokenizer.encode(document.text, [(m.start, m.end) for m in document.mentions])
        windows += list(windows_of(tokenizer, encoding, "simple"))
    return make_batch(windows)


def all_seen(rows: torch.Tensor, mask: torch.Tensor | None) -> Packed:
    """Attention of one sequence as the textbook has it, under a mask."""

    def attend(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, dropout: float) -> torch.Tensor:
        scores = query @ keys.transpose(1, 2) / query.shape[-1] ** 0.5
        scores = scores if mask is None else scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, -1) @ values

    return cast(Packed, attend)


def whole_pass(layer: Layer, rows: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
    query, seen = layer.attention.project(rows)
    out: torch.Tensor = layer(rows, query, seen, all_seen(rows, mask))
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
    none = np.zeros(1, np.int64)
    for batch in (batch_of([1]), batch_of([17])):
        plain = pack(batch.pieces.numpy(), batch.piece_counts, np.zeros((0, 2), np.int64), none)
        with torch.no_grad():
            theirs = bert(input_ids=batch.pieces[None]).last_hidden_state[0]
            torch.testing.assert_close(network.words(plain), theirs, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("entity_size", [32, 16])
def test_with_entities_it_is_luke(entity_size: int) -> None:
    network = make_network(entity_size=entity_size)
    luke = Luke(network)
    batch = batch_of([1, 5, 9])
    generator = torch.Generator().manual_seed(3)
    entities = torch.randint(MASK, network.config.entities, batch.starts.shape, generator=generator)
    number = network.config.entities
    every = torch.arange(number).repeat(len(entities))
    with torch.no_grad():
        hidden = network.answer(network.read(batch), entities)
        asked = torch.arange(len(entities)).repeat_interleave(number)
        scores = network.score(hidden, network.candidate_rows(every), asked).view(-1, number)
    pieces = torch.split(batch.pieces, batch.piece_counts.tolist())
    mentions = torch.split(torch.arange(len(entities)), batch.mention_counts.tolist())
    for window, inside in zip(pieces, mentions, strict=True):
        spans = list(zip(batch.starts[inside].tolist(), batch.ends[inside].tolist(), strict=True))
        _, theirs, all_scores = luke(window, spans, entities[inside])
        torch.testing.assert_close(hidden[inside], theirs, atol=TOLERANCE, rtol=0)
        # Row MASK of LUKE's decoder is its input vector; as a target it never occurs.
        wanted = torch.arange(number) != MASK
        torch.testing.assert_close(scores[inside][:, wanted], all_scores[:, wanted], atol=TOLERANCE, rtol=TOLERANCE)


def test_the_static_side_does_not_see_answers() -> None:
    """With placeholders, what `read` caches gives the answers of one joint pass under the drawn mask."""
    network = make_network(words_see="placeholders")
    batch = batch_of([2])
    entities = torch.full_like(batch.starts, MASK)
    entities[1] = 7
    with torch.no_grad():
        cached = network.answer(network.read(batch), entities)
        words = network.embeddings(batch.pieces, batch.places)
        positions = network.entity_embeddings.positions(batch)
        static = torch.cat((words, network.entity_embeddings(torch.full_like(entities, MASK), positions)))
        rows = torch.cat((static, network.entity_embeddings(entities, positions)))
        mask = torch.ones(len(rows), len(rows), dtype=torch.bool)
        mask[: len(static), len(static) :] = False
        for layer in network.encoder.layers:
            rows = whole_pass(layer, rows, mask)
    torch.testing.assert_close(cached, rows[len(static) :], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize(("placeholder_layers", "answer_layers"), [(3, 3), (3, 1), (2, 2), (2, 1), (1, 1)])
def test_placeholders_start_from_their_mentions_words(placeholder_layers: int, answer_layers: int) -> None:
    """Words see words; a placeholder is born as its words' mean state; then each row sees what the table says."""
    network = make_network(words_see="words", placeholder_layers=placeholder_layers, answer_layers=answer_layers)
    batch = batch_of([2])
    entities = torch.full_like(batch.starts, MASK)
    entities[1] = 7
    with torch.no_grad():
        hidden = network.answer(network.read(batch), entities)
        words = network.embeddings(batch.pieces, batch.places)
        positions = network.entity_embeddings.positions(batch)
        placeholders = answers = words[:0]
        for index, layer in enumerate(network.encoder.layers):
            if index == 3 - placeholder_layers:
                placeholders = network.entity_embeddings(torch.full_like(entities, MASK), positions)
                if index > 0:
                    spans = zip(batch.starts.tolist(), batch.ends.tolist(), strict=True)
                    placeholders = placeholders + torch.stack([words[start:end].mean(0) for start, end in spans])
            if index == 3 - answer_layers:
                answers = network.entity_embeddings(entities, positions)
                answers = answers + placeholders if index > 0 else answers
            rows = torch.cat((words, placeholders, answers))
            first, second = len(words), len(words) + len(placeholders)
            mask = torch.ones(len(rows), len(rows), dtype=torch.bool)
            mask[:first, first:] = mask[:second, second:] = False
            rows = whole_pass(layer, rows, mask)
            words, placeholders, answers = rows[:first], rows[first:second], rows[second:]
    torch.testing.assert_close(hidden, answers, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("answer_layers", [1, 2, 3])
def test_answers_start_from_their_placeholders(answer_layers: int) -> None:
    network = make_network(words_see="placeholders", answer_layers=answer_layers)
    batch = batch_of([2])
    entities = torch.full_like(batch.starts, MASK)
    layers = network.encoder.layers
    with torch.no_grad():
        hidden = network.answer(network.read(batch), entities)
        words = network.embeddings(batch.pieces, batch.places)
        embedded = network.entity_embeddings(entities, network.entity_embeddings.positions(batch))
        static = torch.cat((words, embedded))
        for layer in layers[: 3 - answer_layers]:
            static = whole_pass(layer, static)
        answers = embedded if answer_layers == 3 else static[len(words) :] + embedded
        for layer in layers[3 - answer_layers :]:
            seen = layer.attention.keys_values(torch.cat((static, answers)))
            query = layer.attention.queries(answers)
            static, answers = whole_pass(layer, static), layer(answers, query, seen, all_seen(answers, None))
    torch.testing.assert_close(hidden, answers, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("settings", PATTERNS)
def test_windows_read_together_do_not_see_each_other(settings: dict[str, Any]) -> None:
    network = make_network(**settings)
    together = batch_of([1, 17])
    with torch.no_grad():
        hidden = network.answer(network.read(together), torch.full_like(together.starts, MASK))
        parts = torch.split(hidden, together.mention_counts.tolist())
        for seed, part in zip([1, 17], parts, strict=True):
            alone = batch_of([seed])
            single = network.answer(network.read(alone), torch.full_like(alone.starts, MASK))
            torch.testing.assert_close(part, single, atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("settings", PATTERNS)
def test_what_is_not_wanted_changes_nothing(settings: dict[str, Any]) -> None:
    """Windows that do not run, answers that are not wanted, and steps before leave the others as they are."""
    network = make_network(**settings)
    batch = batch_of([1, 17, 4])
    generator = torch.Generator().manual_seed(3)
    dice = np.random.default_rng(0)
    with torch.no_grad():
        opened = network.open(batch)
        for _ in range(5):
            entities = torch.randint(MASK, network.config.entities, batch.starts.shape, generator=generator)
            expected = network.answer(network.read(batch), entities)
            wanted = dice.random(len(entities)) < 0.4
            wanted[: batch.mention_counts[0]] = False
            found = network.answer(opened.select(wanted), entities)
            torch.testing.assert_close(found, expected[torch.from_numpy(wanted)], atol=1e-5, rtol=0)


def test_entity_positions_are_averages_of_at_most_30_pieces() -> None:
    network = make_network()
    batch = batch_of([1])
    spans = np.array([[1, 2], [4, 9]])
    wide = pack(batch.pieces.numpy(), batch.piece_counts, spans, np.array([2]))
    table = network.entity_embeddings.position_embeddings.weight
    with torch.no_grad():
        positions = network.entity_embeddings.positions(wide)
    torch.testing.assert_close(positions[0], table[1].detach())
    torch.testing.assert_close(positions[1], table[4:9].mean(0).detach())
    tokenizer = make_tokenizer()
    encoding = tokenizer.encode("messi " * 50, [(0, 6 * 50)])
    long = make_batch(list(windows_of(tokenizer, encoding, "simple")))
    assert (int(long.starts[0]), int(long.ends[0])) == (1, 31)


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
        ({"words_see": "placeholders", "placeholder_layers": 2}, "words"),
        ({"words_see": "words", "placeholder_layers": 9}, "1 to 3"),
        ({"words_see": "words", "placeholder_layers": 1, "answer_layers": 2}, "answers start from"),
        ({"hidden_act": "swish"}, "hidden_act"),
    ],
)
def test_impossible_shapes_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ArtefactError, match=said):
        make_network(**settings)


def test_other_encoders_are_refused() -> None:
    with pytest.raises(ArtefactError, match="roberta"):
        Config.of_bert({"model_type": "roberta"}, 5)
