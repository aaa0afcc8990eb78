"""Windows: what is read back is what was packed; strangers are refused."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest
from deixis.corpus import shards
from deixis.corpus.packing import Packer, split_of
from deixis.corpus.settings import PackingConfig
from deixis.corpus.shards import build_windows
from deixis.corpus.windows import SPLITS, WindowSet
from deixis.errors import ArtefactError, InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import MAX_MENTIONS, MAX_PIECES
from deixis.network.special import PAD, UNK
from deixis.wikipedia.articles import Article, Link
from deixis.wikipedia.sentences import sentences
from tests.worlds import make_tokenizer


def test_arrays_are_cut_at_their_offsets(tmp_path: Path) -> None:
    vocabulary = Vocabulary.of(["Bonn", "Köln"])
    arrays: dict[str, NDArray[Any]] = {
        "pieces": np.arange(10, dtype=np.uint16),
        "window_offsets": np.array([0, 4, 10], np.int64),
        "mention_offsets": np.array([0, 1, 3], np.int64),
        "spans": np.array([[0, 2], [0, 1], [3, 6]], np.uint16),
        "rows": np.array([3, 4, 1], np.int32),
    }
    for split in SPLITS:
        (tmp_path / split).mkdir()
        for name, array in arrays.items():
            np.save(tmp_path / split / f"{name}.npy", array)
    Manifest("windows", {"candidates": 0}, {"vocabulary": vocabulary.digest}).save(tmp_path / MANIFEST)
    windows = WindowSet.open(tmp_path, "train", vocabulary)
    assert len(windows) == 2
    assert windows.pieces.tolist() == list(range(10)) and windows.candidates is None
    assert windows.usable().tolist() == [0, 1]
    with pytest.raises(ArtefactError, match="was made from the vocabulary"):
        WindowSet.open(tmp_path, "train", Vocabulary.of(["Bonn"]))
    (tmp_path / "train" / "rows.npy").unlink()
    with pytest.raises(ArtefactError, match="is missing"):
        WindowSet.open(tmp_path)


TEXT = "Bonn is a city on the Rhine. It was the capital of West Germany until the year 1990. Fine."


def page(title: str, text: str, *surfaces: str) -> Article:
    at = [(text.index(surface), surface) for surface in surfaces]
    return Article(title, text, tuple(Link(start, start + len(name), name) for start, name in at))


def packer(vocabulary: Vocabulary, **settings: Any) -> Packer:
    return Packer(PackingConfig(**({"held_out": 0} | settings)), vocabulary, make_tokenizer(), {"Bonna": "Bonn"})


def test_sentences_end_where_sentences_end() -> None:
    text = "Dr. A. B. Smith met J. Doe in St. Louis. It rained!  Then (he said) no.\nHeading\nIn the U.S. Army."
    found = [text[start:end] for start, end in sentences(text)]
    assert found == [
        "Dr. A. B. Smith met J. Doe in St. Louis.",
        "It rained!",
        "Then (he said) no.",
        "Heading",
        "In the U.S. Army.",
    ]
    link = text.index("Louis. It")
    assert next(sentences(text, [(link, link + 9)])) == (0, text.index("  Then"))


@given(st.text("aB. !\n", max_size=40), st.integers(0, 30), st.integers(1, 9))
def test_sentences_cover_the_text_and_cut_no_span(text: str, start: int, length: int) -> None:
    end = start + length
    spans = [(start, end)] if end <= len(text) and not text[start:end].count("\n") else []
    found = list(sentences(text, spans))
    assert "".join("".join(text[a:b].split()) for a, b in found) == "".join(text.split())
    assert all(text[a:b] == text[a:b].strip() for a, b in found)
    for begin, stop in spans:
        solid = [at for at in range(begin, stop) if not text[at].isspace()]
        assert len({(a, b) for a, b in found for at in solid if a <= at < b}) <= 1


def test_windows_hold_whole_sentences_with_their_links() -> None:
    vocabulary = Vocabulary.of(["Bonn", "Rhine"])
    made = packer(vocabulary)
    arrays = made.pack([page("X", TEXT, "Bonn", "Rhine", "West Germany")])["train"]
    tokenizer = make_tokenizer()
    assert arrays["rows"].tolist() == [vocabulary.row("Bonn"), vocabulary.row("Rhine"), UNK]
    pieces = arrays["pieces"].tolist()
    spelled = ["".join(tokenizer.tokens(pieces[a:b])).replace("##", "") for a, b in arrays["spans"].tolist()]
    assert spelled == ["bonn", "rhine", "westgermany"]
    whole = "".join(tokenizer.tokens(pieces)).replace("##", "")
    assert whole == TEXT.lower().replace(" ", "")
    assert arrays["window_offsets"].tolist() == [0, len(pieces)]


def test_long_pages_are_split_and_crumbs_dropped() -> None:
    vocabulary = Vocabulary.of(["Bonn"])
    made = packer(vocabulary, max_pieces=60, min_sentence=8)
    text = "\n".join(["Bonn again and again.", "x.", "a" * 100, "No link is in this sentence at all, no."] * 3)
    links = tuple(Link(found.start(), found.end(), "Bonna") for found in re.finditer("Bonn", text))
    arrays = made.pack([Article("X", text, links)])["train"]
    lengths = np.diff(arrays["window_offsets"])
    assert (lengths <= 60).all()
    assert arrays["rows"].tolist() == [vocabulary.row("Bonn")] * 3
    assert made.counts["sentences dropped: under 8 pieces"] == 3
    assert made.counts["sentences dropped: over 60 pieces"] == 3
    assert made.counts["links kept"] == made.counts["links"] == 3
    assert all(start < end for start, end in arrays["spans"].tolist())
    nothing = made.pack([page("Y", TEXT), page("Z", TEXT, "West Germany")])["train"]
    assert len(nothing["rows"]) == 0
    assert made.counts["windows dropped: no links"] >= 1
    assert made.counts["windows dropped: no link in the vocabulary"] >= 1


def test_no_window_has_more_mentions_than_allowed() -> None:
    made = packer(Vocabulary.of(["Bonn"]), max_mentions=3)
    text = "Bonn and Bonn and Bonn and Bonn. Bonn and Bonn here."
    links = tuple(Link(found.start(), found.end(), "Bonn") for found in re.finditer("Bonn", text))
    arrays = made.pack([Article("X", text, links)])["train"]
    assert np.diff(arrays["mention_offsets"]).tolist() == [3, 2]
    assert made.counts["links dropped: over 3 in a sentence"] == 1


def test_articles_are_held_out_by_title_and_seed() -> None:
    config = PackingConfig(held_out=0.25)
    titles = [f"Title {number}" for number in range(2000)]
    held = {title for title in titles if split_of(title, config) == "held-out"}
    assert 400 < len(held) < 600
    assert held != {title for title in titles if split_of(title, PackingConfig(held_out=0.25, seed=1)) == "held-out"}
    with pytest.raises(InputError, match="held_out"):
        PackingConfig(held_out=1.0)
    assert (PackingConfig().max_pieces, PackingConfig().max_mentions) == (MAX_PIECES, MAX_MENTIONS)


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """Files of a small world: articles, a description, a vocabulary, a tokenizer, a store."""
    names = ["Bonn", "Rhine", "West Germany"]
    pages = [page(f"Page {number}", TEXT * (1 + number % 7), *names[: 1 + number % 3]) for number in range(60)]
    pages.insert(5, Article("Bonna", redirect="Bonn"))
    (tmp_path / "articles.jsonl").write_bytes(b"".join(one.to_json() + b"\n" for one in pages) + b"{broken\n")
    (tmp_path / "descriptions.tsv").write_text("Rhine\tThe Rhine is a river in Europe.\nUlm\tA city.\n")
    Vocabulary.of(names).save(tmp_path / "vocabulary.jsonl")
    (tmp_path / "bert").mkdir()
    make_tokenizer().save(tmp_path / "bert")
    builder = NamesBuilder()
    builder.add_link("Bonn", "West Germany", 3)
    builder.add_link("Bonn", "Nowhere", 2)
    builder.save(tmp_path / "store", {}, {})
    return tmp_path


COMPLAINTS: list[str] = []


def build(sources: Path, name: str, workers: int = 1, **settings: Any) -> Manifest:
    return build_windows(
        [sources / "articles.jsonl"],
        sources / "vocabulary.jsonl",
        sources / "bert",
        sources / name,
        PackingConfig(**({"held_out": 0.2, "candidates": 3} | settings)),
        descriptions=[sources / "descriptions.tsv"],
        store=sources / "store",
        workers=workers,
        report=COMPLAINTS.append,
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_windows_are_the_same_for_any_number_of_workers_and_after_a_kill(
    sources: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "PART_BYTES", 1_500)
    COMPLAINTS.clear()
    manifest = build(sources, "whole")
    assert manifest.counts["articles"] == 61
    assert [complaint.split(" (")[0] for complaint in COMPLAINTS] == [f"{sources / 'articles.jsonl'}:62: not JSON"]
    assert manifest.counts["lines dropped: not readable"] == 1
    assert manifest.counts["descriptions dropped: the subject is not named"] == 1
    build(sources, "two", workers=2)
    assert contents(sources / "two") == contents(sources / "whole")
    with monkeypatch.context() as smaller:
        smaller.setattr(shards, "PART_BYTES", 1)  # each line by itself
        build(sources, "lines")
    assert contents(sources / "lines") == contents(sources / "whole")

    made: list[Path] = []
    make = shards._make

    def dies(part: Any) -> list[str]:
        if len(made) == 4:
            raise KeyboardInterrupt
        made.append(part.path)
        return make(part)

    monkeypatch.setattr(shards, "_make", dies)
    with pytest.raises(KeyboardInterrupt):
        build(sources, "killed")
    assert not (sources / "killed").exists()

    def notes(part: Any) -> list[str]:
        made.append(part.path)
        return make(part)

    monkeypatch.setattr(shards, "_make", notes)
    build(sources, "killed")
    assert len(made) == len(set(made)), "a finished part was made again"
    assert contents(sources / "killed") == contents(sources / "whole")
    assert not list(sources.glob("*.parts"))


def test_candidate_rows_hold_the_entity_and_its_rivals(sources: Path) -> None:
    build(sources, "windows")
    vocabulary = Vocabulary.load(sources / "vocabulary.jsonl")
    windows = WindowSet.open(sources / "windows", "train", vocabulary)
    Manifest.load(sources / "windows" / MANIFEST, "windows").verify(sources / "windows")
    assert windows.candidates is not None
    assert windows.candidates.shape == (len(windows.rows), 3)
    bonn, germany = vocabulary.row("Bonn"), vocabulary.row("West Germany")
    assert windows.candidates[0].tolist() == [germany, bonn, PAD]
    assert all(row in listed for row, listed in zip(windows.rows, windows.candidates, strict=True))
    with pytest.raises(ArtefactError, match="was made from the vocabulary"):
        WindowSet.open(sources / "windows", "held-out", Vocabulary.of(["Rhine", "Bonn"]))


def test_other_parameters_are_another_artefact(sources: Path) -> None:
    first = build(sources, "windows")
    assert build(sources, "windows") == first
    assert build(sources, "windows", seed=1).digest != first.digest
    empty = build(sources, "all", held_out=0)
    assert len(WindowSet.open(sources / "all", "held-out")) == 0
    assert empty.counts["windows, train"] == len(WindowSet.open(sources / "all"))
    with pytest.raises(InputError, match="without a store"):
        build_windows(
            [sources / "articles.jsonl"],
            sources / "vocabulary.jsonl",
            sources / "bert",
            sources / "none",
            PackingConfig(candidates=3),
        )
    with pytest.raises(InputError, match="does not exist"):
        build_windows([sources / "nothing.jsonl"], sources / "vocabulary.jsonl", sources / "bert", sources / "none")


@pytest.mark.slow
def test_the_command_killed_with_its_workers_goes_on(sources: Path) -> None:
    line = page("Page", TEXT, "Bonn").to_json() + b"\n"
    (sources / "many.jsonl").write_bytes(line * 2500)
    command = [
        sys.executable,
        "-m",
        "deixis.cli",
        "wikipedia",
        "windows",
        "many.jsonl",
        "--vocabulary",
        "vocabulary.jsonl",
    ]
    command += ["--tokenizer", "bert", "--workers", "2", "-o"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    killed = subprocess.Popen([*command, "killed"], cwd=sources, env=environment, stdout=subprocess.DEVNULL)
    while killed.poll() is None and not list(sources.glob("killed.parts/*/*.npz")):
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    for name in ("killed", "whole"):
        subprocess.run([*command, name], cwd=sources, env=environment, check=True, capture_output=True)
    assert contents(sources / "killed") == contents(sources / "whole")
    assert len(WindowSet.open(sources / "whole")) == 2500
