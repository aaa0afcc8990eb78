"""NIF 2.0 in Turtle, in and out: the format that GERBIL and ELEVANT exchange annotated texts in.

Offsets count Unicode characters; files whose offsets count UTF-16 units are recognised by `nif:anchorOf` and
converted. Reading needs the extra `nif` (pyoxigraph); writing needs nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from deixis.artefacts import open_text
from deixis.datasets.dataset import Dataset, Report, complaint, page_title
from deixis.documents import Document, Mention, Resolution, Resolutions, wikipedia_url
from deixis.errors import MissingExtra

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NIF_PREFIXES", "parse_nif", "read_nif", "to_turtle"]

NIF = "http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#"
ITSRDF = "http://www.w3.org/2005/11/its/rdf#"
NIF_PREFIXES = (
    f"@prefix nif: <{NIF}> .\n@prefix itsrdf: <{ITSRDF}> .\n@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
)
NERD = "http://nerd.eurecom.fr/ontology#"  # the classes of names in NIF
NERD_CLASSES = {
    "person": "Person",
    "organisation": "Organization",
    "place": "Location",
    "work": "Thing",
    "product": "Product",
    "event": "Event",
    "group": "Thing",
}

TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"

Node = dict[str, list[str]]  # predicate -> values


def read_nif(path: Path, name: str | None = None) -> Dataset:
    """Read a Turtle file; a phrase that is linked to neither Wikipedia nor DBpedia has no gold entity."""
    with open_text(path) as file:
        documents, report = parse_nif(file.read(), path)
    return Dataset(name or path.name, tuple(documents), report, nil="linked to no page of Wikipedia or DBpedia")


def parse_nif(turtle: bytes, path: Path, asked: bool = False) -> tuple[list[Document], Report]:
    """Parse Turtle; `path` names the source in errors.

    `asked`: the Turtle is a question. A nif:Phrase that links to nothing is a mention too, and the `extra` of a
    document says how to answer: `context`, its URI, and `utf16`, whether offsets count so.
    """
    nodes = _nodes(turtle, path)
    report = Report()
    by_context: dict[str, list[tuple[str, Node]]] = defaultdict(list)
    for subject, node in nodes.items():
        linked = ITSRDF + "taIdentRef" in node or (asked and NIF + "Phrase" in node.get(TYPE, []))
        for context in node.get(NIF + "referenceContext", []):
            if linked and context != subject:
                by_context[context].append((subject, node))
    contexts = {subject: node for subject, node in nodes.items() if NIF + "isString" in node}
    if not contexts:
        raise complaint(path, None, "no nif:Context with nif:isString; expected a NIF document in Turtle")
    for context in by_context:
        if context not in contexts:
            raise complaint(path, None, f"<{context}> is a nif:referenceContext without nif:isString")
    documents = [
        _document(subject, node, by_context[subject], path, report, asked) for subject, node in contexts.items()
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


def _document(
    subject: str, context: Node, phrases: Iterable[tuple[str, Node]], path: Path, report: Report, asked: bool
) -> Document:
    text = context[NIF + "isString"][0]
    mentions = []
    for phrase, node in phrases:
        report.annotations += 1
        title = _title(node.get(ITSRDF + "taIdentRef", []))
        start, end = _span(phrase, node, text, path, report)
        mentions.append(Mention(start, end, title))
    units = len(text.encode("utf-16-le")) // 2
    utf16 = units != len(text) and context.get(NIF + "endIndex") == [str(units)]
    extra = {"context": subject, "utf16": utf16} if asked else {}
    return Document(text, tuple(sorted(mentions, key=lambda m: (m.start, m.end))), _name(subject), extra)


def _name(subject: str) -> str:
    return re.sub(r"(?:#char=\d+,\d*|#offset_\d+_\d+|\?char=\d+,\d*)$", "", subject)


def _title(links: Iterable[str]) -> str | None:
    titles = (page_title(link) for link in sorted(links, reverse=True))  # Wikipedia first
    return next((title for title in titles if title is not None), None)


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


def to_turtle(resolutions: Resolutions, base: str, context: str | None = None, utf16: bool = False) -> Iterator[str]:
    """Yield the Turtle of one document with its answers, without the prefixes (`NIF_PREFIXES`).

    `base` is the URI of the document, to which `#char=start,end` is added; `context` that of its text, where it is
    another. Offsets count characters, or UTF-16 units as Java does.
    """
    text = resolutions.document.text
    places = _utf16_places(text) if utf16 else range(len(text) + 1)
    length = places[len(text)]
    whole = f"<{context or f'{base}#char=0,{length}'}>"
    yield (
        f"{whole} a nif:Context, nif:OffsetBasedString ;\n"
        f'  nif:beginIndex "0"^^xsd:nonNegativeInteger ;\n'
        f'  nif:endIndex "{length}"^^xsd:nonNegativeInteger ;\n'
        f"  nif:isString {_literal(text)} .\n"
    )
    for resolution in resolutions:
        start, end = places[resolution.start], places[resolution.end]
        yield (
            f"<{base}#char={start},{end}> a nif:Phrase, nif:OffsetBasedString ;\n"
            f"  nif:referenceContext {whole} ;\n"
            f'  nif:beginIndex "{start}"^^xsd:nonNegativeInteger ;\n'
            f'  nif:endIndex "{end}"^^xsd:nonNegativeInteger ;\n'
            f"  nif:anchorOf {_literal(resolution.text)}"
        )
        if resolution.kind is not None:
            yield f" ;\n  itsrdf:taClassRef <{NERD}{NERD_CLASSES.get(resolution.kind, 'Thing')}>"
        if resolution.entity is None and resolution.reason is not None:
            yield f' ;\n  rdfs:comment "left open: {resolution.reason}"'
        if resolution.entity is not None:
            yield (
                f' ;\n  itsrdf:taConfidence "{resolution.probability:.6f}"^^xsd:double ;\n'
                f"  itsrdf:taIdentRef {_references(resolution)}"
            )
            if resolution.known_by is not None:
                yield f' ;\n  rdfs:comment "known by {resolution.known_by}"'
        yield " .\n"


def _references(resolution: Resolution) -> str:
    """Return the URIs of an answer: its page, as GERBIL spells Wikipedia's, and its Wikidata item where it is known."""
    title, identity = quote((resolution.entity or "").replace(" ", "_"), safe="(),:'!*_"), resolution.identity
    page = "http://en.wikipedia.org/wiki/" + title
    if identity is None:
        return f"<{page}>"
    if identity.url is None:  # of a knowledge base without pages
        page = "http://deixis.invalid/entity/" + title
    elif identity.url != wikipedia_url(resolution.entity or ""):
        page = quote(identity.url, safe=":/?#[]@!$&'()*+,;=%~")  # what Turtle takes between angle brackets
    item = [] if identity.wikidata is None else [f"http://www.wikidata.org/entity/{identity.wikidata}"]
    return ", ".join(f"<{uri}>" for uri in [page, *item])


def _utf16_places(text: str) -> list[int]:
    """Return where each character starts, and where the text ends, in UTF-16 units."""
    return list(accumulate((1 + (character > "\uffff") for character in text), initial=0))


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'
