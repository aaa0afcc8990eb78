"""`deixis evaluate` from end to end on the published traps, with a scripted model."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from typer.testing import CliRunner

from deixis.cli import app
from deixis.documents import Document, Mention
from deixis.errors import DeixisError, InputError
from deixis.folder.model_folder import ModelFolder
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.special import SPECIAL
from deixis.toy import marked

from ..datasets.traps import write_traps
from ..evaluation.fakes import Scripted
from ..worlds import make_network, make_tokenizer

command = importlib.import_module("deixis.cli.evaluate")  # the package has a function of that name
PRIORS = {"John Smith": 0.9, "Paris, Texas": 0.6, "Paris": 0.3}


def score(order: str, title: str) -> float:
    """Local order gets Paris wrong, the others right."""
    return 0.7 if (order, title) == ("local", "Paris") else PRIORS.get(title, 0.1)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    vocabulary = Vocabulary([*SPECIAL, "John Smith", "Paris, Texas"], [0, 0, 0, 100, 5])
    monkeypatch.setattr(command, "_digest", lambda model: "0")
    monkeypatch.setattr(command, "open_model", lambda folder, machine: Scripted(score, vocabulary))
    return write_traps(tmp_path)


def run(*arguments: object) -> str:
    result = CliRunner().invoke(app, ["evaluate", *map(str, arguments)])
    if result.exception is not None:
        raise result.exception
    return result.stdout


def test_json_figures(data: Path) -> None:
    record = orjson.loads(run("sets", "msnbc", "--data", data, "--json", "--analyses"))
    (result,) = record["results"]
    assert (result["mentions"], result["documents"], result["candidate_recall"]) == (5, 1, 0.8)
    figures = {run["order"]: (run["precision"], run["recall"], run["passes"]) for run in result["runs"]}
    assert figures == {
        "most frequent": (0.75, 0.6, None),
        "local": (0.75, 0.6, 4),
        "natural": (1.0, 0.8, 4),
        "confidence": (1.0, 0.8, 4),
    }
    assert result["report"]["removed"] == {"the gold has no title (NIL)": 2}
    (analysis,) = record["analyses"]
    assert [item["right"] for item in analysis["disagreements"]] == [["natural", "confidence"]]
    assert [item["mentions"] for item in analysis["by_frequency"]["local"]] == [1, 1, 0, 2]


def test_terminal(data: Path) -> None:
    shown = run("sets", "msnbc", "--data", data, "--analyses", "--document", "doc1", "--order", "local")
    for expected in ("96.1", "removed 2: the gold has no title (NIL)", "expected calibration error", "✗ Paris → Paris"):
        assert expected in shown


def test_priors_have_rows_of_their_own(data: Path) -> None:
    arguments = ("sets", "msnbc", "--data", data, "--order", "local", "--prior", 0, "--prior", 0.25)
    shown = run(*arguments, "--markdown")
    assert "| msnbc kb+yago | local | 5 |" in shown and "| msnbc kb+yago | local, prior 0.25 | 5 |" in shown
    record = orjson.loads(run(*arguments, "--json"))
    assert [run["prior"] for run in record["results"][0]["runs"]] == [0.0, 0.0, 0.25]
    assert record["parameters"]["priors"] == [0.0, 0.25]


def test_all_says_what_is_missing(data: Path, tmp_path: Path) -> None:
    write_traps(tmp_path, "wiki")
    arguments = ("sets", "msnbc", "wiki", "--data", data, "--markdown")
    shown = run(*arguments)
    assert "| msnbc kb+yago | confidence | 5 | 100.0 | 80.0 | 88.9 |" in shown
    assert "wiki kb+yago: removed 1: of the document Jiří_Třanovský" in shown
    assert "missing: no KB+YAGO candidates for aida-b" in run(*arguments, "aida-b")
    with pytest.raises(DeixisError, match=r"no KB\+YAGO candidates for aida-b in .* \(aida_testB.csv and testa_testb"):
        run("candidates", "aida-b", "--data", data)


def test_page_and_predictions(data: Path, tmp_path: Path) -> None:
    run(
        *("sets", "msnbc", "--data", data, "--order", "confidence", "--analyses"),
        *("--html", tmp_path / "report.html", "--document", "doc1"),
        *("--predictions", tmp_path / "answers", "--format", "jsonl", "--format", "nif", "--format", "elevant"),
    )
    assert sorted(path.name for path in (tmp_path / "answers").iterdir()) == [
        "msnbc.kb-yago.confidence.jsonl",
        "msnbc.kb-yago.confidence.linked_articles.jsonl",
        "msnbc.kb-yago.confidence.ttl",
    ]
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "Table 2" in page
    assert 'class="sequence"' in page or "class=sequence" in page


def test_a_real_model(tmp_path: Path) -> None:
    data, model = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    write_traps(data)
    vocabulary = Vocabulary.of(["John Smith", "John Smith (footballer)", "Paris", "Paris, Texas", "Tom & Jerry"])
    network = make_network(entities=len(vocabulary))
    ModelFolder(network, make_tokenizer(), vocabulary).save(model)
    record = orjson.loads(run("sets", "msnbc", "--data", data, "--model", model, "--json", "--windows", "simple"))
    assert len(record["model"]) == 64
    assert record["parameters"]["windows"] == "simple"
    figures = {run["order"]: run for run in record["results"][0]["runs"]}
    assert [figures[order]["with_candidates"] for order in ("local", "natural", "confidence")] == [4, 4, 4]
    assert figures["local"]["passes"] == 1


def test_without_a_model_only_the_data_is_described(data: Path) -> None:
    record = orjson.loads(run("candidates", "msnbc", "--data", data, "--json"))
    assert [run["order"] for run in record["results"][0]["runs"]] == ["most frequent"]
    limited = orjson.loads(run("candidates", "msnbc", "--data", data, "--json", "--limit", "1"))
    assert limited["results"][0]["mentions"] == 5


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["sets", "nothing"], "no set is called 'nothing'; expected aida-train"),
        (["sets", "msnbc", "--candidates", "model"], "needs a model that has names"),
        (["sets", "msnbc", "--document", "nobody"], "no answered document has an id that starts with nobody"),
        (["sets", "msnbc", "--order", "sideways"], "order is 'sideways'; expected one of local, natural, confidence"),
        (["sets", "msnbc", "--format", "xml"], "format is 'xml'; expected one of jsonl, nif, elevant"),
        (["sets", "msnbc", "--prior", "-1"], "prior is -1.0; expected a number of at least 0"),
    ],
)
def test_errors_say_what_to_do(data: Path, arguments: list[str], expected: str) -> None:
    with pytest.raises(DeixisError, match=expected):
        run(*arguments, "--data", data)


@pytest.mark.parametrize("wrong", [["--coreference", "nonsense"], ["--json", "--markdown"], ["--released", "2020"]])
def test_wrong_usage(data: Path, wrong: list[str]) -> None:
    result = CliRunner().invoke(app, ["evaluate", "sets", "msnbc", "--data", str(data), *wrong])
    assert result.exit_code == 2


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys; import deixis.cli, deixis.datasets, deixis.evaluation.reporting, deixis.evaluation.exports; "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_store_gives_the_candidates(tmp_path: Path) -> None:
    builder = NamesBuilder()
    builder.add_link("Paris", "Paris", 3)
    builder.add_link("Paris", "Paris, Texas", 1)
    builder.save(tmp_path / "store", {}, {})
    golds = [(0, 5, "Paris"), (6, 11, "Old Texan Paris"), (12, 16, "Rome")]
    document = Document("Paris Paris Rome", tuple(Mention(*gold) for gold in golds), "d")
    (tmp_path / "d.jsonl").write_bytes(document.to_json() + b"\n")
    (tmp_path / "r.tsv").write_text("Paris, Texas\tTexan Paris\nOld Texan Paris\tTexan Paris\n")
    arguments = ("candidates", tmp_path / "d.jsonl", "--data", tmp_path, "--candidates")
    record = orjson.loads(run(*arguments, tmp_path / "store", "--json", "--redirects", tmp_path / "r.tsv"))
    (result,) = record["results"]
    assert result["candidate_recall"] == pytest.approx(2 / 3)  # the second by its redirects, Rome has no candidates
    (baseline,) = result["runs"]
    assert (baseline["with_candidates"], baseline["correct"]) == (2, 1)
    with pytest.raises(DeixisError, match="nowhere: expected kb"):
        run(*arguments, tmp_path / "nowhere")


TEXTS = (
    marked("After the [Silver Oar|Velm Cup (rowing)] came [Marlow|Ada Marlow (rower)] and [Brandt|Elsewhere]."),
    Document("It was the time of the Golden Rook.", (Mention(0, 2, "Ada Marlow (rower)"),)),
)


def test_plain_texts(island: Path, tmp_path: Path) -> None:
    paths = [tmp_path / "velm.jsonl", tmp_path / "again.jsonl"]
    for path in paths:
        path.write_bytes(b"".join(document.to_json() + b"\n" for document in TEXTS))
    arguments = ["evaluate", "texts", *map(str, paths), "--model", str(island / "model")]
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.exception
    record = orjson.loads(done.stdout)
    found, gold, _, _ = record["results"]
    assert (found["mentions"], found["right"], gold["mentions"], gold["found"]) == ("found", 2, "gold", 4)
    assert found["spans"]["strict"]["recall"] == 0.75
    assert record["together"][0]["golds"] == 8 and len(record["together"][0]["reliability"]["bins"]) == 10
    assert set(record["together"][0]["precision_at_coverage"]) == {"0.5", "0.7", "0.9"}
    shown = CliRunner().invoke(app, [*arguments, "--markdown", "--mentions", "found", "--limit", "1"]).stdout
    assert "| together | found |" in shown and "ECE" in shown and "0.9–1.0" in shown
    with pytest.raises(InputError, match="no spaCy pipeline nowhere"):
        CliRunner().invoke(app, [*arguments, "--mentions", "nowhere"], catch_exceptions=False)
