"""Table 3's bins and disagreements on cases small enough to check by eye."""

from __future__ import annotations

import pytest

from deixis.errors import InputError
from deixis.evaluation import Judgement, by_frequency, disagreements


def judgement(gold: str, answer: str | None, probability: float = 0.5, *, listed: bool = True, k: int = 0) -> Judgement:
    return Judgement(0, k, gold.lower(), gold, answer, probability, 1, True, listed, gold == answer)


def test_frequency_bins_of_table_3() -> None:
    counts = {"One": 1, "Ten": 10, "Eleven": 11, "Fifty": 50, "More": 51}
    given = [judgement(gold, gold) for gold in ("None", "One", "Ten", "Eleven", "Fifty", "More")]
    given += [judgement("Ten", "Other"), judgement("More", "More", listed=False)]
    bins = by_frequency(given, counts)
    assert [(b.label, b.mentions, b.correct) for b in bins] == [
        ("0", 1, 1),
        ("1–10", 3, 2),
        ("11–50", 2, 2),
        ("≥51", 1, 1),
    ]
    assert bins[1].accuracy == pytest.approx(2 / 3)
    assert by_frequency([], counts)[0].accuracy is None


def test_disagreements_mention_by_mention() -> None:
    local = [judgement("A", "A", k=0), judgement("B", "C", k=1), judgement("D", None, k=2)]
    confidence = [judgement("A", "A", k=0), judgement("B", "B", k=1), judgement("D", "E", k=2)]
    found = disagreements({"local": local, "confidence": confidence})
    assert [(item.mention, item.pattern) for item in found] == [(1, ("confidence",)), (2, ())]
    with pytest.raises(InputError, match="not over the same mentions"):
        disagreements({"local": local, "confidence": confidence[::-1]})
