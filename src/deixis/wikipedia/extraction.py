"""Dumps to article JSONL, on all cores, resumable: chunks → parts on disk → redirects → one file and its summary.

A part is what came of one chunk: a line of facts (counts, redirects), then a line an article, its links still apart
so that finishing it touches nothing else. Redirects can only be followed when all parts are there; each part then
becomes one zstandard frame of the output, and of the summary's files beside it (summary.py). Chunks depend on the dump
alone, so neither the number of workers nor a kill and a restart changes a byte.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import zstandard

from deixis import __version__
from deixis.artefacts import Manifest, digest_file, manifest_path, open_text, write_aside
from deixis.documents import normalise_title
from deixis.errors import InputError
from deixis.languages.wikis import BRACKETED
from deixis.wikipedia.articles import Article
from deixis.wikipedia.dump import Chunk, Dump, Page, dumps_of, newest_revision, one_wiki, parse_pages
from deixis.wikipedia.leads import lead_of
from deixis.wikipedia.parallel import cores, in_order
from deixis.wikipedia.redirects import Redirects, read_redirects
from deixis.wikipedia.summary import FILES, PageSummary, link_lines, merge_links, summary_folder
from deixis.wikipedia.titles import Site
from deixis.wikipedia.wikitext import parse

__all__ = ["Extraction", "build_articles"]

FORMAT = 2  # of parts; raised whenever the same dump would give other parts
Progress = Callable[[int, int, int], None]  # bytes of the dumps read, bytes in all, pages read


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of it: kept and dropped by reason, and where dumps were cut off."""

    counts: Mapping[str, Mapping[str, int]]
    cuts: Sequence[str]


