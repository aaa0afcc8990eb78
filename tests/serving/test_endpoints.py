"""Documents, texts and NIF in, resolutions out; what is wrong is refused in one sentence that names the field."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
import rdflib

from deixis.documents import Document
from deixis.inference import Disambiguator
from deixis.serving.limits import Limits
from tests.serving.world import make_model, serving
from tests.worlds import make_disambiguator, make_document

NIF = rdflib.Namespace("http://persistence.uni-leipzig.org/nlp2rdf/ontologies/nif-core#")
ITSRDF = rdflib.Namespace("http://www.w3.org/2005/11/its/rdf#")
TEXT = "messi won the cup of the city"


def record(seed: int, **more: Any) -> dict[str, Any]:
    return make_document(seed).to_record() | more


def same(found: Any, expected: Any) -> None:
    """Equal, probabilities up to what batching may round."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            same(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for left, right in zip(found, expected, strict=True):
            same(left, right)
    else:
        assert found == (pytest.approx(expected, abs=1e-4) if isinstance(expected, float) else expected)


def test_a_document_comes_back_resolved(client: httpx.Client) -> None:
    document = make_document(1)
    answer = client.post("/disambiguate", json=record(1, source="kept")).raise_for_status().json()
    expected = make_model().disambiguate(document)
    same(answer, orjson.loads(expected.to_json()) | {"source": "kept"})


def test_the_answer_has_the_shape_of_the_question(client: httpx.Client) -> None:
    single = [client.post("/disambiguate", json=record(seed)).json() for seed in range(3)]
    listed = client.post("/disambiguate", json=[record(seed) for seed in range(3)]).json()
    named = client.post("/disambiguate", json={"documents": [record(seed) for seed in range(3)]}).json()
    same(listed, single)
    same(named, {"documents": single})
    assert client.post("/disambiguate", json=[]).json() == []


def test_settings_are_fields(client: httpx.Client) -> None:
    for order in ("local", "natural", "confidence"):
        found = client.post("/disambiguate", json=record(2, order=order, top=3, commit="one")).json()
        expected = make_model().disambiguate(make_document(2), order=order, top=3)
        same(found["mentions"], orjson.loads(expected.to_json())["mentions"])
        assert "order" not in found and "trace" not in found
    traced = client.post("/disambiguate", json=record(2, trace=True)).json()
    assert [step["step"] for step in traced["trace"]] == list(range(1, 7))


def test_the_store_is_asked_where_no_candidates_are_given(client: httpx.Client) -> None:
    answer = client.post("/disambiguate", json={"text": TEXT, "mentions": [{"start": 14, "end": 17}]}).json()
    assert {title for title, _ in answer["mentions"][0]["resolution"]["alternatives"]} == {
        "Entity 10",
        "Entity 11",
        "Entity 12",
    }


def test_link_finds_mentions_and_leaves_the_unsure_unresolved(client: httpx.Client) -> None:
    answer = client.post("/link", json={"text": TEXT, "id": "a"}).json()
    assert [(m["start"], m["end"]) for m in answer["mentions"]] == [(0, 5), (14, 17), (25, 29)]
    for mention in answer["mentions"]:
        if mention["resolution"] is None:
            assert mention["reason"] == "none fits"
        else:
            assert mention["resolution"]["probability"] >= 0.5
    assert answer["id"] == "a"
    assert len(client.post("/link", json=[{"text": TEXT}, {"text": ""}]).json()) == 2
    assert client.post("/link", json={"text": "nothing here"}).json()["mentions"] == []
    given = client.post("/link", json={"text": TEXT, "mentions": [{"start": 0, "end": 5}]})
    assert given.status_code == 422 and "POST /disambiguate" in given.json()["error"]


def test_candidates_of_a_surface(client: httpx.Client) -> None:
    answer = client.get("/candidates", params={"surface": "Messi"}).json()
    assert answer["surface"] == "Messi" and [title for title, _ in answer["candidates"]] == ["Entity 5", "Entity 6"]
    assert [known["entity"] for known in answer["entities"]] == ["Entity 5", "Entity 6"]
    assert answer["entities"][0]["url"] == "https://en.wikipedia.org/wiki/Entity_5"
    assert client.get("/candidates", params={"surface": "atlantis"}).json()["candidates"] == []
    for missing in client.get("/candidates"), client.get("/candidates", params={"surface": ""}):
        assert missing.status_code == 422 and missing.json()["error"].startswith("surface")


