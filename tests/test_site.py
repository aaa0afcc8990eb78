"""The site of `make docs`: built without a warning, every page in the navigation, every link leads somewhere."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

mkdocs_config = pytest.importorskip("mkdocs.config", reason="mkdocs is not installed: pip install 'deixis[docs]'")

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
ASKS = {"link": "href", "script": "src", "img": "src", "iframe": "src", "source": "src"}  # what a browser fetches


class Links(HTMLParser):
    """Reads what a page fetches, what it leads to, its anchors, and what its navigation lists."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.led: list[str] = []
        self.listed: set[str] = set()
        self.anchors: set[str] = set()
        self._navigation = 0
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self._navigation += tag == "nav"
        if "id" in given:
            self.anchors.add(given["id"])
        if given.get(ASKS.get(tag, "")) and given.get("rel") not in ("canonical", "next", "prev"):
            self.fetched.append(given[ASKS[tag]])
        if tag == "a" and "href" in given:
            self.led.append(given["href"])
            if self._navigation:
                self.listed.add(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self._navigation -= tag == "nav"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Links]]:
    """Every page of the site by its path; a warning while it is built is an error."""
    from mkdocs.commands.build import build

    folder = tmp_path_factory.mktemp("site")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_MKDOCS_2_WARNING", "1")
        patch.chdir(ROOT)
        said: list[str] = []
        handler = logging.Handler(logging.WARNING)
        handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("mkdocs").addHandler(handler)
        try:
            build(mkdocs_config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder)))
        finally:
            logging.getLogger("mkdocs").removeHandler(handler)
        assert said == []
    yield {path.relative_to(folder).as_posix(): Links(path) for path in folder.rglob("*.html")}


def test_every_page_is_in_the_navigation(site: dict[str, Links]) -> None:
    listed = {unquote(target) for target in site["index.html"].listed}
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]):
        name = path.relative_to(ROOT).as_posix().removeprefix("docs/").removesuffix(".md") + ".html"
        assert name in site and name in listed, name
    assert {"reference/commands.html", "reference/deixis.html", "reference/knowledge.html"} <= listed


def test_links_lead_somewhere(site: dict[str, Links]) -> None:
    checked = 0
    for name, page in site.items():
        for link in page.led:
            target = urlsplit(link)
            if not target.scheme and name != "404.html":
                path = (Path(name).parent / unquote(target.path)).as_posix() if target.path else name
                path = "index.html" if path == "." else str(Path("/", path).resolve().relative_to("/"))
                assert path in site, (name, link)
                if target.fragment:
                    assert unquote(target.fragment) in site[path].anchors, (name, link)
                checked += 1
    assert checked > 1000


def test_nothing_is_asked_of_another_host(site: dict[str, Links]) -> None:
    assert [link for page in site.values() for link in page.fetched if urlsplit(link).netloc] == []


def test_the_reference_has_every_public_name(site: dict[str, Links]) -> None:
    import deixis

    for name in deixis.__all__:
        home = getattr(deixis, name).__module__
        assert f"{home}.{name}" in site["reference/deixis.html"].anchors
    assert "deixis.knowledge.names.Names.lookup" in site["reference/knowledge.html"].anchors
