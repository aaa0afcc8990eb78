"""Model folders to a hub and back: fetched once, checked, gone on with; every refusal is one sentence.

The hub on loopback is ours (hub.py); what asks it is huggingface_hub.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import deixis
from deixis.artefacts import MANIFEST, Manifest, copy_or_link
from deixis.cli import app
from deixis.errors import ArtefactError, DeixisError, InputError, MissingExtra
from deixis.folder.hub import fetch, push
from deixis.folder.model_folder import ModelFolder
from tests.folder.hub import TOKEN, Hub
from tests.serving.world import running
from tests.worlds import make_document, make_network, make_tokenizer, make_vocabulary

huggingface_hub = pytest.importorskip(
    "huggingface_hub", reason="huggingface_hub is not installed: pip install 'deixis[hub]'"
)

from huggingface_hub import constants  # noqa: E402 - after the test for it above

NAME = "hf://velm/model"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning"),  # of huggingface_hub's own upload
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pushed") / "model"
    ModelFolder(make_network(1), make_tokenizer(), make_vocabulary()).save(folder)
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n\n# A model\n")
    (folder / "notes.txt").write_text("not part of the model")
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub that huggingface_hub takes for its own, with an empty cache."""
    made = Hub()
    with running(made.app()) as address:
        made.address = address
        point_to(address, tmp_path / "cache", monkeypatch)
        yield made


