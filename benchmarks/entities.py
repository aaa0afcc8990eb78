"""New entities: rows from descriptions against trained ones, an invented knowledge base, what additions cost.

    python benchmarks/entities.py choose vocabulary.jsonl descriptions.tsv --exclude titles.txt -o held.txt
    python benchmarks/entities.py small held.txt held vocabulary.jsonl windows --descriptions descriptions.tsv -o small
    python benchmarks/entities.py without held.txt vocabulary.jsonl windows -o without
    python benchmarks/entities.py start encoder vocabulary.jsonl windows vectors.npy -o start
    python benchmarks/entities.py mentions held.txt articles.jsonl.zst --store store --windows windows -o held
    python benchmarks/entities.py measure held descriptions.tsv --trained model --without model-without
    python benchmarks/entities.py again model descriptions.tsv --data benchmarks --redirects redirects.tsv -o again
    python benchmarks/entities.py base model
    python benchmarks/entities.py time model descriptions.tsv

`choose` takes entities by seed. `small` cuts windows and vocabulary down to what one core can train on, `start` writes
the model that such a run begins with. `without` writes a vocabulary without them and the windows to train on it: their
mentions are [UNK], which is never a target, and windows that name nothing else are left out, as those of their
descriptions. `mentions` writes their mentions in articles that training held out, with candidates of the store, and
sentences of other articles as examples. `measure` reads the mentions with the trained model, and with one that was
trained without these entities and to which they are added. `again` removes entities that are no golds from a model and
adds them by description, for `deixis evaluate` before and after. `base` reads the sentences of benchmarks/data with a
model that knows only the 500 entities invented for them. `time` adds 10,000 entities and loads the result.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside
from deixis.corpus.counting import gather_redirects
from deixis.corpus.packing import split_of
from deixis.corpus.settings import PackingConfig
from deixis.corpus.windows import SPLITS, Split, WindowSet
from deixis.datasets import open_dataset, read_redirects, read_titles
from deixis.datasets.jsonl import stream_documents
from deixis.documents import Candidate, Document, Mention
from deixis.folder.edit import add, build_folder, remove
from deixis.folder.model_folder import ModelFolder, network_from_bert
from deixis.folder.sharpen import read_mentions
from deixis.inference import Disambiguator
from deixis.knowledge.entities import Entity, read_entities
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer
from deixis.network.entity_table import EntityTable
from deixis.network.special import PAD, SPECIAL, UNK
from deixis.training import Recipe
from deixis.training.descriptions import load_vectors, read_descriptions, save_vectors
from deixis.training.steps import Plan
from deixis.wikipedia.articles import Article, read_articles

EXAMPLES = 5  # sentences an entity
DOCUMENTS = ("mentions.jsonl", "others.jsonl")  # that are read
AROUND = 600  # characters of an article kept on either side of a mention
BESIDE = 150  # the same of an example: a sentence or two
BEGINNING = 80  # characters of a description in a small world
MOST_OTHERS = 1000  # mentions of entities that stay, where one of the list is a candidate
SETS = ("aida-a", "aida-b", "msnbc", "aquaint", "ace2004")
MOST = 4  # mentions of one entity: none decides the figure


# --- choose -------------------------------------------------------------------------------------------------------


def choose(
    vocabulary: Path,
    descriptions: list[Path],
    exclude: Path,
    output: Path,
    number: int,
    links: int,
    seed: int,
    windows: Path | None,
) -> None:
    """Write the titles of entities that are described and linked often enough, chosen by seed.

    With windows, those that their held-out split mentions go first: others add nothing to the measurement.
    """
    entities = Vocabulary.load(vocabulary)
    excluded, described = set(read_titles(exclude)), read_descriptions(descriptions)
    able = sorted(
        title
        for title, count in zip(entities.titles, entities.counts, strict=True)
        if count >= links and title in described and title not in excluded and title not in SPECIAL
    )
    random.Random(seed).shuffle(able)
    if windows is not None:
        rows = set(WindowSet.open(windows, "held-out", entities).rows.tolist())
        able.sort(key=lambda title: entities.row(title) not in rows)
    chosen = sorted(able[:number])
    output.write_text("\n".join(chosen) + "\n", encoding="utf-8")
    print(f"{len(chosen):,} of {len(able):,} entities with {links} links or more: {output}")


# --- small --------------------------------------------------------------------------------------------------------


def small(
    held: Path,
    read: Path,
    vocabulary: Path,
    windows: Path,
    descriptions: list[Path],
    output: Path,
    pieces: int,
    each: int,
    others: int,
    seed: int,
) -> None:
    """Write a vocabulary and windows that one core can train on: short parts of windows, chosen by seed.

    Of each entity of the list at most `each` parts that name it, and `others` parts of any kind. The vocabulary is who
    is named there, counted there, and every candidate of the documents that will be read (`mentions`); the beginnings
    of their descriptions go along.
    """
    entities, dice = Vocabulary.load(vocabulary), np.random.default_rng(seed)
    wanted = {row for title in read_titles(held) if (row := entities.row(title)) is not None}
    chosen: dict[Split, WindowSet] = {}
    for split, many, number in zip(SPLITS, (each, 0), (others, others // 10), strict=True):
        chosen[split] = _some(_parts(WindowSet.open(windows, split, entities), pieces), wanted, many, number, dice)
    asked = wanted | {
        entities.row(candidate.entity)
        for name in DOCUMENTS
        for document in stream_documents(read / name)
        for candidate in document.mentions[0].candidates or ()
    }
    counts = np.bincount(chosen["train"].rows, minlength=len(entities))
    kept = [row for row in range(len(entities)) if row < len(SPECIAL) or counts[row] or row in asked]
    _write_windows(entities, kept, counts.tolist(), chosen, windows, output, {})
    texts, titles = read_descriptions(descriptions), (entities.titles[row] for row in kept)
    lines = [f"{title}\t{texts[title][:BEGINNING]}\n" for title in titles if title in texts]
    (output / "descriptions.tsv").write_text("".join(lines), encoding="utf-8")


def _parts(windows: WindowSet, pieces: int) -> WindowSet:
    """Cut windows into parts of at most so many pieces; mentions across a cut are left out."""
    lengths, mentions = np.diff(windows.window_offsets), np.diff(windows.mention_offsets)
    number = -(-lengths // pieces)
    first = np.cumsum(number) - number  # part of each window
    place = np.arange(number.sum()) - np.repeat(first, number)
    starts = np.repeat(windows.window_offsets[:-1], number) + place * pieces
    spans = np.asarray(windows.spans, np.int64)
    within = spans[:, 0] // pieces
    whole = (spans[:, 1] - 1) // pieces == within
    owner = (np.repeat(first, mentions) + within)[whole]
    order = np.argsort(owner, kind="stable")
    kept = np.flatnonzero(whole)[order]
    return replace(
        windows,
        window_offsets=np.append(starts, windows.window_offsets[-1]),
        mention_offsets=np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=len(starts))))),
        spans=(spans[kept] - within[kept, None] * pieces).astype(np.uint16),
        rows=windows.rows[kept],
        candidates=None if windows.candidates is None else windows.candidates[kept],
    )


def _some(windows: WindowSet, held: Collection[int], each: int, others: int, dice: np.random.Generator) -> WindowSet:
    """Return the windows of `small`."""
    owner = np.repeat(np.arange(len(windows)), np.diff(windows.mention_offsets))
    order = dice.permutation(len(owner))
    order = order[np.argsort(windows.rows[order], kind="stable")]  # by entity, by chance
    rows = windows.rows[order]
    place = np.arange(len(rows)) - np.searchsorted(rows, rows)
    wanted = np.isin(rows, list(held)) & (place < each)
    named = np.unique(owner[windows.rows != UNK])
    chosen = np.union1d(owner[order[wanted]], dice.choice(named, min(others, len(named)), replace=False))
    keep = np.zeros(len(windows), bool)
    keep[chosen] = True
    return _kept(windows, keep)


# --- start --------------------------------------------------------------------------------------------------------


def start(
    encoder: Path, vocabulary: Path, windows: Path, vectors: Path, output: Path, layers: int, steps: int, seed: int
) -> None:
    """Write a model that a short run can begin with: no gradient has touched it.

    An entity whose answer is open is embedded as the encoder's own [MASK] at its place. Rows are W·x of the
    descriptions' vectors x, with W by linear discriminant analysis of what the network reads at the mentions of some
    windows; `deixis train pretrain --descriptions` finds this W again.
    """
    entities, tokenizer, x = Vocabulary.load(vocabulary), Tokenizer.load(encoder), load_vectors(vectors)
    generator = torch.Generator().manual_seed(seed)
    network = network_from_bert(
        encoder, len(entities), generator, words_see="placeholders", answer_layers=layers
    ).eval()
    words, own = network.embeddings, network.entity_embeddings
    data = WindowSet.open(windows, "train", entities)
    read, labels = [], []
    with torch.no_grad():
        own.mask_embedding.copy_(words.word_embeddings.weight[tokenizer.mask])
        own.position_embeddings.weight.copy_(words.position_embeddings.weight)
        own.token_type_embeddings.weight.copy_(words.token_type_embeddings.weight[:1])
        own.LayerNorm.load_state_dict(words.LayerNorm.state_dict())
        for item in islice(Plan.of(data, tokenizer, Recipe(batch=64, mask_rate=1.0, seed=seed)).run(), steps):
            for one in item.passes:
                answers = network.answer(network.read(one.batch), one.entities)
                read.append(network.entity_predictions(answers.index_select(0, one.targets)))
                labels.append(one.labels)
        given = torch.from_numpy(x).float()
        projection = _discriminant(torch.cat(read), given[torch.cat(labels)])
        own.entity_embeddings = EntityTable(0.1 * given @ projection)  # as it is, it is far too sure
    ModelFolder(network, tokenizer, entities).save(output)


def _discriminant(states: torch.Tensor, x: torch.Tensor, ridge: float = 30.0) -> torch.Tensor:
    """Return W (vector, state): x·W is what tells states of one entity from those of others, which spread alike."""
    states, x = states - states.mean(0), x - x.mean(0)
    mean = torch.linalg.solve(x.T @ x + ridge * torch.eye(x.shape[1]), x.T @ states)  # of an entity's states, from x
    left = states - x @ mean
    spread = left.T @ left / len(left)
    spread += 0.1 * spread.diagonal().mean() * torch.eye(len(spread))
    found: torch.Tensor = torch.linalg.solve(spread, mean.T).T
    return found


# --- without ------------------------------------------------------------------------------------------------------


def without(held: Path, vocabulary: Path, windows: Path, output: Path, vectors: Path | None) -> None:
    """Write the vocabulary, the windows and perhaps vectors of descriptions as if some entities did not exist."""
    entities, gone = Vocabulary.load(vocabulary), set(read_titles(held))
    kept = [row for row, title in enumerate(entities) if title not in gone]
    sets = {split: WindowSet.open(windows, split, entities) for split in SPLITS}
    _write_windows(entities, kept, entities.counts, sets, windows, output, {"held out": digest_file(held)})
    if vectors is not None:
        save_vectors(load_vectors(vectors)[kept], output / "vectors.npy")


def _write_windows(
    entities: Vocabulary,
    kept: list[int],
    counts: Sequence[int],
    sets: Mapping[Split, WindowSet],
    source: Path,
    output: Path,
    parents: Mapping[str, str],
) -> None:
    """Write some rows of a vocabulary, and windows that know no others."""
    smaller = Vocabulary([entities.titles[row] for row in kept], [counts[row] for row in kept])
    renamed = np.full(len(entities), UNK, np.int32)
    renamed[kept] = np.arange(len(kept))
    output.mkdir(parents=True, exist_ok=True)
    smaller.save(output / "vocabulary.jsonl")
    made = Manifest.load(source / MANIFEST, "windows")
    with folder_aside(output / "windows") as aside:
        for split, windows in sets.items():
            (aside / split).mkdir()
            for name, array in _reduced(windows, renamed).items():
                np.save(aside / split / f"{name}.npy", array)
        files = {str(path.relative_to(aside)): digest_file(path) for path in sorted(aside.rglob("*.npy"))}
        named = dict(made.parents) | {"vocabulary": smaller.digest, **parents}
        replace(made, parents=named, files=files, counts={}).save(aside / MANIFEST)
    told = WindowSet.open(output / "windows")
    print(f"{len(smaller.entities):,} entities, {len(told):,} windows of {len(told.pieces):,} pieces: {output}")


def _reduced(windows: WindowSet, renamed: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """Return the arrays of windows with other rows, without the windows that no known entity is left in."""
    mentions = np.diff(windows.mention_offsets)
    owner = np.repeat(np.arange(len(mentions)), mentions)
    found = _kept(windows, np.bincount(owner[renamed[windows.rows] != UNK], minlength=len(mentions)) > 0)
    arrays: dict[str, NDArray[Any]] = {
        name: getattr(found, name) for name in ("pieces", "window_offsets", "mention_offsets", "spans")
    }
    arrays["rows"] = renamed[found.rows]
    if found.candidates is not None:
        lists = renamed[found.candidates]
        lists[lists == UNK] = PAD
        behind = np.argsort(lists == PAD, axis=1, kind="stable")
        arrays["candidates"] = np.take_along_axis(lists, behind, 1)
    return arrays


def _kept(windows: WindowSet, keep: NDArray[np.bool_]) -> WindowSet:
    """Return some of the windows."""
    mentions, pieces = np.diff(windows.mention_offsets), np.diff(windows.window_offsets)
    named, written = np.repeat(keep, mentions), np.repeat(keep, pieces)
    return replace(
        windows,
        pieces=windows.pieces[written],
        window_offsets=np.concatenate(([0], np.cumsum(pieces[keep]))),
        mention_offsets=np.concatenate(([0], np.cumsum(mentions[keep]))),
        spans=windows.spans[named],
        rows=windows.rows[named],
        candidates=None if windows.candidates is None else windows.candidates[named],
    )


# --- mentions -----------------------------------------------------------------------------------------------------


def mentions(
    held: Path,
    articles: list[Path],
    redirects: list[Path],
    store: Path,
    windows: Path,
    output: Path,
    seed: int,
    around: int,
) -> None:
    """Write mentions of the held-out split, and examples of the training split, of the entities of a list."""
    config = PackingConfig(**Manifest.load(windows / MANIFEST, "windows").parameters)
    titles, leads = set(read_titles(held)), gather_redirects(articles, redirects)
    asked: dict[str, list[Document]] = defaultdict(list)
    shown: dict[str, list[Document]] = defaultdict(list)
    rest: list[Document] = []
    for path in articles:
        for article in read_articles(path, report=lambda sentence: None):
            held_out = split_of(article.title, config) == "held-out"
            into, beside = (asked, around) if held_out else (shown, min(BESIDE, around))
            for document in _excerpts(article, titles, leads, beside):
                into[document.mentions[0].entity or ""].append(document)
            if held_out:
                linked = {leads.get(link.target, link.target) for link in article.links} - titles
                rest += _excerpts(article, linked, leads, around)
    dice, names = random.Random(seed), Names.open(store)
    output.mkdir(parents=True, exist_ok=True)
    documents = [document for _, found in sorted(asked.items()) for document in _few(found, MOST, dice)]
    examples = [document for _, found in sorted(shown.items()) for document in _few(found, EXAMPLES, dice)]
    _write(output / "mentions.jsonl", (_with_candidates(document, names) for document in documents))
    _write(output / "examples.jsonl", examples)
    asked_too = (_with_candidates(document, names) for document in rest)
    others = [one for one in asked_too if titles & {entity for entity, _ in one.mentions[0].candidates or ()}]
    _write(output / "others.jsonl", _few(others, MOST_OTHERS, dice))
    (output / "titles.txt").write_text(held.read_text(encoding="utf-8"), encoding="utf-8")
    print(f"{len(documents):,} mentions of {len(asked):,} entities, {len(examples):,} examples of {len(shown):,}")


def _excerpts(article: Article, titles: set[str], leads: dict[str, str], around: int) -> Iterator[Document]:
    """Yield the text around each link to one of the titles, that link its only mention."""
    for link in article.links:
        target = leads.get(link.target, link.target)
        if target in titles and target != article.title:
            start = article.text.find(" ", max(0, link.start - around), link.start) + 1 if link.start > around else 0
            text = article.text[start : link.end + around]
            yield Document(text, (Mention(link.start - start, link.end - start, target),), id=article.title)


def _few(found: list[Document], number: int | None, dice: random.Random) -> list[Document]:
    return found if number is None else dice.sample(found, min(number, len(found)))


def _with_candidates(document: Document, store: Names) -> Document:
    """Attach the store's candidates; the gold is among them, as recall is not what is measured here."""
    gold = document.mentions[0].entity or ""
    found = store.candidates(document)[0]
    if gold not in {candidate.entity for candidate in found}:
        found = (*found[:29], Candidate(gold, 0.0))
    return document.with_candidates([found])


