"""Records of entities: what is read, what is refused, and in which sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deixis.documents import Identity
from deixis.errors import InputError
from deixis.knowledge.entities import Entity, Name, identities, read_changes, read_entities, read_wikidata

ORRIN: dict[str, Any] = {
    "title": "orrin_Works",
    "description": "maker of boats",
    "names": ["Orrin", ["OW", 0.2]],
    "url": "https://example.org/17",
    "id": "17",
    "wikidata": "Q17",
    "examples": ["She rows an [[Orrin]], he an [[OW]].", {"text": "Orrin!", "mentions": [{"start": 0, "end": 5}]}],
}


def write(path: Path, *records: Any) -> Path:
    lines = (record if isinstance(record, bytes) else json.dumps(record).encode() for record in records)
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


def test_a_record_is_read_and_written() -> None:
    orrin = Entity.from_record(ORRIN)
    assert orrin.title == "Orrin Works"
    assert orrin.names == (Name("Orrin"), Name("OW", 0.2))
    assert [[e.surface(m) for m in e.mentions] for e in orrin.examples] == [["Orrin", "OW"], ["Orrin"]]
    assert orrin.examples[0].text == "She rows an Orrin, he an OW."
    assert Entity.from_json(orrin.to_json()) == orrin
    assert identities([orrin.to_json()]) == {"Orrin Works": Identity("https://example.org/17", "17", "Q17")}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"title": " "}, "title is empty; expected a text"),
        ({"title": None}, "title is missing or null"),
        ({"title": "[MASK]"}, r"title is \[MASK\], which is reserved"),
        ({"description": ""}, "description is empty"),
        ({"description": 3}, "description is 3"),
        ({"names": "Orrin"}, "names is 'Orrin'; expected a list"),
        ({"names": ["..."]}, r"names\[0\] is '...'; expected a name with a letter or digit"),
        ({"names": ["Orrin", ["OW", 1.5]]}, r"names\[1\] has the prior 1.5; expected a number above 0"),
        ({"names": ["x" * 10_000_000]}, r"names\[0\] has 10,000,000 characters; at most 200 are taken"),
        ({"names": ["\ud800a"]}, r"names\[0\] has half of a surrogate pair"),
        ({"url": 5}, "url is 5; expected a string"),
        ({"wikidata": "17"}, "wikidata is '17'; expected an id as Q615"),
        ({"examples": ["No mention."]}, r"examples\[0\] marks no mention; write it as \[\[name\]\]"),
        ({"examples": [{"text": 1}]}, r"examples\[0\]: text is 1"),
        ({"alias": "OW"}, "there is no field 'alias'; expected title"),
    ],
)
def test_what_is_wrong_is_said_of_the_field(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Entity.from_record(ORRIN | change)


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"[1]", "is no object"),
        (b"{", "not JSON"),
        (b'{"title": "\xff"}', "not UTF-8: byte 11 of the line is 0xff"),
        ({"title": "Orrin works", "description": "a boatyard"}, None),
        ({"title": "orrin Works", "description": "a boatyard"}, "title is 'Orrin Works', which line 1 has too"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: Any, sentence: str | None) -> None:
    path = write(tmp_path / "new.jsonl", ORRIN, line)
    if sentence is None:
        assert len(list(read_entities(path))) == 2
    else:
        with pytest.raises(InputError, match=f"new.jsonl:2: .*{sentence}"):
            list(read_entities(path))


def test_changes_keep_what_they_do_not_name(tmp_path: Path) -> None:
    orrin = Entity.from_record(ORRIN)
    path = write(tmp_path / "changes.jsonl", {"title": "Orrin Works", "description": "bankrupt maker of boats"})
    (changed,) = read_changes(path, {orrin.title: orrin})
    assert changed.description == "bankrupt maker of boats"
    assert (changed.names, changed.url, changed.examples) == (orrin.names, orrin.url, orrin.examples)
    with pytest.raises(InputError, match=r"changes.jsonl:1: description is missing|title"):
        list(read_changes(write(tmp_path / "changes.jsonl", {"title": "Nobody"}), {orrin.title: orrin}))


def test_wikidata_ids_are_read(tmp_path: Path) -> None:
    (tmp_path / "ids.tsv").write_text("lionel_Messi\tQ615\nWorld Cup\tQ19317\n")
    assert read_wikidata(tmp_path / "ids.tsv") == {"Lionel Messi": "Q615", "World Cup": "Q19317"}
    (tmp_path / "ids.tsv").write_text("Lionel Messi\tQ615\nWorld Cup 19317\n")
    with pytest.raises(InputError, match=r"ids.tsv:2 has no title and Wikidata id"):
        read_wikidata(tmp_path / "ids.tsv")