def build_articles(
    paths: Sequence[Path],
    output: Path,
    *,
    redirects: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Write the articles of dumps as zstandard-compressed article JSONL; a summary and a manifest are beside it."""
    if output.suffix != ".zst":
        raise InputError(f"{output} must end in .zst: articles are written as zstandard-compressed JSONL")
    dumps = dumps_of(paths)
    info = one_wiki(dumps)
    given = {} if redirects is None else read_redirects(redirects)
    parents = {path.name: digest_file(path) for path in [*paths, *([redirects] if redirects else [])]}
    folder = output.with_name(output.name + ".parts")
    workers = workers or cores()
    try:
        _claim(folder, orjson.dumps([FORMAT, __version__, [parents[dump.path.name] for dump in dumps]]))
        parts = _make_parts(dumps, folder, workers, progress)
        facts = [_read_facts(part) for part in parts]
        table = Redirects.build({title: to for fact in facts for title, to in fact.redirects.items()}, given)
        finished, digests = _finish(parts, output, table, workers)
    except InputError as error:
        kept = len(list(folder.glob("*.zst")))
        raise InputError(f"{error}; finished parts are kept ({kept}), run the command again to go on") from error
    counts = _summed([fact.counts for fact in facts] + [finished])
    counts["redirects"] = dict(sorted(table.counts.items())) | counts.get("redirects", {})
    parameters = {
        "redirects": None if redirects is None else redirects.name,
        "bytes": output.stat().st_size,
        "date": max(fact.newest for fact in facts),
        **info._asdict(),
    }
    Manifest("articles", parameters, parents, digests, counts).save(manifest_path(output))
    shutil.rmtree(folder)
    return Extraction(counts, [cut for fact in facts for cut in fact.cuts])


def _claim(folder: Path, key: bytes) -> None:
    """Take over the parts of an interrupted run of the same dumps; remove those of any other."""
    mark = folder / "key.json"
    if not (mark.exists() and mark.read_bytes() == key):
        shutil.rmtree(folder, ignore_errors=True)
        with write_aside(mark) as file:
            file.write(key)


# --- Parts --------------------------------------------------------------------------------------------------------

Counts = dict[str, Counter[str]]


@dataclass(slots=True)
class Facts:
    """The first line of a part: counts by group and reason, redirects, where the dump was cut off, its newest page."""

    counts: dict[str, dict[str, int]]
    redirects: dict[str, str] = field(default_factory=dict)
    cuts: list[str] = field(default_factory=list)
    newest: str = ""  # the date of its newest revision


def _make_parts(dumps: Sequence[Dump], folder: Path, workers: int, progress: Progress | None) -> list[Path]:
    parts: list[Path] = []
    total = sum(dump.size for dump in dumps)
    pages = 0

    def missing() -> Iterator[tuple[int, Chunk, Path, int]]:
        before = 0
        for number, dump in enumerate(dumps):
            for chunk in dump.chunks():
                parts.append(folder / f"{len(parts):06}.zst")
                if not parts[-1].exists():
                    yield number, chunk, parts[-1], before + chunk.position
            before += dump.size

    sites = [dump.site for dump in dumps]
    for position, found in in_order(_make_part, missing(), workers, _share, sites, fork=True):
        pages += found
        if progress is not None:
            progress(position, total, pages)
    return parts


def _make_part(task: tuple[int, Chunk, Path, int]) -> tuple[int, int]:
    """Write one part; return how far the dumps are read with it and its number of pages."""
    number, chunk, path, position = task
    site: Site = _shared[number]
    data, cut, left = chunk.read()
    counts: Counts = {group: Counter() for group in ("pages", "dropped", "links", "links passed over")}
    facts = Facts({}, {}, [] if cut is None else [cut], newest_revision(data))
    lines = []
    for page in parse_pages(data, site):
        counts["pages"]["read"] += 1
        record = _record(page, site, counts, facts.redirects)
        if record is not None:
            lines.append(record)
    if left:
        counts["pages"]["cut off"] += left
    found = counts["pages"]["read"]
    facts.counts = {group: dict(sorted(counter.items())) for group, counter in counts.items()}
    with write_aside(path) as file:
        content = b"\n".join([orjson.dumps([facts.counts, facts.redirects, facts.cuts, facts.newest]), *lines, b""])
        file.write(zstandard.ZstdCompressor(level=-1).compress(content))  # read once, soon
    return position, found


def _record(page: Page, site: Site, counts: Counts, redirects: dict[str, str]) -> bytes | None:
    """Return the line of a page, after a tab its title, links and lead; None where it is dropped."""
    reason = None
    title = normalise_title(page.title)
    if page.namespace != 0:
        reason = "other namespace"
    elif page.model != "wikitext":
        reason = "not wikitext"
    elif not title:
        reason = "no title"
    elif page.redirect is not None:
        target = site.target(page.redirect)
        if target.kind == "article":
            redirects[title] = target.title
            return Article(title, id=page.id, redirect=target.title).to_json() + b"\t"
        reason = f"redirect to {'no title' if target.kind in ('invalid', 'section') else 'another namespace or wiki'}"
    elif not page.text.strip():
        reason = "no text"
    if reason is not None:
        counts["dropped"][reason] += 1
        return None
    plain = parse(page.text, site)
    disambiguation = plain.disambiguation or title.endswith(BRACKETED)
    counts["pages"]["disambiguation pages" if disambiguation else "articles"] += 1
    counts["links"]["found"] += len(plain.links)
    counts["links passed over"].update(plain.passed_over)
    head = Article(title, plain.text, id=page.id, disambiguation=disambiguation).to_json()
    return head + b"\t" + orjson.dumps([title, [tuple(link) for link in plain.links], lead_of(title, plain.text)])


def _read_facts(part: Path) -> Facts:
    with open_text(part) as file:
        return Facts(*orjson.loads(file.readline()))


# --- Finishing ----------------------------------------------------------------------------------------------------


class _Finished(NamedTuple):
    """What came of a part: frames of the output, of its pages and its redirects, counts, and where its links are."""

    frames: tuple[bytes, bytes, bytes]
    counts: dict[str, dict[str, int]]
    led_to: list[str]  # its titles that redirects lead to
    links: Path


def _finish(
    parts: Sequence[Path], output: Path, table: Redirects, workers: int
) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """Follow the redirects in every part, write output and summary; return further counts and the files' digests."""
    wanted = set(table.table.values())
    counts: list[dict[str, dict[str, int]]] = []
    links: list[Path] = []
    folder = summary_folder(output)
    shared = (table, frozenset(wanted))
    with (
        write_aside(output) as articles,
        write_aside(folder / FILES[0]) as pages,
        write_aside(folder / FILES[1]) as led,
    ):
        files = {output.name: hashlib.sha256()} | {f"{folder.name}/{name}": hashlib.sha256() for name in FILES[:2]}
        for done in in_order(_finish_part, parts, workers, _share, shared, fork=True):
            for file, digest, frame in zip((articles, pages, led), files.values(), done.frames, strict=True):
                file.write(frame)
                digest.update(frame)
            counts.append(done.counts)
            links.append(done.links)
            wanted.difference_update(done.led_to)
    merge_links(links, folder / FILES[2])
    summed = _summed(counts)
    summed["redirects"] = {"targets that are no page of the dump": len(wanted)}
    digests = {name: digest.hexdigest() for name, digest in files.items()}
    return summed, digests | {f"{folder.name}/{FILES[2]}": digest_file(folder / FILES[2])}


def _finish_part(part: Path) -> _Finished:
    """Follow the redirects of a part; its links go to a file beside it, by surface and target."""
    table, wanted = _shared
    counts: Counts = {group: Counter() for group in ("pages", "dropped", "links", "links passed over")}
    lines: tuple[list[bytes], list[bytes], list[bytes]] = ([], [], [])
    titles: list[str] = []
    links: Counter[tuple[str, str]] = Counter()
    with open_text(part) as file:
        next(file)
        for line in file:
            head, _, tail = line.rstrip(b"\n").partition(b"\t")  # JSON has no bare tab
            if tail:
                article = Article.from_json(head)
                title, found, lead = orjson.loads(tail)
                if title in wanted:
                    titles.append(title)
                kept = _followed(found, table, counts)
                links.update((article.text[start:end], target) for start, end, target in kept)
                meanings = sorted({link[2] for link in kept}) if article.disambiguation else None
                lines[0].append(head.removesuffix(b"[]}") + orjson.dumps(kept) + b"}")
                lines[1].append(orjson.dumps(tuple(PageSummary(title, article.id, lead, meanings))))
            elif (record := _with_target(orjson.loads(head), table, counts)) is not None:
                lines[0].append(orjson.dumps(record))
                lines[2].append(orjson.dumps([record["title"], record["redirect"]]))
    path = part.with_suffix(".links")
    with write_aside(path) as written:
        written.write(link_lines(links))
    articles, pages, led = map(_frame, lines)
    return _Finished((articles, pages, led), {group: dict(counter) for group, counter in counts.items()}, titles, path)


def _frame(lines: list[bytes]) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(b"\n".join([*lines, b""]))


def _followed(links: list[list[Any]], table: Redirects, counts: Counts) -> list[list[Any]]:
    """Return links with the targets that redirects lead to, without those that lead nowhere."""
    kept = []
    for link in links:
        target = table.table.get(link[2])
        if target is not None:
            counts["links"]["through a redirect"] += 1
            link[2] = target
        elif link[2] in table.lost:
            counts["links passed over"][f"redirect {table.lost[link[2]]}"] += 1
            continue
        kept.append(link)
    counts["links"]["kept"] += len(kept)
    return kept


def _with_target(record: dict[str, Any], table: Redirects, counts: Counts) -> dict[str, Any] | None:
    target = table.resolve(record["title"])
    if target is None:
        counts["dropped"][f"redirect {table.lost[record['title']]}"] += 1
        return None
    if target == record["title"]:
        counts["dropped"]["redirect away from a title of the given table"] += 1
        return None
    counts["pages"]["redirects"] += 1
    return record | {"redirect": target}


def _summed(counts: Iterable[Mapping[str, Mapping[str, int]]]) -> dict[str, dict[str, int]]:
    summed: Counts = {}
    for groups in counts:
        for group, reasons in groups.items():
            summed.setdefault(group, Counter()).update(reasons)
    return {group: dict(sorted(counter.items())) for group, counter in summed.items()}


# --- Workers ------------------------------------------------------------------------------------------------------

_shared: Any = None  # what every task of a pool needs, set once a process


def _share(value: Any) -> None:
    global _shared
    _shared = value