def _write(path: Path, documents: Iterable[Document]) -> None:
    path.write_bytes(b"".join(document.to_json() + b"\n" for document in documents))


# --- measure ------------------------------------------------------------------------------------------------------


def measure(
    held: Path,
    descriptions: list[Path],
    trained: Path,
    without: Path | None,
    limit: int | None,
    few: int,
) -> None:
    """Print the accuracy on held-out mentions with rows of each kind.

    The models have names (`deixis assemble`). Without a model that never saw the entities, they are removed from the
    trained one: a rehearsal, as its encoder was trained on their mentions.
    """
    documents, others = (_few(list(stream_documents(held / name)), limit, random.Random(0)) for name in DOCUMENTS)
    examples: dict[str, list[Document]] = defaultdict(list)
    for document in stream_documents(held / "examples.jsonl"):
        examples[document.mentions[0].entity or ""].append(document)
    texts = read_descriptions(descriptions)
    titles = list(read_titles(held / "titles.txt"))
    whole = ModelFolder.load(trained)
    less = remove(whole, [title for title in titles if title in whole.vocabulary])
    if without is None:
        print("a rehearsal: the encoder was trained on mentions of these entities")
    else:
        less = ModelFolder.load(without)
        if known := [title for title in titles if title in less.vocabulary]:
            less = remove(less, known)
    plain = [Entity(title, texts[title]) for title in titles if title in texts]
    print(f"{len(documents):,} mentions, {len(plain):,} entities added to {len(less.vocabulary.entities):,}")
    named = add(less, plain)
    asked = {document.mentions[0].entity for document in documents}
    shown = [replace(e, examples=tuple(_marked(examples[e.title][:few]))) for e in plain if e.title in asked]
    sharp = add(named, shown, clashes=True) if few else named
    ambiguous = [_rivals(document, whole.vocabulary) > 1 for document in documents]
    print(f"{'':45}{'all':>12}{'ambiguous':>12}")
    print(f"{'mentions':45}{len(documents):12,}{sum(ambiguous):12,}")
    print(_row("first candidate by prior", [_by_prior(document) for document in documents], ambiguous))
    for what, model in (
        ("trained normally", whole),
        ("added by description", named),
        (f"added by description and {few} examples", sharp),
        ("random rows", _random(named, len(plain))),
    ):
        print(_row(what, _right(model, documents), ambiguous), flush=True)
    print(f"\n{len(others):,} mentions of other entities, for which an added one is a candidate")
    _SEEN.clear()
    others_of = (("before", less), ("trained normally", whole), ("after", named), ("after, with examples", sharp))
    for what, model in others_of:
        print(_row(what, _right(model, others), [True] * len(others)), flush=True)


