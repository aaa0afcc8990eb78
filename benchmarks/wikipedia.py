"""Reading Wikipedia: agreement with mwparserfromhell, speed and link recall beside two peers, rows made of leads.

python benchmarks/wikipedia.py parsers ENWIK8              which parser: seconds and links of three
python benchmarks/wikipedia.py agreement DUMP...           link by link, and markup left in the text
python benchmarks/wikipedia.py speed ENWIK8 --work FOLDER  interleaved with the peers, each in a venv of its own
python benchmarks/wikipedia.py rows ARTICLES --count N     rows a second by the packaged encoder
"""

from __future__ import annotations

import argparse
import bz2
import html
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import mwparserfromhell
from mwparserfromhell import nodes

from deixis.folder.model_folder import ModelFolder, packaged_model
from deixis.wikipedia import wikitext
from deixis.wikipedia.articles import read_articles
from deixis.wikipedia.dump import Dump, Page, dumps_of, read_pages
from deixis.wikipedia.summary import read_summary
from deixis.wikipedia.titles import Site

TRAIL = re.compile(f"[{wikitext._TRAIL}]*")
PEERS = {"wikipedia2vec": "wikipedia2vec==2.0.0", "wikiextractor": "wikiextractor==3.1.0"}


def articles_of(dump: Dump) -> Iterator[Page]:
    """Yield the pages of the main namespace that are no redirects."""
    for page in read_pages(dump):
        if page.namespace == 0 and page.redirect is None and page.model == "wikitext" and page.text.strip():
            yield page


# --- mwparserfromhell's reading -----------------------------------------------------------------------------------


class Found(NamedTuple):
    """A link to an article as mwparserfromhell reads it; `bare` is its text without trailing letters."""

    place: str  # "text", "caption" or "reference"
    target: str
    surface: str
    bare: str


def normal(text: str) -> str:
    """Return a link text without quotes, stray brackets and doubled space."""
    return " ".join(re.sub("'{2,}|\\[\\[|\\]\\]", "", text).split())


def plain(code: Any) -> str:
    """Return the text of mwparserfromhell's nodes."""
    pieces = []
    for node in code.nodes:
        if isinstance(node, nodes.Text):
            pieces.append(str(node.value))
        elif isinstance(node, nodes.HTMLEntity):
            pieces.append(node.normalize())
        elif isinstance(node, nodes.Wikilink):
            pieces.append(plain(node.text if node.text is not None else node.title))
        elif isinstance(node, nodes.Tag) and str(node.tag).lower() != "ref":
            pieces.append(plain(node.contents) if node.contents else " ")
        elif isinstance(node, nodes.ExternalLink) and node.title:
            pieces.append(plain(node.title))
    return "".join(pieces)


def walk(code: Any, site: Site, place: str) -> Iterator[Found]:
    """Yield the links to articles outside of templates and tables."""
    for index, node in enumerate(code.nodes):
        if isinstance(node, nodes.Wikilink):
            yield from walk_link(node, code.nodes[index + 1 : index + 2], site, place)
        elif isinstance(node, nodes.Tag) and node.contents is not None and str(node.tag).strip().lower() != "table":
            inside = "reference" if str(node.tag).strip().lower() in ("ref", "references") else place
            yield from walk(node.contents, site, inside)
        elif isinstance(node, nodes.ExternalLink | nodes.Heading) and node.title:
            yield from walk(node.title, site, place)


def walk_link(node: Any, following: list[Any], site: Site, place: str) -> Iterator[Found]:
    """Yield a link if it leads to an article, and those in its text or caption."""
    target = site.target(plain(node.title))
    if target.kind == "article":
        bare = plain(node.text) if node.text is not None else plain(node.title).lstrip(": ")
        after = str(following[0].value) if following and isinstance(following[0], nodes.Text) else ""
        trail = TRAIL.match(after)
        yield Found(place, target.title, normal(bare + (trail[0] if trail else "")), normal(bare))
    if node.text is not None and target.kind not in ("category", "language"):
        yield from walk(node.text, site, "caption" if target.kind == "file" else place)


def reference(page: Page, site: Site) -> list[Found]:
    """Return mwparserfromhell's links of a page."""
    return list(walk(mwparserfromhell.parse(page.text, skip_style_tags=True), site, "text"))


# --- Agreement ----------------------------------------------------------------------------------------------------

LEFT = {
    "link brackets": r"\[\[|\]\]",
    "template braces": r"\{\{|\}\}",
    "table marks": r"^\{\||^\|\}|^\|-",
    "tags": r"</?(?:ref|br|div|span|small|sup|sub|b|i|p|table|td|tr|nowiki|math|center|font|u|gallery)\b[^<>]*>",
    "comments": r"<!--",
    "bold or italic": r"''",
    "headings": r"^==+[^=\n]+==+$",
    "entities": r"&(?:nbsp|[lg]t|quot|[mn]dash|amp|#[0-9]+);",
    "external links": r"\[https?://",
    "files": r"\b(?:Image|File):\S+\.(?:jpg|png|gif|svg)\|",
}


