"""The page in a real Chromium: playing, sliding, switching orders, what goes wrong; never a word on the console."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from deixis.inference import Disambiguator
from deixis.serving import app
from tests.serving.world import make_model, serving

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-dev-shm-usage"]
TEXT = "Messi played in the world cup final. The team of the city met rugby, and the world saw the cup in a city."
MENTIONS = 9
WIDTHS = "bars => bars.map(bar => parseFloat(bar.style.width))"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed (Debian: apt install chromium)")


@pytest.fixture(scope="module")
def browser() -> Iterator[BrowserContext]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened.new_context(viewport={"width": 1100, "height": 800})
        opened.close()


@pytest.fixture
def page(browser: BrowserContext, address: str) -> Iterator[Page]:
    with opened(browser, address) as one:
        yield one


@pytest.fixture(scope="module")
def packaged_address() -> Iterator[str]:
    with serving(Disambiguator.load()) as url:
        yield url


@pytest.fixture
def packaged(browser: BrowserContext, packaged_address: str) -> Iterator[Page]:
    """A page of the packaged model, which knows names of the world."""
    with opened(browser, packaged_address) as one:
        yield one


@contextmanager
def opened(browser: BrowserContext, address: str) -> Iterator[Page]:
    """A fresh page; at the end nothing was said on the console and nothing was asked of another host."""
    page = browser.new_page()
    page.set_default_timeout(10_000)
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    yield page
    # Chromium itself notes every answer of 4xx and 5xx; that is the server's word, not the page's fault.
    assert [line for line in said if "the server responded with a status of" not in line] == []
    assert [url for url in asked if not url.startswith((address, "about:"))] == []
    page.close()


def resolve(page: Page, text: str = TEXT) -> None:
    page.fill("#text", text)
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator("#result")).to_be_visible()


def test_stepping_shows_what_is_decided_and_what_is_masked(page: Page) -> None:
    resolve(page)
    expect(page.locator("#reading mark.masked")).to_have_count(MENTIONS)
    expect(page.locator("#place")).to_have_text(f"0 of {MENTIONS}")
    for step in range(1, MENTIONS + 1):
        page.get_by_role("button", name="Next step").click()
        expect(page.locator("#reading mark.masked")).to_have_count(MENTIONS - step)
        expect(page.locator("#panel .kicker")).to_have_text(f"Step {step} of {MENTIONS}")
        expect(page.locator("#panel .candidates li").first).to_be_visible()
    expect(page.locator("#panel")).to_contain_text("Nothing is masked any more")
    expect(page.get_by_role("button", name="Next step")).to_be_disabled()
    assert page.locator("#reading").inner_text().replace("\n", "").count("Messi") == 1


# The line of a mention's last letter, of its number and of what stands behind it without a space.
LINES = """marks => marks.map(mark => {
  const box = (node, at) => {
    const range = document.createRange();
    range.setStart(node, at);
    range.setEnd(node, at + 1);
    return range.getBoundingClientRect();
  };
  const [name, number, behind] = [mark.firstChild, mark.querySelector("sup"), mark.nextSibling];
  const boxes = [box(name, name.length - 1), number.getBoundingClientRect()];
  if (behind?.length && behind.data[0].trim()) boxes.push(box(behind, 0));
  return boxes.map(({ top, bottom }) => (top + bottom) / 2);
})"""


def test_no_line_ends_between_a_mention_its_number_and_the_full_stop(page: Page) -> None:
    resolve(page, "The team, the city; the cup. " * 4 + "Messi.")
    for width in range(320, 700, 10):
        page.set_viewport_size({"width": width, "height": 800})
        for lines in page.locator("#reading mark").evaluate_all(LINES):
            assert len(lines) == 3 and max(lines) - min(lines) < 15, width  # a line is 32 high or more


def test_probabilities_before_and_after(page: Page, address: str) -> None:
    resolve(page)
    page.locator("#slider").fill("5")  # a mention that was asked about; the first ones have one candidate
    widths = page.locator("#panel .candidates .bar i").evaluate_all(
        "bars => bars.map(bar => parseFloat(bar.style.width))"
    )
    assert sum(widths) == pytest.approx(100, abs=0.1)
    ticks = page.locator("#panel .candidates .bar s").evaluate_all(
        "bars => bars.map(bar => parseFloat(bar.style.width))"
    )
    assert sum(ticks) == pytest.approx(100, abs=0.1) and ticks != widths


def test_playing_and_pausing(page: Page) -> None:
    page.clock.install()
    resolve(page)
    page.get_by_role("button", name="Play").click()
    expect(page.locator("#place")).to_have_text(f"1 of {MENTIONS}")
    page.clock.run_for(3000)
    expect(page.locator("#place")).to_have_text(f"3 of {MENTIONS}")
    page.get_by_role("button", name="Pause").click()
    page.clock.run_for(3000)
    expect(page.locator("#place")).to_have_text(f"3 of {MENTIONS}")
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(20_000)
    expect(page.locator("#place")).to_have_text(f"{MENTIONS} of {MENTIONS}")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
    page.get_by_role("button", name="Play").click()  # again, from the start
    expect(page.locator("#place")).to_have_text(f"0 of {MENTIONS}")


def test_sliding_and_the_list(page: Page) -> None:
    resolve(page)
    page.locator("#slider").fill("4")
    expect(page.locator("#reading mark.masked")).to_have_count(MENTIONS - 4)
    expect(page.locator("#decisions li.now")).to_have_count(1)
    page.locator("#decisions button").nth(6).click()
    expect(page.locator("#slider")).to_have_value("7")


def test_the_keyboard_is_enough(page: Page) -> None:
    page.locator("#text").focus()
    page.keyboard.insert_text(TEXT)
    page.keyboard.press("Control+Enter")
    expect(page.locator("#result")).to_be_visible()
    page.locator("#reading mark").first.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#place")).to_have_text(f"3 of {MENTIONS}")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")  # on the first mention
    expect(page.locator("#panel h3")).to_have_text("Messi")
    page.keyboard.press("Escape")
    expect(page.locator("#panel .kicker")).to_have_text(f"Step 2 of {MENTIONS}")
    page.keyboard.press("End")
    expect(page.locator("#place")).to_have_text(f"{MENTIONS} of {MENTIONS}")
    page.keyboard.press("Home")
    expect(page.locator("#reading mark.masked")).to_have_count(MENTIONS)


def test_a_click_shows_the_candidates_of_a_mention(page: Page) -> None:
    resolve(page)
    page.locator("#reading mark", has_text="world").first.click()
    expect(page.locator("#panel .kicker")).to_contain_text("Still masked")
    expect(page.locator("#panel .candidates li")).to_have_count(4)
    expect(page.locator("#reading mark.chosen")).to_have_count(1)
    page.get_by_role("button", name="Back to the step").click()
    expect(page.locator("#reading mark.chosen")).to_have_count(0)


def test_switching_the_order(page: Page) -> None:
    resolve(page)
    expect(page.locator("#changes")).to_have_text(
        re.compile(
            r"^Confidence order: (the same answers as natural( and local)?"
            r"|\d+ (answers differ|answer differs) from natural \(.*\))"
        )
    )
    page.locator("#orders label", has_text="natural").click()
    page.get_by_role("button", name="Next step").click()
    expect(page.locator("#reading mark.current")).to_have_count(1)
    assert page.locator("#reading mark").first.get_attribute("class") != "masked"  # from left to right
    page.locator("#orders label", has_text="local").click()
    expect(page.locator("#place")).to_have_text("0 of 1")
    page.get_by_role("button", name="Next step").click()
    expect(page.locator("#panel h3")).to_have_text(f"{MENTIONS} mentions at once")
    page.locator("#orders label", has_text="confidence").click()  # at the end stays at the end
    expect(page.locator("#place")).to_have_text(f"{MENTIONS} of {MENTIONS}")


def test_a_document_brings_its_mentions(page: Page) -> None:
    text = "😀 <b>messi</b> won"
    mention = {"start": 5, "end": 10, "candidates": [["Entity 1", 0.5], ["Entity <i>2</i>", 0.5], ["Entity 3", 0.1]]}
    resolve(page, json.dumps({"text": text, "mentions": [mention]}))
    expect(page.locator("#reading mark")).to_contain_text("messi")
    assert page.locator("#reading").inner_text().startswith("😀 <b>messi")
    assert page.locator("#reading b").count() == 0  # a text is a text


def test_examples_are_those_whose_names_the_model_knows(page: Page) -> None:
    expect(page.locator("#examples option")).to_have_count(2)
    page.locator("#examples").select_option(index=1)
    expect(page.locator("#reading mark")).to_have_count(6)
    examples = json.loads((Path(app.PAGE) / "examples.json").read_text())
    assert all(example["knows"] in example["document"]["text"] for example in examples)
    given = next(example["document"] for example in examples if "mentions" in example["document"])
    surfaces = [given["text"][mention["start"] : mention["end"]] for mention in given["mentions"]]
    assert surfaces == ["Messi", "World Cup", "Qatar", "Argentina", "France", "Buenos Aires"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a " * 60_000, "text has 120,000 characters; this server takes at most 100,000"),
        ("messi " * 101, "the request has 101 mentions; this server takes at most 100 a request with a trace"),
        ('{"text": "a", "mentions": [{"start": 0, "end": 7}]}', "mentions[0] is [0, 7)"),
        ("nobody", "No name was found"),
        ("  ", "There is no text yet"),
    ],
)
def test_what_goes_wrong_is_said(page: Page, text: str, message: str) -> None:
    page.locator("#text").evaluate("(box, text) => { box.value = text }", text)
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator("#error")).to_contain_text(message)
    expect(page.locator("#result")).to_be_hidden()
    resolve(page)  # and it is well again
    expect(page.locator("#error")).to_be_hidden()


def test_an_overloaded_server_and_one_that_is_gone(page: Page) -> None:
    answer = json.dumps({"error": "the queue is full (9 documents wait); try again in 2 s"})
    page.route("**/link", lambda route: route.fulfill(status=503, body=answer, headers={"retry-after": "2"}))
    page.fill("#text", TEXT)
    page.get_by_role("button", name="Resolve").click()
    expect(page.locator("#error")).to_contain_text("try again in 2 s")
    page.unroute("**/link")
    resolve(page)


def test_a_phone_shows_text_and_panel_together(page: Page) -> None:
    page.set_viewport_size({"width": 360, "height": 740})
    resolve(page, "Once upon a time. " * 60 + TEXT + " And so on." * 60)
    page.get_by_role("button", name="Next step").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    for seen in ("#reading mark.current", "#panel .kicker", "#play"):
        expect(page.locator(seen).first).to_be_in_viewport()


def test_what_is_left_open_says_why(page: Page) -> None:
    resolve(page)
    row = page.locator("#decisions button", has_text="left open, none fits").first
    row.click()
    expect(page.locator("#panel")).to_contain_text("Left open, none fits")
    expect(page.locator("#panel .candidates")).to_contain_text("Entity")
    expect(page.locator("#reading mark.current")).to_have_attribute("title", re.compile("left open, none fits"))
    page.keyboard.press("End")
    expect(page.locator("#reading mark.unresolved sup").first).to_have_text("–")


def test_what_has_no_candidates_is_listed_with_its_kind_and_reason(page: Page) -> None:
    mentions = [{"start": 0, "end": 5, "kind": "person", "candidates": []}, {"start": 10, "end": 14}]
    resolve(page, json.dumps({"text": "Orrin and team", "mentions": mentions}))
    expect(page.locator("#decisions button")).to_have_count(2)
    row = page.locator("#decisions button", has_text="Orrin")
    expect(row).to_contain_text("a name (person), left open, no candidates")
    row.click()
    expect(page.locator("#panel h3")).to_have_text("Orrin")
    expect(page.locator("#panel")).to_contain_text("A name (person), left open, no candidates.")


def test_an_answer_says_its_kind_what_it_is_known_by_and_its_wikidata_id(packaged: Page) -> None:
    resolve(packaged, "Orrin Hatch spoke in Washington.")
    row = packaged.locator("#decisions button", has_text="Orrin Hatch")
    expect(row.locator(".facts")).to_have_text("person, known by links, Q381157")
    row.click()
    expect(packaged.locator("#panel .about")).to_contain_text("Person. Known by links to its article.")
    item = packaged.get_by_role("link", name="Q381157")
    expect(item).to_have_attribute("href", "https://www.wikidata.org/wiki/Q381157")


def test_a_link_shares_text_and_order(page: Page, address: str) -> None:
    text = "Messi & the cup: 100 % #world?\n😀 + city"
    resolve(page, text)
    page.locator("#orders label", has_text="natural").click()
    page.get_by_role("link", name="Link to this text").click()
    expect(page.locator("#status")).to_have_text(re.compile("The link is (copied|in the address bar)"))
    link = page.evaluate("location.href")
    assert link.startswith(f"{address}/#text=") and link.endswith("&order=natural")
    page.goto("about:blank")
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.url} {request.headers.get('referer')}"))
    page.goto(link)
    expect(page.locator("#result")).to_be_visible()
    assert page.locator("#text").input_value() == text
    expect(page.get_by_role("radio", name="natural")).to_be_checked()
    page.get_by_role("button", name="Next step").click()
    expect(page.locator("#reading mark").first).to_have_class("current")  # from left to right
    assert not any("text=" in url for url in sent)


def test_a_link_followed_within_the_page_and_one_that_is_odd(page: Page) -> None:
    resolve(page)
    page.evaluate("location.hash = '#text=rugby+%E0%A4%A&order=backwards'")
    expect(page.locator("#reading")).to_contain_text("rugby")
    expect(page.get_by_role("radio", name="confidence")).to_be_checked()
    expect(page.locator("#status")).to_have_text(re.compile("^1 mention found"))


def test_the_genres_of_examples_are_known_to_the_packaged_model(packaged: Page) -> None:
    for genre in ("News", "Tweet", "Dialogue", "Biography", "Encyclopaedia"):
        packaged.locator("#examples").select_option(
            packaged.locator("#examples option", has_text=f"{genre}: ").first.get_attribute("value")
        )
        expect(packaged.locator("#status")).to_have_text(re.compile(r"\d+ mentions found, \d+ answered"))
        found, answered = map(int, re.findall(r"\d+", packaged.locator("#status").inner_text()))
        assert answered >= 5 and answered >= 0.75 * found, genre
        packaged.locator("#ask summary").click()


def test_the_focus_stays_where_the_reader_is(page: Page) -> None:
    page.locator("#text").fill(TEXT)
    page.get_by_role("button", name="Resolve").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_focused()
    expect(page.locator("#status")).to_have_text(re.compile(rf"^{MENTIONS} mentions found, \d answered\.$"))
    page.locator("#decisions button").nth(3).focus()
    page.keyboard.press("Enter")
    expect(page.locator("#decisions button").nth(3)).to_be_focused()
    expect(page.locator("#decisions button").nth(3)).to_have_attribute("aria-current", "step")
    page.locator("#panel .chips button").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#panel")).to_be_focused()


OUTLINE = """() => {
  const at = document.activeElement, shown = at.labels?.[0]?.querySelector("input + span") ?? at;
  const { top, bottom, width } = shown.getBoundingClientRect();
  return [getComputedStyle(shown).outlineStyle, width > 0 && bottom > 0 && top < innerHeight, at.id || at.type];
}"""


def test_every_stop_of_the_tab_key_is_seen(page: Page) -> None:
    resolve(page)
    page.locator("h1").click()
    stops = []
    for _ in range(20):
        page.keyboard.press("Tab")
        style, seen, name = page.evaluate(OUTLINE)
        assert style == "solid" and seen, name
        stops.append(name)
    order = [stops.index(name) for name in ("radio", "play", "slider", "forth", "share") if name in stops]
    assert len(order) == 5 and order == sorted(order)


def test_names_and_how_well_each_is_known(packaged: Page) -> None:
    packaged.get_by_role("link", name="Names").click()
    packaged.get_by_label("A name, as texts write it").fill("Jordan")
    packaged.keyboard.press("Enter")
    rows = packaged.locator("#names li")
    expect(rows.first.get_by_role("link")).to_have_attribute("href", "https://en.wikipedia.org/wiki/Jordan")
    expect(rows.first).to_contain_text("65 %")
    expect(rows.first).to_contain_text("Known by links to its article. Training saw 446 links to it.")
    expect(packaged.locator("#status")).to_contain_text(f"Jordan has {rows.count()} candidates here.")
    link = packaged.evaluate("location.href")
    assert link.endswith("/names#name=Jordan")
    packaged.goto("about:blank")
    packaged.goto(link.replace("Jordan", "Sparta"))
    expect(rows.filter(has_text="Sparta, Georgia")).to_contain_text("Known by its description")
    packaged.goto("about:blank")
    packaged.goto(link.replace("Jordan", "Orrin+Hatch"))
    expect(packaged.get_by_role("link", name="Q381157")).to_be_visible()
    packaged.get_by_label("A name").fill("Jordan")
    packaged.get_by_role("button", name="Look up").click()
    expect(rows.first).to_contain_text("65 %")
    packaged.go_back()
    expect(packaged.locator("#status")).to_have_text(re.compile("^Orrin Hatch has one candidate here"))


def test_names_of_nobody_and_of_a_mention(page: Page, address: str) -> None:
    page.goto(f"{address}/names#name=%3Cb%3EAtlantis")
    expect(page.locator("#status")).to_have_text("Nothing is called <b>Atlantis here.")
    expect(page.locator("#names")).to_be_hidden()
    page.goto(address)
    resolve(page)
    page.locator("#reading mark", has_text="cup").first.click()
    page.get_by_role("link", name="Who else is called cup here?").click()
    expect(page.get_by_label("A name")).to_have_value("cup")
    expect(page.locator("#names li")).to_have_count(3)


def test_a_phone_never_scrolls_sideways(packaged: Page) -> None:
    packaged.set_viewport_size({"width": 390, "height": 844})
    wide = "document.documentElement.scrollWidth"
    assert packaged.evaluate(wide) <= 390
    resolve(packaged, "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch and Jordan.")
    for _ in range(3):
        assert packaged.evaluate(wide) <= 390
        packaged.get_by_role("button", name="Next step").click(force=True)
    packaged.get_by_role("link", name="Names").click()
    packaged.get_by_label("A name").fill("John Smith")
    packaged.keyboard.press("Enter")
    expect(packaged.locator("#names li").nth(5)).to_be_attached()
    assert packaged.evaluate(wide) <= 390
    packaged.get_by_role("link", name="Reference").click()
    expect(packaged.locator(".endpoint").first).to_be_visible()
    assert packaged.evaluate(wide) <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_violation(page: Page, address: str, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    look(page, "empty")
    page.get_by_role("button", name="Resolve").click(force=True)
    look(page, "error")
    resolve(page)
    look(page, "before the first step")
    page.locator("#slider").fill("5")
    look(page, "a step")
    page.locator("#reading mark").last.click()
    look(page, "a mention")
    page.locator("#orders label", has_text="local").click()
    page.get_by_role("button", name="Next step").click()
    look(page, "all at once")
    page.goto(f"{address}/names#name=cup")
    expect(page.locator("#names li").first).to_be_visible()
    look(page, "names")
    page.goto(f"{address}/docs")
    expect(page.locator(".endpoint").first).to_be_visible()
    look(page, "reference")


def look(page: Page, state: str) -> None:
    found = Axe().run(page).response["violations"]
    told = [f"{one['id']}: {node['html'][:200]} {node['failureSummary']}" for one in found for node in one["nodes"]]
    assert not told, f"{state}: " + "\n".join(told)


def test_the_reference(page: Page, address: str) -> None:
    page.goto(f"{address}/docs")
    expect(page.locator(".endpoint h3").first).to_have_text("POST /disambiguate")
    expect(page.locator(".endpoint")).to_have_count(7)


def test_a_model_without_a_store(browser: BrowserContext) -> None:
    with serving(replace(make_model(), candidates=None, detector=None)) as address:
        page = browser.new_page()
        page.goto(address)
        page.fill("#text", TEXT)
        page.get_by_role("button", name="Resolve").click()
        expect(page.locator("#error")).to_contain_text("no names to find mentions by")
        page.goto(f"{address}/names#name=cup")
        expect(page.locator("#error")).to_contain_text("no names to find mentions by")
        page.close()