def _marked(documents: list[Document]) -> Iterator[Document]:
    for document in documents:
        yield Document(document.text, tuple(replace(mention, candidates=None) for mention in document.mentions))


def _random(model: ModelFolder, number: int) -> ModelFolder:
    """Return the model with the last rows of B drawn at random, as long as trained ones on average."""
    knowledge = model.knowledge
    assert isinstance(knowledge, Knowledge)
    size = len(knowledge) - number
    weight, bias = model.network.candidate_rows(torch.arange(len(SPECIAL), size))
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(number, weight.shape[1], generator=generator) * weight.std(0) + weight.mean(0)
    biases = bias.mean().detach().expand(number)
    return model.with_overlay(knowledge.overlay, range(knowledge.size, size), rows.detach(), biases)


def _rivals(document: Document, vocabulary: Vocabulary) -> int:
    return sum(candidate.entity in vocabulary for candidate in document.mentions[0].candidates or ())


def _by_prior(document: Document) -> bool:
    mention = document.mentions[0]
    best = max(mention.candidates or (), key=lambda candidate: candidate.prior or 0.0)
    return best.entity == mention.entity


def _right(model: ModelFolder, documents: list[Document]) -> list[bool]:
    """Tell of each document whether its only mention is answered right.

    What the network makes of a mention does not depend on rows of B, so models with one encoder read it once.
    """
    network = model.network.eval()
    seen = _SEEN.setdefault(network.encoder.layers[0].output.dense.weight.data_ptr(), [])
    if not seen:
        seen.append(read_mentions(network, model.tokenizer, documents))
    right = []
    for document, state in zip(documents, seen[0], strict=True):
        mention = document.mentions[0]
        known = [candidate.entity for candidate in mention.candidates or () if candidate.entity in model.vocabulary]
        if not known:
            right.append(_by_prior(document))  # as `disambiguate` does
            continue
        rows = torch.tensor([model.vocabulary.row(title) or 0 for title in known])
        with torch.no_grad():
            weight, bias = network.candidate_rows(rows)
            right.append(known[int((weight @ state + bias).argmax())] == mention.entity)
    return right


