"""The summary beside articles: it says what reading them says, and spares the steps behind it from doing so."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from deixis.artefacts import digest_file, manifest_path
from deixis.cli import app
from deixis.errors import ArtefactError
from deixis.toy import DUMP
from deixis.wikipedia import summary as module
from deixis.wikipedia.extraction import build_articles
from deixis.wikipedia.leads import lead_of
from deixis.wikipedia.summary import (
    LinkCount,
    Summary,
    digest_articles,
    link_lines,
    merge_links,
    read_redirect_pages,
    read_summary,
)
from tests.wikipedia.samples import dump, page
from tests.worlds import make_tokenizer


def told(summary: Summary) -> tuple[list[Any], dict[str, str], list[Any]]:
    pages = [(one.title, one.id, one.lead, one.meanings and list(one.meanings)) for one in summary.pages]
    return pages, dict(summary.redirects), sorted(summary.links)


def test_it_says_what_reading_the_articles_says(tmp_path: Path) -> None:
    first, other = tmp_path / "a.jsonl.zst", tmp_path / "b.jsonl.zst"
    pages = [
        page("Bus", "A bus is a [[coach]] for all.\n\nNo [[coach]] is an [[omnibus]].", 1),
        page("Omnibus", "#REDIRECT [[Bus]]", 2, redirect="Bus"),
        page("Coach", "{{Disambig}}\n* [[Bus]]\n* [[Trainer]]", 3),
    ]
    (tmp_path / "dump.xml").write_bytes(dump(pages))
    build_articles([tmp_path / "dump.xml", DUMP], first, workers=1)
    shutil.copyfile(first, other)
    beside, read = read_summary(first), read_summary(other)
    assert told(beside) == told(read) == told(beside), "it can be gone through again"
    assert next(iter(beside.pages)) == ("Bus", 1, "A bus is a coach for all.", None)
    assert list(beside.pages)[1][3] == ["Bus", "Trainer"]
    assert LinkCount("coach", "Coach", 2) in list(beside.links)
    assert read_redirect_pages(first) == read_redirect_pages(other) == dict(beside.redirects)
    assert digest_articles(first) == digest_articles(other) == digest_file(first)
    first.write_bytes(first.read_bytes() + b"\n")
    with pytest.raises(ArtefactError, match=r"a.jsonl.zst has [\d,]+ bytes, but a.jsonl.zst.manifest.json describes"):
        read_summary(first)


COUNTS = st.dictionaries(st.tuples(st.text(max_size=3), st.text("ab,]1", max_size=3)), st.integers(1, 99), max_size=9)


@settings(deadline=None, max_examples=30)  # files are synced
@given(st.lists(COUNTS, max_size=6))
def test_merged_counts_are_summed(tmp_path_factory: pytest.TempPathFactory, parts: list[dict[Any, int]]) -> None:
    folder = tmp_path_factory.mktemp("merged")
    total: Counter[tuple[str, str]] = Counter()
    paths = []
    for number, part in enumerate(parts):
        total.update(part)
        paths.append(folder / str(number))
        paths[-1].write_bytes(link_lines(Counter(part)))
    folder.joinpath("summary").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "AT_ONCE", 2)
        merge_links(paths, folder / "summary" / "links.jsonl.zst")
    lines = module._Lines(folder / "summary" / "links.jsonl.zst", lambda line: LinkCount(*orjson.loads(line)))
    assert [tuple(one) for one in lines] == [(*pair, count) for pair, count in sorted_as_json(total)]


def sorted_as_json(counts: Counter[tuple[str, str]]) -> list[tuple[tuple[str, str], int]]:
    return sorted(counts.items(), key=lambda item: orjson.dumps((*item[0], item[1])))


@pytest.mark.parametrize(
    ("title", "text", "lead"),
    [
        ("Orrin (lake)", "Boats on the shore\nOrrin is a lake. It is deep.", "Orrin is a lake."),
        ("Velm", "The island of Velm is small. It has two towns.", "The island of Velm is small."),
        ("Ada Marlow", "A caption of a picture\nMarlow rows; her first name is Ada, and she is from Velm.",
         "Marlow rows; her first name is Ada, and she is from Velm."),
        ("Rain", "Weather", "Weather"),
        ("Rain", "", ""),
        ("A", "b " * 400, ("b " * 400)[:400]),
    ],
)  # fmt: skip
def test_a_lead_names_its_subject(title: str, text: str, lead: str) -> None:
    assert lead_of(title, text) == lead


_opened: Counter[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event == "open" and isinstance(arguments[0], str | Path) and arguments[1] != "wb":
        _opened[Path(arguments[0]).name] += 1


def test_from_dump_to_windows_articles_are_read_twice(tmp_path: Path) -> None:
    """Once where names are looked for in all texts, when all names are known, and once to make windows."""
    global _opened
    make_tokenizer().save(tmp_path)
    articles, table = tmp_path / "articles.jsonl.zst", tmp_path / "redirects.tsv"
    commands: list[list[Any]] = [
        ["wikipedia", "articles", DUMP, "-o", articles, "--workers", 1],
        ["wikipedia", "redirects", articles, "-o", table],
        ["wikipedia", "vocabulary", articles, "--redirects", table, "-o", tmp_path / "vocabulary.jsonl"],
        ["candidates", "build", articles, "--redirects", table, "-o", tmp_path / "store", "--workers", 1],
        [
            *("wikipedia", "windows", articles, "--redirects", table, "--vocabulary", tmp_path / "vocabulary.jsonl"),
            *("--tokenizer", tmp_path, "-o", tmp_path / "windows", "--workers", 1),
        ],
    ]
    sys.addaudithook(_note)
    _opened = Counter()
    try:
        for command in commands:
            done = CliRunner().invoke(app, list(map(str, command)))
            assert done.exit_code == 0, (command, done.exception)
        assert _opened[articles.name] == 2
        assert _opened[manifest_path(articles).name] > 0, "opens are seen"
    finally:
        _opened = None
