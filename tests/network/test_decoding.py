"""The three orders against Algorithm 1 as printed, and against each other under any batching."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from deixis.documents import Candidate, Document, Mention, Resolution
from deixis.errors import InputError
from deixis.inference import Disambiguator
from deixis.network.batching import Batch, make_batch
from deixis.network.decoding import Decisions, Question, decode
from deixis.network.encoding import Encoding, Tokenizer, Window, windows_of
from deixis.network.model import Network
from deixis.network.reading import Reading, Static
from deixis.network.special import MASK, PAD
from deixis.settings import Order
from tests.reference import Luke, confidence_order
from tests.worlds import make_disambiguator, make_document

TOLERANCE = 1e-4
PAPER = make_disambiguator(seed=4)
CACHED = make_disambiguator(seed=4, words_see="placeholders")
SHALLOW = make_disambiguator(seed=4, words_see="placeholders", answer_layers=1)
WORDS = make_disambiguator(seed=4, words_see="words")
LATE = make_disambiguator(seed=4, words_see="words", placeholder_layers=2, answer_layers=1)
EACH: list[Disambiguator] = [PAPER, CACHED, SHALLOW, WORDS, LATE]
NAMES = ["answers", "placeholders", "answer_layers=1", "words", "placeholder_layers=2, answer_layers=1"]


def outline(resolutions: Sequence[Resolution]) -> list[tuple[str | None, int]]:
    return [(resolution.entity, resolution.step) for resolution in resolutions]


def assert_same(ours: Sequence[Resolution], theirs: Sequence[Resolution]) -> None:
    assert outline(ours) == outline(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one.probability == pytest.approx(other.probability, abs=TOLERANCE)


def naive(nlp: Disambiguator, document: Document, order: Order) -> list[tuple[str, int, float]]:
    """Decide one mention at a time, reading the whole window anew for every step."""
    encoding = nlp.tokenizer.encode(document.text, [(m.start, m.end) for m in document.mentions])
    count = len(document.mentions)
    batch = make_batch([nlp.tokenizer.window(encoding, 0, len(encoding.pieces), torch.arange(count).numpy())])
    entities = torch.full((count,), MASK)
    decided: dict[int, tuple[str, int, float]] = {}
    for step in range(1, count + 1):
        with torch.no_grad():
            hidden = nlp.network.answer(nlp.network.read(batch), entities)
        best: list[tuple[float, int, str]] = []
        for place, mention in enumerate(document.mentions):
            if place not in decided:
                titles = [candidate.entity for candidate in mention.candidates or ()]
                rows = torch.tensor([nlp.vocabulary.row(title) for title in titles])
                with torch.no_grad():
                    given = nlp.network.candidate_rows(rows)
                    scores = nlp.network.score(hidden[place : place + 1], given, torch.zeros_like(rows))
                probability, choice = torch.softmax(scores, 0).max(0)
                best.append((float(probability), place, titles[int(choice)]))
        highest, place, title = best[0] if order == "natural" else max(best, key=lambda b: (b[0], -b[1]))
        decided[place] = (title, step, highest)
        entities[place] = nlp.vocabulary.row(title) or 0
    return [decided[place] for place in range(count)]


def test_confidence_order_is_algorithm_1_over_luke() -> None:
    """Same entities, same steps, same probabilities as N whole passes over transformers' modules."""
    luke = Luke(PAPER.network)
    orders_differ = 0
    for seed in range(40):
        document = make_document(seed, mentions=8)
        ours = PAPER.disambiguate(document)
        theirs = confidence_order(luke, PAPER.tokenizer, PAPER.vocabulary, document)
        assert outline(ours) == [(decision.entity, decision.step) for decision in theirs], document.id
        for one, other in zip(ours, theirs, strict=True):
            assert one.probability == pytest.approx(other.probability, abs=TOLERANCE)
        local = PAPER.disambiguate(document, order="local")
        orders_differ += [r.entity for r in local] != [r.entity for r in ours]
    assert orders_differ > 0  # else the comparison would not show that answers are fed back


