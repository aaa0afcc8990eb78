"""Requests answered together get the answers they would get alone; overload is refused, and passes."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest
from torch import Tensor

from deixis.documents import Document, Resolutions
from deixis.network.batching import Batch
from deixis.network.decoding import Decisions, Question, decode
from deixis.network.model import Network
from deixis.serving.batcher import Batcher
from deixis.serving.http_errors import HttpError
from deixis.serving.limits import Limits
from deixis.serving.metrics import Metrics
from deixis.settings import Order, Settings
from tests.serving.test_endpoints import record, same
from tests.serving.world import make_model, serving
from tests.worlds import make_document


class Gate:
    """An answerer that waits to be let through, and notes what it was asked together."""

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.batches: list[list[str | None]] = []

    def __call__(self, documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
        listed = list(documents)
        self.batches.append([document.id for document in listed])
        self.entered.set()
        assert self.open.wait(10)
        if any(document.id == "bad" for document in listed):
            raise ValueError("bad document")
        return iter([Resolutions(document, ()) for document in listed])


def document(name: str, length: int = 40) -> Document:
    return Document("a" * length, id=name)


def start(gate: Gate, **limits: int) -> Batcher:
    return Batcher(gate, Metrics(), **({"queue": 10, "rows": 100} | limits))


def test_what_waits_is_answered_together_by_settings_and_rows() -> None:
    gate = Gate()
    batcher = start(gate)
    local = Settings(order="local")
    futures = [batcher.submit([document("first")], Settings())]
    assert gate.entered.wait(10)
    for name, settings, length in (
        ("a", Settings(), 40),
        ("b", local, 40),
        ("c", Settings(), 340),
        ("d", Settings(), 40),
        ("e", local, 40),
    ):
        futures.append(batcher.submit([document(name, length)], settings))
    gate.open.set()
    assert [future.result(10)[0].document.id for future in futures] == ["first", "a", "b", "c", "d", "e"]
    assert gate.batches == [["first"], ["a", "d"], ["b", "e"], ["c"]]  # c is long, and fits with no other
    batcher.close()


def test_requests_at_different_steps_share_a_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    nlp, opened = make_model(), threading.Event()
    passes: list[dict[int, int]] = []  # of each pass, the step of every window that still runs

    def watched(network: Network, batch: Batch, question: Question, order: Order, *more: Any) -> Decisions:
        def note(steps: Tensor, running: Tensor, _: Tensor) -> None:
            passes.append(dict(zip(question.window[running].tolist(), steps[running].tolist(), strict=True)))

        return decode(network, batch, question, order, observe=note)

    def answer(documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
        assert opened.wait(10)
        return nlp.disambiguate_many(documents, settings)

    monkeypatch.setattr("deixis.disambiguation.scheduling.decode", watched)
    batcher = Batcher(answer, Metrics(), queue=10, rows=1000)
    futures = [batcher.submit([make_document(seed, mentions=seed)], Settings()) for seed in range(2, 10)]
    opened.set()
    assert [len(future.result(10)[0]) for future in futures] == list(range(2, 10))
    batcher.close()
    together = max(passes, key=len)
    assert len(together) > 2 and len(set(together.values())) > 1  # what needs no pass puts some windows ahead
    assert len(passes[-1]) < len(together)  # and those that are finished leave


def test_a_full_queue_refuses_and_recovers() -> None:
    gate = Gate()
    batcher = start(gate, queue=2)
    futures = [batcher.submit([document("running")], Settings())]
    assert gate.entered.wait(10)
    futures += [batcher.submit([document(name)], Settings()) for name in "ab"]
    assert not batcher.ready
    with pytest.raises(HttpError, match=r"queue is full \(2 documents wait\); try again in 1 s"):
        batcher.submit([document("c")], Settings())
    gate.open.set()
    assert len([future.result(10) for future in futures]) == 3
    assert batcher.ready and batcher.submit([document("d")], Settings()).result(10)
    batcher.close()


def test_closing_answers_what_waits_and_takes_no_more() -> None:
    gate = Gate()
    batcher = start(gate)
    futures = [batcher.submit([document(str(number))], Settings()) for number in range(4)]
    threading.Timer(0.05, gate.open.set).start()
    batcher.close()
    assert all(future.done() and future.result() for future in futures)
    with pytest.raises(HttpError, match="stopping"):
        batcher.submit([document("late")], Settings())


def test_one_bad_document_fails_alone() -> None:
    gate = Gate()
    batcher = start(gate)
    batcher.submit([document("first")], Settings())
    assert gate.entered.wait(10)
    good, bad = (batcher.submit([document(name)], Settings()) for name in ("good", "bad"))
    cancelled = batcher.submit([document("cancelled")], Settings())
    assert cancelled.cancel()
    gate.open.set()
    assert good.result(10)[0].document.id == "good"
    with pytest.raises(ValueError, match="bad document"):
        bad.result(10)
    assert ["good", "bad"] in gate.batches and not any("cancelled" in batch for batch in gate.batches)
    batcher.close()


def test_a_fault_is_one_sentence_without_a_trace() -> None:
    class Broken:
        candidates = None

        def disambiguate_many(self, documents: Iterable[Document], settings: Settings) -> Iterator[Resolutions]:
            raise ZeroDivisionError("secret")

    nlp: Any = Broken()
    with serving(nlp) as address:
        answer = httpx.post(f"{address}/disambiguate", json={"text": "a"})
        assert answer.status_code == 500 and "secret" not in answer.text and "Traceback" not in answer.text
        assert "its log has the details" in answer.json()["error"]
        assert httpx.get(f"{address}/ready").status_code == 200


@pytest.mark.slow
def test_k_requests_together_get_the_answers_of_k_alone(address: str, client: httpx.Client) -> None:
    bodies = [record(seed, order=("confidence", "natural", "local")[seed % 3]) for seed in range(32)]
    alone = [client.post("/disambiguate", json=body).json() for body in bodies]
    before = client.get("/metrics").text
    barrier = threading.Barrier(32)

    def ask(body: dict[str, Any]) -> Any:
        with httpx.Client(base_url=address, timeout=30) as own:
            barrier.wait(20)
            return own.post("/disambiguate", json=body).raise_for_status().json()

    with ThreadPoolExecutor(32) as pool:
        together = list(pool.map(ask, bodies))
    same(together, alone)

    def runs(figures: str) -> float:
        found = re.search(r"^deixis_batch_documents_count (\S+)", figures, re.M)
        return float(found[1]) if found else 0.0

    assert runs(client.get("/metrics").text) - runs(before) < 32  # fewer runs than requests: they were batched


@pytest.mark.slow
def test_overload_gets_503_with_retry_after_and_passes() -> None:
    body = make_document(1, words=60, mentions=12).to_record()
    expected = make_model().disambiguate(make_document(1, words=60, mentions=12))
    with serving(make_model(), limits=Limits(queue=4, batch_rows=400)) as address:

        def ask(_: int) -> httpx.Response:
            return httpx.post(f"{address}/disambiguate", json=body, timeout=30)

        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(ask, range(96)))
        refused = [answer for answer in answers if answer.status_code != 200]
        assert refused and {answer.status_code for answer in refused} == {503}
        assert all(int(answer.headers["retry-after"]) >= 1 and "queue is full" in answer.text for answer in refused)
        after = ask(0)
        assert after.status_code == 200
        assert [m["resolution"]["entity"] for m in after.json()["mentions"]] == [item.entity for item in expected]
        assert httpx.get(f"{address}/ready").status_code == 200
