"""A wiki as a model folder: names and leads of its pages, rows of B by an encoder that is already trained.

    dump → WORK/articles.jsonl.zst and its summary → WORK/…/names → WORK/…/rows/000000.npz, … → FOLDER

WORK is a folder beside FOLDER. Each step can be killed and run again: what is finished is not made twice, and the
folder is the same to the byte.

A row is what the encoder reads in the page's lead, its first sentence (knowledge/describe.py). A title that the base
has a row for keeps it, where the base is of the same wiki: a trained row always, another while its lead is the same. So
`base` may be a folder that this made from an older dump.
"""

from __future__ import annotations

import logging
import shutil
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside, manifest_path, write_aside
from deixis.corpus.counting import lead_on
from deixis.corpus.names import BATCH, NameSources, build_store
from deixis.documents import DOMAIN
from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder, opened, packaged_model
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.entity_table import EntityTable
from deixis.network.special import SPECIAL
from deixis.wikipedia.dump import dumps_of, one_wiki
from deixis.wikipedia.extraction import Progress, build_articles
from deixis.wikipedia.page_props import PageProps, read_page_props
from deixis.wikipedia.parallel import cores
from deixis.wikipedia.summary import PageSummary, read_summary

__all__ = ["LEADS", "SHARD", "TRAINED", "Base", "Wiki", "build_wiki", "checksum", "licence", "write_folder"]

log = logging.getLogger(__name__)

LEADS = "leads.npy"  # of each row, what was read for it: a checksum of the lead
TRAINED = 0  # in place of a checksum: training made the row, and no lead changes it
SMOOTHING = 0.25  # of the links of an entity, which its title and its redirects are worth among namesakes
SHARD = 4096  # pages whose rows are made together: what a kill can cost
T = TypeVar("T")
Track = Callable[[Iterable[T], str, int | None], Iterable[T]]


@dataclass(frozen=True, slots=True)
class Wiki:
    """What a wiki's folder is made from."""

    dumps: Sequence[Path]
    page_props: Path | None = None  # for Wikidata ids
    base: Path | None = None  # the folder whose encoder reads; the packaged model if not given


def build_wiki(
    wiki: Wiki,
    output: Path,
    *,
    device: str = "cpu",
    workers: int | None = None,
    reading: Progress | None = None,
    track: Track[Any] = lambda items, what, total: items,
    report: Callable[[str], None] = log.warning,
) -> Manifest:
    """Write the model folder of a wiki: every page that is no redirect and no list of meanings is an entity."""
    work = output.with_name(output.name + ".work")
    base = Base.open(wiki.base or packaged_model(), device)
    dumps = {path.name: digest_file(path) for path in wiki.dumps}
    parents = {**dumps, "model": base.manifest.digest}
    if wiki.page_props is not None:
        parents["page_props"] = digest_file(wiki.page_props)
    if (output / MANIFEST).exists() and (found := Manifest.load(output / MANIFEST, "model")).parents == parents:
        found.verify(output)
        shutil.rmtree(work, ignore_errors=True)
        return found
    database = one_wiki(dumps_of(wiki.dumps)).database
    props = None if wiki.page_props is None else read_page_props(wiki.page_props, database)
    articles = work / "articles.jsonl.zst"
    made = _read_dumps(wiki.dumps, dumps, articles, workers, reading, report)
    language = made["language"] or "en"
    told = {"language": language, "domain": made["domain"] or f"{language}.wikipedia.org", "date": made["date"]}
    told["licence"] = licence(told["domain"], told["date"])
    work /= Manifest("model", told, parents).digest[:16]  # what was made of other inputs is not used
    entities = _Entities(read_summary(articles).pages, frozenset() if props is None else props.disambiguation)
    titles = [page.title for page in entities]
    if not titles:
        raise InputError(f"{wiki.dumps[0]} has no article; expected a dump of pages with their texts")
    store = _name_pages(articles, set(titles), work / "names", workers or cores(), track)
    shards = _make_rows(entities, len(titles), base.of(told["domain"]), work / "rows", track)
    names = _known(titles, entities, Names.open(store), lead_on(read_summary(articles).redirects), props)
    manifest = write_folder(titles, shards, base, names, Manifest("model", told, parents), output)
    shutil.rmtree(work.parent)
    return manifest


