"""Documents in, resolutions out: every odd case has its defined answer."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import deixis
from deixis.disambiguation import scheduling
from deixis.documents import Candidate, Document, Mention, Resolutions
from deixis.folder.model_folder import ModelFolder
from deixis.network.batching import Batch
from deixis.network.decoding import decode
from tests.worlds import make_disambiguator, make_document

NLP = make_disambiguator(2, words_see="placeholders")
PAPER = make_disambiguator(2)
TWO = (Candidate("Entity 1", 0.5), Candidate("Entity 2", 0.4))


def one(*candidates: Candidate, text: str = "messi won", **changes: object) -> deixis.Resolution:
    document = Document(text, (Mention(0, 5, candidates=candidates),))
    return NLP.disambiguate(document, None, **changes)[0]


def test_the_public_door() -> None:
    assert all(hasattr(deixis, name) for name in deixis.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = deixis.nothing


def test_no_mentions_and_no_text() -> None:
    assert len(NLP.disambiguate(Document(""))) == 0
    assert len(NLP.disambiguate(Document("messi won"))) == 0


def test_no_candidates() -> None:
    result = one()
    assert (result.entity, result.reason, result.step) == (None, "no candidates", 0)
    asked = NLP.disambiguate(Document("messi", (Mention(0, 5),)))[0]
    assert asked.entity is None and asked.reason == "no names"


def test_a_mention_without_candidates_stays_masked_for_the_others() -> None:
    lone = Document("messi won the cup", (Mention(0, 5, candidates=()), Mention(14, 17, candidates=TWO)))
    masked = PAPER.disambiguate(lone)[1]
    padded = PAPER.disambiguate(lone, released="2022")[1]
    assert masked.probability != pytest.approx(padded.probability, abs=1e-6)


@pytest.mark.parametrize("settings", [{}, {"words_see": "placeholders", "answer_layers": 2}])
@pytest.mark.parametrize("order", ["local", "natural", "confidence"])
def test_a_prior_is_a_bias_of_its_candidate_in_every_order(order: str, settings: dict[str, Any]) -> None:
    """Where an entity's prior is the same everywhere, mixing it in is the same as adding it to b_o."""
    shares = {f"Entity {number}": 0.002 + (number * 7 % 60) / 70 for number in range(60)}
    documents = [_with_priors(make_document(seed, mentions=8), shares) for seed in range(6)]
    plain, biased = make_disambiguator(3, **settings), make_disambiguator(3, **settings)
    bias = torch.tensor([0.0] * 3 + [0.7 * math.log(shares[title]) for title in biased.vocabulary.entities])
    biased.network.entity_predictions.bias.data += bias
    mixed = list(plain.disambiguate_many(documents, order=order, prior=0.7))
    expected = list(biased.disambiguate_many(documents, order=order))
    assert [[r.entity for r in found] for found in mixed] == [[r.entity for r in found] for found in expected]
    assert [[r.step for r in found] for found in mixed] == [[r.step for r in found] for found in expected]
    for one, other in zip(mixed, expected, strict=True):
        assert [r.probability for r in one] == pytest.approx([r.probability for r in other], abs=1e-4)
    without = list(plain.disambiguate_many(documents, order=order))
    assert [[r.entity for r in found] for found in mixed] != [[r.entity for r in found] for found in without]
    zero = list(plain.disambiguate_many(documents, order=order, prior=0.0))
    assert [found.to_json() for found in zero] == [found.to_json() for found in without]


def _with_priors(document: Document, shares: dict[str, float]) -> Document:
    return document.with_candidates(
        [tuple(Candidate(c.entity, shares[c.entity]) for c in m.candidates or ()) for m in document.mentions]
    )


class _Store:
    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        return [(Candidate("Entity 2", 0.9), Candidate("Entity 1", 0.1))] * len(document.mentions)


def test_a_candidate_without_a_prior_has_the_stores() -> None:
    asked = replace(NLP, candidates=_Store())
    bare = Document("messi won", (Mention(0, 5, candidates=(Candidate("Entity 1"), Candidate("Entity 2"))),))
    given = Document("messi won", (Mention(0, 5, candidates=(Candidate("Entity 1", 0.1), Candidate("Entity 2", 0.9))),))
    assert asked.disambiguate(bare, prior=3.0)[0] == NLP.disambiguate(given, prior=3.0)[0]
    unknown, plain = NLP.disambiguate(bare, prior=3.0)[0], NLP.disambiguate(bare)[0]
    assert unknown.probability == pytest.approx(plain.probability)  # nobody knows any: all are alike
    with pytest.raises(deixis.InputError, match="prior is -1"):
        NLP.disambiguate(bare, prior=-1)


