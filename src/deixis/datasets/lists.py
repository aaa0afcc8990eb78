"""Published candidate lists for a store of names: those of the benchmarks, and a plain TSV.

Each list is a surface with its titles and shares. Lists without counts are worth a stated number of links.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from deixis.artefacts import read_lines
from deixis.datasets.dataset import Report, complaint, decoded
from deixis.datasets.genre import read_genre
from deixis.datasets.pprforned import read_entities
from deixis.datasets.published import read_rows
from deixis.knowledge.build import NamesBuilder
from deixis.knowledge.surfaces import key

__all__ = ["ListFormat", "import_lists"]

ListFormat = Literal["ganea-hofmann", "pprforned", "titles", "tsv"]
Listed = tuple[str, Iterable[tuple[str, float]]]  # a surface, its titles with shares or counts


def import_lists(builder: NamesBuilder, path: Path, form: ListFormat, mass: float = 10) -> None:
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
    for row in read_rows(path, Report()):
        yield row.surface, [(entity, prior or 0.0) for entity, prior in row.candidates]


def _pprforned(path: Path) -> Iterator[Listed]:
    """Read a file or a folder of files; shares go by how often an entity is linked, never by the order (protocol 4)."""
    for file in sorted(found for found in path.rglob("*") if found.is_file()) if path.is_dir() else [path]:
        for entity in read_entities(file):
            yield entity.surface, _shares({found.title: 1.0 + found.count for found in entity.listed})


def _titles(path: Path) -> Iterator[Listed]:
    """Read GENRE's ordered titles; shares fall as 1, 1/2, 1/3, …"""
    for given in read_genre(path):
        yield given.mention, _shares({title: 1.0 / rank for rank, title in enumerate(given.titles, 1)})


def _shares(counts: Mapping[str, float]) -> list[tuple[str, float]]:
    total = sum(counts.values())
    return [(title, counts[title] / total) for title in sorted(counts)]


def _tsv(path: Path) -> Iterator[Listed]:
    """Read lines surface<TAB>title<TAB>count or prior; the numbers are used as counts, as they are."""
    for line, raw in read_lines(path):
        try:
            surface, title, count = decoded(raw, path, line).split("\t")
            yield surface, [(title, float(count))]
        except ValueError:
            raise complaint(path, line, "expected surface, title and a count or prior, separated by tabs") from None


_READERS: Mapping[ListFormat, Callable[[Path], Iterator[Listed]]] = {
    "ganea-hofmann": _ganea_hofmann,
    "pprforned": _pprforned,
    "titles": _titles,
    "tsv": _tsv,
}
