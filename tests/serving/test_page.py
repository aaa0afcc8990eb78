"""The page in a real Chromium: playing, sliding, switching orders, what goes wrong; never a word on the console."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

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
    """A fresh page; at the end nothing was said on the console and nothing was asked of another host."""
    opened = browser.new_page()
    opened.set_default_timeout(10_000)
    said: list[str] = []
    asked: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(address)
    yield opened
    # Chromium itself notes every answer of 4xx and 5xx; that is the server's word, not the page's fault.
    assert [line for line in said if "the server responded with a status of" not in line] == []
    assert [url for url in asked if not url.startswith(address)] == []
    opened.close()


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
        page.close()
