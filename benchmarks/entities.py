"""New entities: rows from descriptions against trained ones, an invented knowledge base, what additions cost.

    python benchmarks/entities.py choose vocabulary.jsonl descriptions.tsv --exclude titles.txt -o held.txt
    python benchmarks/entities.py without held.txt vocabulary.jsonl windows -o without
    python benchmarks/entities.py mentions held.txt articles.jsonl.zst --store store --windows windows -o held
    python benchmarks/entities.py measure held descriptions.tsv --trained model --without model-without
    python benchmarks/entities.py base model
    python benchmarks/entities.py time model descriptions.tsv

`choose` takes entities by seed. `without` writes a vocabulary without them and the windows to train on it: their
mentions are [UNK], which is never a target, and windows that name nothing else are left out, as those of their
descriptions. `mentions` writes their mentions in articles that training held out, with candidates of the store, and
sentences of other articles as examples. `measure` reads the mentions with the trained model, and with one that was
trained without these entities and to which they are added. `base` reads the sentences of benchmarks/data with a model
that knows only the 500 entities invented for them. `time` adds 10,000 entities and loads the result.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from deixis.artefacts import MANIFEST, Manifest, digest_file, folder_aside
from deixis.candidates import CandidateStore
from deixis.checkpoints import ModelFolder
from deixis.datasets.jsonl import stream_documents
from deixis.documents import Candidate, Document, Mention
from deixis.entities import add, build_folder, remove, save_edited
from deixis.entities.sharpening import read_mentions
from deixis.inference import Disambiguator
from deixis.knowledge import Entity, read_entities
from deixis.training.descriptions import read_descriptions
from deixis.vocabulary import PAD, SPECIAL, UNK, Vocabulary
from deixis.wikipedia.articles import Article, read_articles
from deixis.wikipedia.counting import gather_redirects, read_titles
from deixis.wikipedia.packing import PackingConfig, split_of
from deixis.wikipedia.windows import SPLITS, WindowSet

EXAMPLES = 5  # sentences an entity
AROUND = 600  # characters of an article kept on either side of a mention
BESIDE = 150  # the same of an example: a sentence or two
MOST_OTHERS = 1000  # mentions of entities that stay, where one of the list is a candidate
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


# --- without ------------------------------------------------------------------------------------------------------


def without(held: Path, vocabulary: Path, windows: Path, output: Path) -> None:
    """Write the vocabulary and the windows as if some entities did not exist."""
    entities, gone = Vocabulary.load(vocabulary), set(read_titles(held))
    kept = [row for row, title in enumerate(entities) if title not in gone]
    smaller = Vocabulary([entities.titles[row] for row in kept], [entities.counts[row] for row in kept])
    renamed = np.full(len(entities), UNK, np.int32)
    renamed[kept] = np.arange(len(kept))
    output.mkdir(parents=True, exist_ok=True)
    smaller.save(output / "vocabulary.jsonl")
    made = Manifest.load(windows / MANIFEST, "windows")
    with folder_aside(output / "windows") as aside:
        for split in SPLITS:
            (aside / split).mkdir()
            for name, array in _reduced(WindowSet.open(windows, split, entities), renamed).items():
                np.save(aside / split / f"{name}.npy", array)
        files = {str(path.relative_to(aside)): digest_file(path) for path in sorted(aside.rglob("*.npy"))}
        parents = dict(made.parents) | {"vocabulary": smaller.digest, "held out": digest_file(held)}
        replace(made, parents=parents, files=files, counts={}).save(aside / MANIFEST)
    print(f"{len(entities) - len(smaller):,} entities left out: {output}")


def _reduced(windows: WindowSet, renamed: NDArray[np.int32]) -> dict[str, NDArray[Any]]:
    """Return the arrays of windows with other rows, without the windows that no known entity is left in."""
    rows = renamed[windows.rows]
    mentions, pieces = np.diff(windows.mention_offsets), np.diff(windows.window_offsets)
    owner = np.repeat(np.arange(len(mentions)), mentions)
    keep = np.bincount(owner[rows != UNK], minlength=len(mentions)) > 0
    named, written = np.repeat(keep, mentions), np.repeat(keep, pieces)
    arrays: dict[str, NDArray[Any]] = {
        "pieces": windows.pieces[written],
        "window_offsets": np.concatenate(([0], np.cumsum(pieces[keep]))),
        "mention_offsets": np.concatenate(([0], np.cumsum(mentions[keep]))),
        "spans": windows.spans[named],
        "rows": rows[named],
    }
    if windows.candidates is not None:
        found = renamed[windows.candidates[named]]
        found[found == UNK] = PAD
        behind = np.argsort(found == PAD, axis=1, kind="stable")
        arrays["candidates"] = np.take_along_axis(found, behind, 1)
    return arrays


# --- mentions -----------------------------------------------------------------------------------------------------


def mentions(
    held: Path, articles: list[Path], redirects: list[Path], store: Path, windows: Path, output: Path, seed: int
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
            into, around = (asked, AROUND) if held_out else (shown, BESIDE)
            for document in _excerpts(article, titles, leads, around):
                into[document.mentions[0].entity or ""].append(document)
            if held_out:
                linked = {leads.get(link.target, link.target) for link in article.links} - titles
                rest += _excerpts(article, linked, leads, AROUND)
    dice, names = random.Random(seed), CandidateStore.open(store)
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


def _few(found: list[Document], number: int, dice: random.Random) -> list[Document]:
    return dice.sample(found, min(number, len(found)))


def _with_candidates(document: Document, store: CandidateStore) -> Document:
    """Attach the store's candidates; the gold is among them, as recall is not what is measured here."""
    gold = document.mentions[0].entity or ""
    found = store.candidates(document)[0]
    if gold not in {candidate.entity for candidate in found}:
        found = (*found[:29], Candidate(gold, 0.0))
    return document.with_candidates([found])