_SEEN: dict[int, list[torch.Tensor]] = {}  # by encoder


def _row(what: str, right: list[bool], chosen: list[bool]) -> str:
    """Return a line of percentages: of all, and of the chosen."""
    some = [one for one, wanted in zip(right, chosen, strict=True) if wanted]
    return f"{what:45}" + "".join(f"{100 * sum(found) / max(1, len(found)):12.1f}" for found in (right, some))


# --- again --------------------------------------------------------------------------------------------------------


def again(
    model: Path,
    descriptions: list[Path],
    data: Path,
    redirects: Path,
    output: Path,
    number: int,
    links: int,
    seed: int,
) -> None:
    """Write a model without some entities, and with them added again by their descriptions; the benchmarks' golds stay.

    All names that the model's store has for them come back with them.
    """
    whole, texts, moved = ModelFolder.load(model), read_descriptions(descriptions), read_redirects(redirects)
    golds = {
        mention.entity
        for name in SETS
        for document in open_dataset(data, name).redirected(moved).documents
        for mention in document.mentions
    }
    counted = zip(whole.vocabulary.titles, whole.vocabulary.counts, strict=True)
    able = sorted(title for title, count in counted if count >= links and title in texts and title not in golds)
    chosen = sorted(random.Random(seed).sample(able, number))
    less = remove(whole, chosen)
    less.save_edited(output / "less", {})
    add(less, [Entity(title, texts[title]) for title in chosen]).save_edited(output / "more", {})
    print(f"{number:,} of {len(able):,} entities: {output}")