@pytest.mark.parametrize("nlp", EACH, ids=NAMES)
@pytest.mark.parametrize("order", ["natural", "confidence"])
def test_cached_equals_uncached(nlp: Disambiguator, order: Order) -> None:
    """Batched steps over the cache decide what a new pass for each mention decides: 67 documents of its own each."""
    first = 67 * (2 * EACH.index(nlp) + (order == "natural"))
    seeds = range(first, first + 67)
    documents = [make_document(seed, words=20 + seed % 30, mentions=2 + seed % 9) for seed in seeds]
    for document, ours in zip(documents, nlp.disambiguate_many(documents, order=order), strict=True):
        theirs = naive(nlp, document, order)
        assert outline(ours) == [(title, step) for title, step, _ in theirs], document.id
        for one, (_, _, probability) in zip(ours, theirs, strict=True):
            assert one.probability == pytest.approx(probability, abs=TOLERANCE)


@pytest.mark.parametrize("nlp", EACH, ids=NAMES)
def test_local_reads_one_pass(nlp: Disambiguator) -> None:
    result = nlp.disambiguate(make_document(3), order="local")
    assert {resolution.step for resolution in result} == {1}
    assert result.passes == 1


documents_of = st.lists(st.integers(0, 10_000), min_size=1, max_size=12, unique=True).map(
    lambda seeds: [make_document(seed, words=8 + seed % 60, mentions=1 + seed % 11) for seed in seeds]
)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    documents=documents_of,
    rows=st.sampled_from([1, 100, 400, 100_000]),
    order=st.sampled_from(["local", "natural", "confidence"]),
    which=st.integers(0, len(EACH) - 1),
    shuffle=st.randoms(use_true_random=False),
)
def test_batching_padding_and_order_change_no_answer(
    documents: list[Document], rows: int, order: Order, which: int, shuffle: random.Random
) -> None:
    nlp = EACH[which]
    alone = [nlp.disambiguate(document, order=order) for document in documents]
    batched = replace(nlp, batch_rows=rows)
    for ours, theirs in zip(batched.disambiguate_many(documents, order=order), alone, strict=True):
        assert_same(ours, theirs)
    places = list(range(len(documents)))
    shuffle.shuffle(places)
    moved = batched.disambiguate_many([documents[place] for place in places], order=order)
    for place, ours in zip(places, moved, strict=True):
        assert_same(ours, alone[place])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 10_000), which=st.integers(0, len(EACH) - 1), shuffle=st.randoms(use_true_random=False))
def test_the_order_of_candidates_changes_no_answer(seed: int, which: int, shuffle: random.Random) -> None:
    document = make_document(seed)
    moved = []
    for mention in document.mentions:
        candidates = list(mention.candidates or ())
        shuffle.shuffle(candidates)
        moved.append(tuple(candidates))
    nlp = EACH[which]
    assert_same(nlp.disambiguate(document.with_candidates(moved)), nlp.disambiguate(document))


def test_the_static_side_is_run_once_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, reads = Network.read, list[int]()

    def counted(self: Network, batch: Batch, words: Sequence[Reading] = ()) -> Static:
        reads.append(len(batch))
        return plain(self, batch, words)

    monkeypatch.setattr(Network, "read", counted)
    for nlp in EACH[1:]:
        reads.clear()
        result = nlp.disambiguate(make_document(11, mentions=20, words=60))
        several = sum(len(mention.candidates or ()) > 1 for mention in result.document.mentions)
        assert several > 10
        assert result.passes == several  # one pass of the answers for each mention with a choice
        assert reads == [1]


