"""`deixis wikipedia articles`: what is kept, counted and said; the same bytes whatever happens on the way."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from deixis.artefacts import Manifest, digest_file, manifest_path
from deixis.errors import InputError
from deixis.wikipedia import dump as dump_module
from deixis.wikipedia.articles import Article, Link, read_articles
from deixis.wikipedia.extraction import build_articles
from deixis.wikipedia.parallel import cores
from deixis.wikipedia.summary import summary_folder
from tests.wikipedia.samples import dump, page

pytestmark = pytest.mark.slow

PAGES = [
    page("Bus", "A [[coach]] and an [[omnibus]] in [[Datei:X]] [[loop]].[[Kategorie:Y]]", 1),
    page("Omnibus", "#REDIRECT [[Wagon]]", 2, redirect="Wagon"),
    page("Wagon", "#REDIRECT [[Coach]]", 3, redirect="Coach"),
    page("Loop", "#REDIRECT [[Loop]]", 4, redirect="Loop"),
    page("Coach", "{{Disambig}} * [[Bus]]", 5),
    page('Say "hi"', "text", 6),
    page("Hi", "#REDIRECT", 7, redirect='Say "hi"'),
    page("Vorlage:Z", "z", 8, namespace=10),
    page("Empty", "", 9),
    page("Out", "#REDIRECT [[Vorlage:Z]]", 10, redirect="Vorlage:Z"),
]


def words(seed: int, count: int) -> str:
    source = random.Random(seed)
    return " ".join(f"[[word {source.randrange(99)}]]s {{{{t}}}} and" for _ in range(count))


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A dump of some 3 MB."""
    path = tmp_path / "large.xml"
    path.write_bytes(dump(page(f"Page {n}", words(n, 60), n) for n in range(1500)))
    return path


def test_what_is_kept_and_counted(tmp_path: Path) -> None:
    path, output = tmp_path / "a.xml", tmp_path / "out" / "articles.jsonl.zst"
    path.write_bytes(dump(PAGES))
    extraction = build_articles([path], output, workers=1)
    assert list(read_articles(output)) == [
        Article("Bus", "A coach and an omnibus in loop.", (Link(2, 7, "Coach"), Link(15, 22, "Coach")), 1),
        Article("Omnibus", id=2, redirect="Coach"),
        Article("Wagon", id=3, redirect="Coach"),
        Article("Coach", "Bus", (Link(0, 3, "Bus"),), 5, disambiguation=True),
        Article('Say "hi"', "text", id=6),
        Article("Hi", id=7, redirect='Say "hi"'),
    ]
    assert extraction.counts == {
        "pages": {"articles": 2, "disambiguation pages": 1, "read": 10, "redirects": 3},
        "dropped": {
            "no text": 1, "other namespace": 1, "redirect self": 1, "redirect to another namespace or wiki": 1,
        },
        "links": {"found": 4, "kept": 3, "through a redirect": 1},
        "links passed over": {"category": 1, "file": 1, "redirect self": 1},
        "redirects": {"chain": 1, "direct": 2, "self": 1, "targets that are no page of the dump": 0},
    }  # fmt: skip
    manifest = Manifest.load(manifest_path(output), "articles")
    assert manifest.files == {
        str(path.relative_to(output.parent)): digest_file(path) for path in (output, *summary_folder(output).iterdir())
    }
    assert manifest.parents == {"a.xml": digest_file(path)}
    assert manifest.counts == extraction.counts
    assert sorted(output.parent.iterdir()) == [output, manifest_path(output), summary_folder(output)]


def test_a_redirect_table_of_ones_own(tmp_path: Path) -> None:
    path, output, table = tmp_path / "a.xml", tmp_path / "articles.jsonl.zst", tmp_path / "own.tsv"
    path.write_bytes(dump(PAGES))
    table.write_text("coach\tWagon\n")
    build_articles([path], output, redirects=table, workers=1)
    bus, *_ = read_articles(output)
    assert [link.target for link in bus.links] == ["Wagon", "Wagon"]


