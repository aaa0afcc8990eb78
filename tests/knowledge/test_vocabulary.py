"""The vocabulary: who gets a row, in which order, and what the files say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deixis.artefacts import Manifest, manifest_path
from deixis.corpus.counting import build_vocabulary
from deixis.errors import InputError
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.special import MASK, PAD, SPECIAL, UNK
from deixis.wikipedia.articles import Article, Link

titles = st.text("abcABC ", min_size=1, max_size=4)


@given(st.dictionaries(titles, st.integers(0, 5)), st.sets(titles, max_size=3), st.integers(1, 4))
def test_rows_go_by_count_then_title_behind_the_special_rows(
    counts: dict[str, int], include: set[str], least: int
) -> None:
    vocabulary = Vocabulary.build(counts, min_count=least, include=include)
    assert tuple(vocabulary.titles[:3]) == SPECIAL
    assert (PAD, UNK, MASK) == (0, 1, 2)
    rest = list(zip(vocabulary.titles, vocabulary.counts, strict=True))[3:]
    assert rest == sorted(rest, key=lambda row: (-row[1], row[0]))
    assert {title for title, _ in rest} == include | {title for title, count in counts.items() if count >= least}
    shuffled = dict(reversed(counts.items()))
    assert Vocabulary.build(shuffled, min_count=least, include=include).digest == vocabulary.digest


def test_the_limit_keeps_the_white_list_and_then_the_most_linked() -> None:
    counts = {"Bonn": 5, "Köln": 9, "Ulm": 1}
    assert Vocabulary.build(counts, include=["Trier"], limit=2).titles[3:] == ["Köln", "Trier"]
    with pytest.raises(InputError, match="raise the limit"):
        Vocabulary.build(counts, include=["Trier", "Ulm"], limit=1)


def articles(path: Path) -> Path:
    found = [
        Article("Rhine", "Bonn and Koeln and Bonn", (Link(0, 4, "Bonn"), Link(9, 14, "Koeln"), Link(19, 23, "Bonn"))),
        Article("Koeln", redirect="Cologne"),
        Article("Colonia", "Cologne", (Link(0, 7, "Colonia Agrippina"),)),
    ]
    path.write_bytes(b"\n".join(article.to_json() for article in found) + b"\n{broken\n")
    return path


def test_a_table_leads_to_titles_that_have_rows() -> None:
    vocabulary = Vocabulary([*SPECIAL, "RAF", "Home Depot", "Depot", "Bonn"], [0, 0, 0, 2, 5, 1, 3])
    table = {
        "RAF": "Royal Air Force",
        "R.A.F.": "Royal Air Force",
        "Depot": "The Home Depot",
        "Home Depot": "The Home Depot",
    }
    led = {"Royal Air Force": "RAF", "R.A.F.": "RAF", "The Home Depot": "Home Depot", "Depot": "Home Depot"}
    other = {"Bonna": "Bonn", "Ulma": "Ulm"}
    assert vocabulary.lead(table | other) == led | other


def test_articles_become_a_vocabulary_with_redirects_resolved(tmp_path: Path) -> None:
    given = articles(tmp_path / "articles.jsonl")
    (tmp_path / "redirects.tsv").write_text("Colonia Agrippina\tCologne\n")
    (tmp_path / "titles.txt").write_text("trier\nKoeln\n")
    output = tmp_path / "vocabulary.jsonl"
    complaints: list[str] = []

    def build() -> Manifest:
        tables, include = [tmp_path / "redirects.tsv"], [tmp_path / "titles.txt"]
        return build_vocabulary([given], output, tables=tables, include=include, min_count=2, report=complaints.append)

    manifest = build()
    vocabulary = Vocabulary.load(output)
    assert dict(zip(vocabulary.titles[3:], vocabulary.counts[3:], strict=True)) == {"Bonn": 2, "Cologne": 2, "Trier": 0}
    assert manifest.counts["links"] == 4
    assert complaints == [f"{given}:4: {complaints[0].split(': ', 1)[1]}"]
    assert Manifest.load(manifest_path(output), "vocabulary") == manifest
    first = output.read_bytes()
    output.unlink()
    assert build() == manifest
    assert output.read_bytes() == first


def test_lukes_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "entity_vocab.jsonl"
    records = [{"id": row, "entities": [[title, None]], "count": 0} for row, title in enumerate((*SPECIAL, "Bonn"))]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert Vocabulary.load(path).row("Bonn") == 3