def removed_by(page: Page, site: Site, found: Found) -> str:
    """Say why a link of mwparserfromhell's reading is not in ours: what took it away, or how the texts differ."""
    source = wikitext._cut_opaque(wikitext._with_breaks(page.text))
    pattern = re.compile(r"\[\[\s*:?\s*" + r"[\s_]+".join(map(re.escape, found.target.split())), re.IGNORECASE)
    stages = [
        ("in an element or comment that mwparserfromhell did not close alike", source),
        ("in a template that mwparserfromhell did not close alike", source := wikitext._cut_templates(source)),
        ("in a table that mwparserfromhell did not read as one", source := wikitext._cut_tables(source)),
        ("in a file link without a shown caption", source := wikitext._cut_asides(source, site, Counter())),
        ("in a table row whose table a template opens", wikitext._cut_line_markup(wikitext._cut_inline(source))),
    ]
    before = len(pattern.findall(page.text))
    for reason, stage in stages:
        if len(pattern.findall(stage)) < before:
            return reason
    return "found, with another text"


def agreement(paths: Iterable[Path]) -> None:
    """Print, dump by dump, how many of mwparserfromhell's links we have, with target and text, and why not the rest."""
    reasons: Counter[str] = Counter()
    examples: dict[str, str] = {}
    left: Counter[str] = Counter()
    shown_as_is: Counter[str] = Counter()
    total = agreed = extra = pages = 0
    for dump in dumps_of(paths):
        here = same = 0
        for page in articles_of(dump):
            ours = wikitext.parse(page.text, dump.site)
            have = Counter((link.target, normal(ours.text[link.start : link.end])) for link in ours.links)
            for found in reference(page, dump.site):
                if found.place == "reference":
                    continue
                here += 1
                if have[found.target, found.surface] > 0:
                    have[found.target, found.surface] -= 1
                    same += 1
                else:
                    reason = removed_by(page, dump.site, found)
                    reasons[reason] += 1
                    examples.setdefault(reason, f"{page.title}: [[{found.target}|{found.surface}]]")
            extra += sum(have.values())
            pages += 1
            for name, pattern in LEFT.items():
                if count := len(re.findall(pattern, ours.text, re.MULTILINE)):
                    literal = re.search(r"<nowiki|<pre|<code|&lt;|&#|&amp;|<source", page.text) is not None
                    (shown_as_is if literal else left)[name] += count
        print(f"{dump.path.name[:60]:60}  {same:>9,} of {here:>9,} links  {same / max(here, 1):8.3%}")
        total, agreed = total + here, agreed + same
    print(f"{'all, ' + format(pages, ',') + ' articles':60}  {agreed:>9,} of {total:>9,} links  {agreed / total:8.3%}")
    print(f"links of ours that mwparserfromhell does not have (galleries, worded templates): {extra:,}")
    for reason, count in reasons.most_common():
        print(f"{count:>8,}  {reason}; e.g. {examples[reason]}")
    print(f"markup left: {dict(left) or 'none'}")
    print(f"the same on pages that show markup as it stands (nowiki, pre, escapes): {dict(shown_as_is) or 'none'}")


# --- Which parser -------------------------------------------------------------------------------------------------


def parsers(path: Path, step: int) -> None:
    """Print seconds and links of our scanner, mwparserfromhell and wikitextparser on every `step`-th article."""
    import wikitextparser  # pip install wikitextparser, for this measurement only

    (dump,) = dumps_of([path])
    pages = [page for index, page in enumerate(articles_of(dump)) if index % step == 0]
    size = sum(len(page.text) for page in pages) / 1e6

    def own(page: Page) -> int:
        return len(wikitext.parse(page.text, dump.site).links)

    def hell(page: Page) -> int:
        code = mwparserfromhell.parse(page.text)
        links = sum(found.place != "reference" for found in walk(code, dump.site, "text"))
        code.strip_code()
        return links

    def wtp(page: Page) -> int:
        code = wikitextparser.parse(page.text)
        links = sum(dump.site.target(link.target).kind == "article" for link in code.wikilinks)
        code.plain_text()
        return links

    print(f"{len(pages):,} articles, {size:.1f} M characters")
    for name, parse in (("own scanner", own), ("mwparserfromhell", hell), ("wikitextparser", wtp)):
        begin = time.process_time()
        links = failed = 0
        for page in pages:
            try:
                links += parse(page)
            except Exception:  # a peer that fails on a page is counted, not mended
                failed += 1
        seconds = time.process_time() - begin
        print(f"{name:18} {seconds:8.2f} s  {size / seconds:7.2f} M chars/s  {links:>9,} links  {failed} pages failed")