def test_workers_change_no_byte(tmp_path: Path, large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dump_module, "CHUNK", 1 << 18)
    monkeypatch.setattr(dump_module, "BLOCK", 1 << 18)
    one, two = tmp_path / "1.jsonl.zst", tmp_path / "2.jsonl.zst"
    build_articles([large, large], one, workers=1)
    seen: list[tuple[int, int, int]] = []
    build_articles([large, large], two, workers=2, progress=lambda *state: seen.append(state))
    assert one.read_bytes() == two.read_bytes()
    assert len(list(read_articles(two))) == 3000
    assert seen[-1] == (2 * large.stat().st_size, 2 * large.stat().st_size, 3000)


def command(*arguments: object, **environment: str) -> subprocess.Popen[str]:
    small = "from deixis.wikipedia import dump; dump.CHUNK = dump.BLOCK = 1 << 17; from deixis.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", small, "wikipedia", "articles", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_killed_and_started_again_it_ends_with_the_same_bytes(tmp_path: Path, large: Path) -> None:
    whole, output = tmp_path / "whole.jsonl.zst", tmp_path / "killed.jsonl.zst"
    process = command(large, "-o", whole, "--workers", 1)
    process.communicate()
    assert process.returncode == 0
    for parts in (1, 5, 12):
        process = command(large, "-o", output, "--workers", 2)
        folder = tmp_path / "killed.jsonl.zst.parts"
        while process.poll() is None and len(list(folder.glob("*.zst"))) < parts:
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        process.communicate()  # waits for the workers too: they hold its pipes, and end with it
        assert not output.exists()
        assert len(list(folder.glob("*.zst"))) >= parts
    process = command(large, "-o", output, "--workers", 2)
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert "1,500  pages: read" in out
    assert output.read_bytes() == whole.read_bytes()
    counts = [json.loads(manifest_path(path).read_bytes())["counts"] for path in (whole, output)]
    assert counts[0] == counts[1]
    assert not folder.exists()


def test_cores_are_counted_where_the_system_tells_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert cores() == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert cores() == 1


def test_a_truncated_dump_is_said_and_no_error(tmp_path: Path, large: Path) -> None:
    large.write_bytes(large.read_bytes()[: 1 << 20])
    process = command(large, "-o", tmp_path / "a.jsonl.zst", "--workers", 1)
    out, err = process.communicate()
    assert process.returncode == 0
    assert err == f"deixis: {large} is cut off: it does not end with </mediawiki>; all before that was read\n"
    assert "1  pages: cut off" in out


def test_a_full_disk_is_one_sentence_and_parts_are_kept(
    tmp_path: Path, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dump_module, "CHUNK", 1 << 18)
    monkeypatch.setattr(dump_module, "BLOCK", 1 << 18)
    output = tmp_path / "a.jsonl.zst"
    real, calls = os.fsync, 0

    def full(descriptor: int) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match=r"000003.zst: No space left on device; finished parts are kept \(3\), run"):
        build_articles([large], output, workers=1)
    assert not output.exists()
    build_articles([large], output, workers=1)
    assert len(list(read_articles(output))) == 1500


def test_parts_of_another_dump_are_not_used(tmp_path: Path, large: Path) -> None:
    output = tmp_path / "a.jsonl.zst"
    folder = tmp_path / "a.jsonl.zst.parts"
    folder.mkdir()
    (folder / "key.json").write_text("[]")
    (folder / "000000.zst").write_text("stale")
    build_articles([large], output, workers=1)
    assert len(list(read_articles(output))) == 1500


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.xml", "-o", "a.jsonl.zst"], "deixis: cannot read none.xml: No such file or directory\n"),
        (["none.xml", "-o", "a.jsonl"], "deixis: a.jsonl must end in .zst: articles are written as "),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str) -> None:
    process = command(*arguments)
    _, err = process.communicate()
    assert process.returncode == 1
    assert err.startswith(sentence)
    assert err.count("\n") == 1