def test_candidates_are_those_that_linking_considers(island: Path) -> None:
    """A surname is found by the parts of names too, not only under the key of the surface."""
    nlp = Disambiguator.load(island / "model")
    with serving(nlp) as address:
        for surface in ("Lena", "Brandt", "Velm"):
            listed = httpx.get(f"{address}/candidates", params={"surface": surface}).json()["candidates"]
            mention = {"start": 0, "end": len(surface)}
            answer = httpx.post(f"{address}/disambiguate", json={"text": surface, "mentions": [mention]}).json()
            considered = {title for title, _ in answer["mentions"][0]["resolution"]["alternatives"]}
            assert considered == {title for title, _ in listed if nlp.vocabulary.row(title) is not None}


def test_a_model_without_a_store_says_so() -> None:
    with serving(make_disambiguator(2)) as address:
        for answer in (
            httpx.post(f"{address}/link", json={"text": TEXT}),
            httpx.get(f"{address}/candidates?surface=messi"),
            httpx.post(f"{address}/nif", content=gerbil(TEXT, [])),
        ):
            assert answer.status_code == 501 and "no names to find mentions by" in answer.json()["error"]
        mention = httpx.post(
            f"{address}/disambiguate", json={"text": TEXT, "mentions": [{"start": 0, "end": 5}]}
        ).json()
        assert mention["mentions"][0]["resolution"] is None


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", "the body is empty; expected JSON"),
        (b"{", "the body is not JSON"),
        (b'{"text": "\xff"}', "the body is not UTF-8: byte 10 is 0xff"),
        (b'{"text": "\\ud800"}', "the body is not JSON"),
        (b"[" * 2000, "the body is not JSON"),
        (b'"text"', 'the body is "text"; expected a document, a list of documents, or an object with documents'),
        (b"[3]", "documents[0] is 3; expected an object"),
        (b'{"documents": {}}', "documents is {}; expected a list"),
        (b"{}", "text is missing"),
        (b'{"text": 5}', "text is 5; expected a text"),
        (b'{"text": "messi", "mentions": {}}', "mentions is {}"),
        (b'{"text": "messi", "mentions": [7]}', "mentions[0] is 7"),
        (b'{"text": "messi", "mentions": [{"start": 0}]}', "mentions[0].end is missing"),
        (
            b'{"text": "messi", "mentions": [{"start": true, "end": 2}]}',
            "mentions[0].start is true; expected a whole",
        ),
        (b'{"text": "messi", "mentions": [{"start": 0, "end": 9}]}', "mentions[0] is [0, 9) but the text has 5"),
        (
            b'{"text": "messi", "mentions": [{"start": -1, "end": 2}]}',
            "mentions[0].start is -1; expected",
        ),
        (b'{"text": "messi", "mentions": [{"start": 1e99, "end": 2}]}', "mentions[0].start is 1e+99"),
        (b'[{"text": ""}, {"text": "a", "mentions": [{"start": 0, "end": 2}]}]', "documents[1].mentions[0] is [0, 2)"),
        (
            b'{"text": "a", "mentions": [{"start": 0, "end": 1, "candidates": [["A", 1, 2]]}]}',
            "mentions[0].candidates[0] is",
        ),
        (b'{"text": "a", "order": "random"}', 'order is "random"; expected one of local, natural, confidence'),
        (b'{"text": "a", "order": 3}', "order is 3; expected one of"),
        (b'{"text": "a", "windows": "big"}', 'windows is "big"; expected one of simple'),
        (b'{"text": "a", "commit": 2}', "commit is 2"),
        (b'{"text": "a", "commit": true}', "commit is true; expected 'one' or a number"),
        (b'{"text": "a", "top": 0}', "top is 0"),
        (b'{"text": "a", "top": "all"}', 'top is "all"; expected a whole number'),
        (b'{"text": "a", "released": "2020"}', 'released is "2020"; expected one of 2021, 2022'),
        (b'{"text": "a", "answer_threshold": 2}', "answer_threshold is 2; expected a number from 0 to 1"),
        (b'{"documents": [], "text": "a"}', "there is no field 'text' here"),
        (b'{"text": "a", "ordr": "local"}', "there is no field 'ordr'; did you mean 'order'?"),
        (b'{"text": "a", "trace": 1}', "trace is 1; expected true or false"),
        (b'{"text": "a", "prior": "much"}', 'prior is "much"; expected a number of at least 0'),
        (b'{"text": "a", "prior": -1}', "prior is -1"),
    ],
)
def test_what_is_wrong_is_named(client: httpx.Client, body: bytes, names: str) -> None:
    answer = client.post("/disambiguate", content=body)
    assert answer.status_code == 422
    assert answer.json()["error"].startswith(names)


