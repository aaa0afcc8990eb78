"""None of these: what speaks for an answer, and the probability made of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from deixis.disambiguation.answer_rule import AnswerRule, evidence_of
from deixis.documents import Candidate, Document, Mention, Resolution
from deixis.folder.model_folder import Linking, ModelFolder
from deixis.inference import Disambiguator
from deixis.settings import Settings
from tests.worlds import make_disambiguator, make_document, make_network, make_tokenizer, make_vocabulary

RULE = AnswerRule(-2.0, 0.5, 1.0, 0.8, 0.4)


def test_a_lone_candidate_is_not_certain() -> None:
    nlp = make_disambiguator()
    nlp.answer_rule = RULE
    document = Document("messi won the cup", (Mention(0, 5, candidates=(Candidate("Entity 7", 0.4),)),))
    (plain,), (told,) = nlp.disambiguate(document), nlp.disambiguate(document, evidence=True)
    assert plain.probability == 1.0 and plain.evidence is None
    assert told.evidence is not None and told.evidence.lone == 1
    assert told.probability == pytest.approx(RULE.probability(told.evidence)) and told.probability < 1
    assert told.alternatives == (("Entity 7", told.probability),)


@pytest.mark.parametrize("order", ["local", "natural", "confidence"])
@pytest.mark.parametrize("words_see", ["answers", "placeholders", "words"])
def test_evidence_changes_no_answer(order: str, words_see: str) -> None:
    nlp = make_disambiguator(words_see=words_see)
    nlp.answer_rule = RULE
    document = make_document(3)
    plain, told = nlp.disambiguate(document, order=order), nlp.disambiguate(document, order=order, evidence=True)
    assert [r.entity for r in plain] == [r.entity for r in told]
    assert [r.step for r in plain] == [r.step for r in told]


def test_the_fit_is_that_of_a_local_pass_whatever_the_order_and_batch() -> None:
    nlp = make_disambiguator()
    nlp.answer_rule = RULE
    document, other = make_document(1), make_document(2)
    alone = nlp.disambiguate(document, order="local", evidence=True)
    together = list(nlp.disambiguate_many([other, document], order="local", evidence=True))[1]
    fits = [[r.evidence.fit for r in each if r.evidence is not None] for each in (alone, together)]
    assert fits[0] == pytest.approx(fits[1], abs=1e-4)


def test_the_fit_counts_deviations_above_arbitrary_entities() -> None:
    nlp = make_disambiguator()
    nlp.answer_rule = RULE
    rows = nlp._arbitrary()
    assert len(rows) == 60 and sorted(set(rows.tolist())) == list(range(3, 63))
    document = Document("messi won", (Mention(0, 5, candidates=tuple(Candidate(f"Entity {n}") for n in range(60))),))
    (best,) = nlp.disambiguate(document, order="local", evidence=True)
    softmax = nlp.disambiguate(document, order="local")[0]
    logits = torch.tensor([p for _, p in softmax.alternatives]).log()
    assert best.evidence is not None
    assert best.evidence.fit == pytest.approx(float((logits.max() - logits.mean()) / logits.std()), abs=1e-3)


@given(
    st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.floats(-8, 12), st.floats(0, 1) | st.none(), st.booleans()
)
def test_probabilities_never_add_up_to_more_than_one(
    weights: list[float], fit: float, prior: float | None, keen: bool
) -> None:
    chances = sorted((weight / sum(weights) for weight in weights), reverse=True)
    ranked = tuple((f"Entity {place}", chance) for place, chance in enumerate(chances))
    evidence = evidence_of(chances[0], len(chances), fit, prior)
    resolution = Resolution(0, 1, "x", "Entity 0", chances[0], 1, ranked, evidence=evidence)
    applied = RULE._replace(bias=4.0 if keen else -2.0).applied(resolution)
    assert sum(chance for _, chance in applied.alternatives) <= 1 + 1e-9
    assert applied.alternatives[0] == ("Entity 0", applied.probability)


def test_a_rule_is_kept_in_the_folder(tmp_path: Path) -> None:
    parts = ModelFolder(make_network(), make_tokenizer(), make_vocabulary(), linking=Linking(rule=RULE))
    parts.save(tmp_path / "model")
    nlp = Disambiguator.load(tmp_path / "model")
    assert nlp.answer_rule == RULE
    assert nlp.for_texts(Settings()).evidence is True
