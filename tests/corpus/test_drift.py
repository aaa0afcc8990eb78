"""Title drift: older titles lead to the entity that an alias names, and only where that is certain."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.artefacts import Manifest, manifest_path
from deixis.corpus.drift import build_redirects, find_copies, find_drift, find_misnamed, find_spellings
from deixis.corpus.names import NameSources
from deixis.wikipedia.articles import Article, Link
from deixis.wikipedia.redirects import read_redirects

ALIASES = [
    ("football world cup", "FIFA World Cup"),
    ("world cup", "FIFA World Cup"),
    ("world cup", "Cricket World Cup"),
    ("stalin", "Joseph Stalin"),
    ("bonna", "Bonn"),
]


def test_only_unknown_titles_with_one_meaning_lead_on() -> None:
    targets = ["Football World Cup", "World Cup", "Stalin", "FIFA World Cup", "Unheard Of", "Bonna"]
    found = find_drift(targets, {"Stalin"}, ALIASES, {"Bonna": "Bonn (city)", "Bonn": "Bonn (city)"})
    assert found == {"Football World Cup": "FIFA World Cup"}


def test_titles_described_in_the_same_words_are_one() -> None:
    force = "The Royal Air Force (RAF) is the aerial warfare force of the United Kingdom, formed in April 1918"
    longer = f"{force} and still the oldest independent air force of the whole wide world."
    texts = {"Royal Air Force": longer, "RAF": longer.replace(" (RAF)", ""), "Bonn": "A city in Germany."}
    assert find_copies(texts, {"RAF": 2, "Royal Air Force": 9}) == {"RAF": "Royal Air Force"}
    assert find_copies({"Ulm": "A city in Germany.", **texts}, {"RAF": 9}) == {"Royal Air Force": "RAF"}
    other = longer.replace("United Kingdom", "Sultanate of Velm")
    assert find_copies({"Royal Air Force": longer, "Air Force of Velm": other}, {}) == {}
    assert find_copies({f"List {number}": longer for number in range(7)}, {}) == {}, "a form that was filled in"


def test_titles_described_as_their_alias_are_no_entities() -> None:
    aliases = [("patriot act", "USA PATRIOT Act"), ("goshawk of the north", "Goshawk"), ("bonna", "Bonn")]
    texts = {
        "Patriot Act": "The USA PATRIOT Act is an Act of Congress.",
        "Goshawk of the north": "The goshawk of the north is a Goshawk.",
        "Bonna": "Bonn is a city.",
        "Bonn": "Bonn is a city.",
    }
    assert find_misnamed(texts, aliases, {}) == {"Patriot Act"}
    assert find_misnamed(texts, aliases, {"Patriot Act": "Law"}) == set()


@pytest.mark.parametrize(
    ("title", "other"),
    [
        ("Yuan Dynasty", "Yuan dynasty"),
        ("Iran-Iraq War", "Iran–Iraq War"),
        ("F.W. Murnau", "F. W. Murnau"),
        ("Thirty Years War", "Thirty Years' War"),
        ("Marian Gaborik", "Marián Gáborík"),
        ("Oliver Wendell Holmes, Jr.", "Oliver Wendell Holmes Jr."),
    ],
)
def test_other_spellings_lead_to_what_is_described_or_most_linked(title: str, other: str) -> None:
    assert find_spellings({title: 5, other: 1}, {other}, {title}) == {title: other}
    assert find_spellings({title: 5, other: 1}, set(), {other}) == {title: other}
    assert find_spellings({title: 5, other: 1}, set(), set()) == {other: title}
    assert find_spellings({title: 5, other: 1}, {title, other}, set()) == {}


@pytest.mark.parametrize("other", [".tokyo", "Tokyo!", "Tokyo (film)", "Tokio"])
def test_what_is_spelt_otherwise_stays(other: str) -> None:
    assert find_spellings({"Tokyo": 5, other: 1}, {"Tokyo"}, set()) == {}


def test_the_table_holds_pages_tables_and_drift(tmp_path: Path) -> None:
    pages = [
        Article("Sport", "The cup and Stalin", (Link(4, 7, "Football World Cup"), Link(12, 18, "Stalin"))),
        Article("Games", "SPORT", (Link(0, 5, "SPORT"),)),
        Article("Footie", redirect="Football World Cup"),
    ]
    (tmp_path / "articles.jsonl").write_bytes(b"".join(page.to_json() + b"\n" for page in pages))
    (tmp_path / "aliases.tsv").write_text("".join(f"{alias}\t{title}\n" for alias, title in ALIASES))
    (tmp_path / "descriptions.tsv").write_text("Stalin\tA novel.\n")
    (tmp_path / "own.tsv").write_text("Bonna\tBonn\n")
    sources = NameSources(
        [tmp_path / "articles.jsonl"],
        [],
        [tmp_path / "own.tsv"],
        [tmp_path / "aliases.tsv"],
        [tmp_path / "descriptions.tsv"],
    )
    manifest = build_redirects(sources, tmp_path / "redirects.tsv")
    assert read_redirects(tmp_path / "redirects.tsv") == {
        "Bonna": "Bonn",
        "Footie": "FIFA World Cup",
        "Football World Cup": "FIFA World Cup",
        "SPORT": "Sport",
    }
    assert manifest.counts["drifted titles"] == 1
    assert Manifest.load(manifest_path(tmp_path / "redirects.tsv"), "redirects") == manifest
    first = (tmp_path / "redirects.tsv").read_bytes()
    build_redirects(sources, tmp_path / "redirects.tsv")
    assert (tmp_path / "redirects.tsv").read_bytes() == first
