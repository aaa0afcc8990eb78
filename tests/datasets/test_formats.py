"""Small hand-written files of every format: what is read, and what is said of malformed ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from deixis.datasets import SETS, read_jsonl, read_redirects, read_set, stream_documents
from deixis.datasets.aida import read_single_file, read_standoff
from deixis.datasets.dataset import Dataset, Report
from deixis.datasets.genre import attach_genre
from deixis.datasets.nif import NIF_PREFIXES, parse_nif, read_nif, to_turtle
from deixis.datasets.pprforned import attach_pprforned
from deixis.datasets.wned import read_wned
from deixis.datasets.zelda import read_zelda
from deixis.documents import Candidate, Document, Identity, Mention, Resolution, Resolutions
from deixis.errors import InputError

ANNOTATIONS = (
    "-DOCSTART- (947testa GOLF)\r\n"
    "0\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1\r\n"
    "2\t--NME--\r\n"
    "3\tU.S.\thttp://en.wikipedia.org/wiki/United_States\t8\r\n"
    "4\tPeople\\u0027s\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2\r\n\r\n"
)
CONLL = """-DOCSTART- -X- O O

Phil NNP I-NP I-PER

Mickelson NNP I-NP I-PER
Bob NNP I-NP B-PER
U.S. NNP I-NP I-LOC
People NNP I-NP B-LOC
Party NNP I-NP I-LOC
. . O O
"""


def standoff(folder: Path, annotations: str = ANNOTATIONS, conll: str = CONLL) -> Dataset:
    (folder / "a.tsv").write_text(annotations, newline="")
    (folder / "eng.testa").write_text(conll)
    return read_standoff(folder / "a.tsv", folder / "eng.testa", "testa").in_kb()


def test_aida_standoff(tmp_path: Path) -> None:
    dataset = standoff(tmp_path)
    (document,) = dataset.documents
    assert document.text == "Phil Mickelson Bob U.S. People Party ."  # the break inside a mention is a space
    assert [(document.surface(m), m.entity, m.extra) for m in document.mentions] == [
        ("Phil Mickelson", "Phil Mickelson", {"page": 7, "kind": "person"}),
        ("U.S.", "United States", {"page": 8, "kind": "place"}),
        ("People Party", "People's Party", {"page": 9, "kind": "place"}),
    ]
    assert document.extra == {"number": 947}
    assert dataset.report.to_record()["removed"] == {"not in the knowledge base (--NME--)": 1}


def test_aida_single_file_is_the_same(tmp_path: Path) -> None:
    lines = [
        "-DOCSTART- (946 OTHER)\nx\n",
        "-DOCSTART- (947testa GOLF)",
        "Phil\tB\tPhil Mickelson\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1",
        "",
        "Mickelson\tI\tPhil Mickelson\tPhil_Mickelson\thttp://en.wikipedia.org/wiki/Phil_Mickelson\t7\t/m/1",
        "Bob\tB\tBob\t--NME--",
        "U.S.\tB\tU.S.\tU.S.\thttp://en.wikipedia.org/wiki/United_States\t8\t/m/3",
        "People\tB\tPeople Party\tx\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2",
        "Party\tI\tPeople Party\tx\thttp://en.wikipedia.org/wiki/People's_Party\t9\t/m/2",
        ".",
    ]
    (tmp_path / "AIDA-YAGO2-dataset.tsv").write_text("\n".join(lines) + "\n")
    (single,) = read_single_file(tmp_path / "AIDA-YAGO2-dataset.tsv", "testa").in_kb().documents
    (document,) = standoff(tmp_path).documents  # which also knows the kinds of the mentions
    without_kinds = (replace(m, extra={"page": m.extra["page"]}) for m in document.mentions)
    assert single == replace(document, mentions=tuple(without_kinds))
    assert read_set(tmp_path, "aida-a").mentions == 3
    (tmp_path / "AIDA-YAGO2-dataset.tsv").rename(tmp_path / "testa_testb_aggregate_original")
    assert read_set(tmp_path, "aida-a").mentions == 3  # the published folder has the same lines


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("0\tPhil", "zero\tPhil", "a.tsv, line 2: expected the number of a token"),
        ("\t7\t", "\tseven\t", "a.tsv, line 2: expected an entity, the URL"),
        ("3\tU.S.", "30\tU.S.", "a.tsv, line 4: token 30 of a document with 7 tokens"),
        ("(947testa GOLF)", "(GOLF)", "a.tsv, line 1: the heading (GOLF); expected a number"),
        ("947testa", "947testb", "1 documents, but"),
    ],
)
def test_malformed_aida(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        standoff(tmp_path, ANNOTATIONS.replace(old, new))
    assert expected in str(error.value)


def wned(folder: Path, xml: str, text: str = "A & B met B in Café\r\nBern.") -> Path:
    root = folder / "tiny"
    (root / "RawText").mkdir(parents=True, exist_ok=True)
    (root / "RawText" / "d.").write_text(text, encoding="utf-8", newline="")
    (root / "tiny.xml").write_text(xml, encoding="utf-8")
    return root


def annotation(mention: str, title: str, offset: object, length: object) -> str:
    fields = f"<mention>{mention}</mention><wikiName>{title}</wikiName><offset>{offset}</offset>"
    return f"<annotation>{fields}<length>{length}</length></annotation>"


def test_wned_places(tmp_path: Path) -> None:
    text = "\ufeffA &amp; B met B in\r\nBern, Bern"
    annotations = [
        annotation("A &amp; B", "A &amp; B", 1, 9),  # the text holds the escape: the span is right
        annotation("B", "NIL", 15, 1),
        annotation("Bern", "bern", 18, 4),  # 3 too small: the nearest is 21
    ]
    document = f'<document docName="d.">\n{"".join(annotations)}<entity/>\n</document>'
    whole = read_wned(wned(tmp_path, f"<x>{document}{document}</x>", text))
    assert [m.entity for m in whole.documents[0].mentions] == ["A & B", None, "Bern"]
    dataset = whole.in_kb()
    assert [d.id for d in dataset.documents] == ["d.", "d.#2"]
    first = dataset.documents[0]
    assert [(m.start, first.surface(m), m.entity) for m in first.mentions] == [
        (1, "A &amp; B", "A & B"),
        (21, "Bern", "Bern"),
    ]
    assert dataset.report.annotations == 6
    assert dataset.report.removed.total() == 2
    assert dataset.report.repaired.total() == 2


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (annotation("Rome", "Rome", 3, 4), "line 2: 'Rome' is not in the text of d."),
        (annotation("B", "B", "x", 4), "line 2: expected numbers"),
        ("<annotation><mention>B</mention></annotation>", "line 2: an <annotation> without <wikiName>"),
        ("<oops>", "line 2: not XML"),
        ('</document><document docName="gone">', "line 2: the text"),
    ],
)
def test_malformed_wned(tmp_path: Path, body: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        read_wned(wned(tmp_path, f'<x><document docName="d.">\n{body}</document></x>'))
    assert "tiny.xml" in str(error.value)
    assert expected in str(error.value)


PPR = (
    "ENTITY\ttext:Phil\torigText:Phil Mickelson\turl:http://en.wikipedia.org/wiki/Phil\n"
    "CANDIDATE\tid:7\tinCount:1\turl:http://en.wikipedia.org/wiki/Phil_M.\n"
    "CANDIDATE\tid:70\tinCount:3\turl:http://en.wikipedia.org/wiki/Phil\n"
    "ENTITY\ttext:Bob\torigText:Bob\turl:NIL\n"
    "ENTITY\ttext:US\torigText:U.S.\turl:http://en.wikipedia.org/wiki/United_States\n"
)


def ppr(folder: Path, lines: str) -> Dataset:
    part = folder / "AIDA_candidates" / "PART_1_1000"
    part.mkdir(parents=True, exist_ok=True)
    (part / "947").write_text(lines)
    return attach_pprforned(standoff(folder), folder)


def test_ppr(tmp_path: Path) -> None:
    dataset = ppr(tmp_path, PPR)
    first, second, third = dataset.documents[0].mentions
    assert (first.entity, first.candidates) == ("Phil M.", (Candidate("Phil", 0.75), Candidate("Phil M.", 0.25)))
    assert second.candidates == third.candidates == ()
    assert dataset.report.repaired.total() == 1  # found by its page id under a newer title
    assert dataset.report.unmatched.total() == 1  # the third is absent from the file


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("origText:U.S.", "origText:Mars", "947, line 5: origText 'Mars'; expected 'U.S.'"),
        ("inCount:3\t", "", "947, line 3: CANDIDATE without inCount:"),
        ("id:70", "id:x", "947, line 3: expected the url"),
        ("ENTITY\ttext:Phil", "THING\ttext:Phil", "947, line 1: 'THING'; expected ENTITY"),
        ("url:NIL", "url:http://en.wikipedia.org/wiki/Bob", "line 4: origText 'Bob'; expected 'U.S.'"),
    ],
)
def test_malformed_ppr(tmp_path: Path, old: str, new: str, expected: str) -> None:
    with pytest.raises(InputError) as error:
        ppr(tmp_path, PPR.replace(old, new))
    assert expected in str(error.value)


def genre_line(mention: str, answer: str, *candidates: str) -> str:
    return json.dumps({"output": [{"answer": answer}], "meta": {"mention": mention}, "candidates": candidates}) + "\n"


def test_genre(tmp_path: Path) -> None:
    (tmp_path / "g.jsonl").write_text(
        genre_line("Phil Mickelson", "", "Phil", "Phil")
        + genre_line("US", "USA", "USA", "%22US%22")
        + genre_line("people party", "People's Party")
    )
    dataset = attach_genre(standoff(tmp_path), tmp_path / "g.jsonl")
    told = [(m.entity, [c.entity for c in m.candidates or ()]) for m in dataset.documents[0].mentions]
    assert told == [("Phil Mickelson", ["Phil"]), ("USA", ["USA", '"US"']), ("People's Party", [])]
    assert (dataset.report.repaired.total(), dataset.report.noted.total()) == (1, 1)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (genre_line("Phil Mickelson", "") * 3, "line 2: the mention 'Phil Mickelson'; expected 'U.S.'"),
        (genre_line("Phil Mickelson", ""), "1 lists; expected one for each of the 3 mentions"),
        ("{}\n", "line 1: expected output[0].answer"),
        ("{\n", "line 1: not JSON"),
    ],
)
def test_malformed_genre(tmp_path: Path, lines: str, expected: str) -> None:
    (tmp_path / "g.jsonl").write_text(lines)
    with pytest.raises(InputError) as error:
        attach_genre(standoff(tmp_path), tmp_path / "g.jsonl")
    assert expected in str(error.value)


def test_zelda(tmp_path: Path) -> None:
    record = {"id": "d", "text": "Bern", "index": [[0, 4]], "wikipedia_ids": [5], "wikipedia_titles": ["Bern"]}
    (tmp_path / "z.jsonl").write_text(json.dumps(record) + "\n")
    (mention,) = read_zelda(tmp_path / "z.jsonl").documents[0].mentions
    assert (mention.entity, mention.extra) == ("Bern", {"page": 5})
    changes: list[dict[str, object]] = [{"wikipedia_ids": []}, {"text": None}, {"index": [[0, "9"]]}]
    for change in changes:
        (tmp_path / "z.jsonl").write_text(json.dumps(record) + "\n" + json.dumps(record | change) + "\n")
        with pytest.raises(InputError, match=r"z.jsonl, line 2: "):
            read_zelda(tmp_path / "z.jsonl")


@pytest.mark.parametrize("name", [name for name in SETS if name.startswith("zelda-")])
def test_every_split_of_zelda(tmp_path: Path, name: str) -> None:
    record = {"id": "d", "text": "Bern", "index": [[0, 4]], "wikipedia_ids": [5], "wikipedia_titles": ["Bern"]}
    split = name.removeprefix("zelda-").replace("wiki", "wned-wiki")
    path = tmp_path / "zelda" / f"test_{split}.jsonl"
    path.parent.mkdir()
    path.write_text(json.dumps(record) + "\n")
    dataset = read_set(tmp_path, name)
    assert (dataset.name, dataset.mentions) == (name, 1)
    assert read_set(tmp_path, str(path)).documents == dataset.documents  # the first line tells the format


def test_jsonl_names_bad_lines(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    good = Document("Bern is.", (Mention(0, 4, "bern"), Mention(5, 7)), "one").to_json().decode()
    path.write_text(f'{good}\n\n{{"text": 3}}\n{good}\n')
    with pytest.raises(InputError, match=r"d.jsonl, line 3: text is 3; expected a string"):
        list(stream_documents(path))
    report = Report()
    assert len(list(stream_documents(path, strict=False, report=report))) == 2
    assert report.unmatched.total() == 1
    dataset = read_jsonl(path, strict=False).in_kb()
    assert [m.entity for d in dataset.documents for m in d.mentions] == ["Bern", "Bern"]
    assert dataset.report.removed == {"no gold entity": 2}


def test_nif_round_trip(tmp_path: Path) -> None:
    text = 'He said "Ø😀" in\nBern \\ Zürich.'
    spans = [(text.index("Bern"), "Bern"), (text.index("Zürich"), 'Zürich "Z" (city)')]
    mentions = tuple(Mention(start, start + len(title.split()[0]), title) for start, title in spans)
    document = Document(text, mentions, "http://example.org/d 1")
    items = tuple(Resolution(m.start, m.end, document.surface(m), m.entity, 0.5, 1, ()) for m in document.mentions)
    turtle = NIF_PREFIXES + "".join(to_turtle(Resolutions(document, items), "http://example.org/d1"))
    (tmp_path / "d.ttl").write_text(turtle, encoding="utf-8")
    (read,) = read_nif(tmp_path / "d.ttl").documents
    assert (read.text, read.mentions, read.id) == (text, mentions, "http://example.org/d1")
    utf16 = turtle.replace(f'"{mentions[0].start}"', f'"{mentions[0].start + 1}"').replace(
        f'"{mentions[0].end}"', f'"{mentions[0].end + 1}"'
    )
    documents, report = parse_nif(utf16.encode(), tmp_path)
    assert documents[0].mentions[0].start == mentions[0].start
    assert report.repaired == {"offsets in UTF-16 units converted to characters": 1}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.replace(" .\n<", " <"), "line 3: not Turtle"),
        (lambda t: t.replace('anchorOf "Bern"', 'anchorOf "Rome"'), "nif:anchorOf 'Rome' is not there"),
        (lambda t: t.replace("nif:isString", "nif:other"), "no nif:Context with nif:isString"),
        (lambda t: t.replace('beginIndex "3"', 'beginIndex "x"'), "has no numbers in nif:beginIndex"),
    ],
)
def test_malformed_nif(tmp_path: Path, change: Callable[[str], str], expected: str) -> None:
    document = Document("In Bern", (Mention(3, 7),))
    answers = Resolutions(document, (Resolution(3, 7, "Bern", "Bern", 1.0, 1),))
    turtle = NIF_PREFIXES + "".join(to_turtle(answers, "http://example.org/d"))
    with pytest.raises(InputError) as error:
        parse_nif(change(turtle).encode(), Path("d.ttl"))
    assert "d.ttl" in str(error.value)
    assert expected in str(error.value)


def test_nif_links_elsewhere_are_counted(tmp_path: Path) -> None:
    document = Document("In Bern", (Mention(3, 7),))
    answers = Resolutions(document, (Resolution(3, 7, "Bern", "Bern", 1.0, 1),))
    turtle = NIF_PREFIXES + "".join(to_turtle(answers, "http://example.org/d"))
    (tmp_path / "d.ttl").write_text(turtle.replace("http://en.wikipedia.org", "http://aksw.org"), encoding="utf-8")
    dataset = read_nif(tmp_path / "d.ttl")
    assert dataset.documents[0].mentions == (Mention(3, 7),)
    assert dataset.in_kb().report.removed == {"linked to no page of Wikipedia or DBpedia": 1}


def test_redirect_tables(tmp_path: Path) -> None:
    (tmp_path / "r.tsv").write_text("old_title\tNew_title\nSame_one\tSame one\n")
    (tmp_path / "r.json").write_text('{"old_title": "New_title"}')
    assert read_redirects(tmp_path / "r.tsv") == read_redirects(tmp_path / "r.json") == {"Old title": "New title"}
    (tmp_path / "r.tsv").write_bytes(b"a\tb\nc\t\xff\n")
    with pytest.raises(InputError, match=r"r.tsv, line 2: not UTF-8"):
        read_redirects(tmp_path / "r.tsv")
    (tmp_path / "r.tsv").write_text("a\tb\nold\n")
    with pytest.raises(InputError, match=r"r.tsv, line 2: expected old title"):
        read_redirects(tmp_path / "r.tsv")


def test_unknown_sets_and_missing_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no set is called 'aida'"):
        read_set(tmp_path, "aida")
    with pytest.raises(InputError, match="msnbc does not exist; point --data"):
        read_set(tmp_path, "msnbc")


def test_turtle_tells_own_pages_and_wikidata_items() -> None:
    document = Document("Orrin rows Zed.", (Mention(0, 5), Mention(11, 14)))
    page = "https://en.wikipedia.org/wiki/Orrin_(lake)"
    items = (
        Resolution(0, 5, "Orrin", "Orrin (lake)", 0.9, 1, identity=Identity(page, wikidata="Q7")),
        Resolution(11, 14, "Zed", "Zed", 0.9, 2, identity=Identity("https://example.org/a b>c")),
    )
    turtle = "".join(to_turtle(Resolutions(document, items), "http://example.org/d"))
    assert "<http://en.wikipedia.org/wiki/Orrin_(lake)>, <http://www.wikidata.org/entity/Q7> ." in turtle
    assert "taIdentRef <https://example.org/a%20b%3Ec> ." in turtle
    nowhere = (items[0], Resolution(11, 14, "Zed", "Zed", 0.9, 2, identity=Identity()))
    assert "<http://deixis.invalid/entity/Zed>" in "".join(to_turtle(Resolutions(document, nowhere), "http://e.org/d"))
