"""Answers written for other tools and read back."""

from __future__ import annotations

from pathlib import Path

import orjson

from deixis.datasets import read_jsonl
from deixis.datasets.nif import read_nif
from deixis.evaluation import run_order
from deixis.evaluation.exports import write_answers

from .fakes import LOCAL, Scripted, random_dataset


def test_three_formats(tmp_path: Path) -> None:
    dataset = random_dataset(2)
    answers = run_order(Scripted(), dataset, LOCAL).resolutions
    given = [[(r.start, r.end, r.entity) for r in item if r.entity] for item in answers]
    nif = read_nif(write_answers(tmp_path, "x", answers, "nif"))
    assert [[(m.start, m.end, m.entity) for m in d.mentions] for d in nif.documents] == given
    assert nif.documents[0].id == "http://deixis.invalid/d0"
    jsonl = read_jsonl(write_answers(tmp_path, "x", answers, "jsonl"))
    assert [len(d.mentions) for d in jsonl.documents] == [len(d.mentions) for d in dataset.documents]
    path = write_answers(tmp_path, "x", answers, "elevant", {"A": "Q1"})
    articles = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    names = {title: title for title in "BCDEFG"} | {"A": "Q1"}
    assert [[(*m["span"], m["id"]) for m in article["entity_mentions"]] for article in articles] == [
        [(start, end, names[entity]) for start, end, entity in item] for item in given
    ]
    assert [len(article["labels"]) for article in articles] == [len(d.mentions) for d in dataset.documents]
    assert all(article["evaluation_span"] == [0, len(article["text"])] for article in articles)
