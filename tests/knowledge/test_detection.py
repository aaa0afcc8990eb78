"""Mentions in plain text: words as keys have them, what is counted, and which names are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deixis
from deixis import Document, Mention
from deixis.corpus.names import NameSources, build_store
from deixis.folder.model_folder import Linking, ModelFolder
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.detection import NameDetector, UnitedDetector
from deixis.knowledge.names import Names
from deixis.knowledge.surfaces import key
from deixis.knowledge.words import read_words
from deixis.network.detector import TAGS, TaggedWords
from deixis.network.word_features import split_words
from deixis.settings import Find
from deixis.wikipedia.articles import Article, Link
from tests.worlds import make_network, make_tokenizer, make_vocabulary

TEXTS = {
    "France": "It borders on [Spain]. In the north of France it rains; reading helps. He said that reading is fun.",
    "Spain": "It borders on [France] and the [United States]. Then Reading was read, may be in reading.",
    "Ada Marlow": "The rower [Ada Marlow] of [Reading] won the [World Cup] in [The Hague]. Marlow knew the World Cup.",
    "Rain": "He is a saint, may it rain on [New York] and [York] and [York City]. It was on [May 3] that it rained.",
    "Saints": "The saint of [St. Louis], and [AT&T] and [U.S.] and [Sotheby's] were named by the [United States].",
}


def article(title: str, marked: str) -> Article:
    text, links = "", []
    for place, part in enumerate(marked.replace("]", "[").split("[")):
        if place % 2:
            links.append(Link(len(text), len(text) + len(part), part))
        text += part
    return Article(title, text, tuple(links))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> NameSources:
    path = tmp_path_factory.mktemp("detection") / "articles.jsonl"
    path.write_bytes(b"".join(article(*item).to_json() + b"\n" for item in TEXTS.items()))
    return NameSources(articles=[path])


@pytest.fixture(scope="module")
def store(sources: NameSources, tmp_path_factory: pytest.TempPathFactory) -> Names:
    folder = tmp_path_factory.mktemp("store") / "store"
    build_store(sources, folder)
    return Names.open(folder)


def found(store: Names, text: str, threshold: float = 0.1) -> list[str]:
    return [text[start:end] for start, end in NameDetector(store, threshold).detect(text)]


@given(st.text(alphabet=st.sampled_from("AaBbé .'&-’sß\n1U"), max_size=40))
def test_words_are_in_order_and_have_keys(text: str) -> None:
    words = read_words(text)
    assert all(word.key and 0 <= word.start < word.end <= len(text) for word in words)
    assert all(left.end <= right.start for left, right in pairwise(words))


@pytest.mark.parametrize("name", ["St. Louis", "AT&T", "U.S.", "J. R. R. Tolkien", "O'Neill", "Jean-Paul", "Łódź"])
def test_words_joined_are_the_key(name: str) -> None:
    words = read_words(f"so {name} it is")[1:-2]
    assert " ".join(word.key for word in words) == key(name)
    assert all(word.joined for word in words)


def test_what_a_capital_says() -> None:
    unsure = [word.key for word in read_words("The end. Here St. Louis is.\nALL IN CAPITALS\nNot so") if word.unsure]
    assert unsure == ["the", "here", "all", "in", "capitals", "not"]


def test_terms_in_lower_case_are_the_longest_there_are(tmp_path: Path) -> None:
    builder = NamesBuilder()
    for name in ("war", "prisoner of war", "camp", "War Camp", "of"):
        builder.add_link(name, name.title(), 1)
    builder.save(tmp_path, {}, {})
    text = "A prisoner of war in a war camp, of War; 1 camp. camp-war"
    terms = Names.open(tmp_path).find_words(read_words(text))
    assert [text[term.start : term.end] for term in terms] == ["prisoner of war", "war camp", "camp", "camp", "war"]


def test_occurrences_are_articles(store: Names) -> None:
    def counts(name: str) -> tuple[int, int, int] | None:
        number = store.number(name)
        assert number is not None
        return store.occurrences(number)

    assert counts("united states") == (2, 2, 0)
    assert counts("reading") == (2, 1, 2)  # named twice, linked once, in lower case twice
    assert counts("france") == (1, 1, 0)  # not in its own article
    assert counts("york") == (1, 1, 0)  # what lies in "New York" is no occurrence
    assert counts("world cup") == (1, 1, 0)  # twice in one article is once


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("She left New York City for Spain.", ["New York", "Spain"]),  # of equally long ones the earlier stays
        ("She won the World Cup in The Hague.", ["World Cup", "The Hague"]),
        ("The World Cup began.", ["World Cup"]),
        ("They met Ada Marlow. Marlow was late, said Marlow.", ["Ada Marlow", "Marlow", "Marlow"]),
        ("Sotheby's of St. Louis, U.S., and AT&T.", ["Sotheby", "St. Louis", "U.S.", "AT&T"]),
        ("the world cup in spain", []),
        ("It was on May 3 that it rained in France's north.", ["France"]),
        ("He knows Ada France, she Zork Spain well.", []),  # fragments of names that nobody knows
        ("", []),
    ],
)
def test_names_are_found(store: Names, text: str, expected: list[str]) -> None:
    assert found(store, text) == expected


def test_a_score_is_no_part_of_a_name(tmp_path: Path) -> None:
    builder = NamesBuilder()
    for name in ("Chelsea", "Chelsea 3", "Arsenal", "Boeing 747"):
        builder.add_link(name, name, 5)
    builder.save(tmp_path, {}, {})
    store = Names.open(tmp_path)
    assert found(store, "So Arsenal beat Chelsea 3-1.") == ["Arsenal", "Chelsea"]
    assert found(store, "So Arsenal 2 Chelsea 3 was it.") == ["Arsenal", "Chelsea 3"]
    assert found(store, "With a Boeing 747-400 from Chelsea 3 – no.") == ["Boeing 747", "Chelsea 3"]


def test_found_names_are_fetched_by_number(store: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "They met Ada Marlow in New York, said Marlow."
    mentions = tuple(NameDetector(store).mentions(read_words(text)))
    assert [mention.name and mention.name.key for mention in mentions] == ["ada marlow", "new york", None]
    plain = [Mention(mention.start, mention.end) for mention in mentions]
    expected = store.candidates(Document(text, tuple(plain)))
    assert store.candidates(Document(text, mentions)) == expected
    other = tuple(replace(m, name=m.name and m.name._replace(number=0, names="of other names")) for m in mentions)
    assert store.candidates(Document(text, other)) == expected  # numbers of other names are not used


def test_common_words_at_sentence_starts_and_in_headlines(store: Names) -> None:
    assert found(store, "We saw Reading. Reading is fun.", 0.3) == ["Reading"]
    assert found(store, "READING AND RAIN IN FRANCE\nAll went well.", 0.3) == ["FRANCE"]


def test_a_store_without_occurrences_finds_names_too(sources: NameSources, tmp_path: Path) -> None:
    manifest = build_store(sources, tmp_path / "store", occurrences=False)
    store = Names.open(tmp_path / "store")
    assert "occurrences.npy" not in manifest.files and not store.has_occurrences
    assert found(store, "Reading is fun. She left New York for Spain.") == ["New York", "Spain"]


def test_merged_stores_add_their_occurrences(store: Names, tmp_path: Path) -> None:
    builder = NamesBuilder()
    builder.add_store(store)
    builder.add_store(store)
    builder.add_alias("Lutetia", "Paris")
    builder.save(tmp_path / "store", {}, {})
    merged = Names.open(tmp_path / "store")
    number, alias = merged.number("reading"), merged.number("lutetia")
    assert number is not None and merged.occurrences(number) == (4, 2, 4)
    assert alias is not None and merged.occurrences(alias) == (0, 0, 0)


def test_a_text_is_linked(island: Path) -> None:
    nlp = deixis.load(str(island / "model"))
    text = "After the Golden Rook came Marlow and Brandt."
    linked = nlp(text)
    assert [resolution.text for resolution in linked] == ["Golden Rook", "Marlow", "Brandt"]
    assert [resolution.entity for resolution in linked] == [
        "Velm Cup (chess)",
        "Ada Marlow (chess player)",
        "Lena Brandt (composer)",
    ]
    assert linked[1].url == "https://en.wikipedia.org/wiki/Ada_Marlow_(chess_player)"
    assert {title for title, _ in linked[1].alternatives} >= {"Ada Marlow (rower)"}
    assert list(nlp.link_many([text, "nothing"])) == [linked, nlp("nothing")]
    drawn = linked._repr_html_()
    assert drawn is not None and "Ada_Marlow_(chess_player)" in drawn and "<script" not in drawn


def test_given_mentions_and_other_detectors(island: Path) -> None:
    class Last:
        def detect(self, text: str) -> list[tuple[int, int]]:
            return [(text.rindex(" ") + 1, len(text))]

    nlp = deixis.load(str(island / "model"))
    given = deixis.Document("Marlow met Brandt", (deixis.Mention(0, 6),))
    assert [resolution.text for resolution in nlp.link(given)] == ["Marlow"]
    nlp.detector = Last()
    assert [resolution.text for resolution in nlp("Marlow met Brandt")] == ["Brandt"]
    nlp.detector = None
    with pytest.raises(deixis.InputError, match="no names to find mentions by"):
        nlp("Marlow")


def test_none_of_these(island: Path) -> None:
    nlp = deixis.load(str(island / "model"))
    document = nlp.find("They saw Marlow.")
    sure = nlp.disambiguate(document, order="local")[0]
    assert sure.entity is not None and sure.probability < 1
    between = (1 + sure.probability) / 2
    unsure = nlp.disambiguate(document, order="local", answer_threshold=between)[0]
    assert unsure.entity is None and unsure.url is None and unsure.alternatives == sure.alternatives
    assert unsure.reason == "none fits" and unsure.known_by is None and sure.known_by == "links"
    nlp.answer_threshold = between
    assert nlp.link(document, order="local")[0].entity is None  # on in `link`
    assert nlp.disambiguate(document, order="local")[0].entity == sure.entity  # off in the paper's protocol
    with pytest.raises(deixis.InputError, match="answer_threshold is 2"):
        nlp.link(document, answer_threshold=2)


def test_a_model_folder_keeps_its_thresholds(tmp_path: Path) -> None:
    folder = ModelFolder(make_network(4), make_tokenizer(), make_vocabulary(), linking=Linking(0.3, 0.4))
    folder.save(tmp_path / "model")
    assert ModelFolder.load(tmp_path / "model").linking == Linking(0.3, 0.4)
    assert deixis.load(str(tmp_path / "model")).answer_threshold == 0.4


def test_processes_count_the_same(sources: NameSources, store: Names, tmp_path: Path) -> None:
    build_store(sources, tmp_path / "store", workers=2)
    there = tmp_path / "store" / "occurrences.npy"
    assert there.read_bytes() == (store.folder / "occurrences.npy").read_bytes()


class Tagger:
    """A learned detector that is sure of some words; each name is a person."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def tags_of(self, texts: Iterable[str]) -> Iterator[list[TaggedWords]]:
        for text in texts:
            words = split_words(make_tokenizer(), [text])[0]
            tags = np.zeros((len(words), TAGS), np.float32)
            tags[:, 0] = 1.0
            for name in self.names:
                start = text.find(name)
                inside = [at for at, (first, _) in enumerate(words.spans) if start <= first < start + len(name)]
                tags[inside] = 0
                tags[inside[:1], 1] = tags[inside[1:], 2] = 1.0
            yield [TaggedWords(0, text, words.spans, tags)]


