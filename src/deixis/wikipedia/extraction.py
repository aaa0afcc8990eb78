"""Dumps to article JSONL, on all cores, resumable: chunks → parts on disk → redirects → one compressed file.

A part is what came of one chunk: a line of facts (counts, redirects), then a line an article, its links still apart
so that finishing it touches nothing else. Redirects can only be followed when all parts are there; each part then
becomes one zstandard frame of the output. Chunks depend on the dump alone, so neither the number of workers nor a
kill and a restart changes a byte.
"""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import zstandard

from deixis import __version__
from deixis.artefacts import Manifest, digest_file, open_text, write_aside
from deixis.documents import normalise_title
from deixis.errors import InputError
from deixis.wikipedia.articles import Article
from deixis.wikipedia.dump import Chunk, Dump, Page, dumps_of, parse_pages
from deixis.wikipedia.parallel import cores, in_order
from deixis.wikipedia.redirects import Redirects, read_redirects
from deixis.wikipedia.titles import Site
from deixis.wikipedia.wikitext import parse

__all__ = ["Extraction", "build_articles", "manifest_path"]

FORMAT = 1  # of parts; raised whenever the same dump would give other parts
Progress = Callable[[int, int, int], None]  # bytes of the dumps read, bytes in all, pages read


@dataclass(frozen=True, slots=True)
class Extraction:
    """What came of it: kept and dropped by reason, and where dumps were cut off."""

    counts: Mapping[str, Mapping[str, int]]
    cuts: Sequence[str]


def manifest_path(output: Path) -> Path:
    """Return where the manifest of an article file is."""
    return output.with_name(output.name + ".manifest.json")


def build_articles(
    paths: Sequence[Path],
    output: Path,
    *,
    redirects: Path | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Extraction:
    """Write the articles of dumps as zstandard-compressed article JSONL, with a manifest beside it."""
    if output.suffix != ".zst":
        raise InputError(f"{output} must end in .zst: articles are written as zstandard-compressed JSONL")
    dumps = dumps_of(paths)
    given = {} if redirects is None else read_redirects(redirects)
    parents = {path.name: digest_file(path) for path in [*paths, *([redirects] if redirects else [])]}
    folder = output.with_name(output.name + ".parts")
    workers = workers or cores()
    try:
        _claim(folder, orjson.dumps([FORMAT, __version__, [digest_file(dump.path) for dump in dumps]]))
        parts = _make_parts(dumps, folder, workers, progress)
        facts = [_read_facts(part) for part in parts]
        table = Redirects.build({title: to for fact in facts for title, to in fact.redirects.items()}, given)
        finished, digest = _finish(parts, output, table, workers)
    except InputError as error:
        kept = len(list(folder.glob("*.zst")))
        raise InputError(f"{error}; finished parts are kept ({kept}), run the command again to go on") from error
    counts = _summed([fact.counts for fact in facts] + [finished])
    counts["redirects"] = dict(sorted(table.counts.items())) | counts.get("redirects", {})
    parameters = {"redirects": None if redirects is None else redirects.name}
    Manifest("articles", parameters, parents, {output.name: digest}, counts).save(manifest_path(output))
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
    """The first line of a part: counts by group and reason, redirects found, where the dump was cut off."""

    counts: dict[str, dict[str, int]]
    redirects: dict[str, str] = field(default_factory=dict)
    cuts: list[str] = field(default_factory=list)


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
    facts = Facts({}, {}, [] if cut is None else [cut])
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
        content = b"\n".join([orjson.dumps([facts.counts, facts.redirects, facts.cuts]), *lines, b""])
        file.write(zstandard.ZstdCompressor(level=-1).compress(content))  # read once, soon
    return position, found


def _record(page: Page, site: Site, counts: Counts, redirects: dict[str, str]) -> bytes | None:
    """Return the line of a page, its title and links again after a tab; None where it is dropped."""
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
    disambiguation = plain.disambiguation or title.endswith("(disambiguation)")
    counts["pages"]["disambiguation pages" if disambiguation else "articles"] += 1
    counts["links"]["found"] += len(plain.links)
    counts["links passed over"].update(plain.passed_over)
    head = Article(title, plain.text, id=page.id, disambiguation=disambiguation).to_json()
    return head + b"\t" + orjson.dumps([title, [tuple(link) for link in plain.links]])


def _read_facts(part: Path) -> Facts:
    with open_text(part) as file:
        return Facts(*orjson.loads(file.readline()))


# --- Finishing ----------------------------------------------------------------------------------------------------


def _finish(
    parts: Sequence[Path], output: Path, table: Redirects, workers: int
) -> tuple[dict[str, dict[str, int]], str]:
    """Follow the redirects in every part and write the output; return further counts and the output's digest."""
    wanted = set(table.table.values())
    digest = hashlib.sha256()
    counts: list[dict[str, dict[str, int]]] = []
    with write_aside(output) as file:
        shared = (table, frozenset(wanted))
        for frame, found, titles in in_order(_finish_part, parts, workers, _share, shared, fork=True):
            file.write(frame)
            digest.update(frame)
            counts.append(found)
            wanted.difference_update(titles)
    summed = _summed(counts)
    summed["redirects"] = {"targets that are no page of the dump": len(wanted)}
    return summed, digest.hexdigest()


def _finish_part(part: Path) -> tuple[bytes, dict[str, dict[str, int]], list[str]]:
    """Return a part as a frame of the output, what was counted, and those of its titles that redirects lead to."""
    table, wanted = _shared
    counts: Counts = {group: Counter() for group in ("pages", "dropped", "links", "links passed over")}
    lines, titles = [], []
    with open_text(part) as file:
        next(file)
        for line in file:
            head, _, tail = line.rstrip(b"\n").partition(b"\t")  # JSON has no bare tab
            if tail:
                title, links = orjson.loads(tail)
                if title in wanted:
                    titles.append(title)
                lines.append(_with_links(head, links, table, counts))
            elif (record := _with_target(orjson.loads(head), table, counts)) is not None:
                lines.append(record)
    frame = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(b"\n".join([*lines, b""]))
    return frame, {group: dict(counter) for group, counter in counts.items()}, titles


def _with_links(head: bytes, links: list[list[Any]], table: Redirects, counts: Counts) -> bytes:
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
    return head.removesuffix(b"[]}") + orjson.dumps(kept) + b"}"


def _with_target(record: dict[str, Any], table: Redirects, counts: Counts) -> bytes | None:
    target = table.resolve(record["title"])
    if target is None:
        counts["dropped"][f"redirect {table.lost[record['title']]}"] += 1
        return None
    if target == record["title"]:
        counts["dropped"]["redirect away from a title of the given table"] += 1
        return None
    counts["pages"]["redirects"] += 1
    return orjson.dumps(record | {"redirect": target})


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