def test_finished_windows_leave_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    widths: list[int] = []
    plain = Network.answer

    def counted(self: Network, static: Static, entities: torch.Tensor) -> torch.Tensor:
        widths.append(int(np.count_nonzero(np.diff(static.queries.bounds))))  # windows
        return plain(self, static, entities)

    monkeypatch.setattr(Network, "answer", counted)
    list(CACHED.disambiguate_many([make_document(seed, mentions=1 + 2 * seed, words=40) for seed in range(8)]))
    assert widths[0] == 8 or widths[0] == 7  # a document of single candidates needs no pass at all
    assert widths[-1] < widths[0] and widths == sorted(widths, reverse=True)


def test_two_runs_give_the_same_bytes() -> None:
    documents = [make_document(seed) for seed in range(20)]
    first = [result.to_json() for result in CACHED.disambiguate_many(documents)]
    assert first == [result.to_json() for result in CACHED.disambiguate_many(documents)]


class Scripted(Network):
    """A network whose scores are a table: what each mention's candidates get, before and after mention 0 is known."""

    def __init__(self, before: list[list[float]], after: list[list[float]]) -> None:
        super().__init__(CACHED.network.config)
        self.before, self.after = torch.tensor(before).float(), torch.tensor(after).float()
        self.scores = self.before

    def answer(self, static: Static, entities: torch.Tensor) -> torch.Tensor:
        self.scores = self.before if entities[0] == MASK else self.after
        return entities

    def candidate_rows(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rows, rows

    def score(
        self, hidden: torch.Tensor, candidates: tuple[torch.Tensor, torch.Tensor], mention: torch.Tensor
    ) -> torch.Tensor:
        return self.scores.flatten()[candidates[0] - ROWS[0, 0]]


ROWS = torch.tensor([[5, 6], [7, 8], [9, 10]])


def scripted(network: Network, order: Order, commit: float | None = None, centred: bool = False) -> Decisions:
    """Three mentions of two candidates."""
    windows = [Window(torch.zeros(5).int().numpy(), torch.arange(3).numpy(), torch.tensor([[1, 2]] * 3).numpy())]
    question = Question(
        candidates=ROWS,
        prior_bias=None,
        initial=torch.full((3,), MASK),
        counts=torch.ones(3).bool(),
        centred=torch.full((3,), centred),
        window=torch.zeros(3).long(),
    )
    return decode(network, make_batch(windows), question, order, commit if commit is not None else "one")


def test_golden_orders_on_a_table_of_scores() -> None:
    """Once mention 0 is known, mention 1 changes its mind."""
    network = Scripted(before=[[4, 0], [1, 0], [2, 0]], after=[[4, 0], [0, 3], [2, 0]])
    local, natural, confidence = (scripted(network, order) for order in ("local", "natural", "confidence"))
    assert (local.choice.tolist(), local.step.tolist()) == ([0, 0, 0], [1, 1, 1])
    assert (natural.choice.tolist(), natural.step.tolist()) == ([0, 1, 0], [1, 2, 3])
    assert (confidence.choice.tolist(), confidence.step.tolist()) == ([0, 1, 0], [1, 2, 3])
    assert confidence.probabilities[1, 1] == pytest.approx(1 / (1 + 2.718281828**-3), abs=1e-5)
    many = scripted(network, "confidence", commit=0.85)  # sigmoid(4) and sigmoid(2) pass, sigmoid(1) does not
    assert (many.choice.tolist(), many.step.tolist()) == ([0, 1, 0], [1, 2, 1])
    assert many.passes.tolist() == [2]


def test_ties_go_to_the_earlier_mention_and_candidate() -> None:
    decided = scripted(Scripted([[1, 1], [1, 1], [1, 1]], [[1, 1], [1, 1], [1, 1]]), "confidence")
    assert (decided.choice.tolist(), decided.step.tolist()) == ([0, 0, 0], [1, 2, 3])


def test_a_tie_goes_to_the_centred_mention() -> None:
    """Mentions 0 and 1 tie at first; the window centred on 1 decides it then, before it changes its mind."""
    network = Scripted(before=[[4, 0], [4, 0], [2, 0]], after=[[4, 0], [0, 3], [2, 0]])
    plain, centred = scripted(network, "confidence"), scripted(network, "confidence", centred=True)
    assert (plain.choice.tolist(), plain.step.tolist()) == ([0, 1, 0], [1, 2, 3])
    assert (centred.choice.tolist(), centred.step.tolist()) == ([0, 0, 0], [1, 1, 3])
    first = scripted(network, "natural", centred=True)
    assert (first.choice.tolist(), first.step.tolist(), first.passes.tolist()) == ([0, 0, 0], [1, 1, 1], [1])


@pytest.mark.slow
@pytest.mark.parametrize("nlp", EACH, ids=NAMES)
@pytest.mark.parametrize("order", ["local", "natural", "confidence"])
def test_windows_that_are_one_decide_as_each_alone(nlp: Disambiguator, order: Order) -> None:
    """A long document's windows, many of them in one, decide as a window built for each mention by itself does."""
    document = make_document(11, words=700, mentions=25)
    spans = [(mention.start, mention.end) for mention in document.mentions]
    encoding = nlp.tokenizer.encode(document.text, spans)
    windows = list(windows_of(nlp.tokenizer, encoding, "per_mention"))
    assert len(windows) < len(spans)  # else nothing is shown
    result = nlp.disambiguate(document, order=order)
    for window in windows:
        assert window.counting is not None
        inside = tuple(document.mentions[mention] for mention in window.mentions)
        for place in window.counting.tolist():
            whole = Document(document.text, inside)
            single = replace(nlp, tokenizer=_Window(window)).disambiguate(whole, order=order)[place]
            if order == "confidence" and len(single.alternatives) == 1:  # of those the centred one goes first
                single = replace(single, step=1)
            assert_same([result[int(window.mentions[place])]], [single])


class _Window(Tokenizer):
    """Encodes any text as the pieces of one window, so that all its mentions take part."""

    def __init__(self, window: Window) -> None:
        self.cls, self.sep = int(window.pieces[0]), int(window.pieces[-1])
        self.made = Encoding(window.pieces[1:-1], window.spans - 1)

    def encode_many(self, texts: Sequence[Any]) -> list[Encoding]:
        return [self.made]


def test_commit_above_a_threshold_takes_fewer_steps() -> None:
    document = make_document(5, mentions=15, words=50)
    one = CACHED.disambiguate(document)
    many = CACHED.disambiguate(document, commit=0.6)
    assert many.passes < one.passes
    assert CACHED.disambiguate(document, commit=1.0).passes <= one.passes


def test_single_candidates_need_no_pass() -> None:
    text = "messi won the cup"
    spans = [(0, 5), (14, 17)]
    mentions = tuple(Mention(*span, candidates=(Candidate(f"Entity {i}"),)) for i, span in enumerate(spans))
    for order in ("natural", "confidence"):
        result = CACHED.disambiguate(Document(text, mentions), order=order)
        assert result.passes == 0
        assert [(r.entity, r.probability, r.step) for r in result] == [("Entity 0", 1.0, 1), ("Entity 1", 1.0, 2)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"order": "random"}, "order is 'random'; expected one of local, natural, confidence"),
        ({"commit": 0.0}, "commit is 0.0"),
        ({"commit": "two"}, "commit is 'two'"),
        ({"windows": "all"}, "windows is 'all'"),
        ({"released": "2020"}, "released is '2020'"),
        ({"top": 0}, "top is 0"),
    ],
)
def test_settings_that_do_not_exist_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        CACHED.disambiguate(make_document(1), **changes)


def test_pad_is_no_candidate() -> None:
    assert PAD == 0
    assert PAPER.vocabulary.row("[PAD]") is None and PAPER.vocabulary.row("[MASK]") is None
