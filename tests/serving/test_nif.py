"""NIF requests and answers, without a server: limits are named, answers are ASCII under the URIs of the request."""

from __future__ import annotations

import pytest
import rdflib

from deixis.documents import Document, Mention, Resolution, Resolutions
from deixis.serving.http_errors import HttpError
from deixis.serving.limits import Limits
from deixis.serving.nif import read_nif_call, write_nif
from tests.serving.test_endpoints import ITSRDF, NIF, gerbil

TEXT = "messi won the cup"


def test_phrases_become_mentions() -> None:
    (document,) = read_nif_call(gerbil(TEXT, [(14, 17), (0, 5)]), Limits())
    assert document.text == TEXT
    assert sorted((mention.start, mention.end) for mention in document.mentions) == [(0, 5), (14, 17)]
    assert read_nif_call(gerbil(TEXT, []), Limits())[0].mentions == ()


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (Limits(max_mentions=1), "nif:Phrase"),
        (Limits(max_text=16), "nif:isString"),
    ],
)
def test_a_limit_is_named(limits: Limits, name: str) -> None:
    with pytest.raises(HttpError, match=f"{name} is over the limit") as caught:
        read_nif_call(gerbil(TEXT, [(0, 5), (14, 17)]), limits)
    assert caught.value.status == 422


def test_too_many_contexts() -> None:
    body = gerbil(TEXT, [], "http://example.org/a") + gerbil(TEXT, [], "http://example.org/b")
    with pytest.raises(HttpError, match="nif:Context is over the limit: 2"):
        read_nif_call(body, Limits(max_documents=1))


def test_an_answer_is_ascii_and_keeps_what_was_written() -> None:
    (document,) = read_nif_call(gerbil("Zoë 😀 won", [(0, 3)]), Limits())
    found = Resolution(0, 3, "Zoë", "Zoë (singer)", 0.9, 1)
    answer = write_nif([Resolutions(document, (found,))])
    assert answer.isascii()
    graph = rdflib.Graph().parse(data=answer, format="turtle")
    assert [str(text) for text in graph.objects(None, NIF.isString)] == ["Zoë 😀 won"]
    assert [str(entity) for entity in graph.objects(None, ITSRDF.taIdentRef)] == [
        "http://en.wikipedia.org/wiki/Zo%C3%AB_(singer)"
    ]


def test_a_mention_without_an_answer_has_no_link() -> None:
    (document,) = read_nif_call(gerbil(TEXT, [(0, 5)]), Limits())
    assert isinstance(document, Document) and document.mentions[0] == Mention(0, 5)
    left_open = Resolution(0, 5, "messi", None, 0.0, 0, (), "no candidates", kind="person")
    graph = rdflib.Graph().parse(data=write_nif([Resolutions(document, (left_open,))]), format="turtle")
    assert not list(graph.objects(None, ITSRDF.taIdentRef))
    (phrase,) = graph.subjects(rdflib.RDF.type, NIF.Phrase)
    assert [str(told) for told in graph.objects(phrase, rdflib.RDFS.comment)] == ["left open: no candidates"]
    assert [str(kind) for kind in graph.objects(phrase, ITSRDF.taClassRef)] == [
        "http://nerd.eurecom.fr/ontology#Person"
    ]