def test_unknown_candidates_are_skipped_unless_none_is_known() -> None:
    mixed = one(Candidate("Atlantis", 0.9), *TWO)
    assert {title for title, _ in mixed.alternatives} == {"Entity 1", "Entity 2"}
    none = one(Candidate("Atlantis", 0.2), Candidate("Utopia", 0.6))
    assert (none.entity, none.step) == ("Utopia", 1)
    assert none.probability == pytest.approx(0.75)
    single = one(Candidate("Atlantis"))
    assert (single.entity, single.probability) == ("Atlantis", 1.0)


def test_unknown_candidates_as_the_released_code_has_them() -> None:
    given = (Candidate("Utopia", 0.9), Candidate("Atlantis", 0.8), *TWO)
    shared = one(*given, released="2022")
    assert {title for title, _ in shared.alternatives} == {"Atlantis", "Entity 1", "Entity 2"}
    zero = one(*given, released="2021")
    chances = dict(zero.alternatives)
    assert set(chances) == {"Utopia", "Atlantis", "Entity 1", "Entity 2"}
    assert chances["Utopia"] == pytest.approx(chances["Atlantis"])


def test_duplicates_are_one_candidate() -> None:
    plain = one(*TWO)
    doubled = one(Candidate("Entity 1", 0.1), *TWO, Candidate("Entity 2", 0.3))
    assert dict(doubled.alternatives) == pytest.approx(dict(plain.alternatives))
    assert one(Candidate("Entity 1"), Candidate("Entity 1")).probability == 1.0


def test_the_top_candidates_by_prior_take_part() -> None:
    many = [Candidate(f"Entity {number}", number / 100) for number in range(50)]
    assert {title for title, _ in one(*many).alternatives} == {f"Entity {number}" for number in range(20, 50)}
    assert len(one(*many, top=None).alternatives) == 50
    without = [Candidate(candidate.entity) for candidate in many]
    assert len(one(*without).alternatives) == 50  # no priors, no honest cut


def test_alternatives_are_ranked_and_sum_to_one() -> None:
    result = one(*(Candidate(f"Entity {number}") for number in range(7)))
    chances = [chance for _, chance in result.alternatives]
    assert chances == sorted(chances, reverse=True) and sum(chances) == pytest.approx(1.0, abs=1e-5)
    assert result.alternatives[0] == (result.entity, result.probability)


def test_overlapping_mentions_and_mentions_in_any_order() -> None:
    text = "the world cup final"
    spans = [(14, 19), (0, 13), (4, 9), (4, 13)]
    mentions = tuple(Mention(*span, candidates=TWO) for span in spans)
    result = NLP.disambiguate(Document(text, mentions), order="natural")
    assert [(r.start, r.end) for r in result] == spans
    assert [r.step for r in result] == [4, 1, 2, 3]  # from left to right, the shorter first


def test_ten_thousand_mentions() -> None:
    text = "messi " * 10_000
    mentions = tuple(Mention(6 * place, 6 * place + 5, candidates=TWO) for place in range(10_000))
    result = NLP.disambiguate(Document(text, mentions), windows="simple", commit=0.5)
    assert len(result) == 10_000 and all(resolution.entity for resolution in result)


def test_a_long_document_in_both_splittings() -> None:
    document = make_document(3, words=900, mentions=20)
    for windows in ("simple", "overlapping", "per_mention"):
        result = NLP.disambiguate(document, windows=windows)
        assert all(resolution.entity for resolution in result)
        assert [r.text for r in result] == [document.surface(mention) for mention in document.mentions]


