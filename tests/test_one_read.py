"""Plain text in one read: what the detector read of the words is what disambiguation goes on from, to the digit."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch

from deixis.documents import Candidate, Document, Mention, Resolutions
from deixis.inference import Disambiguator
from deixis.knowledge.detection import NameDetector, UnionRule, UnitedDetector
from deixis.knowledge.words import Span, Word
from deixis.network import detector
from deixis.network.detector import DetectorHead, LearnedDetector
from deixis.network.encoding import MAX_PIECES
from deixis.network.model import Network
from deixis.network.precision import calibration_batch, compute_in
from deixis.settings import Settings
from tests.worlds import WORDS, make_disambiguator

pytestmark = pytest.mark.slow

LAYERS: dict[str, Any] = {"words_see": "words", "placeholder_layers": 2, "answer_layers": 1}


class NoNames:
    """Names that are nowhere: what is found, the learned detector alone finds."""

    digest = ""

    def find_names(self, words: list[Word]) -> Iterator[list[Span]]:
        return iter(())

    def find_words(self, words: list[Word]) -> Iterator[Span]:
        return iter(())

    def term_probability(self, number: int, single: bool) -> float:
        return 0.0

    def link_probability(self, number: int, single: bool, unsure: bool) -> float:
        return 0.0

    def is_common(self, name: str) -> bool:
        return False


class Source:
    """Gives every mention candidates that depend on its surface."""

    def candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        return [self._listed(document.surface(mention)) for mention in document.mentions]

    @staticmethod
    def _listed(surface: str) -> tuple[Candidate, ...]:
        dice = random.Random(surface)
        return tuple(Candidate(f"Entity {n}", 0.2) for n in dice.sample(range(60), dice.randint(1, 4)))


def make_linker(seed: int = 0, **settings: Any) -> Disambiguator:
    """Return a disambiguator whose random detector finds names everywhere."""
    nlp = make_disambiguator(seed, **(settings or LAYERS))
    torch.manual_seed(seed)
    learned = LearnedDetector(nlp.network, nlp.tokenizer, DetectorHead(32, (1, 3), 16).eval())
    rule = UnionRule(bias=0.5)  # takes more of what it proposes
    return replace(nlp, candidates=Source(), detector=UnitedDetector(learned, NameDetector(NoNames()), rule=rule))


def make_text(seed: int, words: int) -> str:
    dice = random.Random(seed)
    drawn = [dice.choice(WORDS).capitalize() if dice.random() < 0.3 else dice.choice(WORDS) for _ in range(words)]
    return " ".join(word + (dice.choice(".,\n") if dice.random() < 0.1 else "") for word in drawn)


def in_two_reads(nlp: Disambiguator, texts: list[str], **changes: Any) -> list[Resolutions]:
    return list(nlp.disambiguate_many(list(nlp.find_many(texts)), nlp.for_texts(Settings(**changes))))


def assert_alike(ours: list[Resolutions], theirs: list[Resolutions]) -> None:
    assert [found.document for found in ours] == [found.document for found in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert [(r.entity, r.step) for r in one] == [(r.entity, r.step) for r in other]
        assert [r.probability for r in one] == pytest.approx([r.probability for r in other], abs=1e-4)
        assert one.passes == other.passes


@pytest.mark.parametrize("order", ["local", "natural", "confidence"])
@pytest.mark.parametrize("layers", [LAYERS, {"words_see": "words"}], ids=["late", "all layers"])
def test_one_read_is_detection_then_disambiguation(layers: dict[str, Any], order: str) -> None:
    """Texts of one window and of several, of no mention, and of more mentions than a window takes."""
    nlp = make_linker(**layers)
    texts = [make_text(seed, words) for seed, words in enumerate((1, 20, 480, 60))] + ["", "  "]
    ours, theirs = list(nlp.link_many(texts, order=order)), in_two_reads(nlp, texts, order=order)
    assert_alike(ours, theirs)
    assert len(ours[2]) > 128 and ours[2].passes > 0


@pytest.mark.parametrize("kept", [0, 600, 100_000])
@pytest.mark.parametrize("rows", [1, 700])
def test_what_is_kept_and_batched_changes_no_answer(monkeypatch: pytest.MonkeyPatch, kept: int, rows: int) -> None:
    """Some of a long text's windows are kept and some read again; small batches come between."""
    monkeypatch.setattr(detector, "KEPT_PIECES", kept)
    nlp = replace(make_linker(1), batch_rows=rows)
    texts = [make_text(seed, words) for seed, words in enumerate((500, 40, 700))]
    given = Document("messi won the cup", (Mention(0, 5), Mention(14, 17)))
    ours = list(nlp.link_many([*texts[:2], given, texts[2]], order="local"))
    first, last = (in_two_reads(nlp, some, order="local") for some in (texts[:2], texts[2:]))
    assert_alike(ours, [*first, nlp.link(given, order="local"), *last])


def test_a_mention_longer_than_half_a_window_is_read_in_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp = make_linker()
    text = make_text(3, 900)
    spans = [(0, text.index(" ", len(text) // 3)), (text.index(" ", len(text) // 2) + 1, text.rindex(" "))]
    monkeypatch.setattr(UnitedDetector, "_mentions_in", lambda self, part, find: [Mention(*span) for span in spans])
    ours, theirs = list(nlp.link_many([text])), in_two_reads(nlp, [text])
    assert_alike(ours, theirs)


def pieces_read(monkeypatch: pytest.MonkeyPatch, nlp: Disambiguator, text: str, **changes: Any) -> int:
    read: list[int] = []
    plain = Network._embed

    def counted(self: Network, batch: Any) -> torch.Tensor:
        read.append(len(batch.pieces))
        return plain(self, batch)

    with monkeypatch.context() as patched:
        patched.setattr(Network, "_embed", counted)
        assert len(nlp.link(text, **changes)) > 0
    return sum(read)


def test_words_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = make_text(5, 100)
    once = len(make_linker().tokenizer.encode(text, []).pieces) + 2
    assert once < MAX_PIECES
    assert pieces_read(monkeypatch, make_linker(), text) == once
    assert pieces_read(monkeypatch, make_linker(words_see="placeholders"), text) == 2 * once
    assert pieces_read(monkeypatch, make_linker(), text, windows="per_mention") == 2 * once
    more = make_linker()
    assert pieces_read(monkeypatch, replace(more, network=make_linker(1).network), text) == 2 * once  # of another


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_one_read_in_other_precisions(precision: Any) -> None:
    nlp = make_linker(hidden_size=32, **LAYERS)
    compute_in(nlp.network, precision, calibration_batch(nlp.tokenizer, [f"Entity {n}" for n in range(60)]))
    texts = [make_text(seed, 120) for seed in range(3)]
    ours, theirs = list(nlp.link_many(texts, order="local")), in_two_reads(nlp, texts, order="local")
    for one, other in zip(ours, theirs, strict=True):
        assert one.document == other.document
        assert [r.probability for r in one] == pytest.approx([r.probability for r in other], abs=0.05)
