"""Everything known, by the recipe's command: a small world of files, its redirects, texts and names."""

from __future__ import annotations

import importlib
import lzma
from pathlib import Path
from typing import Any

import orjson
import pytest

from deixis.artefacts import read_lines
from deixis.knowledge.names import Names
from deixis.wikipedia.redirects import read_redirects

RECIPE = Path(__file__).parents[1] / "recipes" / "default"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(RECIPE))
    module = importlib.import_module("known")
    monkeypatch.setattr(module, "read_places", lambda titles, names: [("Oarwick, Velm", "Oarwick is a place in Velm.")])
    return module


def packed(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress("".join(f"{line}\n" for line in lines).encode()))


def article(title: str, text: str, links: dict[str, str]) -> str:
    spans = sorted((text.index(surface), text.index(surface) + len(surface), to) for surface, to in links.items())
    return orjson.dumps({"title": title, "text": text, "links": spans}).decode()


@pytest.fixture
def made(known: Any, tmp_path: Path) -> Path:
    """The artefacts of a world of four pages."""
    wikipedia, out = tmp_path / "wikipedia", tmp_path / "out"
    for name in (*known.PAGES, *known.ANNOTATED, *known.DESCRIPTIONS):
        packed(wikipedia / name, [])
    for name in (*known.MOVED, "aliases-en.tsv.xz", "aliases-2022-lower-en.tsv.xz", "football-clubs.tsv.xz"):
        packed(wikipedia / "redirects" / name, [])
    race = article(
        "Silver Oar", "The Silver Oar is a race on the Velm that Lena Brandt won.", {"Lena Brandt": "Brandt"}
    )
    lists = article("Rowers", "1961 – Tom Marsh, rower of Halle (d. 2001)", {"Tom Marsh": "Tom Marsh"})
    enwik8 = wikipedia / "enwik8.jsonl"
    enwik8.write_text(race + "\n")
    packed(wikipedia / known.ANNOTATED[-1], [lists])
    said = "Lena Marie Brandt, also known as the Oar Queen, is a rower."
    clubs = "Halle F.C. is a football club."
    packed(wikipedia / known.DESCRIPTIONS[1], [f"Lena Brandt\t{said}\tlead", f"Halle F.C.\t{clubs}\tlead"])
    packed(wikipedia / "redirects" / "aliases-2022-lower-en.tsv.xz", ["brandt\tlena brandt\t", "nobody\tunknown\t"])
    packed(
        wikipedia / "redirects" / "football-clubs.tsv.xz", ["Halle FC, 1901, @ Ground, Halle\tVelm\tThe Rowers # old"]
    )
    packed(wikipedia / "simple-en.jsonl.xz", [orjson.dumps({"title": "Halle F.C.", "text": "It plays."}).decode()])
    include = wikipedia / "include.txt"
    include.write_text("Velm Cup\n")
    given = ["--include", str(include), str(out), "--wikipedia", str(wikipedia), "--enwik8", str(enwik8)]
    assert known.main(given) == 0
    return out


def test_a_world_is_made(made: Path) -> None:
    assert read_redirects(made / "redirects.tsv") == {"Brandt": "Lena Brandt"}
    texts = dict(line.decode().split("\t") for _, line in read_lines(made / "texts.tsv.zst"))
    assert texts == {
        "Halle F.C.": "Halle F.C. is a football club.",
        "Lena Brandt": "Lena Marie Brandt, also known as the Oar Queen, is a rower.",
        "Oarwick, Velm": "Oarwick is a place in Velm.",
        "Silver Oar": "The Silver Oar is a race on the Velm that Lena Brandt won.",
        "Tom Marsh": "rower of Halle (d. 2001)",
        "Velm Cup": "",
    }
    names = Names.open(made / "everything")
    for surface in ("Brandt", "Lena Brandt", "Oar Queen", "Lena Marie Brandt"):
        assert [candidate.entity for candidate in names.lookup(surface)] == ["Lena Brandt"]
    assert [candidate.entity for candidate in names.lookup("The Rowers")] == ["Halle F.C."]
    assert [candidate.entity for candidate in names.lookup("Oarwick")] == ["Oarwick, Velm"]
    assert {title for title, _ in names.titles()} == set(texts) - {"Velm Cup"}
    shipped = (made / "ship.txt").read_text().splitlines()
    assert sorted(shipped) == sorted(texts) and shipped[:2] == ["Velm Cup", "Oarwick, Velm"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 The Badgers are a team. 2 Overview", "The Badgers are a team. 2 Overview"),
        ("1999 was a year.", "1999 was a year."),
        ("Velm () is a river. Category:Rivers", "Velm is a river."),
    ],
)
def test_descriptions_are_tidied(known: Any, text: str, expected: str) -> None:
    assert known.tidied("1999" if text.startswith("1999") else "Velm", text) == expected


def test_pages_keep_the_titles_of_an_earlier_table(known: Any) -> None:
    now = {"People's Republic of China": "China", "PRC": "China"}
    earlier = {"China": "People's Republic of China", "WEIR": "Weir", "Constantine I": "Constantine", "Old": "New"}
    texts = {
        "WEIR": "A radio station.",
        "Weir": "A dam.",
        "Constantine I": "Constantine was …",
        "Constantine": "He was …",
    }
    assert known.keep_titles(now, earlier, texts) == {
        "China": "People's Republic of China",
        "PRC": "People's Republic of China",
        "Constantine I": "Constantine",
        "Old": "New",
    }
