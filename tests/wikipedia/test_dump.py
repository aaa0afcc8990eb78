"""Dumps: every schema, compression and cut gives the pages that are there."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest

from deixis.errors import InputError
from deixis.wikipedia import dump as module
from deixis.wikipedia.dump import Dump, Page, dumps_of, read_pages
from tests.wikipedia.samples import HEAD, TAIL, dump, old_page, page, sample_dumps

PAGES = [page(f"Title & {n}", f'Text <{n}> &amp; "ü"', n) for n in range(30)]


def titles(path: Path) -> list[str]:
    return [found.title for found in read_pages(Dump.open(path))]


def cuts(path: Path) -> list[tuple[str | None, int]]:
    return [(cut, left) for _, cut, left in (chunk.read() for chunk in Dump.open(path).chunks()) if cut or left]


def multistream() -> tuple[bytes, list[int]]:
    """Return a dump as Wikimedia writes it, ten pages a stream, and where the streams begin."""
    streams = [HEAD, *("".join(PAGES[n : n + 10]) for n in (0, 10, 20)), TAIL]
    compressed = [bz2.compress(stream.encode()) for stream in streams]
    return b"".join(compressed), [sum(map(len, compressed[:n])) for n in (1, 2, 3)]


def test_a_page_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(dump([page("A & B", "x < y &amp; z", 7, redirect="C")]))
    assert list(read_pages(Dump.open(path))) == [Page("A & B", 7, 0, "x < y &amp; z", "C", "wikitext")]


def test_the_schema_of_2006_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    pages = [
        old_page("Bus", "a"),
        old_page("Datei:Bus", "b"),
        old_page("X: Y", "c"),
        old_page("Z", "#REDIRECT [[Bus]]"),
    ]
    path.write_bytes(dump(pages))
    found = list(read_pages(Dump.open(path)))
    assert [(p.namespace, p.redirect) for p in found] == [(0, None), (6, None), (0, None), (0, "Bus")]


@pytest.mark.parametrize("name", ["a.xml", "a.xml.bz2", "a.xml.gz", "utf16.xml.bz2", "blocks.xml.bz2", "multi.bz2"])
def test_every_form_gives_the_same_pages(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 2000)
    monkeypatch.setattr(module, "STREAMS", 200)
    monkeypatch.setattr(module, "BLOCK", 500)
    plain = dump(PAGES)
    forms = {
        "a.xml": plain,
        "a.xml.bz2": bz2.compress(plain),
        "a.xml.gz": gzip.compress(plain),
        "utf16.xml.bz2": bz2.compress(plain.decode().encode("utf-16")),
        "blocks.xml.bz2": b"".join(bz2.compress(plain[n : n + 700]) for n in range(0, len(plain), 700)),  # pbzip2's way
        "multi.bz2": multistream()[0],
    }
    path = tmp_path / name
    path.write_bytes(forms[name])
    assert titles(path) == [f"Title & {n}" for n in range(30)]
    assert len(list(Dump.open(path).chunks())) > 2
    assert cuts(path) == []


def test_an_index_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "STREAMS", 1)
    data, starts = multistream()
    path = tmp_path / "xx-pages-articles-multistream.xml.bz2"
    index = tmp_path / "xx-pages-articles-multistream-index.txt.bz2"
    path.write_bytes(data)
    lines = [f"{start}:{n}:Title" for start in starts for n in range(10)]
    index.write_bytes(bz2.compress("\n".join(lines).encode()))
    (opened,) = dumps_of([index, path])
    assert opened.offsets == (0, *starts)
    assert [found.title for found in read_pages(opened)] == [f"Title & {n}" for n in range(30)]
    with pytest.raises(InputError, match="index of a dump that was not given"):
        dumps_of([index])
    index.write_bytes(bz2.compress(b"nonsense"))
    with pytest.raises(InputError, match=r"index.txt.bz2:1 is no line of a multistream index"):
        dumps_of([index, path])


def test_a_cut_dump_is_read_to_the_cut(tmp_path: Path) -> None:
    plain = dump(PAGES)
    path = tmp_path / "cut.xml"
    path.write_bytes(plain[: plain.index(b"Title &amp; 20") + 40])
    assert len(titles(path)) == 20
    assert cuts(path) == [(f"{path} is cut off: it does not end with </mediawiki>", 1)]


def test_a_cut_bzip2_file_is_read_to_the_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut.xml.bz2"
    path.write_bytes(bz2.compress(dump(PAGES[:20])[: -len(TAIL)]) + bz2.compress(dump(PAGES))[:-20])
    assert len(titles(path)) == 20
    assert [cut for cut, _ in cuts(path)] == [f"{path} is cut off: its last bzip2 stream has no end"]


@pytest.mark.parametrize("lost", [30, 200])
def test_a_cut_multistream_file_is_read_to_the_cut(tmp_path: Path, lost: int) -> None:
    data, _ = multistream()
    path = tmp_path / "cut.xml.bz2"
    path.write_bytes(data[:-lost])
    assert len(titles(path)) in (20, 30)
    assert len(cuts(path)) == 1


def test_other_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_text("<html></html>")
    with pytest.raises(InputError, match=r"a.xml is no MediaWiki XML dump"):
        Dump.open(path)
    with pytest.raises(InputError, match="cannot read"):
        Dump.open(tmp_path / "none.xml")
    path.write_bytes(b"")
    with pytest.raises(InputError, match="no MediaWiki"):
        Dump.open(path)


def test_every_page_of_the_sample_dumps_is_read() -> None:
    expected = {"dbpedia": 27, "dumpsterdive_small": 2004, "gensim_bgwiki": 3, "gensim_enwiki-latest": 206}
    for path in sample_dumps():
        for name, count in expected.items():
            if path.name.startswith(name):
                assert len(titles(path)) == count