# --- Speed --------------------------------------------------------------------------------------------------------


def rewrite(path: Path, output: Path) -> int:
    """Write a dump of 2006 in schema 0.10, whole pages only, closed and compressed, as the peers need it."""
    (dump,) = dumps_of([path])
    count = 0
    with bz2.open(output, "wt", encoding="utf-8") as file:
        file.write('<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/" version="0.10" xml:lang="en">\n')
        file.write("  <siteinfo>\n    <sitename>Wikipedia</sitename>\n    <dbname>enwiki</dbname>\n")
        file.write("    <base>http://en.wikipedia.org/wiki/Main_Page</base>\n    <namespaces>\n")
        for name, key in dump.site.namespaces.items():
            file.write(f'      <namespace key="{key}" case="first-letter">{name.capitalize()}</namespace>\n')
        file.write('      <namespace key="0" case="first-letter" />\n    </namespaces>\n  </siteinfo>\n')
        for page in read_pages(dump):
            count += 1
            title, text = html.escape(page.title, False), html.escape(page.text, False)
            led = f'    <redirect title="{html.escape(page.redirect)}" />\n' if page.redirect else ""
            file.write(
                f"  <page>\n    <title>{title}</title>\n    <ns>{page.namespace}</ns>\n    <id>{page.id}</id>\n{led}"
                f"    <revision>\n      <id>{page.id}</id>\n      <model>wikitext</model>\n"
                f"      <format>text/x-wiki</format>\n"
                f'      <text xml:space="preserve">{text}</text>\n    </revision>\n  </page>\n'
            )
        file.write("</mediawiki>\n")
    return count


def install(name: str, folder: Path) -> Path | None:
    """Install a peer in a venv of its own; None where that fails."""
    scripts = folder / name / "bin"
    if not (scripts / name).exists():
        venv.create(folder / name, with_pip=True)
        done = subprocess.run([scripts / "pip", "install", "-q", PEERS[name]], capture_output=True, text=True)
        if done.returncode:
            print(f"{PEERS[name]} does not install on Python {platform.python_version()}: {done.stderr[-300:]}")
            return None
    return scripts


@dataclass
class Run:
    """What a command took."""

    wall: float
    cpu: float
    peak: float  # MB, of its largest process


