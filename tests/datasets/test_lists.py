"""Published candidate lists become a store of names."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.datasets.lists import ListFormat, import_lists
from deixis.documents import Candidate
from deixis.errors import InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.names import Names


def titles(found: tuple[Candidate, ...]) -> list[str]:
    return [candidate.entity for candidate in found]


def test_published_lists_are_imported(tmp_path: Path) -> None:
    gold = tmp_path / "lists.csv"
    gold.write_text(
        "d\td\tParis\tl\tr\tCANDIDATES\t1,0.900,Paris\t2,0.1,Paris, Texas\tGT:\t1,1,0.9,Paris\n"
        "d\td\tNowhere\tl\tr\tCANDIDATES\tEMPTYCAND\tGT:\t-1\n"
    )
    ordered = tmp_path / "lists.jsonl"
    ordered.write_text('{"meta": {"mention": "Lyon"}, "candidates": ["Lyon", "Olympique Lyonnais"]}\n')
    plain = tmp_path / "lists.tsv"
    plain.write_text("Bonn\tBonn\t12\nBonn\tBonn (album)\t3\n")
    ppr = tmp_path / "ppr"
    ppr.mkdir()
    (ppr / "1").write_text(
        "ENTITY\ttext:Ulm\torigText:Ulm\turl:NIL\n"
        "CANDIDATE\tid:1\tinCount:9\turl:http://en.wikipedia.org/wiki/Battle_of_Ulm\n"
        "CANDIDATE\tid:2\tinCount:29\turl:http://en.wikipedia.org/wiki/Ulm\n"
    )
    made = NamesBuilder()
    import_lists(made, gold, "ganea-hofmann")
    import_lists(made, ordered, "titles")
    import_lists(made, plain, "tsv")
    import_lists(made, ppr, "pprforned")
    made.save(tmp_path / "store", {}, {})
    store = Names.open(tmp_path / "store")
    assert {entry.entity: round(entry.count, 3) for entry in store.entries("paris")} == {"Paris": 9, "Paris, Texas": 1}
    assert titles(store.lookup("Lyon")) == ["Lyon", "Olympique Lyonnais"]
    assert {entry.entity: entry.count for entry in store.entries("bonn")} == {"Bonn": 12, "Bonn (album)": 3}
    assert titles(store.lookup("Ulm")) == ["Ulm", "Battle of Ulm"]


@pytest.mark.parametrize(
    ("form", "line"), [("tsv", "a\tb"), ("ganea-hofmann", "a\tb"), ("titles", "{}"), ("pprforned", "CANDIDATE\turl:x")]
)
def test_a_bad_line_is_named(tmp_path: Path, form: ListFormat, line: str) -> None:
    path = tmp_path / "lists"
    path.write_text(line + "\n")
    with pytest.raises(InputError, match="lists, line 1: "):
        import_lists(NamesBuilder(), path, form)
