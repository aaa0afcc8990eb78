"""Training: masks, losses, packing, what is frozen, resuming, several processes."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from deixis.corpus.windows import WindowSet
from deixis.documents import Candidate, Document, Mention
from deixis.errors import ArtefactError, InputError
from deixis.network.batching import Batch, make_batch
from deixis.network.encoding import Window
from deixis.network.entity_table import EntityTable
from deixis.network.model import Network
from deixis.network.special import MASK, PAD, UNK
from deixis.training import Diverged, Recipe, evaluate, read_recipe, train
from deixis.training.descriptions import DescribedTable, describe_table, fold, own_rows
from deixis.training.masking import choose_masked
from deixis.training.objectives import candidate_loss, outcome, score_rows, vocabulary_loss
from deixis.training.optimiser import Optimiser, freeze, rate_at
from deixis.training.steps import Pass, Plan
from tests.worlds import ENTITIES, make_network, make_tokenizer, make_vocabulary

TOKENIZER = make_tokenizer()
SMALL = Recipe(batch=8, pieces_at_once=200, learning_rate=1e-3, dropout=0.0, decay="none", epochs=2)
PATTERNS: list[dict[str, Any]] = [
    {"words_see": "answers"},
    {"words_see": "placeholders"},
    {"words_see": "placeholders", "answer_layers": 2},
    {"words_see": "words"},
    {"words_see": "words", "placeholder_layers": 2, "answer_layers": 1},
]


def make_data(windows: int = 24, seed: int = 0, unknown: float = 0.1, candidates: int = 5) -> WindowSet:
    """Return random windows of 5 to 40 pieces and 1 to 6 mentions."""
    dice = np.random.default_rng(seed)
    lengths, counts = dice.integers(5, 41, windows), dice.integers(1, 7, windows)
    mentions = int(counts.sum())
    starts = dice.integers(0, np.repeat(lengths - 2, counts))
    rows = np.where(dice.random(mentions) < unknown, UNK, dice.integers(3, ENTITIES + 3, mentions)).astype(np.int32)
    rivals = dice.integers(3, ENTITIES + 3, (mentions, candidates)).astype(np.int32)
    rivals[:, -1] = PAD
    return WindowSet(
        dice.integers(5, len(TOKENIZER), lengths.sum()).astype(np.uint16),
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate(([0], np.cumsum(counts))),
        np.stack((starts, starts + dice.integers(1, 3, mentions)), 1).astype(np.uint16),
        rows,
        rivals,
    )


def one_pass(data: WindowSet, recipe: Recipe = SMALL) -> Pass:
    plan = Plan.of(data, TOKENIZER, recipe)
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
    plan = Plan.of(data, TOKENIZER, SMALL)
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


# Packing


def one_by_one(data: WindowSet, chosen: range) -> list[Batch]:
    windows = []
    for i in chosen:
        pieces = data.pieces[data.window_offsets[i] : data.window_offsets[i + 1]].astype(np.int32)
        spans = data.spans[data.mention_offsets[i] : data.mention_offsets[i + 1]].astype(np.int64) + 1
        windows.append(Window(np.concatenate(([TOKENIZER.cls], pieces, [TOKENIZER.sep])), np.arange(len(spans)), spans))
    return [make_batch([window]) for window in windows]


@pytest.mark.parametrize("settings", PATTERNS)
def test_packed_is_one_window_after_the_other(settings: dict[str, Any]) -> None:
    network = make_network(**settings)
    data = make_data(6, unknown=0.0)
    made = one_pass(data, SMALL.with_settings({"pieces_at_once": 10_000}))
    apart = one_by_one(data, range(6))
    given = torch.split(made.entities, [len(batch.starts) for batch in apart])
    gradients = []
    results = []
    for batches, entities in ((apart, given), ([made.batch], [made.entities])):
        network.zero_grad()
        pairs = zip(batches, entities, strict=True)
        hidden = torch.cat([network.answer(network.read(batch), held) for batch, held in pairs])
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
    plan = Plan.of(data, TOKENIZER, SMALL)
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


# What is trained


def snapshot(network: Network) -> dict[str, torch.Tensor]:
    return {name: x.detach().clone() for name, x in network.state_dict().items()}


@pytest.mark.parametrize("settings", PATTERNS)
def test_stage_one_leaves_bert_alone(settings: dict[str, Any]) -> None:
    network = make_network(**settings)
    before = snapshot(network)
    list(train(network, TOKENIZER, make_data(), SMALL.with_settings({"train": "new", "epochs": 1})))
    for name, after in network.state_dict().items():
        same = torch.equal(after, before[name])
        assert same == name.startswith(("embeddings.", "encoder.")), name


def test_fine_tuning_leaves_the_entities_alone() -> None:
    network = make_network()
    before = snapshot(network)
    settings = {"train": "all-but-entities", "candidate_weight": 1.0, "epochs": 1}
    list(train(network, TOKENIZER, make_data(), SMALL.with_settings(settings)))
    for name, after in network.state_dict().items():
        frozen = name in ("entity_embeddings.entity_embeddings.weight", "entity_predictions.bias")
        if frozen or not name.endswith(("position_embeddings.weight", "word_embeddings.weight")):
            unmoved = torch.equal(after, before[name])
            assert unmoved == frozen or name.endswith("token_type_embeddings.weight"), name


def test_a_small_world_is_learned() -> None:
    network = make_network()
    data = make_data(16, unknown=0.0)
    recipe = SMALL.with_settings({"epochs": 40, "learning_rate": 3e-3, "mask_rate": 1.0})
    steps = list(train(network, TOKENIZER, data, recipe))
    assert (
        evaluate(network, TOKENIZER, data, recipe).accuracy > 0.85
    )  # two mentions of the same span cannot be told apart
    assert steps[-1].loss < steps[0].loss / 5


@pytest.mark.parametrize("settings", PATTERNS)
def test_a_single_window_is_trained_on(settings: dict[str, Any]) -> None:
    """With dropout the gradients of its keys come transposed."""
    network = make_network(**settings)
    before = snapshot(network)
    list(train(network, TOKENIZER, make_data(1), SMALL.with_settings({"epochs": 1, "dropout": 0.1})))
    assert any(not torch.equal(after, before[name]) for name, after in network.state_dict().items())


def test_no_number_stops_the_run() -> None:
    network = make_network()
    with torch.no_grad():
        network.entity_predictions.bias[5] = float("nan")
    with pytest.raises(Diverged, match="lower learning_rate"):
        list(train(network, TOKENIZER, make_data(), SMALL))


def test_a_rising_loss_stops_the_run() -> None:
    with pytest.raises(Diverged, match="far above"):
        list(train(make_network(), TOKENIZER, make_data(), SMALL.with_settings({"learning_rate": 50.0}), check_every=1))


# Rates


def test_schedule_rises_and_falls() -> None:
    recipe = Recipe(warmup_steps=4, decay="linear")
    rates = [rate_at(step, 14, recipe) for step in range(14)]
    assert rates[:5] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])
    assert rates[-1] == pytest.approx(0.1)
    assert rate_at(13, 14, Recipe(warmup_fraction=0.5, decay="none")) == 1.0
    assert rate_at(0, 20, Recipe(warmup_fraction=0.1)) == pytest.approx(1 / 3)


def test_groups_have_rates_and_decay_of_their_own() -> None:
    network = make_network()
    recipe = Recipe(learning_rate=1.0, encoder_rate=0.1, entity_rate=5.0, layer_decay=0.5)
    optimiser = Optimiser(freeze(network, recipe), 3, 10, recipe)
    found = {name: (group.rate, group.decay) for group in optimiser.groups for name in group.names}
    assert found["encoder.layer.2.attention.self.query.weight"] == (0.1, 0.01)
    assert found["encoder.layer.0.attention.self.query.bias"] == (0.025, 0.0)
    assert found["embeddings.word_embeddings.weight"] == (0.0125, 0.01)
    assert found["embeddings.LayerNorm.weight"] == (0.0125, 0.0)
    assert found["entity_embeddings.entity_embeddings.weight"] == (5.0, 0.01)
    assert found["entity_predictions.bias"] == (5.0, 0.0)
    assert found["entity_predictions.transform.dense.weight"] == (1.0, 0.01)


# Recipes


def test_presets_are_the_papers_tables() -> None:
    shared = {
        "dropout": 0.1,
        "weight_decay": 0.01,
        "clip": 1.0,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
    }
    stages = {
        "paper-stage1": {"batch": 2048, "learning_rate": 5e-4, "decay": "none", "warmup_steps": 1000, "epochs": 1},
        "paper-stage2": {"batch": 2048, "learning_rate": 5e-5, "decay": "linear", "warmup_steps": 1000, "epochs": 6},
        "paper-finetune": {"batch": 16, "learning_rate": 2e-5, "decay": "linear", "warmup_fraction": 0.1, "epochs": 2},
    }
    for name, own in stages.items():
        recipe = read_recipe(name).to_json()
        assert {field: recipe[field] for field in shared | own} == shared | own


def test_fields_are_set_from_toml_and_text(tmp_path: Path) -> None:
    file = tmp_path / "recipe.toml"
    file.write_text('learning_rate = 1\nmask_rate_high = 0.9\ntrain = "new"\n')
    recipe = read_recipe("paper-stage2", file, ["batch=64", "mask_rate_high=none", "decay=none"])
    assert (recipe.learning_rate, recipe.batch, recipe.mask_rate_high) == (1, 64, None)
    assert (recipe.train, recipe.decay) == ("new", "none")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("lerning_rate=1", "there is no field 'lerning_rate'"),
        ("batch=many", "batch is 'many'; expected a whole number"),
        ("batch=0", "batch is 0; expected a whole number of at least 1"),
        ("train=some", "expected one of new, all"),
        ("mask_rate=2", r"mask_rate is 2(\.0)?; expected a number from 0 to 1"),
        ("mask_rate_high=high", "mask_rate_high is 'high'; expected a number from 0 to 1 or nothing"),
        ("batch", "field=value"),
    ],
)
def test_wrong_settings_are_refused(setting: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_recipe("paper-stage1", None, [setting])


# Data from documents


def test_documents_give_windows_without_golds_that_cannot_be_found() -> None:
    def mention(start: int, gold: str, *titles: str) -> Mention:
        return Mention(start, start + 5, gold, tuple(Candidate(title) for title in titles))

    document = Document(
        "messi world final rugby",
        (
            mention(0, "Entity 1", "Entity 2", "Entity 1"),
            mention(6, "Entity 9", "Entity 3"),  # not among its candidates
            mention(12, "Nowhere", "Nowhere", "Entity 4"),  # not in the vocabulary
            mention(18, "Entity 5", "Entity 5"),
        ),
    )
    data = WindowSet.of_documents([document], make_tokenizer(), make_vocabulary())
    assert data.rows.tolist() == [4, 8]
    assert data.spans.tolist() == [[0, 1], [3, 4]]
    assert data.candidates is not None
    assert data.candidates.tolist() == [[5, 4], [8, PAD]]


def test_candidates_are_cut_by_prior_or_not_at_all() -> None:
    priors: list[list[float | None]] = [[0.1, 0.7, 0.2], [None, None, None]]
    for given, kept in zip(priors, ([4, 5], [3, 4, 5]), strict=True):
        candidates = tuple(Candidate(f"Entity {row}", prior) for row, prior in enumerate(given))
        document = Document("messi", (Mention(0, 5, "Entity 1", candidates),))
        data = WindowSet.of_documents([document], make_tokenizer(), make_vocabulary(), top=2)
        assert data.candidates is not None
        assert data.candidates.tolist() == [kept]


def test_data_without_candidates_refuse_their_loss() -> None:
    data = replace(make_data(), candidates=None)
    with pytest.raises(InputError, match="candidate_weight"):
        list(train(make_network(), TOKENIZER, data, SMALL.with_settings({"candidate_weight": 0.5})))


# What a recipe adds


@pytest.mark.slow
def test_a_recipe_can_add_a_loss() -> None:
    """A teacher's scores over the candidates are learnt beside the links; held-out figures know nothing of it."""
    data, teacher = make_data(unknown=0.0), make_network(seed=1)

    def lesson(network: Network, made: Pass, states: torch.Tensor) -> torch.Tensor:
        assert made.candidates is not None
        with torch.no_grad():
            answers = teacher.answer(teacher.read(made.batch), made.entities).index_select(0, made.targets)
            wanted = score_rows(teacher, teacher.entity_predictions(answers), made.candidates).softmax(-1)
        mine = score_rows(network, states, made.candidates).log_softmax(-1)
        told.append(float(-(wanted * mine).sum().detach()))
        return -(wanted * mine).sum()

    told: list[float] = []
    network, plain, recipe = make_network(), make_network(), replace(SMALL, epochs=30)
    list(train(network, TOKENIZER, data, recipe, added=lesson))
    list(train(plain, TOKENIZER, data, recipe))
    made = one_pass(data, SMALL.with_settings({"pieces_at_once": 10_000}))
    losses = [float(outcome(each, made, 0.0, lesson).loss.detach()) for each in (network, plain)]
    alone = [float(outcome(each, made, 0.0).loss.detach()) for each in (network, plain)]
    assert losses[0] - alone[0] == pytest.approx(told[-2], rel=1e-4)
    assert losses[0] - alone[0] < 0.9 * (losses[1] - alone[1]), "the added loss was minimised too"