def _write(path: Path, documents: Iterable[Document]) -> None:
    path.write_bytes(b"".join(document.to_json() + b"\n" for document in documents))


# --- measure ------------------------------------------------------------------------------------------------------


def measure(held: Path, descriptions: list[Path], trained: Path, without: Path | None) -> None:
    """Print the accuracy on held-out mentions with rows of each kind.

    Without a model that never saw the entities, they are removed from the trained one: a rehearsal, as its encoder was
    trained on their mentions.
    """
    documents = list(stream_documents(held / "mentions.jsonl"))
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
    shown = [replace(e, examples=tuple(_marked(examples[e.title]))) for e in plain if e.title in asked]
    sharp = add(named, shown, clashes=True)
    ambiguous = [_rivals(document, whole.vocabulary) > 1 for document in documents]
    print(f"{'':45}{'all':>12}{'ambiguous':>12}")
    print(f"{'mentions':45}{len(documents):12,}{sum(ambiguous):12,}")
    print(_row("first candidate by prior", [_by_prior(document) for document in documents], ambiguous))
    for what, model in (
        ("trained normally", whole),
        ("added by description", named),
        (f"added by description and {EXAMPLES} examples", sharp),
        ("random rows", _random(named, len(plain))),
    ):
        print(_row(what, _right(model, documents), ambiguous), flush=True)
    others = list(stream_documents(held / "others.jsonl"))
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
    kept = model.among(Vocabulary(model.vocabulary.titles[:-number], model.vocabulary.counts[:-number]))
    weight, bias = kept.network.candidate_rows(torch.arange(len(SPECIAL), len(kept.vocabulary)))
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(number, weight.shape[1], generator=generator) * weight.std(0) + weight.mean(0)
    return kept.with_rows(model.vocabulary.titles[-number:], rows.detach(), bias.mean().detach().expand(number))


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
        manifest = save_edited(add(ModelFolder.load(model), new), model, target, {})
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
    part = parts.add_parser("without")
    for name in ("held", "vocabulary", "windows"):
        part.add_argument(name, type=Path)
    part.add_argument("--output", "-o", type=Path, required=True)
    part = parts.add_parser("mentions")
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
    parts.add_parser("base").add_argument("model", type=Path)
    part = parts.add_parser("time")
    part.add_argument("model", type=Path)
    part.add_argument("descriptions", type=Path, nargs="+")
    part.add_argument("--number", type=int, default=10_000)
    part.add_argument("--rounds", type=int, default=9)
    given = vars(parser.parse_args())
    run: dict[str, Callable[..., None]] = {
        "choose": choose,
        "without": without,
        "mentions": mentions,
        "measure": measure,
        "base": base,
        "time": clock,
    }
    run[given.pop("part")](**given)


if __name__ == "__main__":
    main()
