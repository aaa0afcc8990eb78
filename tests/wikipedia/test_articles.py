"""Article JSONL: what is written is read back; a bad line is named, counted and passed over."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from deixis.errors import InputError
from deixis.wikipedia.articles import Article, Link, read_articles

BUS = Article("Bus", "A bus is a vehicle.", (Link(11, 18, "Vehicle"),), id=7)
REDIRECT = Article("Omnibus", redirect="Bus")
LINES = b"".join(article.to_json() + b"\n" for article in (BUS, REDIRECT))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": lambda data: zstandard.ZstdCompressor().compress(data),
}


@pytest.mark.parametrize("suffix", COMPRESS)
def test_every_compression_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"articles.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix](LINES))
    assert list(read_articles(path)) == [BUS, REDIRECT]


def test_surface_is_the_text_of_the_link() -> None:
    assert BUS.surface(BUS.links[0]) == "vehicle"


@pytest.mark.parametrize(
    ("line", "named"),
    [
        (b"{", "not JSON"),
        (b"[]", "not an object"),
        (b'{"text": "a", "links": []}', "title is missing"),
        (b'{"title": "A", "links": []}', "text is missing"),
        (b'{"title": "A", "text": "ab", "links": [[0, 3, "B"]]}', "links[0] is [0, 3) but the text has 2"),
        (b'{"title": "A", "text": "ab", "links": [[0, 1]]}', "links[0] is [0, 1]; expected [start, end, target]"),
        (b'{"title": "A", "text": "ab", "links": [[0, true, "B"]]}', "links[0]"),
        (b'{"title": "A", "text": "ab", "links": 3}', "links is 3"),
        (b'{"title": "A", "text": "ab", "id": []}', "id is []"),
        (b'{"title": "A", "text": "ab", "redirect": 1}', "redirect is 1"),
        (b'{"title": "A", "text": "ab", "disambiguation": "no"}', "disambiguation is 'no'"),
        (b'{"title": "\xff"}', "not JSON"),
    ],
)
def test_a_bad_line_is_named_and_passed_over(tmp_path: Path, line: bytes, named: str) -> None:
    path = tmp_path / "own.jsonl"
    path.write_bytes(LINES + line + b"\n" + LINES)
    reported: list[str] = []
    assert len(list(read_articles(path, report=reported.append))) == 4
    assert len(reported) == 1
    assert f"{path}:3: " in reported[0]
    assert named in reported[0]
    with pytest.raises(InputError, match=r"own.jsonl:3: "):
        list(read_articles(path, strict=True))


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_cut_file_is_said_to_be_cut(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"articles.jsonl{suffix}"
    path.write_bytes(COMPRESS[suffix](LINES * 50_000)[:-60])
    with pytest.raises(InputError, match="is cut off or damaged"):
        list(read_articles(path, report=print))


def test_frames_one_after_the_other_are_one_file(tmp_path: Path) -> None:
    path = tmp_path / "articles.jsonl.zst"
    path.write_bytes(COMPRESS[".zst"](LINES) + COMPRESS[".zst"](b"") + COMPRESS[".zst"](LINES))
    assert len(list(read_articles(path))) == 4
