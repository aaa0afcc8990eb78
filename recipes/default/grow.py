"""A trained model grows: rows for entities that training did not see, and the folder that travels.

    python recipes/default/grow.py texts MODEL KNOWN texts.tsv.xz --entities 700000
    python recipes/default/grow.py read MODEL texts.tsv.xz rows --shard 0 --of 4 --device cuda
    python recipes/default/grow.py fold MODEL KNOWN texts.tsv.xz rows OUT --wikidata TABLE --titles LIST
    python recipes/default/grow.py pack OUT ARTICLES... -o SHIPPED

texts   what is read: title<TAB>description of every entity at the top of KNOWN/ship.txt that has no row yet
read    rows from these texts, by the encoder and the map of descriptions; where only torch is installed, too
fold    one folder: the rows of training, those from texts, the names and other titles of KNOWN, a filter of titles
pack    the same in few bytes: entities that training saw in codes of one size, the others in codes of a smaller one

KNOWN is what known.py made.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from deixis.artefacts import MANIFEST, Manifest, digest_file, read_lines, write_aside
from deixis.errors import DeixisError, InputError
from deixis.folder.model_folder import ModelFolder
from deixis.network.special import SPECIAL

AT_ONCE = 16_384  # texts
LARGEST = 31  # of the numbers of six bits that rows are carried in
GRAIN = 64  # biases are rounded to this part of one: they compress, and no answer hangs on it
LINKS = 6000  # whose candidates show what rows are multiplied with
BEGINNING = 1500  # characters of an article that are read
# Added to the biases of rows from texts. The map is fitted on entities that are linked often, and expects as much of
# others: unlinked namesakes took names from famous ones. Chosen on data/wild and testa, where all from -2/-4 to -6/-10
# are alike.
LESS_USED = {"description": -3.0, "title": -5.0}


def write_texts(model: ModelFolder, known: Path, out: Path, entities: int) -> int:
    """Write the texts of entities without a row."""
    table = _redirects(known)
    old = _old_rows(model, table)
    chosen = set(_shipped(known, entities)) - old.keys()
    lines = 0
    with write_aside(out) as raw, lzma.open(raw, "wb") as file:
        for _, line in read_lines(known / "texts.tsv.zst"):
            title, text = line.decode().rstrip("\n").split("\t")
            if title in chosen:
                file.write(f"{title}\t{text[:200]}\n".encode())
                lines += 1
    return lines


def read_rows(model: ModelFolder, texts: Path, out: Path, shard: int, of: int, device: str) -> None:
    """Write the rows of a shard of the texts, in six bits a number."""
    path = out / f"{shard:03}.npz"
    if path.exists() or model.describer is None:
        return
    network = model.network.to(device).eval()
    lines = lzma.decompress(texts.read_bytes()).decode().split("\n")[:-1]
    lines = lines[len(lines) * shard // of : len(lines) * (shard + 1) // of]
    pairs = [(title, text or None) for title, _, text in (line.partition("\t") for line in lines)]
    codes, scales, biases = [], [], []
    for first in range(0, len(pairs), AT_ONCE):
        rows, bias = model.describer.rows(network, model.tokenizer, pairs[first : first + AT_ONCE])
        x = rows.float().cpu().numpy()
        scale = (np.abs(x).max(1) / LARGEST).clip(1e-9).astype(np.float16)
        codes.append(_packed(np.rint(x / scale.astype(np.float32)[:, None]).clip(-LARGEST, LARGEST) + LARGEST))
        scales.append(scale)
        biases.append(bias.float().cpu().numpy())
        print(f"shard {shard}: {min(first + AT_ONCE, len(pairs)):,} of {len(pairs):,}", file=sys.stderr, flush=True)
    out.mkdir(exist_ok=True)
    with write_aside(path) as file:
        arrays = {"codes": codes, "scales": scales, "biases": biases}
        np.savez(file, **{name: np.concatenate(parts) for name, parts in arrays.items()})  # type: ignore[arg-type]


def _packed(numbers: NDArray[Any]) -> NDArray[np.uint8]:
    """Pack rows of numbers below 64, four in three bytes."""
    q = numbers.reshape(len(numbers), -1, 4).astype(np.uint32)
    whole = q[..., 0] | q[..., 1] << 6 | q[..., 2] << 12 | q[..., 3] << 18
    return np.stack([whole & 255, whole >> 8 & 255, whole >> 16], -1).astype(np.uint8).reshape(len(numbers), -1)


def _unpacked(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    three = packed.reshape(len(packed), -1, 3).astype(np.uint32)
    whole = three[..., 0] | three[..., 1] << 8 | three[..., 2] << 16
    numbers = np.stack([whole >> shift & 63 for shift in (0, 6, 12, 18)], -1).reshape(len(packed), -1)
    return numbers.astype(np.float32) - LARGEST


def carried_rows(folder: Path) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield rows and biases, shard by shard, in the order of the texts."""
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as found:
            rows = _unpacked(found["codes"]) * found["scales"].astype(np.float32)[:, None]
            yield torch.from_numpy(rows), torch.from_numpy(found["biases"])