def test_limits_are_named(client: httpx.Client) -> None:
    limits = Limits()
    many = [{"start": 0, "end": 5}] * 100_000
    candidates = [f"Entity {number}" for number in range(limits.max_candidates + 1)]
    for body, message in (
        ({"text": "messi", "mentions": many}, "mentions has 100,000 items; this server takes at most 1,000"),
        ({"text": "a" * 100_001}, "text has 100,001 characters"),
        ([{"text": "a"}] * 65, "documents has 65 items"),
        (
            {"text": "messi", "mentions": [{"start": 0, "end": 5, "candidates": candidates}]},
            "mentions[0].candidates has",
        ),
        (
            {"text": "messi", "mentions": many[:101], "trace": True},
            "the request has 101 mentions; this server takes at most 100 a request with a trace",
        ),
    ):
        answer = client.post("/disambiguate", json=body)
        assert answer.status_code == 422 and answer.json()["error"].startswith(message)
    link = client.post("/link", json={"text": "messi " * 1001})
    assert link.status_code == 422 and link.json()["error"].startswith("the request has 1,001 mentions")


@pytest.mark.parametrize("path", ["/disambiguate", "/link", "/nif"])
def test_a_huge_body_is_refused_and_the_client_is_told(client: httpx.Client, path: str) -> None:
    whole = client.post(path, content=b" " * (9 << 20))
    streamed = client.post(path, content=(b" " * (1 << 20) for _ in range(9)))
    for answer in (whole, streamed):
        assert answer.status_code == 413 and "8,388,608 bytes" in answer.json()["error"]


def test_wrong_paths_and_methods_are_json_too(client: httpx.Client) -> None:
    for answer, status in ((client.get("/nothing"), 404), (client.get("/link"), 405), (client.get("/page/x.py"), 404)):
        assert answer.status_code == status and "GET /docs" in answer.json()["error"]