# --- base ---------------------------------------------------------------------------------------------------------


def base(model: Path) -> None:
    """Print how many sentences of the invented knowledge base are read right, with descriptions alone."""
    folder = Path(__file__).parent / "data"
    documents = list(stream_documents(folder / "invented-sentences.jsonl"))
    with tempfile.TemporaryDirectory() as scratch:
        own = Path(scratch) / "own"
        build_folder(model, list(read_entities(folder / "invented.jsonl")), own, {})
        nlp = Disambiguator.load(own)
        assert nlp.candidates is not None
        asked = [document.with_candidates(nlp.candidates.candidates(document)) for document in documents]
        found = [len(document.mentions[0].candidates or ()) for document in asked]
        print(
            f"{len(documents)} sentences, {len(nlp.vocabulary.entities)} entities, {median(found):g} candidates a name"
        )
        ambiguous = [number > 1 for number in found]
        print(f"{'':45}{'all':>12}{'ambiguous':>12}")
        print(_row("first candidate", [_by_prior(document) for document in asked], ambiguous))
        print(_row("by description", _right(ModelFolder.load(own), asked), ambiguous))


# --- time ---------------------------------------------------------------------------------------------------------


def clock(model: Path, descriptions: list[Path], number: int, rounds: int) -> None:
    """Print how long `entities add` takes, and `load` before and after, interleaved."""
    known = ModelFolder.load(model).vocabulary
    lines = ((title, text) for title, text in read_descriptions(descriptions).items() if title not in known)
    new = [Entity(title, text[:500], names=()) for (title, text), _ in zip(lines, range(number), strict=False)]
    with tempfile.TemporaryDirectory() as scratch:
        target = Path(scratch) / "more"
        start, busy = time.perf_counter(), time.process_time()
        manifest = add(ModelFolder.load(model), new).save_edited(target, {})
        took, spent = time.perf_counter() - start, time.process_time() - busy
        size = manifest.counts["entities"]
        print(f"{len(new):,} entities added in {took:.1f} s, {spent:.1f} s of all cores ({size:,} in all)")
        times: dict[Path, list[float]] = {model: [], target: []}
        for _ in range(rounds):
            for folder in times:
                start = time.perf_counter()
                Disambiguator.load(folder)
                times[folder].append(time.perf_counter() - start)
        before, after = (median(times[folder]) for folder in (model, target))
        share = len(new) / len(known.entities)
        print(f"load: {before:.3f} s before, {after:.3f} s after ({after / before - 1:+.1%}; rows {share:+.1%})")


