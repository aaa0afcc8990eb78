"""Published candidate lists: Ganea & Hofmann's, PPRforNED's, ordered titles (GENRE's JSONL), and a plain TSV.

Each reader yields a surface with its titles and shares. Lists without counts are worth a stated number of links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, get_args

import orjson

from deixis.artefacts import read_lines
from deixis.errors import InputError
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.surfaces import key

__all__ = ["FORMATS", "Format", "import_lists"]

Format = Literal["ganea-hofmann", "pprforned", "titles", "tsv"]
FORMATS: tuple[Format, ...] = get_args(Format)
Listed = tuple[str, list[tuple[str, float]]]  # a surface, its titles with shares or counts


def import_lists(builder: NamesBuilder, path: Path, form: Format, mass: float = 10) -> None:
    """Add the lists of a file or folder; one without counts is worth `mass` links, shared out by its priors.

    A surface that occurs in many mentions counts once: an entity gets its highest share among them.
    """
    best: dict[tuple[str, str], float] = {}
    for surface, titles in _READERS[form](path):
        for title, share in titles:
            entry = key(surface), title
            best[entry] = max(best.get(entry, 0.0), share)
    scale = 1.0 if form == "tsv" else mass
    for (surface, title), share in best.items():
        builder.add_listed(surface, title, share * scale)


def _ganea_hofmann(path: Path) -> Iterator[Listed]:
    """Read lines of tab-separated fields; candidates are `id,prior,title` behind `CANDIDATES` (protocol 2)."""
    for number, fields in _fields(path):
        if len(fields) < 7 or fields[5] != "CANDIDATES" or "GT:" not in fields:
            raise InputError(f"{path}:{number} is no candidate line; expected CANDIDATES in field 6, then GT:")
        listed = fields[6 : fields.index("GT:")]
        titles = []
        for field in listed if listed != ["EMPTYCAND"] else []:
            parts = field.split(",", 2)
            try:
                prior = float(parts[1])
            except (IndexError, ValueError):
                raise InputError(f"{path}:{number} has the candidate {field!r}; expected id,prior,title") from None
            if len(parts) == 3 and parts[2]:
                titles.append((parts[2], prior))
        yield fields[2], titles


def _pprforned(path: Path) -> Iterator[Listed]:
    """Read a file or a folder of files; shares go by how often an entity is linked, never by the order (protocol 4)."""
    files = sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]
    for file in files:
        surface: str | None = None
        counts: dict[str, float] = {}
        for number, fields in _fields(file):
            values = dict(field.split(":", 1) for field in fields[1:] if ":" in field)
            if fields[0] == "ENTITY" and "origText" in values:
                if surface is not None:
                    yield surface, _shares(counts)
                surface, counts = values["origText"], {}
            elif fields[0] == "CANDIDATE" and "url" in values and surface is not None:
                title = values["url"].rsplit("/wiki/", 1)[-1].replace("_", " ")
                counts[title] = 1.0 + int(values.get("inCount") or 0)
            else:
                raise InputError(f"{file}:{number} is no ENTITY with an origText nor a CANDIDATE of one with a url")
        if surface is not None:
            yield surface, _shares(counts)


def _shares(counts: dict[str, float]) -> list[tuple[str, float]]:
    total = sum(counts.values())
    return [(title, counts[title] / total) for title in sorted(counts)]


def _titles(path: Path) -> Iterator[Listed]:
    """Read GENRE's JSONL: `candidates` are titles, best first, of `meta.mention`; shares fall as 1, 1/2, 1/3, …"""
    for number, line in read_lines(path):
        try:
            record = orjson.loads(line)
            surface, titles = record["meta"]["mention"], record["candidates"]
        except (ValueError, KeyError, TypeError):
            raise InputError(f"{path}:{number} has no meta.mention or no candidates; expected GENRE's JSONL") from None
        shares = {title.replace("%22", '"'): 1.0 / rank for rank, title in enumerate(titles, 1)}
        yield surface, _shares(shares)


def _tsv(path: Path) -> Iterator[Listed]:
    """Read lines surface<TAB>title<TAB>count or prior; the numbers are used as counts, as they are."""
    for number, fields in _fields(path):
        try:
            surface, title, count = fields
            yield surface, [(title, float(count))]
        except ValueError:
            raise InputError(f"{path}:{number} is not surface<TAB>title<TAB>count or prior") from None


def _fields(path: Path) -> Iterator[tuple[int, list[str]]]:
    for number, line in read_lines(path):
        try:
            yield number, line.decode().split("\t")
        except UnicodeDecodeError:
            raise InputError(f"{path}:{number} is not UTF-8") from None


_READERS: dict[Format, Callable[[Path], Iterator[Listed]]] = {
    "ganea-hofmann": _ganea_hofmann,
    "pprforned": _pprforned,
    "titles": _titles,
    "tsv": _tsv,
}
