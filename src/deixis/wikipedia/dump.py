"""MediaWiki XML dumps, streamed: chunks of whole pages that can be read anywhere, and the pages in them.

A dump is cut into chunks between pages, by its content alone, so that the same dump always gives the same chunks.
Multistream bzip2 files are cut between streams without being decompressed: whoever reads the chunk does that. All
else is decompressed here. Elements are found by searching, not by an XML parser: in these files `<` is always markup.
"""

from __future__ import annotations

import bz2
import codecs
import html
import mmap
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from deixis.artefacts import open_text, read_lines
from deixis.errors import InputError
from deixis.wikipedia.titles import Site
from deixis.wikipedia.wikitext import redirect_target

__all__ = ["Chunk", "Dump", "Page", "SiteInfo", "dumps_of", "newest_revision", "one_wiki", "parse_pages", "read_pages"]

CHUNK = 8 << 20  # bytes of XML in a chunk, about
STREAMS = 2 << 20  # bytes of compressed streams in a chunk, about
BLOCK = 1 << 20
_STREAM = re.compile(rb"BZh[1-9]\x31\x41\x59\x26\x53\x59")  # the start of a bzip2 stream that is not empty
_INDEX = re.compile(r"-index[0-9]*\.txt")


class SiteInfo(NamedTuple):
    """Which wiki a dump is of, as far as its head says so."""

    language: str | None = None  # as in xml:lang
    domain: str | None = None  # of its pages, as en.wikipedia.org
    database: str | None = None  # as enwiki

    @classmethod
    def of(cls, head: bytes) -> SiteInfo:
        """Read the head of a dump."""
        found = [pattern.search(head) for pattern in (_LANGUAGE, _BASE, _DATABASE)]
        return cls(*(None if match is None else match[1].decode("utf-8", "replace") for match in found))


_LANGUAGE = re.compile(rb'<mediawiki[^>]*\sxml:lang="([^"]+)"')
_BASE = re.compile(rb"<base>\s*(?:https?:)?//([^/<\s]+)")
_DATABASE = re.compile(rb"<dbname>\s*([^<\s]+)\s*</dbname>")


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a dump; `redirect` is the raw target of a redirect page, "" where it has none."""

    title: str
    id: int | None
    namespace: int
    text: str
    redirect: str | None = None
    model: str = "wikitext"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole pages of a dump: XML, or where to find the compressed streams that hold it."""

    dump: Path
    start: int  # of the streams, in bytes of the file
    position: int  # how far the file has been read with this chunk, in bytes
    data: bytes | None = None
    cut: str | None = None  # why nothing follows, where the dump does not end as it should
    left: int = 0  # pages begun but cut off
    last: bool = False

    def read(self) -> tuple[bytes, str | None, int]:
        """Return the XML, whether and why it is cut off, and the number of pages begun but cut off."""
        if self.data is not None:
            return self.data, self.cut, self.left
        with self.dump.open("rb") as file:
            file.seek(self.start)
            data, complete = _decompressed(file.read(self.position - self.start))
        ends = data.rstrip().endswith((b"</page>", b"</mediawiki>", b"</siteinfo>"))
        if complete and not ends:
            raise InputError(
                f"{self.dump} has a bzip2 stream after byte {self.start} that does not end between pages; "
                "decompress the file and give the .xml"
            )
        if complete:
            closed = not self.last or b"</mediawiki>" in data[-BLOCK:]
            return data, None if closed else _unclosed(self.dump), 0
        whole = data.rfind(b"</page>") + len(b"</page>") if b"</page>" in data else 0
        return data[:whole], _damaged(self.dump, self.start), data.count(b"<page>", whole)


def _unclosed(path: Path) -> str:
    return f"{path} is cut off: it does not end with </mediawiki>"