# Rows from text


def test_rows_from_text_are_trained_and_folded() -> None:
    network = make_network()
    vectors = np.random.default_rng(0).normal(size=(ENTITIES + 3, 8)).astype(np.float16)
    vectors[10:] = 0
    plain = network.entity_embeddings.entity_embeddings.weight.detach().clone()
    describe_table(network, vectors, None)
    torch.testing.assert_close(network.entity_embeddings.entity_embeddings.whole(), plain)
    list(train(network, TOKENIZER, make_data(), SMALL))
    table = network.entity_embeddings.entity_embeddings
    assert isinstance(table, DescribedTable)
    assert float(table.projection.detach().abs().max()) > 0
    rows = torch.tensor([4, 30])
    apart = network.candidate_rows(rows)[0].detach()
    fold(network)
    assert type(network.entity_embeddings.entity_embeddings) is EntityTable
    torch.testing.assert_close(network.candidate_rows(rows)[0].detach(), apart)


def test_what_text_explains_of_rows_is_found_again() -> None:
    network = make_network()
    dice = np.random.default_rng(0)
    vectors = dice.normal(size=(ENTITIES + 3, 4)).astype(np.float16)
    projection = torch.from_numpy(dice.normal(size=(network.config.entity_size, 4))).float()
    with torch.no_grad():
        network.entity_embeddings.entity_embeddings.weight.copy_(torch.from_numpy(vectors).float() @ projection.T)
    describe_table(network, vectors, None)
    table = network.entity_embeddings.entity_embeddings
    assert isinstance(table, DescribedTable)
    torch.testing.assert_close(table.projection.detach(), projection, atol=1e-2, rtol=1e-2)
    assert float(table.weight.detach().abs().max()) < 0.05