@dataclass(frozen=True, slots=True)
class _Entities:
    """The pages that are entities, read from the disk each time they are gone through."""

    pages: Iterable[PageSummary]
    disambiguation: Collection[int]  # pages that only list meanings, as page_props has them

    def __iter__(self) -> Iterator[PageSummary]:
        return (page for page in self.pages if page.meanings is None and page.id not in self.disambiguation)


def _read_dumps(
    dumps: Sequence[Path],
    digests: Mapping[str, str],
    articles: Path,
    workers: int | None,
    reading: Progress | None,
    report: Callable[[str], None],
) -> Mapping[str, Any]:
    """Read the dumps, unless that was done; return what the articles' manifest says of their wiki."""
    path = manifest_path(articles)
    if not (path.exists() and Manifest.load(path, "articles").parents == digests):
        for cut in build_articles(dumps, articles, workers=workers, progress=reading).cuts:
            report(f"{cut}; all before that was read")
    return Manifest.load(path, "articles").parameters


def _name_pages(articles: Path, entities: Collection[str], folder: Path, workers: int, track: Track[Any]) -> Path:
    """Make the names of the entities, unless that was done."""
    if not (folder / MANIFEST).exists():
        build_store(
            NameSources([articles]),
            folder,
            among=entities,
            smoothing=SMOOTHING,
            workers=workers,
            progress=lambda steps: track(steps, "names", 1),
            counting=lambda found: track(
                found, f"occurrences of names, {BATCH} pages each", -(-len(entities) // BATCH)
            ),
        )
    return folder


def _known(
    titles: Sequence[str],
    entities: Iterable[PageSummary],
    store: Names,
    redirects: Mapping[str, str],
    props: PageProps | None,
) -> FromStore:
    """Return the entities with their names, other titles and Wikidata ids."""
    counts = dict(store.titles())
    return FromStore.of(
        Vocabulary([*SPECIAL, *titles], [0] * len(SPECIAL) + [counts.get(title, 0) for title in titles]),
        store,
        redirects,
        described=frozenset(page.title for page in entities if page.lead),
        wikidata={} if props is None else {page.title: f"Q{props.item(page.id)}" for page in entities},
    )


@dataclass(frozen=True, slots=True)
class Base:
    """The model whose encoder reads, and the rows of it that stay."""

    model: ModelFolder
    manifest: Manifest
    leads: NDArray[np.uint32] | None  # where it was made from a dump itself
    same_wiki: bool = False

    @classmethod
    def open(cls, folder: Path, device: str) -> Base:
        folder, manifest = opened(folder)
        model = ModelFolder.load(folder)
        if model.describer is None:
            raise InputError(f"{folder} has no map from descriptions to rows; make one with `deixis entities fit`")
        model.network.to(device).eval()
        leads = np.load(folder / LEADS) if (folder / LEADS).exists() else None
        return cls(model, manifest, leads)

    def of(self, domain: str) -> Base:
        """Return the base of a wiki; rows stay where it is the same."""
        return replace(self, same_wiki=self.manifest.parameters.get("domain", DOMAIN) == domain)

    def kept(self, page: PageSummary) -> int | None:
        """Return the row that a page keeps, if there is one."""
        row = self.model.knowledge.number(page.title) if self.same_wiki else None
        if row is not None and self.model.knowledge.title(row) != page.title:
            return None  # once it led there
        if row is None or self.leads is None or self.leads[row] in (TRAINED, checksum(page.lead)):
            return row
        return None

    def shard(self, pages: Sequence[PageSummary]) -> dict[str, NDArray[Any]]:
        """Return rows in int8 with their scales, biases, and what each was made from."""
        network, rows = self.model.network, [self.kept(page) for page in pages]
        new = [place for place, row in enumerate(rows) if row is None]
        weight = torch.empty(len(pages), network.config.entity_size)
        bias = torch.empty(len(pages))
        if new:
            assert self.model.describer is not None
            texts = [(pages[place].title, pages[place].lead or None) for place in new]
            weight[new], bias[new] = self.model.describer.rows(network, self.model.tokenizer, texts)
        old = [place for place, row in enumerate(rows) if row is not None]
        if old:
            kept = torch.tensor([rows[place] for place in old], device=network.entity_predictions.bias.device)
            with torch.no_grad():
                weight[old], bias[old] = (part.cpu() for part in network.candidate_rows(kept))
        leads = self.leads
        made = [
            checksum(page.lead) if row is None else TRAINED if leads is None else int(leads[row])
            for page, row in zip(pages, rows, strict=True)
        ]
        table = EntityTable(weight).quantised("int8")
        assert table.scale is not None
        return {
            "rows": table.weight.numpy(),
            "scales": table.scale.numpy(),
            "biases": bias.numpy(),
            "leads": np.array(made, np.uint32),
        }


def checksum(lead: str) -> int:
    """Return what is remembered of a lead; never `TRAINED`."""
    return zlib.crc32(lead.encode()) or 1


def _make_rows(entities: Iterable[PageSummary], size: int, base: Base, folder: Path, track: Track[Any]) -> list[Path]:
    """Make the rows of all pages, shard by shard; those that are there are not made again."""
    paths: list[Path] = []
    pages = iter(entities)
    for _ in track(range(0, size, SHARD), f"rows, {SHARD:,} each", -(-size // SHARD)):
        path, shard = folder / f"{len(paths):06}.npz", list(islice(pages, SHARD))
        if not path.exists():
            arrays = base.shard(shard)
            with write_aside(path) as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
        paths.append(path)
    return paths


def write_folder(
    titles: Sequence[str], shards: Sequence[Path], base: Base, names: FromStore, told: Manifest, output: Path
) -> Manifest:
    """Put rows and names together; the shards of rows are joined in a file beside them, not in memory."""
    vocabulary = Vocabulary.of(titles)
    alone = base.model.among(Vocabulary(SPECIAL))
    rows, scales, biases, leads = _joined(shards, len(titles), alone)
    model = alone.with_rows(vocabulary, EntityTable(rows, scales), biases)
    made = {"kept from the base": int((leads == TRAINED).sum()), "titles alone": int((leads == checksum("")).sum())}
    parameters = {**told.parameters, "rows": made}
    encoder = base.manifest.parameters["encoder"]
    with folder_aside(output) as aside:
        model.save(
            aside / "model", table="int8", encoder=encoder, source=names, parents=told.parents, parameters=parameters
        )
        knowledge = Knowledge.open(aside / "model" / "knowledge")
        numbers = [knowledge.number(title) or 0 for title in titles]
        by_number = np.zeros(len(titles) + len(SPECIAL), np.uint32)
        by_number[numbers] = leads
        np.save(aside / "model" / LEADS, by_number)
        for path in (aside / "model").iterdir():
            path.rename(aside / path.name)
        (aside / "model").rmdir()
        written = Manifest.load(aside / MANIFEST, "model")
        manifest = replace(written, files={**written.files, LEADS: digest_file(aside / LEADS)})
        manifest.save(aside / MANIFEST)
    return manifest


def _joined(shards: Sequence[Path], size: int, alone: ModelFolder) -> tuple[Tensor, Tensor, Tensor, NDArray[np.uint32]]:
    """Join shards behind the rows of the special entities: rows in a mapped file, scales, biases, and the leads."""
    own = alone.network.entity_embeddings.entity_embeddings.quantised("int8")
    assert own.scale is not None
    first, path = len(SPECIAL), shards[0].with_name("joined.rows")
    scales, biases = torch.empty(first + size), torch.empty(first + size)
    scales[:first], biases[:first] = own.scale.cpu(), alone.network.entity_predictions.bias.detach().cpu()
    leads, end = np.empty(size, np.uint32), 0
    with write_aside(path) as file:
        file.write(own.weight.cpu().numpy().tobytes())
        for name in shards:
            with np.load(name) as shard:
                begin, end = end, end + len(shard["leads"])
                file.write(shard["rows"].tobytes())
                scales[first + begin : first + end] = torch.from_numpy(shard["scales"])
                biases[first + begin : first + end] = torch.from_numpy(shard["biases"])
                leads[begin:end] = shard["leads"]
    rows = np.memmap(path, np.int8, "c", shape=(first + size, own.weight.shape[1]))  # "c": torch wants it writable
    return torch.from_numpy(rows), scales, biases, leads


def licence(domain: str, date: str) -> str:
    """Return the licence of a wiki's texts at a date; of other wikis than Wikimedia's nothing is known.

    Examples:
        >>> licence("ltg.wikipedia.org", "2017-09-01")
        'CC BY-SA 3.0 and GFDL'
    """
    if not domain.endswith(".wikipedia.org"):
        return "as the wiki says"
    if date < "2009-06-15":
        return "GFDL"
    return "CC BY-SA 3.0 and GFDL" if date < "2023-06-07" else "CC BY-SA 4.0 and GFDL"
