"""Tables and inference sequences as text, Markdown, HTML and JSON."""

from __future__ import annotations

from html.parser import HTMLParser

from rich.console import Console

from deixis.documents import Document, Identity, Mention, Resolution, Resolutions
from deixis.rendering import (
    Table,
    bars_text,
    linked_html,
    linked_text,
    page,
    reliability_svg,
    sequence_html,
    sequence_record,
    sequence_text,
)

TEXT = "Burke & <Walker> met\nWales [sic]."
DOCUMENT = Document(TEXT, (Mention(0, 5, "Matt Burke"), Mention(9, 15, "Nigel Walker"), Mention(21, 26)), "rugby")
ANSWERS = Resolutions(
    DOCUMENT,
    (
        Resolution(0, 5, "Burke", "Matt Burke", 0.75, 2),
        Resolution(9, 15, "Walker", "Nigel Walker (footballer)", 0.5, 3),
        Resolution(21, 26, "Wales", "Wales", 1.0, 1),
    ),
)


def test_sequence_in_the_terminal() -> None:
    shown = sequence_text(ANSWERS).plain
    assert shown.startswith("Burke[2✓] & <Walker[3✗]> met\nWales[1] [sic].")
    assert shown.splitlines()[-3:] == [
        "   1   Wales → Wales  1.000",
        "   2 ✓ Burke → Matt Burke  0.750",
        "   3 ✗ Walker → Nigel Walker (footballer)  0.500   gold: Nigel Walker",
    ]


def test_sequence_as_json() -> None:
    decisions = sequence_record(ANSWERS)["decisions"]
    assert [(d["step"], d["verdict"]) for d in decisions] == [(1, "open"), (2, "right"), (3, "wrong")]


class Outline(HTMLParser):
    """Checks that tags nest, and collects what refers to other files."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.references: list[str] = []
        self.marks: list[tuple[str | None, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "input", "br", "rect", "line"):
            self.open.append(tag)
        given = dict(attrs)
        self.references += [str(given[name]) for name in ("src", "href") if name in given]
        if tag == "mark":
            self.marks.append((given["class"], given["data-step"]))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line"):
            assert self.open.pop() == tag


def test_a_self_contained_page() -> None:
    rows = [("0.0–0.5", 0.25, 0.3, 4), ("0.5–1.0", 0.9, 0.8, 10)]
    table = Table("T & U", ("a", "b"), (("<x>", "1"),))
    outline = Outline()
    whole = page("x < y", [table.to_html(), reliability_svg(rows), sequence_html(ANSWERS, "rugby <1>")])
    outline.feed(whole)
    assert outline.open == []
    assert outline.references == []
    assert outline.marks == [("right", "2"), ("wrong", "3"), ("open", "1")]
    assert "&lt;<mark" in whole


def test_tables() -> None:
    table = Table("T", ("a", "b"), (("[x]", "1|2"),), "a note")
    assert table.to_markdown() == "**T**\n\n| a | b |\n|---|---:|\n| [x] | 1\\|2 |\n\na note\n"
    console = Console(width=60, record=True, file=None, quiet=False)
    with console.capture() as capture:
        console.print(table.to_rich())
    assert "[x]" in capture.get()


def test_bars() -> None:
    text = bars_text([("0.0–1.0", 0.5, 0.75, 4), ("empty", 0.0, 0.0, 0)], width=8)
    assert text.splitlines()[0] == "  0.0–1.0 ████··│·  50.0% right at  75.0% (4)"
    assert text.splitlines()[1] == "    empty ········   none"


def _shown(resolutions: Resolutions) -> str:
    console = Console(width=160, record=True)
    with console.capture() as captured:
        console.print(linked_text(resolutions))
    return captured.get()


def test_a_linked_text_tells_kinds_ids_and_why_names_are_open() -> None:
    known = Resolution(
        0, 5, "Burke", "Matt Burke", 0.75, 1, known_by="title", identity=Identity("https://b", None, "Q7")
    )
    unfit = Resolution(
        9, 15, "Walker", None, 0.25, 1, (("Nigel Walker", 0.25), ("Walker", 0.1)), "none fits", kind="person"
    )
    unknown = Resolution(21, 26, "Wales", None, 0.0, 0, (), "no candidates", kind="place")
    linked = Resolutions(DOCUMENT, (known, unfit, unknown))
    lines = [line.split() for line in _shown(linked).splitlines()]
    assert ["mention", "entity", "p", "kind", "known", "by", "Wikidata", "link"] in lines
    assert ["1", "Burke", "Matt", "Burke", "0.75", "title", "Q7", "https://b"] in lines
    assert ["–", "Walker", "none", "fits:", "Nigel", "Walker", "has", "0.25", "person"] in lines
    assert ["–", "Wales", "no", "candidates", "place"] in lines
    shown = linked_html(linked)
    assert "<td><i>none fits: Nigel Walker has 0.25</i></td><td></td><td>person</td><td></td><td></td>" in shown
    assert '<u title="place, no candidates">Wales</u>' in shown and "<td>title</td><td>Q7</td>" in shown
    plain = _shown(Resolutions(DOCUMENT, ANSWERS.items))
    assert "kind" not in plain and "Wikidata" not in plain and "known by" not in plain  # where nothing is known of any