def test_row_dropout_leaves_described_entities_their_text_alone() -> None:
    network = make_network()
    vectors = np.random.default_rng(0).normal(size=(ENTITIES + 3, 8)).astype(np.float16)
    vectors[:3] = 0  # these have no text
    describe_table(network, vectors, torch.Generator().manual_seed(0))
    table = network.entity_embeddings.entity_embeddings
    assert isinstance(table, DescribedTable)
    whole, text = table.whole(), torch.nn.functional.linear(table.vectors.float(), table.projection)
    table.dropout = 0.5
    kept = (table.train().whole() == whole).all(-1)
    assert kept[:3].all()
    assert 0.2 < kept[3:].float().mean() < 0.8
    dropped = table.whole()
    same = (dropped == whole).all(-1)
    torch.testing.assert_close(dropped[~same], text[~same])
    assert torch.equal(table.eval().whole(), whole)


def test_entities_with_few_links_have_a_row_from_text_alone_and_one_bias() -> None:
    network, own = make_network(), 20
    vectors = np.random.default_rng(0).normal(size=(ENTITIES + 3, 8)).astype(np.float16)
    describe_table(network, vectors, torch.Generator().manual_seed(0), own)
    table, bias = network.entity_embeddings.entity_embeddings, network.entity_predictions.bias
    assert isinstance(table, DescribedTable)
    with torch.no_grad():
        bias.zero_()
    text = torch.nn.functional.linear(table.vectors.float(), table.projection)
    torch.testing.assert_close(table.whole()[own:], text[own:])
    rows = torch.tensor([[4, own - 1], [own, ENTITIES]])
    torch.testing.assert_close(table(rows), table.whole()[rows])
    list(train(network, TOKENIZER, make_data(), SMALL))
    assert len(table.weight) == own and len(table) == ENTITIES + 3
    assert len(set(bias[own:].tolist())) == 1 < len(set(bias[:own].tolist()))
    assert float(bias[own].detach()) != 0
    whole = table.whole().detach()
    fold(network)
    torch.testing.assert_close(network.entity_embeddings.entity_embeddings.whole(), whole)


