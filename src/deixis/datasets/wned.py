"""The five WNED sets: `<set>.xml` with offsets into `RawText/<docName>` (protocol 5).

Annotations whose `wikiName` is empty or `NIL` are not in the knowledge base. Two documents of one name are two
documents: the second is called `name#2`.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from deixis.artefacts import open_text
from deixis.datasets.dataset import Dataset, Report, complaint, gold_title
from deixis.documents import Document, Mention

__all__ = ["read_wned"]

FIELDS = ("mention", "wikiName", "offset", "length")
NOT_IN_KB = "not in the knowledge base (no wikiName or NIL)"


@dataclass(slots=True)
class _Annotated:
    name: str
    line: int
    annotations: list[tuple[int, dict[str, str]]] = field(default_factory=list)  # (line, field -> text)


def read_wned(folder: Path, name: str | None = None) -> Dataset:
    """Read a WNED folder, e.g. `wned-datasets/msnbc`, into the dataset `name`."""
    path = folder / f"{folder.name}.xml"
    report = Report()
    seen: Counter[str] = Counter()
    documents = []
    for given in _read_xml(path):
        seen[given.name] += 1
        if seen[given.name] > 1:
            report.noted["documents with the name of an earlier one, kept apart"] += 1
        id_ = given.name if seen[given.name] == 1 else f"{given.name}#{seen[given.name]}"
        text = _read_text(folder / "RawText" / given.name, path, given.line)
        documents.append(Document(text, tuple(_mentions(given, text, path, report)), id_))
    return Dataset(name or folder.name, tuple(documents), report, nil=NOT_IN_KB)


def _read_text(path: Path, xml: Path, line: int) -> str:
    if not path.exists():
        raise complaint(xml, line, f"the text {path} does not exist; expected a file for every document")
    try:
        return path.read_bytes().decode("utf-8")  # no newline translation, a BOM is a character: offsets count both
    except UnicodeDecodeError:
        raise complaint(path, None, "not UTF-8; expected text in UTF-8") from None


def _mentions(given: _Annotated, text: str, path: Path, report: Report) -> list[Mention]:
    mentions = []
    for line, fields in given.annotations:
        report.annotations += 1
        title = gold_title(fields["wikiName"])
        found = _place(fields, text, path, line, report if title is not None else Report())
        if found is not None:
            mentions.append(Mention(*found, title))
        elif title is None:
            report.removed[NOT_IN_KB] += 1
        else:
            where = f"{fields['mention']!r} is not in the text of {fields['document']}"
            raise complaint(path, line, f"{where}; the offset says {fields['offset']}")
    return mentions


def _place(fields: Mapping[str, str], text: str, path: Path, line: int, report: Report) -> tuple[int, int] | None:
    """Return the span of an annotation; where the offset is broken that of the nearest occurrence, None without one."""
    mention = fields["mention"]
    if not (fields["offset"].isdecimal() and fields["length"].isdecimal()):
        raise complaint(path, line, "expected numbers in <offset> and <length>")
    start, end = int(fields["offset"]), int(fields["offset"]) + int(fields["length"])
    surface = text[start:end]
    if surface == mention:
        return start, end
    if html.unescape(surface) == mention:  # the text holds a literal &amp;, and offset and length count it
        report.noted["text holds an HTML escape inside the mention, span kept"] += 1
        return start, end
    before, after = text.rfind(mention, 0, start + len(mention)), text.find(mention, start)
    found = [place for place in (before, after) if place >= 0]
    if not found or not mention:
        return None
    nearest = min(found, key=lambda place: abs(place - start))
    report.repaired["broken offset moved to the nearest occurrence of the mention"] += 1
    return nearest, nearest + len(mention)


def _read_xml(path: Path) -> list[_Annotated]:
    """Read the documents with expat, which knows the line of every element."""
    reader = _Reader(path)
    with open_text(path) as file:
        try:
            reader.parser.ParseFile(file)
        except expat.ExpatError as error:
            raise complaint(path, error.lineno, f"not XML ({expat.ErrorString(error.code)})") from None
    if not reader.documents:
        raise complaint(path, None, "no <document>; expected documents with annotations")
    return reader.documents


class _Reader:
    """What expat calls: collects <document docName> elements and the fields of their <annotation>s."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.documents: list[_Annotated] = []
        self.fields: dict[str, str] | None = None
        self.name: str | None = None  # of the field being read
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        if tag == "document":
            if "docName" not in attributes:
                raise complaint(self.path, line, "<document> without docName")
            self.documents.append(_Annotated(attributes["docName"], line))
        elif tag == "annotation":
            if not self.documents:
                raise complaint(self.path, line, "<annotation> outside a <document>")
            self.fields = {"document": self.documents[-1].name}
        elif tag in FIELDS and self.fields is not None:
            self.name = tag
            self.fields[tag] = ""

    def characters(self, text: str) -> None:
        if self.fields is not None and self.name is not None:
            self.fields[self.name] += text

    def end(self, tag: str) -> None:
        if tag == self.name:
            self.name = None
        if tag == "annotation" and self.fields is not None:
            line = self.parser.CurrentLineNumber
            for name in FIELDS:
                if name not in self.fields:
                    raise complaint(self.path, line, f"an <annotation> without <{name}>; expected {', '.join(FIELDS)}")
            self.documents[-1].annotations.append((line, self.fields))
            self.fields = None
