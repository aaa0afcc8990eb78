"""Which files of a data folder make which set with which candidates: `open_dataset(folder, "aida-b", "ppr")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import orjson

from deixis.artefacts import read_lines
from deixis.datasets.aida import Split, read_single_file, read_standoff
from deixis.datasets.dataset import Dataset
from deixis.datasets.elevant import NO_IDS, read_elevant
from deixis.datasets.genre import attach_genre
from deixis.datasets.jsonl import read_jsonl
from deixis.datasets.nif import read_nif
from deixis.datasets.pprforned import attach_pprforned
from deixis.datasets.published import PUBLISHED, Coreference, read_published
from deixis.datasets.wned import read_wned
from deixis.datasets.zelda import read_zelda
from deixis.errors import InputError
from deixis.knowledge.source import CandidateSource

__all__ = ["SETS", "NotInFolder", "attach_source", "open_dataset", "read_set", "read_texts"]

AIDA: dict[str, Split] = {"aida-train": "train", "aida-a": "testa", "aida-b": "testb"}
WNED = {"msnbc": "msnbc", "aquaint": "aquaint", "ace2004": "ace2004", "cweb": "clueweb", "wiki": "wikipedia"}
ZELDA = {
    "zelda-aida-b": "test_aida-b",
    "zelda-cweb": "test_cweb",
    "zelda-wiki": "test_wned-wiki",
    "zelda-tweeki": "test_tweeki",
    "zelda-reddit-posts": "test_reddit-posts",
    "zelda-reddit-comments": "test_reddit-comments",
    "zelda-shadowlinks-top": "test_shadowlinks-top",
    "zelda-shadowlinks-shadow": "test_shadowlinks-shadow",
    "zelda-shadowlinks-tail": "test_shadowlinks-tail",
}
STANDOFF = "aida/AIDA-YAGO2-annotations.tsv"
SETS = (*AIDA, *WNED, *ZELDA)


class NotInFolder(InputError):  # noqa: N818 - a state of the data folder, not a fault
    """The data folder does not have the set, or not these candidate lists for it."""


def open_dataset(
    folder: Path,
    name: str,
    candidates: str = "none",
    *,
    coreference: Coreference = "original",
    drop_first: bool = False,
) -> Dataset:
    """Read a set with the candidate lists that come with the data.

    `name` is one of `SETS`, or the path of a document JSONL or NIF file. `candidates` is `kb+yago` (the published
    folder, else GENRE's lists), `ppr` (AIDA only), or `none`: those given with the mentions, if any.
    """
    if candidates == "none":
        return read_set(folder, name)
    if name not in SETS and not Path(name).suffix:
        raise _unknown(name)
    if candidates == "ppr":
        lists = _find(folder, "PPRforNED/AIDA_candidates") or _find(folder, "AIDA_candidates")
        if name not in AIDA or lists is None:
            raise NotInFolder(
                f"no PPRforNED candidates for {name} in {folder}; they are for aida-train, aida-a and aida-b, "
                "in the folder PPRforNED/AIDA_candidates"
            )
        return attach_pprforned(read_set(folder, name), lists.parent)
    if candidates != "kb+yago":
        raise InputError(f"candidates {candidates!r}; expected kb+yago, ppr or none")
    if name in PUBLISHED and (published := _find(folder, PUBLISHED[name][0])):
        return read_published(published.parent, name, coreference=coreference, drop_first=drop_first)
    lists = _find(folder, f"genre_kilt/{name}.jsonl")
    if name not in WNED or lists is None:
        wanted = f" ({' and '.join(PUBLISHED[name])} of Ganea & Hofmann's data)" if name in PUBLISHED else ""
        raise NotInFolder(f"no KB+YAGO candidates for {name} in {folder}{wanted}; add them or choose other candidates")
    return attach_genre(read_set(folder, name), lists)


def read_set(folder: Path, name: str) -> Dataset:
    """Read the texts and golds of a set or a file, without the mentions that have no gold entity."""
    return read_texts(folder, name).in_kb()


def read_texts(folder: Path, name: str, wikidata: Mapping[str, str] = NO_IDS) -> Dataset:
    """Read a set or a file with all its mentions, also those without a gold entity; `wikidata` has ids of titles.

    A file is Turtle (NIF), or JSONL of documents, of ZELDA or of ELEVANT, which its first line tells.
    """
    if name in AIDA:
        return replace(_read_aida(folder, name), name=name)
    if name in WNED:
        return read_wned(_wanted(folder, f"wned-datasets/{WNED[name]}"), name)
    if name in ZELDA:
        return read_zelda(_wanted(folder, f"zelda/{ZELDA[name]}.jsonl"), name)
    path = Path(name)
    if path.suffix in (".ttl", ".nif"):
        return read_nif(path)
    if ".jsonl" not in path.suffixes:
        raise _unknown(name)
    keys = _first_keys(path)
    if "labels" in keys:
        return read_elevant(path, wikidata=wikidata)
    return read_zelda(path, path.name) if "wikipedia_titles" in keys else read_jsonl(path)


def _unknown(name: str) -> InputError:
    return InputError(f"no set is called {name!r}; expected {', '.join(SETS)}, or a .jsonl or .ttl file")


def _first_keys(path: Path) -> frozenset[str]:
    """Return the keys of the first line, none where it is no JSON object."""
    _, raw = next(read_lines(path), (0, b"{}"))
    try:
        record = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return frozenset()
    return frozenset(record) if isinstance(record, dict) else frozenset()


def attach_source(dataset: Dataset, source: CandidateSource, label: str) -> Dataset:
    """Return the dataset with the candidates that a store gives for its documents."""
    return dataset.mapped(lambda document: document.with_candidates(source.candidates(document)), candidates=label)


def _read_aida(folder: Path, name: str) -> Dataset:
    split = AIDA[name]
    single = _find(folder, "AIDA-YAGO2-dataset.tsv") or _find(folder, "aida/AIDA-YAGO2-dataset.tsv")
    if single is not None:
        return read_single_file(single, split)
    # The text files of the published folder are this file, cut after the training documents.
    if (published := _find(folder, PUBLISHED[name][1])) and not _find(folder, STANDOFF):
        return read_single_file(published, split)
    annotations = _wanted(folder, STANDOFF)
    return read_standoff(annotations, _wanted(folder, f"conll2003/eng.{split}"), split)


def _find(folder: Path, relative: str) -> Path | None:
    """Return the path in the folder or in one of its subfolders."""
    if (folder / relative).exists():
        return folder / relative
    return next(iter(sorted(folder.glob(f"*/{relative}"))), None)


def _wanted(folder: Path, relative: str) -> Path:
    found = _find(folder, relative)
    if found is None:
        raise NotInFolder(f"{folder / relative} does not exist; point --data at the folder with the benchmarks")
    return found