@pytest.mark.slow
def test_memory_is_bounded_for_any_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long or many the documents, no batch has more rows than it may, and no more windows wait than a group."""
    rows: list[int] = []

    def counted(network: Any, batch: Batch, *rest: Any) -> Any:
        rows.append(int((batch.piece_counts + 2 * batch.mention_counts).sum()))
        return decode(network, batch, *rest)

    monkeypatch.setattr(scheduling, "decode", counted)
    small = replace(NLP, batch_rows=1500, group=16)
    documents = [make_document(1, words=4000, mentions=300), *(make_document(seed, words=30) for seed in range(90))]
    for windows in ("per_mention", "overlapping", "simple"):
        assert len(list(small.disambiguate_many(documents, order="local", windows=windows))) == len(documents)
    assert max(rows) <= 1500 and len(rows) > 50


def test_the_released_code_decides_the_centred_mention_first() -> None:
    long, short = make_document(3, words=900, mentions=40), make_document(4)
    local = PAPER.disambiguate(long, order="local")
    first = PAPER.disambiguate(long, order="natural", released="2022")
    assert [r.entity for r in first] == [r.entity for r in local]  # the centred one is decided before any other
    assert all(r.step == 1 for r in first)
    plain = PAPER.disambiguate(long, order="natural")
    assert any(r.step > 1 for r in plain)
    assert PAPER.disambiguate(short, order="natural") == PAPER.disambiguate(short, order="natural", released="2022")


def test_documents_stream() -> None:
    read = 0

    def endless() -> Iterator[Document]:
        nonlocal read
        while True:
            read += 1
            yield make_document(read, words=12, mentions=2)

    stream = NLP.disambiguate_many(endless())
    assert [next(stream).document.id for _ in range(5)] == [f"random {number}" for number in range(1, 6)]
    assert read <= 2 * NLP.group  # and not all of them


def test_documents_without_mentions_do_not_pile_up() -> None:
    read = 0

    def endless() -> Iterator[Document]:
        nonlocal read
        while True:
            read += 1
            yield Document("nothing to see")

    stream = NLP.disambiguate_many(endless())
    assert [len(next(stream)) for _ in range(5)] == [0] * 5
    assert read <= 5 * NLP.group


def test_the_store_is_asked_for_mentions_without_candidates() -> None:
    class Store:
        def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
            return [(Candidate(f"Entity {place}"),) for place, _ in enumerate(document.mentions)]

    nlp = replace(NLP, candidates=Store())
    document = Document("messi won the cup", (Mention(0, 5), Mention(14, 17, candidates=(Candidate("Entity 9"),))))
    assert [r.entity for r in nlp.disambiguate(document)] == ["Entity 0", "Entity 9"]


def test_threads_may_share_one() -> None:
    documents = [make_document(seed) for seed in range(12)]
    expected = [NLP.disambiguate(document) for document in documents]
    found: dict[int, Resolutions] = {}

    def work(place: int) -> None:
        found[place] = NLP.disambiguate(documents[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[place] for place in range(12)] == expected


def test_a_trace_shows_each_step_as_it_was_taken() -> None:
    document = make_document(5, mentions=7)
    for order in ("local", "natural", "confidence"):
        plain = NLP.disambiguate(document, order=order)
        traced = NLP.disambiguate(document, order=order, trace=True)
        assert plain.trace is None and plain.items == traced.items and traced.trace is not None
        assert sorted(place for step in traced.trace for place in step.decided) == list(range(7))
        for step in traced.trace:
            for place in step.decided:
                assert traced[place].step == step.step
                if place in step.open:  # asked of the network: the very probabilities it was decided by
                    assert sorted(step.open[place]) == sorted(traced[place].alternatives)
                else:
                    assert len(traced[place].alternatives) == 1
            later = {place for other in traced.trace if other.step >= step.step for place in other.decided}
            assert set(step.open) <= later
        assert [step.step for step in traced.trace] == list(range(1, 1 + (1 if order == "local" else 7)))


def test_a_trace_of_a_long_document_keeps_what_counts() -> None:
    document = make_document(3, words=900, mentions=12)
    trace = NLP.disambiguate(document, trace=True).trace
    assert trace is not None
    assert sorted(place for step in trace for place in step.decided) == list(range(12))


def test_a_step_as_json() -> None:
    step = deixis.documents.Step(2, (1,), {1: (("Entity 1", 2 / 3), ("Entity 2", 1 / 3))})
    lists = [{"mention": 1, "candidates": [["Entity 1", 0.666667], ["Entity 2", 0.333333]]}]
    assert step.to_record() == {"step": 2, "decided": [1], "open": lists}
    document = Document("messi")
    assert document.to_record(Resolutions(document, (), trace=(step,)))["trace"] == [step.to_record()]
    assert "trace" not in document.to_record(Resolutions(document, ()))


def test_urls_are_those_of_the_models_wiki() -> None:
    german = replace(NLP, domain="de.wikipedia.org", wikidata={"Entity 1": "Q1"})
    document = Document("messi won", (Mention(0, 5, candidates=(Candidate("Entity 1"),)),))
    (found,) = german.disambiguate(document)
    assert found.url == "https://de.wikipedia.org/wiki/Entity_1"
    assert found.to_record()["resolution"]["url"] == found.url and found.to_record()["resolution"]["wikidata"] == "Q1"
    (found,) = NLP.disambiguate(document)
    assert found.url == "https://en.wikipedia.org/wiki/Entity_1" and found.identity is None


def test_the_domain_is_in_the_manifest_of_a_model(tmp_path: Path) -> None:
    model = ModelFolder(NLP.network, NLP.tokenizer, NLP.vocabulary)
    model.save(tmp_path / "model", parameters={"domain": "de.wikipedia.org"})
    assert deixis.load(tmp_path / "model").domain == "de.wikipedia.org"
    model.save(tmp_path / "plain")
    assert deixis.load(tmp_path / "plain").domain == "en.wikipedia.org"
