"""Tables of figures: what stands in their cells and notes."""

from __future__ import annotations

from deixis.datasets.dataset import Dataset, Report
from deixis.documents import Candidate, Document, Mention
from deixis.evaluation import Judgement, by_frequency, describe, disagreements
from deixis.evaluation.running import SetResult
from deixis.evaluation.tables import count_table, disagreement_table, frequency_table, paper_tables, result_table

MENTIONS = (
    Mention(0, 1, "A", (Candidate("A", 0.9), Candidate("B", 0.1))),
    Mention(2, 3, "B", (Candidate("A", 0.9), Candidate("B", 0.1))),
    Mention(4, 5, "C", ()),
)
REPORT = Report(5)
REPORT.removed["no gold entity"] = 2
DATASET = Dataset("msnbc", (Document("a b c", MENTIONS, "d"),), REPORT, "KB+YAGO")
RECALL, BASELINE = describe(DATASET)
RESULT = SetResult(DATASET, "kb+yago", RECALL, (BASELINE,))


def test_counts_and_results() -> None:
    assert count_table([RESULT]).rows == (("msnbc kb+yago", "5", "2", "3", "1", "66.67"),)
    (row,) = result_table([RESULT]).rows
    assert row == ("msnbc kb+yago", "most frequent", "3", "50.0", "33.3", "40.0", "40.0–40.0", "–", "–", "–", "–")


def test_the_papers_tables_have_gaps_where_nothing_was_run() -> None:
    _, table = paper_tables([RESULT])
    assert table.rows[0] == ("candidate recall", "66.7", "–", "–", "–", "–", "–")
    assert table.rows[1] == ("most frequent", "40.0", "–", "–", "–", "–", "–")
    assert table.rows[-1][0] == "paper, fine-tuned, local" and table.rows[-1][-1] == "88.2"
    own = SetResult(DATASET, "model", RECALL, (BASELINE,))
    assert paper_tables([own])[1].note == "msnbc: candidates of model, not kb+yago"


def judged(answer: str | None, gold: str = "A", probability: float = 0.5) -> Judgement:
    return Judgement(0, 0, "surface", gold, answer, probability, 1, True, True, answer == gold)


def test_rare_entities() -> None:
    bins = {order: by_frequency([judged("A"), judged("B")], {"A": 5}) for order in ("local", "mine")}
    table = frequency_table(bins, "Table 3")
    assert table.columns == ("annotations", "mentions", "local", "mine", "paper local", "paper mine")
    assert table.rows[1] == ("1–10", "2", "50.00", "50.00", "95.55", "–")
    assert table.rows[0][2] == "–"  # an empty bin


def test_disagreements() -> None:
    runs = {"local": [judged("B")] * 60, "natural": [judged("A", probability=0.75)] * 60}
    table = disagreement_table(disagreements(runs), ["d"], "Differences")
    assert table.rows[0] == ("d · surface", "A", "✗ B 0.50", "✓ A 0.75") and len(table.rows) == 50
    assert table.note == "60 mentions differ (60 right in natural only); the first 50 are shown"
    assert disagreement_table([], [], "Differences").note == "the orders agree on every mention"