def test_no_other_site_is_let_in(client: httpx.Client) -> None:
    answer = client.post("/disambiguate", json=record(1), headers={"origin": "http://elsewhere.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_health_ready_metrics_and_reference(client: httpx.Client) -> None:
    client.post("/disambiguate", json=record(1))
    assert client.get("/health").json() == {"status": "alive"}
    assert client.get("/ready").json() == {"status": "ready"}
    figures = client.get("/metrics").text
    for name in ("queue_seconds", "inference_seconds", "batch_documents"):
        count = re.search(rf"^deixis_{name}_count (\S+)", figures, re.M)
        assert count is not None and float(count[1]) >= 1
    assert re.search(r'deixis_requests_total\{endpoint="/disambiguate",status="200"\} \d', figures)
    assert set(client.get("/openapi.json").json()["paths"]) == {
        "/disambiguate",
        "/link",
        "/nif",
        "/candidates",
        "/health",
        "/ready",
        "/metrics",
    }


def gerbil(
    text: str, spans: list[tuple[int, int]], uri: str = "http://www.aksw.org/gerbil/NifWebService/request_0"
) -> bytes:
    """Return a request as GERBIL's gerbil.nif.transfer writes it: RFC 5147 URIs, offsets in UTF-16 units."""
    graph = rdflib.Graph()

    def units(place: int) -> int:
        return len(text[:place].encode("utf-16-le")) // 2

    def add(start: int, end: int, kind: rdflib.URIRef) -> rdflib.URIRef:
        node = rdflib.URIRef(f"{uri}#char={units(start)},{units(end)}")
        for type_ in (kind, NIF.String, NIF.RFC5147String):
            graph.add((node, rdflib.RDF.type, type_))
        for name, place in (("beginIndex", start), ("endIndex", end)):
            graph.add((node, NIF[name], rdflib.Literal(str(units(place)), datatype=rdflib.XSD.nonNegativeInteger)))
        return node

    context = add(0, len(text), NIF.Context)
    graph.add((context, NIF.isString, rdflib.Literal(text)))
    for start, end in spans:
        phrase = add(start, end, NIF.Phrase)
        graph.add((phrase, NIF.referenceContext, context))
        graph.add((phrase, NIF.anchorOf, rdflib.Literal(text[start:end])))
    return graph.serialize(format="turtle").encode()


def links(turtle: str) -> dict[tuple[int, int], str]:
    """Read an answer with rdflib, checking it as a consumer would."""
    graph = rdflib.Graph().parse(data=turtle, format="turtle")
    found = {}
    for phrase, entity in graph.subject_objects(ITSRDF.taIdentRef):
        context = graph.value(phrase, NIF.referenceContext)
        start, end = (int(str(graph.value(phrase, NIF[name]))) for name in ("beginIndex", "endIndex"))
        text = str(graph.value(context, NIF.isString))
        units = text.encode("utf-16-le")[2 * start : 2 * end].decode("utf-16-le")
        assert str(graph.value(phrase, NIF.anchorOf)) == units
        assert str(phrase).endswith(f"#char={start},{end}") and str(phrase).split("#")[0] == str(context).split("#")[0]
        found[start, end] = str(entity)
    return found


def test_gerbil_asks_for_given_phrases(client: httpx.Client) -> None:
    headers = {"content-type": "application/x-turtle;charset=UTF-8", "accept": "application/x-turtle"}
    answer = client.post("/nif", content=gerbil(TEXT, [(0, 5), (14, 17)]), headers=headers)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("application/x-turtle")
    expected = make_model().disambiguate(Document.from_record({"text": TEXT, "mentions": [
        {"start": 0, "end": 5}, {"start": 14, "end": 17}]}))  # fmt: skip
    assert links(answer.text) == {
        (item.start, item.end): f"http://en.wikipedia.org/wiki/{(item.entity or '').replace(' ', '_')}"
        for item in expected
    }
    assert "request_0#char=0,29" in answer.text


def test_gerbil_asks_for_a_text(client: httpx.Client) -> None:
    answer = client.post("/nif", content=gerbil(TEXT, []), headers={"accept": "text/turtle"})
    linked = client.post("/link", json={"text": TEXT}).json()["mentions"]
    assert set(links(answer.text)) == {(m["start"], m["end"]) for m in linked if m["resolution"]}
    assert answer.headers["content-type"].startswith("text/turtle")
    graph = rdflib.Graph().parse(data=answer.text, format="turtle")
    assert [str(text) for text in graph.objects(None, NIF.isString)] == [TEXT]


def test_several_contexts_in_one_request(client: httpx.Client) -> None:
    given = gerbil(TEXT, [(0, 5)], "http://example.org/a") + gerbil("the cup", [], "http://example.org/b")
    graph = rdflib.Graph().parse(data=client.post("/nif", content=given).text, format="turtle")
    assert sorted(str(text) for text in graph.objects(None, NIF.isString)) == [TEXT, "the cup"]
    assert "http://example.org/a#char=0,5" in {str(phrase) for phrase in graph.subjects(ITSRDF.taIdentRef)}


def test_nif_beyond_ascii(client: httpx.Client) -> None:
    """Java counts an emoji as two; the answer counts as the question does, and survives any reader's encoding."""
    text = "😀 ünder the cup, messi"
    answer = client.post("/nif", content=gerbil(text, [(12, 15), (17, 22)]))
    assert answer.text.isascii()
    assert set(links(answer.text)) == {(13, 16), (18, 23)}
    text = "ünder the cup"
    plain = gerbil(text, [(10, 13)]).replace(b"request_0#char=0,13>", b"request_0>")
    context = rdflib.URIRef("http://www.aksw.org/gerbil/NifWebService/request_0")
    graph = rdflib.Graph().parse(data=client.post("/nif", content=plain).text, format="turtle")
    assert str(graph.value(context, NIF.isString)) == text  # under the URI that it came with


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"no turtle", "body, line 1: not Turtle"),
        (b"\xff\xfe", "body"),
        (b"", "body: no nif:Context with nif:isString"),
        (gerbil(TEXT, [(0, 5)]).replace(b'"0"', b'"x"'), "body"),
        (gerbil(TEXT, [(0, 5)]).replace(b'"messi"', b'"ronaldo"'), "body"),
        (gerbil("messi " * 1001, [(6 * n, 6 * n + 5) for n in range(1001)]), "nif:Phrase is over the limit"),
    ],
)  # fmt: skip
def test_wrong_nif_is_named(client: httpx.Client, body: bytes, names: str) -> None:
    answer = client.post("/nif", content=body)
    assert answer.status_code == 422 and answer.json()["error"].startswith(names)