def fold(model: ModelFolder, known: Path, texts: Path, rows: Path, out: Path, given: argparse.Namespace) -> Manifest:
    """Write the folder with all rows in fp16."""
    from deixis.knowledge.assemble import FromStore
    from deixis.knowledge.entities import read_wikidata
    from deixis.knowledge.names import Names
    from deixis.knowledge.title_filter import TitleFilter
    from deixis.knowledge.vocabulary import Vocabulary
    from deixis.network.entity_table import EntityTable

    table = _redirects(known)
    old = _old_rows(model, table)
    titles: list[str] = []
    described = set()
    for _, line in read_lines(texts):
        title, _, text = line.decode().rstrip("\n").partition("\t")
        titles.append(title)
        if text:
            described.add(title)
    weights, biases = zip(*carried_rows(rows), strict=True)
    if sum(map(len, biases)) != len(titles):
        raise InputError(f"{rows} has {sum(map(len, biases)):,} rows for {len(titles):,} texts; read all shards")
    seen, places = list(old), torch.tensor([*range(len(SPECIAL)), *old.values()])
    counts = dict(zip(model.vocabulary.titles, model.vocabulary.counts, strict=True))
    with torch.no_grad():
        trained, bias = model.network.candidate_rows(places)
    vocabulary = Vocabulary(
        [*SPECIAL, *seen, *titles],
        [0] * len(SPECIAL) + [max(1, counts[model.knowledge.title(old[title])]) for title in seen] + [0] * len(titles),
    )
    less = torch.tensor([LESS_USED["description" if title in described else "title"] for title in titles])
    biases_of_all = torch.cat([bias, torch.cat(biases) + less])
    grown = model.with_rows(vocabulary, EntityTable(torch.cat([trained, *weights]).half()), biases_of_all)
    store = Names.open(known / "everything")
    source = FromStore.of(
        vocabulary,
        store,
        table,
        described=frozenset(described),
        wikidata=read_wikidata(given.wikidata) if given.wikidata else {},
    )
    parents = {path.name: digest_file(path) for path in (texts, known / "redirects.tsv", given.titles) if path}
    with TemporaryDirectory() as scratch:
        listed = None
        if given.titles is not None:
            listed = Path(scratch) / "titles.filter"
            more = (line.decode().rstrip("\n") for _, line in read_lines(given.titles))
            known_titles = (line.decode().split("\t")[0].lower() for _, line in read_lines(known / "texts.tsv.zst"))
            TitleFilter.build({*more, *known_titles}).save(listed)
        return grown.save(
            out,
            table="fp16",
            encoder=given.encoder,
            source=source,
            title_filter=listed,
            parents={**parents, "candidates": store.digest},
            parameters={"entities": len(titles) + len(seen)},
        )


def pack(model: ModelFolder, articles: Sequence[Path], out: Path, sizes: tuple[int, int]) -> Manifest:
    """Write the folder with rows in codes."""
    from deixis.knowledge.knowledge import Knowledge
    from deixis.network.entity_table import CodedTable, MixedTable
    from deixis.network.product_codes import ProductCodes

    knowledge = model.knowledge
    assert isinstance(knowledge, Knowledge), "a folder that travels has names"
    usage = seen_usage(model, articles)
    linked = torch.tensor([number < len(SPECIAL) or knowledge.links(number) > 0 for number in range(len(knowledge))])
    generator = torch.Generator().manual_seed(0)
    network = model.network
    with torch.no_grad():
        x = network.entity_embeddings.entity_embeddings.whole()
        bias = network.entity_predictions.bias.clone()
        parts = []
        for kind, size in enumerate(sizes):
            at = (linked == (kind == 0)).nonzero().squeeze(1)
            parts.append(CodedTable.encode(x[at], ProductCodes.fit(x[at], size, usage, generator)))
            for some in torch.split(torch.arange(len(at)), AT_ONCE):
                bias[at[some]] += usage.correction(x[at[some]], parts[-1](some))
        bias = (bias * GRAIN).round() / GRAIN
    table = MixedTable.join((~linked).to(torch.uint8), parts)
    parameters = {"bytes": {"linked": sizes[0], "others": sizes[1]}}
    made = Manifest.load((model.folder or out) / MANIFEST, "model")
    packed = model.with_rows(knowledge, table, bias)
    return packed.save(
        out, table="mixed", encoder=made.parameters["encoder"], parents={"model": made.digest}, parameters=parameters
    )


