"""What is added to knowledge: stated priors, hidden entities, and finding them in text."""

from __future__ import annotations

from pathlib import Path

import pytest

from deixis.documents import Document, Mention
from deixis.errors import ArtefactError
from deixis.knowledge.assemble import assemble
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.detection import NameDetector
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.overlay import Overlay
from tests.worlds import all_of


@pytest.fixture
def below(tmp_path: Path) -> Knowledge:
    builder = NamesBuilder()
    for target, count in (("Nova Scotia", 30), ("Nova (TV series)", 10)):
        builder.add_link("Nova", target, count)
    builder.save(tmp_path / "store", {}, {})
    assemble(tmp_path / "knowledge", all_of(Names.open(tmp_path / "store")))
    return Knowledge.open(tmp_path / "knowledge")


def with_added(
    below: Knowledge, entities: dict[str, list[tuple[str, float | None]]], hidden: tuple[str, ...] = ()
) -> Knowledge:
    numbers = [below.number(title) or 0 for title in hidden]
    return below.with_overlay(Overlay.of(entities, below.size, numbers))


def priors(store: Knowledge, surface: str) -> dict[str, float]:
    return {entity: round(prior or 0.0, 4) for entity, prior in store.lookup(surface)}


def test_a_stated_prior_is_kept_and_the_others_share_the_rest(below: Knowledge) -> None:
    before = priors(below, "Nova")
    bigger = with_added(below, {"Nova Motors": [("Nova", 0.3)], "Nova (cat)": [("Nova", 0.1)]})
    after = priors(bigger, "Nova")
    assert after["Nova Motors"] == 0.3
    assert after["Nova (cat)"] == 0.1
    for title, prior in before.items():
        assert after[title] == pytest.approx(0.6 * prior, abs=1e-3)
    assert sum(after.values()) == pytest.approx(1, abs=1e-3)


def test_without_a_prior_new_meanings_take_half_of_a_known_name_and_all_of_a_new_one(below: Knowledge) -> None:
    added: dict[str, list[tuple[str, float | None]]] = {
        "Nova Motors": [("Nova", None), ("NovaMo", None)],
        "Nova (cat)": [("NovaMo", 0.2)],
    }
    bigger = with_added(below, added)
    # the cat is Nova too, by its title without the bracket
    assert priors(bigger, "Nova")["Nova Motors"] == priors(bigger, "Nova")["Nova (cat)"] == 0.25
    assert priors(bigger, "NovaMo") == {"Nova Motors": pytest.approx(0.7143), "Nova (cat)": pytest.approx(0.2857)}
    assert priors(bigger, "Nova Motors") == {"Nova Motors": 1.0}


def test_priors_over_one_leave_something_for_the_others(below: Knowledge) -> None:
    bigger = with_added(below, {"A": [("Nova", 1.0)], "B": [("Nova", 1.0)]})
    after = priors(bigger, "Nova")
    assert after["A"] == after["B"] == 0.495
    assert after["Nova Scotia"] > 0


def test_hidden_entities_are_no_candidates(below: Knowledge) -> None:
    smaller = with_added(below, {}, hidden=("Nova Scotia",))
    assert priors(smaller, "Nova") == {"Nova (TV series)": 1.0}
    assert smaller.lookup("Nova Scotia") == ()
    assert "Nova Scotia" not in smaller and list(smaller.titles()) == ["Nova (TV series)"]
    assert below.number("Nova Scotia") not in dict(smaller.parts("nova"))
    document = Document("In Nova Scotia.", (Mention(3, 14),))
    assert smaller.candidates(document) == [()] or "Nova Scotia" not in dict(smaller.candidates(document)[0])


def test_added_names_are_found_and_resolved_in_a_text(below: Knowledge) -> None:
    bigger = with_added(below, {"Zyx Motors": [("Quorl", None)]})
    text = "She bought a Quorl from Zyx Motors in Nova Scotia."
    found = [text[start:end] for start, end in NameDetector(bigger).detect(text)]
    assert found == ["Quorl", "Zyx Motors", "Nova Scotia"]
    assert [text[a:b] for a, b in NameDetector(below).detect(text)] == ["Nova Scotia"]
    zyx = Document("Zyx rose.", (Mention(0, 3),))
    assert bigger.candidates(zyx)[0][0].entity == "Zyx Motors"  # a part of its title


def test_it_is_opened_with_the_knowledge_below(below: Knowledge) -> None:
    bigger = with_added(below, {"Nova Motors": [("Nova", 0.3)]}, hidden=("Nova Scotia",))
    bigger.overlay.save(below.folder / "added.json")
    again = Knowledge.open(below.folder)
    assert again.overlay == bigger.overlay and again.digest == bigger.digest != below.digest
    assert priors(again, "Nova") == {"Nova Motors": 0.3, "Nova (TV series)": 0.7}
    assert again.title(again.number("Nova Motors") or 0) == "Nova Motors"
    (below.folder / "added.json").write_text("{}")
    with pytest.raises(ArtefactError, match=r"added.json is damaged"):
        Knowledge.open(below.folder)
