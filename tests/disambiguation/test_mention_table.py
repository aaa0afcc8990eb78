"""Frames of pandas and polars, linked over the island of Velm."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.errors import InputError
from deixis.inference import Disambiguator

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")

TEXTS = ["After the Silver Oar came Marlow.", "nothing to see here", "The Golden Rook, then Brandt."]
ENTITIES = ["Velm Cup (rowing)", "Ada Marlow (rower)", "Velm Cup (chess)", "Lena Brandt (composer)"]


@pytest.fixture(scope="module")
def nlp(island: Path) -> Disambiguator:
    return Disambiguator.load(island / "model")


def test_pandas(nlp: Disambiguator) -> None:
    frame = pandas.DataFrame({"body": TEXTS, "n": [1, 2, 3]}, index=["a", "b", "c"])
    linked = nlp.link_frame(frame, "body")
    assert linked["entity"].tolist() == ENTITIES and linked.index.tolist() == ["a", "a", "c", "c"]
    assert linked["n"].tolist() == [1, 1, 3, 3] and linked["n"].dtype == frame["n"].dtype
    assert [body[s:e] for body, s, e in zip(linked["body"], linked["start"], linked["end"], strict=True)] == linked[
        "mention"
    ].tolist()
    assert linked["wikidata"].isna().all() and frame.columns.tolist() == ["body", "n"]  # which stays as it is
    unsure = nlp.link_frame(frame, "body", answer_threshold=1.0)
    assert unsure["entity"].isna().tolist() == [False, True, False, True]
    assert unsure["reason"].iloc[1] == "none fits"


def test_polars(nlp: Disambiguator) -> None:
    frame = polars.DataFrame({"body": TEXTS, "n": [1, 2, 3]})
    linked = nlp.link_frame(frame, "body")
    assert linked["entity"].to_list() == ENTITIES and linked["n"].to_list() == [1, 1, 3, 3]
    assert linked["wikidata"].null_count() == 4 and linked.schema["wikidata"] == polars.String
    assert nlp.link_frame(frame, "body", answer_threshold=1.0)["entity"].null_count() == 2


def test_both_say_the_same(nlp: Disambiguator) -> None:
    of_pandas = nlp.link_frame(pandas.DataFrame({"text": TEXTS})).astype(object)
    of_polars = nlp.link_frame(polars.DataFrame({"text": TEXTS}))
    assert of_pandas.where(of_pandas.notna(), None).to_dict("records") == of_polars.to_dicts()


def test_missing_texts_and_empty_frames(nlp: Disambiguator) -> None:
    for missing in (None, float("nan"), pandas.NA):
        frame = pandas.DataFrame({"text": pandas.Series([missing, TEXTS[0]], dtype=object)})
        assert nlp.link_frame(frame).index.tolist() == [1, 1]
    assert len(nlp.link_frame(polars.DataFrame({"text": [None, TEXTS[0]]}))) == 2
    types = [str(dtype) for dtype in nlp.link_frame(pandas.DataFrame({"text": TEXTS})).dtypes]
    empty = nlp.link_frame(pandas.DataFrame({"text": pandas.Series([], dtype=object)}))
    assert len(empty) == 0 and [str(dtype) for dtype in empty.dtypes][1:] == types[1:]
    assert len(nlp.link_frame(polars.DataFrame({"text": []}, schema={"text": polars.String}))) == 0


def test_what_is_no_such_frame_is_refused(nlp: Disambiguator) -> None:
    for frame, said in (
        (pandas.DataFrame({"body": ["a"], "id": [1]}), "the frame has no column 'text'; it has 'body', 'id'"),
        (polars.DataFrame({"text": ["a"], "entity": ["b"]}), "the frame has a column 'entity', which the results"),
        (pandas.DataFrame({"text": ["a", 5]}), "row 1 of the column 'text' is 5; expected a text, or nothing"),
        (polars.DataFrame({"text": [5]}), "row 0 of the column 'text' is 5; expected a text, or nothing"),
        (polars.LazyFrame({"text": ["a"]}), "polars.LazyFrame; collect() it first; expected a DataFrame"),
        (pandas.DataFrame([["a", "b"]], columns=["text", "text"]), "several columns 'text'"),
        (["a"], "builtins.list; expected a DataFrame of pandas or polars"),
    ):
        with pytest.raises(InputError) as refused:
            nlp.link_frame(frame)
        assert said in str(refused.value) and "\n" not in str(refused.value)