def test_a_second_stage_finds_rows_from_text_alone_again() -> None:
    network, own = make_network(), 20
    vectors = np.random.default_rng(0).normal(size=(ENTITIES + 3, 8)).astype(np.float16)
    describe_table(network, vectors, torch.Generator().manual_seed(0), own)
    whole = network.entity_embeddings.entity_embeddings.whole().detach()
    fold(network)
    describe_table(network, vectors, None, own)
    table = network.entity_embeddings.entity_embeddings
    assert len(table.weight) == own
    torch.testing.assert_close(table.whole().detach(), whole, atol=2e-4, rtol=1e-2)


def test_rows_of_their_own_are_those_of_the_most_linked() -> None:
    assert own_rows([0, 0, 0, 9, 3, 3, 2, 0], 3) == 6
    with pytest.raises(InputError, match="in the order of its counts"):
        own_rows([0, 0, 0, 9, 2, 3], 3)


def test_some_of_the_visible_entities_are_others_of_their_candidates() -> None:
    data = make_data(windows=200)
    plain, wrong = (one_pass(data, SMALL.with_settings({"batch": 200, "wrong_rate": rate})) for rate in (0.0, 0.3))
    changed = plain.entities != wrong.entities
    assert torch.equal(plain.targets, wrong.targets) and torch.equal(plain.labels, wrong.labels)
    visible = plain.entities != MASK
    assert not changed[~visible].any()
    assert 0.2 < float(changed[visible].float().mean()) < 0.4
    first, second = (
        evaluate(make_network(), TOKENIZER, data, SMALL.with_settings({"wrong_rate": rate})) for rate in (0.0, 0.9)
    )
    assert first == second


