"""Whole runs: killed and resumed, in two processes, with a full disk, from folders to a model folder."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from transformers import BertConfig, BertModel
from typer.testing import CliRunner

from deixis.artefacts import MANIFEST, Manifest
from deixis.cli import app
from deixis.documents import Candidate, Document, Mention
from deixis.errors import ArtefactError, InputError
from deixis.folder.model_folder import ModelFolder, quantise_folder
from deixis.knowledge.vocabulary import Vocabulary
from deixis.training import Processes, Recipe, Saving, read_recipe, train
from deixis.training.__main__ import main
from deixis.training.commands import Pretraining
from deixis.training.descriptions import describe, read_descriptions
from deixis.training.runs import pretrain
from tests.training.test_training import make_data
from tests.worlds import make_network, make_tokenizer, make_vocabulary

# What training must do without: these are not installed on every machine with a GPU.
BARE = "import sys; [sys.modules.__setitem__(name, None) for name in " + str(
    ["orjson", "zstandard", "marisa_trie", "typer", "rich", "pydantic"]
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a tiny BERT, a vocabulary, windows and documents."""
    folder = tmp_path_factory.mktemp("world")
    tokenizer, vocabulary = make_tokenizer(), make_vocabulary()
    (folder / "bert").mkdir()
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    torch.manual_seed(0)
    bert = BertModel(BertConfig(vocab_size=len(tokenizer), **shape), add_pooling_layer=False)
    save_file(dict(bert.state_dict()), folder / "bert" / "model.safetensors")
    config = {"model_type": "bert", "vocab_size": len(tokenizer), **shape}
    (folder / "bert" / "config.json").write_text(json.dumps(config))
    tokenizer.save(folder / "bert")
    vocabulary.save(folder / "vocabulary.jsonl")
    for split, seed in (("train", 0), ("held-out", 1)):
        data = make_data(48 if split == "train" else 8, seed)
        (folder / "windows" / split).mkdir(parents=True)
        for name in ("pieces", "window_offsets", "mention_offsets", "spans", "rows", "candidates"):
            np.save(folder / "windows" / split / f"{name}.npy", getattr(data, name))
    manifest = Manifest("windows", {"candidates": 5}, {"vocabulary": vocabulary.digest})
    manifest.save(folder / "windows" / MANIFEST)
    return folder


RUN = ["epochs=10", "batch=8", "pieces_at_once=150", "warmup_steps=5"]


def arguments(world: Path, out: Path, *more: str) -> list[str]:
    settings = [*RUN, *more]
    return [
        *("pretrain", str(world / "bert"), str(world / "windows"), str(out)),
        *("--vocabulary", str(world / "vocabulary.jsonl"), "--recipe", "small-stage1"),
        *("--report-every", "1", "--save-every", "4", "--words-see", "placeholders", "--device", "cpu"),
        *(part for setting in settings for part in ("--set", setting)),
    ]


def start(given: list[str], **environment: str) -> subprocess.Popen[bytes]:
    code = f"{BARE}]; from deixis.training.__main__ import main; sys.exit(main(sys.argv[1:]))"
    path = os.pathsep.join(part for part in sys.path if part)
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.Popen([sys.executable, "-c", code, *given], env=variables, stderr=subprocess.PIPE)


def losses(out: Path) -> dict[int, float]:
    """Return the loss of every step that was told of; a later telling wins."""
    path = out.with_name(out.name + ".run") / "metrics.jsonl"
    if not path.exists():
        return {}
    lines = [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]
    return {record["step"]: record["loss"] for record in map(json.loads, lines)}


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    torch.set_num_threads(1)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process = start(arguments(world, killed))
    while len(losses(killed)) < 10 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    before = losses(killed)
    assert 10 <= len(before) < 60
    assert not killed.exists()
    assert main(arguments(world, killed)) == 0
    assert main(arguments(world, whole)) == 0
    assert losses(killed) == losses(whole)
    assert {step: losses(whole)[step] for step in before} == before
    ours, theirs = (ModelFolder.load(folder).network.state_dict() for folder in (killed, whole))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())
    kept = sorted(path.name for path in (tmp_path / "whole.run" / "checkpoints").iterdir())
    assert kept == ["step-00000056", "step-00000060"]
    assert "held out" in capsys.readouterr().err
    # Done is done: running again takes no step and writes the same model.
    assert main(arguments(world, whole)) == 0
    # Another recipe does not go on from these checkpoints.
    assert main(arguments(world, whole, "learning_rate=0.5")) == 1
    assert "learning_rate" in capsys.readouterr().err