def united(store: Names, text: str, *names: str, find: Find = "names") -> list[Mention]:
    detector = UnitedDetector(Tagger(*names), NameDetector(store))  # type: ignore[arg-type]  # as a LearnedDetector
    return next(detector.find([text], find))


def test_a_name_that_nobody_knows_is_found_with_its_kind(store: Names) -> None:
    (mention,) = united(store, "Yesterday came Bukayo Saka.", "Bukayo Saka")
    assert (mention.start, mention.end, mention.kind, mention.name) == (15, 26, "person", None)


def test_a_known_name_keeps_its_number(store: Names) -> None:
    text = "He met Ada Marlow in Spain."
    marlow, spain = united(store, text, "Ada Marlow", "Spain")
    assert marlow.name is not None and marlow.name.number == store.number("ada marlow")
    assert marlow.kind == "person" and text[spain.start : spain.end] == "Spain"


def test_a_score_is_no_part_of_a_name_that_both_find(store: Names) -> None:
    text = "Reading beat Spain 3-1."
    assert [text[m.start : m.end] for m in united(store, text, "Reading", "Spain")] == ["Reading", "Spain"]


def test_all_adds_terms_in_lower_case(store: Names) -> None:
    text = "He met Ada Marlow in rain."
    detector = NameDetector(store, 0.0)
    names, more = next(detector.find([text])), next(detector.find([text], "all"))
    assert [text[m.start : m.end] for m in names] == ["Ada Marlow"]
    assert [text[m.start : m.end] for m in more] == ["Ada Marlow", "rain"]