def test_the_encoder_can_wait() -> None:
    network = make_network()
    before = snapshot(network)
    waiting = SMALL.with_settings({"encoder_from": 3, "epochs": 1})
    steps = train(network, TOKENIZER, make_data(), waiting)
    assert isinstance(steps, Generator)
    of_bert = [name for name in before if name.startswith(("embeddings.", "encoder."))]
    next(steps), next(steps), next(steps)
    assert all(torch.equal(network.state_dict()[name], before[name]) for name in of_bert)
    assert not torch.equal(network.state_dict()["entity_predictions.bias"], before["entity_predictions.bias"])
    steps.close()
    list(train(network, TOKENIZER, make_data(), replace(waiting, encoder_from=1)))
    assert not all(torch.equal(network.state_dict()[name], before[name]) for name in of_bert)


def test_word_dropout_masks_pieces_but_neither_ends_nor_held_out_windows() -> None:
    data = make_data()
    plain, masked = (one_pass(data, SMALL.with_settings({"word_dropout": rate})) for rate in (0.0, 0.3))
    changed = plain.batch.pieces != masked.batch.pieces
    assert (masked.batch.pieces[changed] == TOKENIZER.mask).all()
    assert 0.2 < float(changed.float().mean()) < 0.4
    assert not changed[(plain.batch.pieces == TOKENIZER.cls) | (plain.batch.pieces == TOKENIZER.sep)].any()
    network = make_network()
    rates = (SMALL.with_settings({"word_dropout": rate}) for rate in (0.0, 0.9))
    first, second = (evaluate(network, TOKENIZER, data, recipe) for recipe in rates)
    assert first == second


def test_vectors_of_another_vocabulary_are_refused() -> None:
    with pytest.raises(ArtefactError, match="make them again"):
        describe_table(make_network(), np.zeros((5, 8), np.float16), None)
