"""NIF 2.0 in Turtle, in and out: the format that GERBIL and ELEVANT exchange annotated texts in.

Offsets count Unicode characters; files whose offsets count UTF-16 units are recognised by `nif:anchorOf` and
converted. Reading needs the extra `nif` (pyoxigraph); writing needs nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from deixis.artefacts import open_text
from deixis.datasets.dataset import Dataset, Report, complaint, gold_title
from deixis.documents import Document, Mention, Resolutions
from deixis.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NIF_PREFIXES", "parse_nif", "read_nif", "to_turtle"]

NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
ITSRDF = "http://www.w3.org/2005/11/its/rdf#"
NIF_PREFIXES = (
    f"@prefix nif: <{NIF}> .\n@prefix itsrdf: <{ITSRDF}> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
)
KNOWN_BASE = re.compile(r"https?://(?:[a-z]+\.)?(?:wikipedia\.org/wiki|dbpedia\.org/resource)/(.+)")

Node = dict[str, list[str]]  # predicate -> values


def read_nif(path: Path, name: str | None = None) -> Dataset:
    """Read a Turtle file; links to anything but English Wikipedia or DBpedia are left out and counted."""
    with open_text(path) as file:
        documents, report = parse_nif(file.read(), path)
    return Dataset(name or path.name, tuple(documents), report)


def parse_nif(turtle: bytes, path: Path) -> tuple[list[Document], Report]:
    """Parse Turtle; `path` names the source in errors."""
    nodes = _nodes(turtle, path)
    report = Report()
    by_context: dict[str, list[tuple[str, Node]]] = defaultdict(list)
    for subject, node in nodes.items():
        for context in node.get(NIF + "referenceContext", []):
            if ITSRDF + "taIdentRef" in node and context != subject:
                by_context[context].append((subject, node))
    contexts = {subject: node for subject, node in nodes.items() if NIF + "isString" in node}
    if not contexts:
        raise complaint(path, None, "no nif:Context with nif:isString; expected a NIF document in Turtle")
    for context in by_context:
        if context not in contexts:
            raise complaint(path, None, f"<{context}> is a nif:referenceContext without nif:isString")
    documents = [
        _document(subject, node[NIF + "isString"][0], by_context[subject], path, report)
        for subject, node in contexts.items()
    ]
    return documents, report


def _nodes(turtle: bytes, path: Path) -> Mapping[str, Node]:
    try:
        from pyoxigraph import Literal, NamedNode, RdfFormat, parse
    except ImportError:
        raise MissingExtra("pyoxigraph, which reads NIF,", "nif") from None
    nodes: dict[str, Node] = {}
    try:
        for quad in parse(turtle, format=RdfFormat.TURTLE):
            if isinstance(quad.subject, NamedNode) and isinstance(quad.object, NamedNode | Literal):
                node = nodes.setdefault(quad.subject.value, {})
                node.setdefault(quad.predicate.value, []).append(quad.object.value)
    except SyntaxError as error:
        raise complaint(path, error.lineno, f"not Turtle ({error.msg})") from None
    return nodes


def _document(subject: str, text: str, phrases: Iterable[tuple[str, Node]], path: Path, report: Report) -> Document:
    mentions = []
    for phrase, node in phrases:
        report.annotations += 1
        title = _title(node[ITSRDF + "taIdentRef"])
        if title is None:
            report.removed["linked to no page of Wikipedia or DBpedia"] += 1
            continue
        start, end = _span(phrase, node, text, path, report)
        mentions.append(Mention(start, end, title))
    return Document(text, tuple(sorted(mentions, key=lambda m: (m.start, m.end))), _name(subject))


def _name(subject: str) -> str:
    return re.sub(r"(?:#char=\d+,\d*|#offset_\d+_\d+|\?char=\d+,\d*)$", "", subject)


def _title(links: Iterable[str]) -> str | None:
    found = [match[1] for link in sorted(links, reverse=True) if (match := KNOWN_BASE.match(link))]  # Wikipedia first
    return gold_title(unquote(found[0])) if found else None


def _span(phrase: str, node: Node, text: str, path: Path, report: Report) -> tuple[int, int]:
    try:
        start, end = (int(node[NIF + key][0]) for key in ("beginIndex", "endIndex"))
    except (KeyError, ValueError):
        raise complaint(path, None, f"<{phrase}> has no numbers in nif:beginIndex and nif:endIndex") from None
    anchor = node.get(NIF + "anchorOf", [None])[0]
    if 0 <= start < end <= len(text) and anchor in (None, text[start:end]):
        return start, end
    units = text.encode("utf-16-le")
    if anchor is not None and units[2 * start : 2 * end] == anchor.encode("utf-16-le"):
        report.repaired["offsets in UTF-16 units converted to characters"] += 1
        characters = len(units[: 2 * start].decode("utf-16-le"))
        return characters, characters + len(anchor)
    raise complaint(path, None, f"<{phrase}> is [{start}, {end}) but nif:anchorOf {anchor!r} is not there in the text")


def to_turtle(resolutions: Resolutions, base: str) -> Iterator[str]:
    """Yield the Turtle of one document with its answers, without the prefixes (`NIF_PREFIXES`).

    `base` is the URI of the document, to which `#char=start,end` is added.
    """
    text = resolutions.document.text
    context = f"<{base}#char=0,{len(text)}>"
    yield (
        f"{context} a nif:Context, nif:OffsetBasedString ;\n"
        f'  nif:beginIndex "0"^^xsd:nonNegativeInteger ;\n'
        f'  nif:endIndex "{len(text)}"^^xsd:nonNegativeInteger ;\n'
        f"  nif:isString {_literal(text)} .\n"
    )
    for resolution in resolutions:
        if resolution.entity is None:
            continue
        page = "http://en.wikipedia.org/wiki/" + quote(resolution.entity.replace(" ", "_"), safe="(),:'!*_")
        yield (
            f"<{base}#char={resolution.start},{resolution.end}> a nif:Phrase, nif:OffsetBasedString ;\n"
            f"  nif:referenceContext {context} ;\n"
            f'  nif:beginIndex "{resolution.start}"^^xsd:nonNegativeInteger ;\n'
            f'  nif:endIndex "{resolution.end}"^^xsd:nonNegativeInteger ;\n'
            f"  nif:anchorOf {_literal(resolution.text)} ;\n"
            f'  itsrdf:taConfidence "{resolution.probability:.6f}"^^xsd:double ;\n'
            f"  itsrdf:taIdentRef <{page}> .\n"
        )


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