def timed(command: list[object], folder: Path) -> Run | None:
    """Run a command and count the CPU seconds of all its processes; None where it fails."""
    begin = time.perf_counter()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([str(word) for word in command], stdout=log, stderr=log, cwd=folder)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        print(f"failed: {' '.join(map(str, command))}\n{(folder / 'log').read_text()[-500:]}")
        return None
    return Run(time.perf_counter() - begin, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


DUMP_LINKS = """
import json, sys
from wikipedia2vec.dump_db import DumpDB
db = DumpDB(sys.argv[1])
for title in db.titles():
    links = [link.text for paragraph in db.get_paragraphs(title) for link in paragraph.wiki_links]
    print(json.dumps([title, links]))
"""


def surfaces(name: str, folder: Path, scripts: Path | None) -> Iterator[tuple[str, list[str]]]:
    """Yield the link texts of every article that a command wrote."""
    if name.startswith("deixis"):
        for article in read_articles(folder / "articles.jsonl.zst"):
            yield article.title, [article.surface(link) for link in article.links]
    elif name == "wikipedia2vec" and scripts is not None:
        listed = subprocess.run(
            [scripts / "python", "-c", DUMP_LINKS, folder / "db"], capture_output=True, text=True, check=True
        )
        for line in listed.stdout.splitlines():
            title, links = json.loads(line)
            yield title, links
    else:
        for path in sorted(folder.glob("out/*/wiki_*")):
            for line in path.read_text().splitlines():
                record = json.loads(line)
                text = html.unescape(record["text"])
                anchors = re.findall(r'<a href="([^"]*)">(.*?)</a>', text, re.DOTALL)
                yield record["title"], [shown for target, shown in anchors if Site().target(unquote(target)).title]


def recall(found: Iterable[tuple[str, list[str]]], expected: dict[str, list[Found]]) -> tuple[int, int, int]:
    """Return articles and links found, and how many of the expected links are among them, by page and text."""
    articles = links = hits = 0
    for title, texts in found:
        articles += bool(texts) or title in expected
        links += len(texts)
        have = Counter(map(normal, texts))
        for link in expected.get(title, ()):
            text = link.surface if have[link.surface] > 0 else link.bare  # peers leave trailing letters out
            if have[text] > 0:
                have[text] -= 1
                hits += 1
    return articles, links, hits


def speed(path: Path, work: Path, runs: int) -> None:
    """Print pages a second and link recall of each, interleaved, the same pages for all."""
    dump = work / "rewritten.xml.bz2"
    work.mkdir(parents=True, exist_ok=True)
    pages = rewrite(path, dump)
    scripts = {name: install(name, work) for name in PEERS}
    ours: list[object] = [
        sys.executable,
        "-m",
        "deixis.cli",
        "wikipedia",
        "articles",
        dump,
        "-o",
        "articles.jsonl.zst",
        "--workers",
    ]
    commands: dict[str, list[object]] = {"deixis 1 worker": [*ours, 1], f"deixis {os.cpu_count()} workers": ours[:-1]}
    if (found := scripts["wikipedia2vec"]) is not None:
        commands["wikipedia2vec"] = [found / "wikipedia2vec", "build-dump-db", dump, "db", "--pool-size", 1]
    if (found := scripts["wikiextractor"]) is not None:
        options = ["--json", "-l", "-q", "--no-templates", "--processes", 1, "-o", "out"]
        commands["wikiextractor"] = [found / "wikiextractor", *options, dump]
    taken: dict[str, list[Run]] = {name: [] for name in commands}  # first, while this process is small: a child's
    # peak memory begins at its parent's
    for _ in range(runs):
        for name, command in commands.items():
            folder = work / "runs" / name
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            if (run := timed(command, folder)) is not None:
                taken[name].append(run)
    expected: dict[str, list[Found]] = {}
    (opened,) = dumps_of([dump])
    for page in articles_of(opened):
        expected[page.title] = [found for found in reference(page, opened.site) if found.place != "reference"]
    wanted = sum(map(len, expected.values()))
    print(f"{pages:,} pages, {len(expected):,} articles, {wanted:,} links to articles outside templates, tables, refs")
    print(f"{runs} interleaved runs on {os.cpu_count()} cores, Python {platform.python_version()}; medians")
    print(f"{'':20}{'wall s':>8}{'CPU s':>8}{'pages/s':>9}{'pages/CPU s':>13}{'MB':>7}{'links':>10}{'recall':>9}")
    for name, done in taken.items():
        if done:
            middle = sorted(done, key=lambda run: run.cpu)[len(done) // 2]
            _, links, hits = recall(surfaces(name, work / "runs" / name, scripts.get(name)), expected)
            print(
                f"{name:20}{middle.wall:8.1f}{middle.cpu:8.1f}{pages / middle.wall:9.0f}{pages / middle.cpu:13.0f}"
                f"{middle.peak:7.0f}{links:10,}{hits / wanted:9.2%}"
            )


def rows(path: Path, count: int, device: str) -> None:
    """Print how many rows a second are made of the first sentences of articles."""
    folder = ModelFolder.load(packaged_model())
    folder.network.to(device).eval()
    assert folder.describer is not None
    pages = [page for page in read_summary(path).pages if page.meanings is None]
    texts = [(page.title, page.lead or None) for page in (pages * (count // len(pages) + 1))[:count]]
    wall, cpu = time.perf_counter(), time.process_time()
    folder.describer.rows(folder.network, folder.tokenizer, texts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    seconds, unit = (cpu, "core") if device == "cpu" else (wall, device)
    print(f"{count:,} rows in {wall:.1f} s of wall, {cpu:.1f} s of CPU: {count / seconds:,.0f} a {unit} second")
    print(f"7 million: {7e6 / (count / seconds) / 3600:.1f} {unit} hours")


def main() -> None:
    """Parse the arguments and run one of the four."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("parsers")
    one.add_argument("dump", type=Path)
    one.add_argument("--step", type=int, default=10, help="measure every n-th article")
    two = commands.add_parser("agreement")
    two.add_argument("dumps", type=Path, nargs="+")
    three = commands.add_parser("speed")
    three.add_argument("dump", type=Path)
    three.add_argument("--work", type=Path, help="where to install the peers and write; by default a temporary folder")
    three.add_argument("--runs", type=int, default=3)
    four = commands.add_parser("rows")
    four.add_argument("articles", type=Path)
    four.add_argument("--count", type=int, default=1000)
    four.add_argument("--device", default="cpu")
    given = parser.parse_args()
    if given.command == "rows":
        rows(given.articles, given.count, given.device)
    elif given.command == "parsers":
        parsers(given.dump, given.step)
    elif given.command == "agreement":
        agreement(given.dumps)
    elif given.work is not None:
        speed(given.dump, given.work.resolve(), given.runs)
    else:
        with tempfile.TemporaryDirectory() as folder:
            speed(given.dump, Path(folder), given.runs)


if __name__ == "__main__":
    main()