def main() -> None:
    """Run one part of the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = parser.add_subparsers(dest="part", required=True)
    part = parts.add_parser("choose")
    part.add_argument("vocabulary", type=Path)
    part.add_argument("descriptions", type=Path, nargs="+")
    part.add_argument("--exclude", type=Path, required=True)
    part.add_argument("--output", "-o", type=Path, required=True)
    part.add_argument("--number", type=int, default=2000)
    part.add_argument("--links", type=int, default=20)
    part.add_argument("--seed", type=int, default=0)
    part.add_argument("--windows", type=Path)
    part = parts.add_parser("start")
    for name in ("encoder", "vocabulary", "windows", "vectors"):
        part.add_argument(name, type=Path)
    part.add_argument("--output", "-o", type=Path, required=True)
    part.add_argument("--layers", type=int, default=2)
    part.add_argument("--steps", type=int, default=40)
    part.add_argument("--seed", type=int, default=0)
    part = parts.add_parser("without")
    for name in ("held", "vocabulary", "windows"):
        part.add_argument(name, type=Path)
    part.add_argument("--vectors", type=Path)
    part.add_argument("--output", "-o", type=Path, required=True)
    part = parts.add_parser("small")
    for name in ("held", "read", "vocabulary", "windows"):
        part.add_argument(name, type=Path)
    part.add_argument("--output", "-o", type=Path, required=True)
    part.add_argument("--descriptions", type=Path, nargs="+", required=True)
    part.add_argument("--pieces", type=int, default=64)
    part.add_argument("--each", type=int, default=7)
    part.add_argument("--others", type=int, default=3500)
    part.add_argument("--seed", type=int, default=0)
    part = parts.add_parser("mentions")
    part.add_argument("--around", type=int, default=AROUND)
    part.add_argument("held", type=Path)
    part.add_argument("articles", type=Path, nargs="+")
    part.add_argument("--redirects", type=Path, nargs="*", default=[])
    for name in ("store", "windows", "output"):
        part.add_argument(f"--{name}", *(["-o"] if name == "output" else []), type=Path, required=True)
    part.add_argument("--seed", type=int, default=0)
    part = parts.add_parser("measure")
    part.add_argument("held", type=Path)
    part.add_argument("descriptions", type=Path, nargs="+")
    part.add_argument("--trained", type=Path, required=True)
    part.add_argument("--without", type=Path)
    part.add_argument("--store", type=Path)
    part.add_argument("--limit", type=int)
    part.add_argument("--examples", type=int, default=EXAMPLES, dest="few")
    part = parts.add_parser("again")
    part.add_argument("model", type=Path)
    part.add_argument("descriptions", type=Path, nargs="+")
    part.add_argument("--data", type=Path, required=True)
    part.add_argument("--redirects", type=Path, required=True)
    part.add_argument("--output", "-o", type=Path, required=True)
    part.add_argument("--number", type=int, default=2000)
    part.add_argument("--links", type=int, default=20)
    part.add_argument("--seed", type=int, default=0)
    parts.add_parser("base").add_argument("model", type=Path)
    part = parts.add_parser("time")
    part.add_argument("model", type=Path)
    part.add_argument("descriptions", type=Path, nargs="+")
    part.add_argument("--number", type=int, default=10_000)
    part.add_argument("--rounds", type=int, default=9)
    given = vars(parser.parse_args())
    run: dict[str, Callable[..., None]] = {
        "choose": choose,
        "small": small,
        "start": start,
        "without": without,
        "mentions": mentions,
        "measure": measure,
        "again": again,
        "base": base,
        "time": clock,
    }
    run[given.pop("part")](**given)


if __name__ == "__main__":
    main()