def point_to(address: str, cache: Path, monkeypatch: pytest.MonkeyPatch, token: str | None = TOKEN) -> None:
    monkeypatch.setattr(constants, "ENDPOINT", address)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(cache / "token"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    if token is None:
        monkeypatch.delenv("HF_TOKEN", raising=False)
    else:
        monkeypatch.setenv("HF_TOKEN", token)


def answers(nlp: deixis.Disambiguator) -> Any:
    return nlp.disambiguate(make_document(3)).items


def test_pushed_and_loaded_it_answers_the_same(hub: Hub, model: Path) -> None:
    assert push(model, NAME) == f"{hub.address}/velm/model/commit/{fetch(NAME).name}"
    files = hub.repositories["velm/model"][-1]
    listed = Manifest.load(model / MANIFEST, "model").files
    assert set(files) == {*listed, MANIFEST, "README.md", ".gitattributes"}
    assert answers(deixis.load(NAME)) == answers(deixis.load(model))


def test_it_is_fetched_once_and_works_without_a_network(
    hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push(model, NAME)
    first = fetch(NAME)
    assert len(hub.fetched) == len({path for path, _ in hub.fetched}) == len(list(first.iterdir()))
    hub.fetched.clear()
    assert fetch(NAME) == first and hub.fetched == []
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    point_to(nobody, tmp_path / "cache", monkeypatch)
    assert answers(deixis.load(NAME)) == answers(deixis.load(model))


def test_a_revision_stays_what_it_was(hub: Hub, model: Path, tmp_path: Path) -> None:
    push(model, NAME)
    before = fetch(NAME)
    other = tmp_path / "other"
    ModelFolder(make_network(2), make_tokenizer(), make_vocabulary()).save(other)
    push(other, NAME)
    assert "README.md" not in hub.repositories["velm/model"][-1]  # what the new folder does not have is gone
    assert answers(deixis.load(NAME)) == answers(deixis.load(other))
    assert answers(deixis.load(f"{NAME}@{before.name}")) == answers(deixis.load(model))
    hub.pushed = 0
    push(other, NAME)
    assert hub.pushed == 0  # what is there is not sent again


def test_a_broken_connection_goes_on_where_it_broke(hub: Hub, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    push(model, NAME)
    monkeypatch.setattr("time.sleep", lambda _: None)
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
    hub.cut["encoder.safetensors"] = 10_000
    assert answers(deixis.load(NAME)) == answers(deixis.load(model))
    asked = [range_ for path, range_ in hub.fetched if path == "encoder.safetensors"]
    assert asked == [None, "bytes=8192-"]


def test_what_was_fetched_before_an_interruption_is_kept(hub: Hub, model: Path) -> None:
    push(model, NAME)
    wanted = hub.repositories["velm/model"][-1]
    content = wanted.pop("encoder.safetensors")  # gone in the middle of it
    with pytest.raises(DeixisError):
        fetch(NAME)
    had = {path for path, _ in hub.fetched}
    wanted["encoder.safetensors"] = content
    hub.fetched.clear()
    assert answers(deixis.load(NAME)) == answers(deixis.load(model))
    assert "encoder.safetensors" in {path for path, _ in hub.fetched}
    assert not had & ({path for path, _ in hub.fetched} - {MANIFEST})


def test_a_file_damaged_here_is_fetched_again(hub: Hub, model: Path) -> None:
    push(model, NAME)
    path = fetch(NAME) / "entities.safetensors"
    path.resolve().write_bytes(b"damaged")
    hub.fetched.clear()
    assert answers(deixis.load(NAME)) == answers(deixis.load(model))
    assert [name for name, _ in hub.fetched] == ["entities.safetensors"]


def test_a_folder_made_of_a_fetched_one_stands_alone(hub: Hub, model: Path, tmp_path: Path) -> None:
    push(model, NAME)
    folder = fetch(NAME)
    for name in Manifest.load(folder / MANIFEST, "model").files:
        copy_or_link(folder / name, tmp_path / "copy" / name)
    shutil.rmtree(tmp_path / "cache")
    Manifest.load(model / MANIFEST, "model").verify(tmp_path / "copy")


def test_refusals_are_one_sentence(hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(name: str) -> str:
        with pytest.raises(DeixisError) as caught:
            deixis.load(name)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    monkeypatch.setattr("time.sleep", lambda _: None)
    push(model, NAME)
    for name in ("hf://velm", "hf://", "hf://a/b/c", "hf://velm/mo del"):
        assert refused(name).endswith("names no repository; expected hf://owner/name or hf://owner/name@revision")
    assert refused("hf://velm/..") == "velm/.. cannot be the name of a repository; expected owner/name"
    assert refused("hf://velm/nothing").startswith(f"{hub.address} has no repository velm/nothing for you; check its")
    assert refused(f"{NAME}@v7") == f"{hub.address} has no revision 'v7' of velm/model"
    hub.repositories["velm/other"] = [{"model.bin": b"x"}]
    assert refused("hf://velm/other").startswith(f"velm/other at {hub.address} has no manifest.json; expected")
    files = hub.repositories["velm/model"][-1]
    hub.repositories["velm/bad"] = [files | {"encoder.safetensors": b"x"}]
    assert refused("hf://velm/bad").startswith("hf://velm/bad is damaged: encoder.safetensors is not the file that")
    hub.repositories["velm/strange"] = [files | {MANIFEST: b"{"}]
    assert refused("hf://velm/strange").endswith("is no manifest of deixis; make the model artefact again")
    hub.private.add("velm/model")
    point_to(hub.address, tmp_path / "cache2", monkeypatch, token=None)
    assert refused(NAME).startswith(f"{hub.address} has no repository velm/model for you")
    hub.fault = 500
    assert refused(NAME).startswith(f"{hub.address} ")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    point_to(nobody, tmp_path / "cache3", monkeypatch)
    assert refused(NAME) == f"{nobody} does not answer, and velm/model was not fetched before; try again online"


def test_what_cannot_be_pushed(hub: Hub, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="names a revision; push to hf://velm/model, which gets a new one"):
        push(model, f"{NAME}@v1")
    with pytest.raises(ArtefactError, match="is not a directory; expected a deixis model folder"):
        push(tmp_path / "nowhere", NAME)
    with pytest.raises(ArtefactError, match=r"manifest\.json does not exist"):
        push(tmp_path, NAME)
    damaged = tmp_path / "damaged"
    shutil.copytree(model, damaged)
    (damaged / "config.json").write_text("{}")
    with pytest.raises(ArtefactError, match=r"config\.json is damaged"):
        push(damaged, NAME)
    assert hub.repositories == {}
    point_to(hub.address, tmp_path / "cache", monkeypatch, token="hf_other")
    with pytest.raises(InputError, match="HF_TOKEN"):
        push(model, NAME)


def test_without_the_extra_it_names_the_pip_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtra, match=r"deixis\[hub\]"):
        deixis.load(NAME)


@pytest.mark.slow
def test_the_commands(hub: Hub, model: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["push", str(model), NAME, "--private"])
    assert done.exit_code == 0 and f"pushed: {hub.address}/velm/model/commit/" in done.output
    assert hub.private == {"velm/model"}
    document = tmp_path / "document.jsonl"
    document.write_bytes(make_document(3).to_json() + b"\n")
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(deixis.__file__).parents[1]),
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": TOKEN,
        "HF_HUB_DISABLE_XET": "1",
    }
    command = [sys.executable, "-m", "deixis.cli", "disambiguate", str(document), "--model", NAME]
    shown = subprocess.run(command, env=environment, capture_output=True, check=True)
    assert shown.stdout.splitlines() == [deixis.load(model).disambiguate(make_document(3)).to_json()]
