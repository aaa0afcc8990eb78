"""What came back from a GPU becomes the folder that ships.

    python recipes/default/folder.py take BUILD ENCODER BACK… -o FULL    # rows as trained, names, titles
    python recipes/default/folder.py pack FULL ARTICLES… -o PACKED --bytes 128 48 20

take    the network, rows, biases, names, titles, and the map from descriptions to rows of new entities
pack    the same in few bytes: the more an entity is linked, the longer the code of its row

BUILD is the folder of make.py, BACK what `gpu.py train` wrote, in as many parts as came.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from parts import read_arrays, unpack_bits

from deixis.artefacts import MANIFEST, Manifest, digest_file, read_lines
from deixis.documents import Document, Mention
from deixis.errors import DeixisError, InputError
from deixis.folder.edit import fit
from deixis.folder.model_folder import ModelFolder
from deixis.folder.sharpen import read_mentions
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.entities import read_wikidata
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.title_filter import TitleFilter
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import Config
from deixis.network.detector import DetectorHead
from deixis.network.encoding import Tokenizer
from deixis.network.entity_table import CodedTable, MixedTable
from deixis.network.model import Network
from deixis.network.product_codes import ProductCodes, Usage
from deixis.network.special import SPECIAL
from deixis.wikipedia.articles import read_articles
from deixis.wikipedia.redirects import read_redirects

MAPPED = 6_000  # entities that the map of descriptions is fitted on
AT_ONCE = 16_384  # rows
GRAIN = 64  # biases are rounded to this part of one: they compress, and no answer hangs on it
SETTINGS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("recipe.toml").read_text())
OWN_LINKS: int = SETTINGS["vocabulary"]["own_links"]
OFTEN: int = SETTINGS["pack"]["often"]  # links
LINKS = 6000  # whose candidates show what rows are multiplied with
BEGINNING = 1500  # characters of an article that are read


def take(build: Path, back: Sequence[Path], out: Path, given: argparse.Namespace) -> Manifest:
    """Write the folder with all rows in fp16."""
    arrays = read_arrays(*back)
    told = json.loads(arrays["told"].tobytes())
    vocabulary = Vocabulary.load(build / "vocabulary.jsonl")
    network = _network(arrays)
    texts = {}
    for _, line in read_lines(build / "known" / "texts.tsv.zst"):
        title, _, text = line.decode().rstrip("\n").partition("\t")
        if text and title in vocabulary:
            texts[title] = text
    heads = [path for folder in back for path in folder.rglob("detector.safetensors")]
    if not heads:
        raise InputError(f"{back[0]} has no detector.safetensors; bring WORK/names there, too")
    detector = DetectorHead.load(heads[0])
    model = fit(ModelFolder(network, Tokenizer.load(given.encoder), vocabulary, detector=detector), texts, MAPPED)
    table = read_redirects(build / "known" / "redirects.tsv")
    store = Names.open(build / "known" / "everything")
    wikidata = read_wikidata(given.wikidata) if given.wikidata else {}
    source = FromStore.of(vocabulary, store, table, described=frozenset(texts), wikidata=wikidata)
    paths = (build / "known" / "redirects.tsv", build / "known" / "texts.tsv.zst", given.titles)
    parents = {path.name: digest_file(path) for path in paths if path}
    with TemporaryDirectory() as scratch:
        listed = None
        if given.titles is not None:
            listed = Path(scratch) / "titles.filter"
            more = (line.decode().rstrip("\n") for _, line in read_lines(given.titles))
            known = (line.decode().split("\t")[0].lower() for _, line in read_lines(build / "known" / "texts.tsv.zst"))
            TitleFilter.build({*more, *known}).save(listed)
        return model.save(
            out,
            table="fp16",
            source=source,
            title_filter=listed,
            parents={**parents, "candidates": store.digest},
            parameters={"training": [told]},
        )


def _network(arrays: dict[str, Any]) -> Network:
    told = json.loads(arrays["network.json"].tobytes())
    state, at = {}, 0
    for name, shape in told["tensors"].items():
        size = int(np.prod(shape))
        state[name] = torch.from_numpy(arrays["network"][at : at + size].astype(np.float32).reshape(shape))
        at += size
    rows = []
    for name, bits in (("own", 6), ("text", 4)):
        numbers = unpack_bits(arrays[f"{name}/numbers"], bits).astype(np.float32) - (2 ** (bits - 1) - 1)
        rows.append(torch.from_numpy(numbers * arrays[f"{name}/scales"].astype(np.float32)[:, None]))
    network = Network(Config(**told["config"]))
    state["entity_embeddings.entity_embeddings.weight"] = torch.cat(rows)
    state["entity_predictions.bias"] = torch.from_numpy(arrays["bias"].copy())
    network.load_state_dict(state)
    return network


def pack(model: ModelFolder, articles: Sequence[Path], out: Path, sizes: tuple[int, int, int]) -> Manifest:
    """Write the folder with rows in codes, and the encoder in int8."""
    knowledge = model.knowledge
    assert isinstance(knowledge, Knowledge), "a folder that travels has names"
    usage = seen_usage(model, articles)
    links = torch.tensor(knowledge.vocabulary.counts)
    links[: len(SPECIAL)] = links.max()
    kinds = 2 - (links >= OWN_LINKS).long() - (links >= OFTEN).long()
    generator = torch.Generator().manual_seed(0)
    network = model.network
    with torch.no_grad():
        x = network.entity_embeddings.entity_embeddings.whole()
        bias = network.entity_predictions.bias.clone()
        parts = []
        for kind, size in enumerate(sizes):
            at = (kinds == kind).nonzero().squeeze(1)
            parts.append(CodedTable.encode(x[at], ProductCodes.fit(x[at], size, usage, generator)))
            for some in torch.split(torch.arange(len(at)), AT_ONCE):
                bias[at[some]] += usage.correction(x[at[some]], parts[-1](some))
        bias = (bias * GRAIN).round() / GRAIN
    table = MixedTable.join(kinds.to(torch.uint8), parts)
    made = Manifest.load((model.folder or out) / MANIFEST, "model")
    packed = model.with_rows(knowledge, table, bias)
    parameters = {"bytes": dict(zip(("often linked", "linked", "others"), sizes, strict=True))}
    return packed.save(out, table="mixed", encoder="int8", parents={"model": made.digest}, parameters=parameters)


def seen_usage(model: ModelFolder, articles: Sequence[Path]) -> Usage:
    """Measure what rows are multiplied with: m_e of links, by the rows of their candidates."""
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


def main(arguments: list[str] | None = None) -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    step = steps.add_parser("take")
    step.add_argument("build", type=Path)
    step.add_argument("encoder", type=Path)
    step.add_argument("back", type=Path, nargs="+")
    step.add_argument("--wikidata", type=Path, help="lines title<TAB>id")
    step.add_argument("--titles", type=Path, help="titles in lower case, one a line")
    step.add_argument("--out", "-o", type=Path, required=True)
    step = steps.add_parser("pack")
    step.add_argument("model", type=Path)
    step.add_argument("articles", type=Path, nargs="+")
    step.add_argument("--out", "-o", type=Path, required=True)
    sizes = "of entities that are linked often, that have a row of their own, that have none"
    step.add_argument("--bytes", type=int, nargs=3, default=SETTINGS["pack"]["bytes"], help=sizes)
    given = parser.parse_args(arguments)
    try:
        if given.step == "take":
            print(take(given.build, given.back, given.out, given).counts)
        else:
            print(pack(ModelFolder.load(given.model), given.articles, given.out, tuple(given.bytes)).counts)
    except DeixisError as error:
        print(f"deixis: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