def seen_usage(model: ModelFolder, articles: Sequence[Path]) -> Any:
    """Measure what rows are multiplied with: m_e of links, by the rows of their candidates."""
    from deixis.documents import Document, Mention
    from deixis.folder.sharpen import read_mentions
    from deixis.network.product_codes import Usage
    from deixis.wikipedia.articles import read_articles

    documents: list[Document] = []
    for path in articles:
        left = LINKS // len(articles)
        for article in read_articles(path, strict=True):
            mentions = tuple(Mention(link.start, link.end) for link in article.links if link.end <= BEGINNING)
            if mentions and article.redirect is None:
                documents.append(Document(article.text[:BEGINNING], mentions))
                left -= len(mentions)
            if left <= 0:
                break
    names = model.names
    assert names is not None, "a folder that travels has names"
    vectors = read_mentions(model.network.eval(), model.tokenizer, documents)
    numbers: list[int] = []
    owners: list[int] = []
    for owner, listed in enumerate(listed for one in documents for listed in names.candidates(one)):
        found = [names.number(one.entity) for one in listed]
        numbers += [number for number in found if number is not None]
        owners += [owner] * (len(numbers) - len(owners))
    mention = torch.tensor(owners)
    with torch.no_grad():
        rows, bias = model.network.candidate_rows(torch.tensor(numbers))
        scores = (rows * vectors[mention]).sum(-1) + bias
        shares = torch.empty_like(scores)
        for start, end in _runs(owners):
            chance = scores[start:end].softmax(0)
            shares[start:end] = chance * (1 - chance)
        answers = model.network.entity_embeddings.entity_embedding_dense
        assert isinstance(answers, torch.nn.Linear), "rows are narrower than the states of the words"
        return Usage.of(vectors[mention], rows, shares, answers.weight.detach())


def _runs(owners: Sequence[int]) -> Iterator[tuple[int, int]]:
    ends = [place for place in range(1, len(owners) + 1) if place == len(owners) or owners[place] != owners[place - 1]]
    return zip([0, *ends], ends, strict=False)


def _shipped(known: Path, entities: int) -> Iterable[str]:
    return (line.decode().rstrip("\n") for _, line in islice(read_lines(known / "ship.txt"), entities))


def _redirects(known: Path) -> dict[str, str]:
    from deixis.wikipedia.redirects import read_redirects

    return read_redirects(known / "redirects.tsv")


def _old_rows(model: ModelFolder, table: Mapping[str, str]) -> dict[str, int]:
    """Return the entities that have a row of training: under their title, or under one that leads there."""
    own = {title: row for row, title in enumerate(model.vocabulary.titles) if row >= len(SPECIAL)}
    found: dict[str, int] = {title: row for title, row in own.items() if title not in table}
    for title, row in own.items():
        found.setdefault(table.get(title, title), row)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, paths in {
        "texts": ("model", "known", "out"),
        "read": ("model", "texts", "out"),
        "fold": ("model", "known", "texts", "rows", "out"),
        "pack": ("model",),
    }.items():
        step = steps.add_parser(name)
        for path in paths:
            step.add_argument(path, type=Path)
        if name == "texts":
            step.add_argument("--entities", type=int, default=700_000)
        elif name == "read":
            step.add_argument("--shard", type=int, default=0)
            step.add_argument("--of", type=int, default=1)
            step.add_argument("--device", default="cpu")
        elif name == "fold":
            step.add_argument("--wikidata", type=Path, help="lines title<TAB>id")
            step.add_argument("--titles", type=Path, help="titles in lower case, one a line")
            step.add_argument("--encoder", default="int8", help="its precision on disk")
        else:
            step.add_argument("articles", type=Path, nargs="+")
            step.add_argument("--out", "-o", type=Path, required=True)
            step.add_argument("--bytes", type=int, nargs=2, default=(128, 24), help="of linked entities, of others")
    given = parser.parse_args(arguments)
    try:
        model = ModelFolder.load(given.model)
        if given.step == "texts":
            print(f"{write_texts(model, given.known, given.out, given.entities):,} texts")
        elif given.step == "read":
            read_rows(model, given.texts, given.out, given.shard, given.of, given.device)
        elif given.step == "fold":
            print(fold(model, given.known, given.texts, given.rows, given.out, given).counts)
        else:
            print(pack(model, given.articles, given.out, tuple(given.bytes)).counts)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