def _damaged(path: Path, start: int) -> str:
    return f"{path} is cut off or damaged in the bzip2 stream at byte {start}"


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump file, its wiki and its names, and where its streams begin if an index says so."""

    path: Path
    site: Site
    info: SiteInfo
    size: int
    offsets: tuple[int, ...] | None = None

    @classmethod
    def open(cls, path: Path, index: Path | None = None) -> Dump:
        """Look at the head of a dump; anything else is refused."""
        head, size = _head(path), path.stat().st_size
        if b"<mediawiki" not in head[:4096] and b"<page>" not in head:
            raise InputError(
                f"{path} is no MediaWiki XML dump; expected pages-articles XML, plain or compressed with bzip2"
            )
        info = head[: head.find(b"</siteinfo>")] if b"</siteinfo>" in head else b""
        names = {
            html.unescape(name.decode("utf-8", "replace")): int(key)
            for key, name in re.findall(rb'<namespace key="(-?[0-9]+)"[^>]*>([^<]*)</namespace>', info)
        }
        return cls(path, Site.of(names), SiteInfo.of(head), size, None if index is None else _read_index(index, path))

    def chunks(self) -> Iterator[Chunk]:
        """Yield the dump in chunks of whole pages."""
        if self.offsets is not None or _is_multistream(self.path):
            return self._stream_chunks()
        return self._data_chunks()

    def _stream_chunks(self) -> Iterator[Chunk]:
        with self.path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            starts = self.offsets if self.offsets is not None else (m.start() for m in _STREAM.finditer(content))
            begun = 0
            for start in starts:
                if start - begun >= STREAMS:
                    yield Chunk(self.path, begun, start)
                    begun = start
            yield Chunk(self.path, begun, self.size, last=True)

    def _data_chunks(self) -> Iterator[Chunk]:
        with _Source(self.path) as source:
            held = b""
            whole = 0  # up to here `held` has whole pages only
            for block in source:
                searched = max(0, len(held) - len(b"</page>"))
                held += block
                whole = max(whole, held.rfind(b"</page>", searched) + len(b"</page>"))
                if len(held) >= CHUNK and whole > len(b"</page>"):
                    yield Chunk(self.path, 0, source.position, held[:whole])
                    held, whole = held[whole:], 0
            whole = held.rfind(b"</page>") + len(b"</page>") if b"</page>" in held else 0
            cut = source.damage
            if cut is None and b"</mediawiki>" not in held[whole:]:
                cut = _unclosed(self.path)
            yield Chunk(self.path, 0, self.size, held[:whole], cut, held.count(b"<page>", whole), last=True)


def dumps_of(paths: Iterable[Path]) -> list[Dump]:
    """Open dump files; a multistream index among them goes to the dump it belongs to by name."""
    paths = list(paths)
    indexes = {_INDEX.sub(".xml", path.name).split(".xml")[0]: path for path in paths if _INDEX.search(path.name)}
    dumps = []
    for path in paths:
        if path not in indexes.values():
            dumps.append(Dump.open(path, indexes.pop(path.name.split(".xml")[0], None)))
    if indexes:
        index = next(iter(indexes.values()))
        raise InputError(f"{index} is the index of a dump that was not given; give that dump too")
    return dumps


def one_wiki(dumps: Iterable[Dump]) -> SiteInfo:
    """Return which wiki the dumps are of; dumps of several wikis are refused."""
    named = [dump for dump in dumps if dump.info.domain or dump.info.database]
    for dump in named[1:]:
        if dump.info[1:] != named[0].info[1:]:
            raise InputError(
                f"{named[0].path} is of {named[0].info.domain or named[0].info.database}, {dump.path} of "
                f"{dump.info.domain or dump.info.database}; read each wiki by itself"
            )
    return named[0].info if named else next((dump.info for dump in dumps), SiteInfo())


def read_pages(dump: Dump) -> Iterator[Page]:
    """Yield the pages of a dump to its end or its cut."""
    for chunk in dump.chunks():
        yield from parse_pages(chunk.read()[0], dump.site)


def newest_revision(data: bytes) -> str:
    """Return the date of the newest revision in a chunk's XML, "" where none is told."""
    return max(_TIMESTAMP.findall(data), default=b"").decode()


# --- Pages --------------------------------------------------------------------------------------------------------

_TIMESTAMP = re.compile(rb"<timestamp>([0-9]{4}-[0-9]{2}-[0-9]{2})")
_TITLE = re.compile(rb"<title>([^<]*)</title>")
_NS = re.compile(rb"<ns>(-?[0-9]+)</ns>")
_ID = re.compile(rb"<id>([0-9]+)</id>")
_REDIRECT = re.compile(rb'<redirect(?:\s+title="([^"]*)")?\s*/>')
_MODEL = re.compile(rb"<model>([^<]*)</model>")


def parse_pages(data: bytes, site: Site) -> Iterator[Page]:
    """Yield the pages of a chunk's XML; of several revisions the last."""
    end = 0
    while (start := data.find(b"<page>", end)) >= 0:
        end = data.find(b"</page>", start)
        if end < 0:
            return
        yield _page(data[start:end], site)


def _page(data: bytes, site: Site) -> Page:
    begin = data.rfind(b"<text")
    opened = data.find(b">", begin) + 1 if begin >= 0 else len(data)
    head = data[: begin if begin >= 0 else None]
    text = ""
    if begin >= 0 and data[opened - 2 : opened] != b"/>":
        text = _unescaped(data[opened : data.find(b"</text>", opened)])
    title = _TITLE.search(head)
    named = _unescaped(title[1]).strip() if title is not None else ""
    number, space, redirect = _ID.search(head), _NS.search(head), _REDIRECT.search(head)
    model = _MODEL.search(head) or _MODEL.search(data, max(0, data.rfind(b"</text>")))
    return Page(
        named,
        int(number[1]) if number is not None else None,
        int(space[1]) if space is not None else site.namespace(named),
        text,
        _redirect(redirect, space is None, text),
        model[1].decode() if model is not None else "wikitext",
    )


