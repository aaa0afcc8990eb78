"""Training: masks, losses, packing, what is frozen, resuming, several processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from deixis.batching import Batch, PackedBatch, make_batch
from deixis.encoding import Window
from deixis.model import Network
from deixis.training import Recipe, TrainingData, evaluate, train
from deixis.training.data import Pass, Plan
from deixis.training.masking import choose_masked
from deixis.training.objectives import candidate_loss, outcome, vocabulary_loss
from deixis.vocabulary import MASK, PAD, UNK
from tests.worlds import ENTITIES, make_network, make_tokenizer

SMALL = Recipe(batch=8, pieces_at_once=200, learning_rate=1e-3, dropout=0.0, decay="none", epochs=2)
PATTERNS = [{"words_see": "answers"}, {"words_see": "placeholders"}, {"words_see": "placeholders", "answer_layers": 2}]


def make_data(windows: int = 24, seed: int = 0, unknown: float = 0.1, candidates: int = 5) -> TrainingData:
    """Return random windows of 5 to 40 pieces and 1 to 6 mentions."""
    dice = np.random.default_rng(seed)
    tokenizer = make_tokenizer()
    lengths, counts = dice.integers(5, 41, windows), dice.integers(1, 7, windows)
    mentions = int(counts.sum())
    starts = dice.integers(0, np.repeat(lengths - 2, counts))
    rows = np.where(dice.random(mentions) < unknown, UNK, dice.integers(3, ENTITIES + 3, mentions)).astype(np.int32)
    rivals = dice.integers(3, ENTITIES + 3, (mentions, candidates)).astype(np.int32)
    rivals[:, -1] = PAD
    return TrainingData(
        dice.integers(5, len(tokenizer), lengths.sum()).astype(np.uint16),
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate(([0], np.cumsum(counts))),
        np.stack((starts, starts + dice.integers(1, 3, mentions)), 1).astype(np.uint16),
        rows,
        rivals,
        tokenizer.cls,
        tokenizer.sep,
    )


def one_pass(data: TrainingData, recipe: Recipe = SMALL) -> Pass:
    plan = Plan.of(data, recipe)
    (step,) = plan.all(len(data))
    return plan.make(0, 0, plan.windows, 0, 1).passes[0] if len(step.passes) == 1 else step.passes[0]


# Masks


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_masks_are_of_the_stated_number_and_even(rate: float) -> None:
    counts = np.tile(np.arange(1, 21), 500)
    window = np.repeat(np.arange(len(counts)), counts)
    mentions = np.arange(len(window))
    masked = choose_masked(mentions, window, np.ones(len(window), bool), (rate, rate), seed=1, epoch=0)
    chosen = np.bincount(window[masked], minlength=len(counts))
    assert chosen.tolist() == [max(1, round(rate * int(n))) for n in counts]
    # Each place of windows of 10 is masked equally often.
    ten = masked.reshape(-1)[np.isin(window, np.flatnonzero(counts == 10))].reshape(-1, 10).mean(0)
    assert np.abs(ten - round(rate * 10) / 10).max() < 0.08
    again = choose_masked(mentions, window, np.ones(len(window), bool), (rate, rate), seed=1, epoch=1)
    assert (masked != again).any()


def test_masks_depend_on_the_window_alone() -> None:
    data = make_data()
    plan = Plan.of(data, SMALL)
    together = plan._masks(np.arange(24), 3)
    for index in range(24):
        mentions, _, masked = plan._masks(np.array([index]), 3)
        assert masked.tolist() == together[2][np.isin(together[0], mentions)].tolist()


def test_rates_are_drawn_between_two() -> None:
    window = np.repeat(np.arange(2000), 10)
    masked = choose_masked(np.arange(20000), window, np.ones(20000, bool), (0.3, 1.0), 0, 0)
    chosen = np.bincount(window[masked])
    assert (chosen.min(), chosen.max()) == (3, 10)
    assert abs(chosen.mean() - 6.5) < 0.2


def test_unknown_entities_are_inputs_never_targets() -> None:
    data = make_data(unknown=0.5)
    made = one_pass(data, SMALL.with_settings({"pieces_at_once": 10_000}))
    assert UNK not in made.labels
    assert UNK in made.entities
    assert (made.entities[made.targets] == MASK).all()
    with_unknown = SMALL.with_settings({"pieces_at_once": 10_000, "unknown_targets": True})
    assert UNK in one_pass(data, with_unknown).labels


# Packing


def as_padded(data: TrainingData, chosen: range) -> Batch:
    windows = []
    for i in chosen:
        pieces = data.pieces[data.window_offsets[i] : data.window_offsets[i + 1]].astype(np.int32)
        spans = data.spans[data.mention_offsets[i] : data.mention_offsets[i + 1]].astype(np.int64) + 1
        windows.append(Window(np.concatenate(([data.cls], pieces, [data.sep])), np.arange(len(spans)), spans))
    return make_batch(windows)


@pytest.mark.parametrize("settings", PATTERNS)
def test_packed_is_padded(settings: dict[str, Any]) -> None:
    network = make_network(**settings)
    data = make_data(6, unknown=0.0)
    padded = as_padded(data, range(6))
    made = one_pass(data, SMALL.with_settings({"pieces_at_once": 10_000}))
    assert isinstance(made.batch, PackedBatch)
    entities = torch.full_like(padded.starts, MASK)
    entities[padded.is_mention] = made.entities
    gradients = []
    results = []
    for batch, given in ((padded, entities), (made.batch, made.entities)):
        network.zero_grad()
        hidden = network.answer(network.read(batch), given)
        hidden = hidden[padded.is_mention] if batch is padded else hidden
        (hidden * torch.linspace(-1, 1, hidden.numel()).view_as(hidden)).sum().backward()  # type: ignore[no-untyped-call]
        results.append(hidden.detach())
        gradients.append({name: x.grad for name, x in network.named_parameters() if x.grad is not None})
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=0)
    assert gradients[0].keys() == gradients[1].keys()
    for name, grad in gradients[0].items():
        scale = max(1.0, float(grad.abs().max()))
        assert float((grad - gradients[1][name]).abs().max()) / scale < 1e-5, name


def test_all_windows_are_read_once_an_epoch_whatever_the_processes() -> None:
    data = make_data(50)
    plan = Plan.of(data, SMALL)
    for size in (1, 2, 3):
        shares = [list(plan.run(rank=rank, size=size)) for rank in range(size)]
        for steps in zip(*shares, strict=True):
            assert sum(len(one.labels) for step in steps for one in step.passes) == steps[0].targets
            assert sum(len(one.batch.pieces) for step in steps for one in step.passes) == steps[0].pieces
        pieces = sum(len(one.batch.pieces) for share in shares for step in share for one in step.passes)
        used = plan.windows
        assert pieces == 2 * int((data.window_offsets[used + 1] - data.window_offsets[used] + 2).sum())


# Losses


def test_loss_is_a_plain_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deixis.training.objectives._parts", lambda targets, entities: [slice(0, 20), slice(20, 63)])
    network = make_network()
    states = torch.randn(7, 32, generator=torch.Generator().manual_seed(1), requires_grad=True)
    labels = torch.tensor([3, 19, 20, 62, 5, 5, 40])
    table, bias = network.entity_embeddings.entity_embeddings.weight, network.entity_predictions.bias
    ours = vocabulary_loss(network, states, labels)
    gradients = torch.autograd.grad(ours.loss * 0.3, (states, table, bias))
    logits = states @ table.t() + bias
    theirs = F.cross_entropy(logits, labels, reduction="sum")
    torch.testing.assert_close(ours.loss, theirs)
    for mine, plain in zip(gradients, torch.autograd.grad(theirs * 0.3, (states, table, bias)), strict=True):
        torch.testing.assert_close(mine, plain, atol=1e-5, rtol=1e-4)
    assert int(ours.correct) == int((logits.argmax(-1) == labels).sum())


def test_candidate_loss_is_a_softmax_over_distinct_candidates() -> None:
    network = make_network()
    states = torch.randn(2, 32, generator=torch.Generator().manual_seed(1))
    result = candidate_loss(network, states, torch.tensor([7, 9]), torch.tensor([[4, 7, 8], [9, PAD, PAD]]))
    rows = torch.tensor([7, 4, 8])
    weight, bias = network.candidate_rows(rows)
    wanted = -torch.log_softmax(weight @ states[0] + bias, 0)[0]  # a single candidate has probability 1
    torch.testing.assert_close(result.loss, wanted)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_visible_entities_are_not_in_the_loss(weight: float) -> None:
    """No gradient reaches the state of an answer that was not masked, and every masked one has some."""
    network = make_network()
    recipe = SMALL.with_settings({"pieces_at_once": 10_000, "candidate_weight": weight})
    made = one_pass(make_data(), recipe)
    kept: list[torch.Tensor] = []

    def keep(answers: torch.Tensor) -> torch.Tensor:
        answers.retain_grad()
        kept.append(answers)
        return answers

    answer = network.answer
    network.answer = lambda static, entities: keep(answer(static, entities))  # type: ignore[method-assign]
    outcome(network, made, weight).loss.backward()  # type: ignore[no-untyped-call]
    assert kept[0].grad is not None
    moved = kept[0].grad.abs().sum(-1) > 0
    masked = torch.zeros_like(moved)
    masked[made.targets] = True
    assert torch.equal(moved, masked) or weight == 1.0
    assert not moved[~masked].any()


def test_visible_entities_are_in_the_loss_when_asked() -> None:
    data = make_data(unknown=0.0)
    recipe = SMALL.with_settings({"pieces_at_once": 10_000, "visible_in_loss": True})
    assert len(one_pass(data, recipe).labels) == len(data.rows)


# What is trained


def snapshot(network: Network) -> dict[str, torch.Tensor]:
    return {name: x.detach().clone() for name, x in network.state_dict().items()}


@pytest.mark.parametrize("settings", PATTERNS)
def test_stage_one_leaves_bert_alone(settings: dict[str, Any]) -> None:
    network = make_network(**settings)
    before = snapshot(network)
    list(train(network, make_data(), SMALL.with_settings({"train": "new", "epochs": 1})))
    for name, after in network.state_dict().items():
        same = torch.equal(after, before[name])
        assert same == name.startswith(("embeddings.", "encoder.")), name


def test_fine_tuning_leaves_the_entities_alone() -> None:
    network = make_network()
    before = snapshot(network)
    settings = {"train": "all-but-entities", "candidate_weight": 1.0, "epochs": 1}
    list(train(network, make_data(), SMALL.with_settings(settings)))
    for name, after in network.state_dict().items():
        frozen = name in ("entity_embeddings.entity_embeddings.weight", "entity_predictions.bias")
        if frozen or not name.endswith(("position_embeddings.weight", "word_embeddings.weight")):
            unmoved = torch.equal(after, before[name])
            assert unmoved == frozen or name.endswith("token_type_embeddings.weight"), name


def test_a_small_world_is_learned() -> None:
    network = make_network()
    data = make_data(16, unknown=0.0)
    recipe = SMALL.with_settings({"epochs": 40, "learning_rate": 3e-3, "mask_rate": 1.0})
    steps = list(train(network, data, recipe, held_out=data))
    assert steps[-1].held_out is not None
    assert steps[-1].held_out.accuracy > 0.85  # two mentions of the same span cannot be told apart
    assert steps[-1].loss < steps[0].loss / 5
    assert evaluate(network, data, recipe) == steps[-1].held_out