def test_a_model_that_reads_once_is_made_from_bert(world: Path, tmp_path: Path) -> None:
    layers = ["--words-see", "words", "--placeholder-layers", "2", "--answer-layers", "1"]
    assert main([*arguments(world, tmp_path / "model", "steps=2"), *layers]) == 0
    config = ModelFolder.load(tmp_path / "model").network.config
    assert (config.words_see, config.placeholder_layers, config.answer_layers) == ("words", 2, 1)


@pytest.mark.slow
def test_two_processes_are_one(world: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    alone, both = tmp_path / "alone", tmp_path / "both"
    settings = ["dropout=0", "epochs=2"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    running = [start(arguments(world, both, *settings), RANK=rank, LOCAL_RANK=rank, **address) for rank in "01"]
    assert main(arguments(world, alone, *settings)) == 0
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()
    one, two = losses(alone), losses(both)
    assert one.keys() == two.keys()
    assert list(two.values()) == pytest.approx(list(one.values()), abs=2e-5)


def host(given: list[str], port: int) -> subprocess.Popen[bytes]:
    """Start what docs/scale.md runs on one of two hosts, here both on this machine."""
    meeting = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "run"]
    launch = ["--nnodes", "2", "--nproc-per-node", "1", *meeting, "--local-addr", "127.0.0.1", "--max-restarts", "3"]
    path = os.pathsep.join(part for part in sys.path if part)
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", *launch, "-m", "deixis.training", *given]
    return subprocess.Popen(command, env=variables, stderr=subprocess.DEVNULL)


def lose(process: subprocess.Popen[bytes]) -> None:
    """End a host as a power cut would: torchrun and what it started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for one in (process.pid, *map(int, children)):
        os.kill(one, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_lost_host_comes_back(world: Path, tmp_path: Path) -> None:
    torch.set_num_threads(1)
    alone, both = tmp_path / "alone", tmp_path / "both"
    settings = ["dropout=0", "epochs=15"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    first = host(arguments(world, both, *settings), port)
    time.sleep(1)  # the first to come keeps the meeting place
    second = host(arguments(world, both, *settings), port)
    try:
        while len(losses(both)) < 12:
            assert first.poll() is None and second.poll() is None
            time.sleep(0.01)
        lose(second)
        before = losses(both)
        assert 12 <= len(before) < 90
        second = host(arguments(world, both, *settings), port)
        assert main(arguments(world, alone, *settings)) == 0
        assert (first.wait(timeout=120), second.wait(timeout=120)) == (0, 0)
    finally:
        for process in (first, second):
            if process.poll() is None:
                lose(process)
    one, two = losses(alone), losses(both)
    assert one.keys() == two.keys()
    assert list(two.values()) == pytest.approx(list(one.values()), abs=2e-4)
    told = (tmp_path / "both.run" / "metrics.jsonl").read_text().splitlines()
    assert len(told) < 90 + 6  # not from the start: from a checkpoint, at most four steps before


def test_a_full_disk_leaves_the_checkpoint_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(batch=8, epochs=1, dropout=0.0)
    saving = Saving(tmp_path / "checkpoints", every=1)
    steps = train(make_network(), make_tokenizer(), make_data(), recipe, saving=saving)
    next(steps)

    def full(*_: object) -> None:
        raise SafetensorError("No space left on device")

    with monkeypatch.context() as patch, pytest.raises(InputError, match="free space"):
        patch.setattr("deixis.training.checkpoints.save_file", full)
        next(steps)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-00000001"]
    resumed = list(train(make_network(), make_tokenizer(), make_data(), recipe, saving=saving))
    assert [step.step for step in resumed] == [2, 3]


def test_fine_tuning_from_a_model_folder(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    model = ModelFolder(make_network(), make_tokenizer(), make_vocabulary())
    model.save(tmp_path / "model", table="fp16")
    lines = []
    for index in range(6):
        candidates = tuple(Candidate(f"Entity {row}", 0.5) for row in range(index, index + 3))
        mentions = tuple(Mention(at, at + 5, f"Entity {index}", candidates) for at in (0, 6))
        lines.append(json.dumps(Document("messi world final", mentions).to_record()))
    (tmp_path / "documents.jsonl").write_text("\n".join(lines))
    documents = str(tmp_path / "documents.jsonl")
    given = ["finetune", str(tmp_path / "model"), documents, str(tmp_path / "tuned"), "--held-out", documents]
    assert main([*given, "--device", "cpu", "--set", "batch=2"]) == 0
    before, after = (ModelFolder.load(tmp_path / name).network for name in ("model", "tuned"))
    rows = torch.arange(63)
    assert torch.equal(before.candidate_rows(rows)[0], after.candidate_rows(rows)[0])
    assert not torch.equal(before.entity_embeddings.mask_embedding, after.entity_embeddings.mask_embedding)
    # Where datasets cannot be read, document JSONL is, and a set is refused.
    with monkeypatch.context() as bare:
        bare.setitem(sys.modules, "deixis.datasets", None)
        assert main([*given[:3], str(tmp_path / "bare"), "--device", "cpu", "--set", "batch=2"]) == 0
        assert main([*given[:2], "aida-train", str(tmp_path / "none"), "--device", "cpu"]) == 1
        assert "give document JSONL" in capsys.readouterr().err
    plain = ModelFolder.load(tmp_path / "bare").network
    assert torch.equal(plain.entity_embeddings.mask_embedding, after.entity_embeddings.mask_embedding)
    # The command does the same, and refuses what a recipe does not have.
    given = ["train", "finetune", str(tmp_path / "model"), documents, str(tmp_path / "again"), "--device", "cpu"]
    result = CliRunner().invoke(app, [*given, "--set", "batch=2"])
    assert result.exit_code == 0, result.output
    again = ModelFolder.load(tmp_path / "again").network
    assert torch.equal(again.entity_embeddings.mask_embedding, after.entity_embeddings.mask_embedding)
    # Documents that know the entities by older titles come to the same, given where those lead.
    (tmp_path / "older.jsonl").write_text("\n".join(lines).replace("Entity", "Being"))
    (tmp_path / "moved.tsv").write_text("".join(f"Being {row}\tEntity {row}\n" for row in range(8)))
    older = ["train", "finetune", str(tmp_path / "model"), str(tmp_path / "older.jsonl"), str(tmp_path / "older")]
    result = CliRunner().invoke(
        app, [*older, "--redirects", str(tmp_path / "moved.tsv"), "--device", "cpu", "--set", "batch=2"]
    )
    assert result.exit_code == 0, result.output
    moved = ModelFolder.load(tmp_path / "older").network
    assert torch.equal(moved.entity_embeddings.mask_embedding, after.entity_embeddings.mask_embedding)
    refused = CliRunner().invoke(app, [*given, "--set", "speed=9"])
    assert "there is no field 'speed'" in str(refused.exception)
    (tmp_path / "wrong.jsonl").write_text('{"text": 3}')
    assert main(["finetune", str(tmp_path / "model"), str(tmp_path / "wrong.jsonl"), str(tmp_path / "x")]) == 1


def test_the_manifest_holds_the_whole_recipe(world: Path, tmp_path: Path) -> None:
    """Every field of every stage, also after the model was added to."""
    assert main(arguments(world, tmp_path / "one", "steps=1", "learning_rate=0.002")) == 0
    stage2 = [*("--recipe", "small-stage2"), *("--set", "steps=1"), *("--set", "batch=8"), *("--device", "cpu")]
    assert main(["pretrain", str(tmp_path / "one"), str(world / "windows"), str(tmp_path / "two"), *stage2]) == 0
    made = Manifest.load(tmp_path / "two" / MANIFEST, "model")
    first, second = made.parameters["training"]
    assert first["recipe"] == read_recipe("small-stage1", None, [*RUN, "steps=1", "learning_rate=0.002"]).to_json()
    assert second["recipe"] == read_recipe("small-stage2", None, ["steps=1", "batch=8"]).to_json()
    assert second["parents"] == dict(made.parents)
    quantise_folder(tmp_path / "two", tmp_path / "small", encoder="int8", table="int8")
    assert Manifest.load(tmp_path / "small" / MANIFEST, "model").parameters["training"] == [first, second]


@pytest.mark.slow
def test_a_detector_is_trained_where_little_is_installed(world: Path, tmp_path: Path) -> None:
    """Both front ends read the same settings and write the same model."""
    ModelFolder(make_network(), make_tokenizer(), make_vocabulary()).save(tmp_path / "model")
    line = {"text": "the Messi won.", "spans": [[4, 9, "person"]]}
    (tmp_path / "marked.jsonl").write_text(json.dumps(line) + "\n")
    words = ["detector", str(tmp_path / "model"), str(tmp_path / "marked.jsonl"), "--epochs", "2", "--device", "cpu"]
    bare = start([*words, "-o", str(tmp_path / "bare")])
    _, said = bare.communicate(timeout=300)
    assert bare.returncode == 0, said.decode()
    done = CliRunner().invoke(app, ["train", *words, "-o", str(tmp_path / "whole")])
    assert done.exit_code == 0, done.output
    one, two = (Manifest.load(tmp_path / name / MANIFEST, "model") for name in ("bare", "whole"))
    assert one.parameters == two.parameters and one.parameters["detector"]["recipe"]["epochs"] == 2
    assert (tmp_path / "whole" / "detector.safetensors").exists()


def test_descriptions_become_rows(world: Path, tmp_path: Path) -> None:
    texts = tmp_path / "descriptions.tsv"
    texts.write_text("entity_1\tthe world cup final\tsource\nEntity 4\ta rugby team\n")
    vectors = tmp_path / "vectors.npy"
    vocabulary = str(world / "vocabulary.jsonl")
    assert main(["describe", str(world / "bert"), vocabulary, str(texts), "-o", str(vectors), "--device", "cpu"]) == 0
    array = np.load(vectors)
    assert array.shape == (63, 32)
    assert np.flatnonzero(np.abs(array).sum(1)).tolist() == [4, 7]
    more = ["--descriptions", str(texts)]
    assert main([*arguments(world, tmp_path / "one", "epochs=1"), *more]) == 0
    again = ["--descriptions", str(tmp_path / "one.run" / "descriptions.npy")]
    assert main([*arguments(world, tmp_path / "two", "epochs=1"), *again]) == 0
    ours, theirs = (ModelFolder.load(tmp_path / name).network.state_dict() for name in ("one", "two"))
    assert all(torch.equal(tensor, theirs[name]) for name, tensor in ours.items())


def test_sentence_vectors_are_means_of_berts_states(world: Path) -> None:
    bert = BertModel.from_pretrained(world / "bert", add_pooling_layer=False).eval()
    vocabulary = Vocabulary.of(["Cup", "Team"])
    vectors = describe(world / "bert", vocabulary, {"Cup": "the world final"}, torch.device("cpu"))
    tokenizer = make_tokenizer()
    pieces = [tokenizer.cls, *tokenizer.encode("Cup: the world final", []).pieces.tolist(), tokenizer.sep]
    with torch.no_grad():
        mean = bert(input_ids=torch.tensor([pieces])).last_hidden_state[0].mean(0)
    np.testing.assert_allclose(vectors[3], torch.nn.functional.normalize(mean, dim=0).numpy(), atol=1e-3)
    assert not vectors[4].any()


def test_wrong_starts_are_refused(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["pretrain", str(world / "bert"), str(world / "windows"), str(tmp_path / "x")]) == 1
    assert "--vocabulary" in capsys.readouterr().err
    assert main(["finetune", str(world / "bert"), str(world / "x"), str(tmp_path / "x")]) == 1
    assert "not a model folder" in capsys.readouterr().err
    (tmp_path / "bad.tsv").write_text("no tab\n")
    with pytest.raises(InputError, match=r"bad\.tsv:1"):
        read_descriptions([tmp_path / "bad.tsv"])
    with pytest.raises(ArtefactError, match="vocabulary"):
        other = tmp_path / "other.jsonl"
        Vocabulary.of(["Bonn"]).save(other)
        given = Pretraining(start=world / "bert", windows=world / "windows", out=tmp_path / "y", vocabulary=other)
        list(pretrain(given, Processes()))