def _redirect(element: re.Match[bytes] | None, old_schema: bool, text: str) -> str | None:
    if element is not None and element[1] is not None:
        return _unescaped(element[1])
    if element is not None:  # schemas 0.4 and 0.5: said, but not where to
        return redirect_target(text) or ""
    return redirect_target(text) if old_schema else None


def _unescaped(data: bytes) -> str:
    text = data.decode("utf-8", "replace")
    if "&" in text:
        for escape, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
            text = text.replace(escape, char)
    return text


# --- Bytes --------------------------------------------------------------------------------------------------------


class _Source:
    """The bytes of a dump as UTF-8, block by block; says how far it is and whether the end is missing."""

    def __init__(self, path: Path) -> None:
        self.damage: str | None = None
        self._path = path
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror or error}") from None
        self._bzip2 = self._file.read(3) == b"BZh"
        self._file.seek(0)

    def __enter__(self) -> _Source:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    @property
    def position(self) -> int:
        return self._file.tell()

    def __iter__(self) -> Iterator[bytes]:
        blocks = self._bzip2_blocks() if self._bzip2 else self._plain_blocks()
        first = next(blocks, b"")
        encoding = "utf-16" if first[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else None
        if encoding is None:
            yield first
            yield from blocks
            return
        decoder = codecs.getincrementaldecoder(encoding)("replace")
        yield decoder.decode(first).encode()
        for block in blocks:
            yield decoder.decode(block).encode("utf-8", "replace")

    def _plain_blocks(self) -> Iterator[bytes]:
        stream: IO[bytes] = self._file
        if self._path.suffix in (".gz", ".xz", ".zst"):
            stream = open_text(self._path)
        try:
            while block := stream.read(BLOCK):
                yield block
        except (EOFError, OSError) as error:
            self.damage = f"{self._path} is cut off or damaged: {error}"

    def _bzip2_blocks(self) -> Iterator[bytes]:
        decompressor = bz2.BZ2Decompressor()
        compressed = b""
        begun = False  # a stream that has not ended
        while True:
            if decompressor.eof:
                compressed, decompressor, begun = decompressor.unused_data, bz2.BZ2Decompressor(), False
            if decompressor.needs_input and not compressed and not (compressed := self._file.read(BLOCK)):
                break
            try:
                block = decompressor.decompress(compressed, BLOCK)
                begun = True
            except (OSError, ValueError):
                self.damage = f"{self._path} is damaged before byte {self.position}"
                return
            compressed = b""
            if block:
                yield block
        if begun:
            self.damage = f"{self._path} is cut off: its last bzip2 stream has no end"


def _head(path: Path) -> bytes:
    """Return the beginning of a dump, to the end of its siteinfo where it has one."""
    head = b""
    with _Source(path) as source:
        for block in source:
            head += block
            if b"</siteinfo>" in head or b"<page>" in head or len(head) > 4 * BLOCK:
                break
    return head


def _decompressed(data: bytes) -> tuple[bytes, bool]:
    """Return the content of bzip2 streams as far as it can be read, and whether that is all."""
    pieces = []
    while data:
        decompressor = bz2.BZ2Decompressor()
        try:
            pieces.append(decompressor.decompress(data))
        except (OSError, ValueError):
            return b"".join(pieces), False
        if not decompressor.eof:
            return b"".join(pieces), False
        data = decompressor.unused_data
    return b"".join(pieces), True


def _is_multistream(path: Path) -> bool:
    """Say whether a file is bzip2 cut between pages: its second stream then begins with one and ends with one."""
    with path.open("rb") as file:
        if file.read(3) != b"BZh":
            return False
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            starts = [match.start() for match, _ in zip(_STREAM.finditer(content), range(3), strict=False)]
            if len(starts) < 2:
                return False
            second = _decompressed(content[starts[1] : starts[2] if len(starts) > 2 else len(content)])[0].strip()
    return second.startswith(b"<page>") and (len(starts) < 3 or second.endswith(b"</page>"))


def _read_index(index: Path, dump: Path) -> tuple[int, ...]:
    """Return where the streams begin, from lines `offset:id:title`."""
    offsets = {0}
    lines: Iterable[tuple[int, bytes]]
    if index.suffix == ".bz2":
        try:
            lines = enumerate(bz2.decompress(index.read_bytes()).splitlines(), 1)
        except (OSError, ValueError):
            raise InputError(f"{index} is cut off or damaged; leave it out, {dump.name} is read without it") from None
    else:
        lines = read_lines(index)
    for number, line in lines:
        try:
            offsets.add(int(line.partition(b":")[0]))
        except ValueError:
            raise InputError(f"{index}:{number} is no line of a multistream index, offset:id:title") from None
    return tuple(sorted(offsets))
