"""What happens on a GPU: texts are read, the network and its rows trained, then the detector.

    python recipes/default/gpu.py prepare PARTS/first WORK      # the BERT folder, and a vector for each entity's text
    python recipes/default/gpu.py train PARTS/second WORK       # the network and the rows, in WORK/back
    python recipes/default/gpu.py names WORK                    # beside it: the detector, in WORK/names

PARTS is what send.py wrote. With src on PYTHONPATH, torch, numpy, tokenizers and safetensors are all that is needed.
The detector's texts are tokenised while the network is trained, so `names` may be started before.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import tomllib
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from parts import Arrays, pack_bits, read_arrays, write_arrays
from safetensors.torch import save_file

from deixis.corpus.windows import WindowSet
from deixis.folder.model_folder import network_from_bert
from deixis.network.detector import LearnedDetector
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.network.special import SPECIAL
from deixis.training.descriptions import describe_table, fold, mean_states, own_rows
from deixis.training.detector import lessons_of, read_marked_texts, score_detector, train_detector
from deixis.training.distributed import Processes, processes
from deixis.training.loop import evaluate, train
from deixis.training.recipe import DetectorRecipe, Recipe
from deixis.training.steps import ranges

SETTINGS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("recipe.toml").read_text())
READ_AT_ONCE = 2048  # texts
RETURNED = 15 << 20  # bytes of a file
HELD_OUT = 1500  # windows that are measured
TOLD = 500  # steps between two that the manifest tells
Ints = NDArray[np.int64]


def prepare(first: Path, work: Path, device: str) -> None:
    """Write the BERT folder, the links of the entities and the vectors of their texts."""
    arrays = read_arrays(first)
    bert = work / "bert"
    bert.mkdir(parents=True, exist_ok=True)
    told, tensors, at = json.loads(arrays["encoder.json"].tobytes()), {}, 0
    for name, shape in told["tensors"].items():
        size = int(np.prod(shape))
        tensors[name] = torch.from_numpy(arrays["encoder"][at : at + size].astype(np.float32).reshape(shape))
        at += size
    save_file(tensors, bert / "model.safetensors")
    (bert / "config.json").write_text(json.dumps(told["config"]))
    (bert / "tokenizer.json").write_bytes(arrays["tokenizer.json"].tobytes())
    np.save(work / "counts.npy", arrays["counts"])
    np.save(work / "vectors.npy", _vectors(arrays, bert, torch.device(device)))


@torch.no_grad()
def _vectors(arrays: Arrays, bert: Path, device: torch.device) -> NDArray[np.float16]:
    """Return x_e of all entities: the mean states of their texts, of length 1, less what all have in common."""
    tokenizer = Tokenizer.load(bert)
    network = network_from_bert(bert, len(SPECIAL), torch.Generator()).to(device).eval()
    network.precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    lengths = arrays["texts/lengths"].astype(np.int64)
    texts = np.split(arrays["texts/pieces"].astype(np.int64), np.cumsum(lengths)[:-1])
    order = np.argsort(-lengths, kind="stable")[: int((lengths > 0).sum())]  # texts of one length together
    vectors = np.zeros((len(lengths), network.config.hidden_size), np.float32)
    for some in np.array_split(order, -(-len(order) // READ_AT_ONCE)):
        pieces = [np.concatenate(([tokenizer.cls], texts[row], [tokenizer.sep])) for row in some.tolist()]
        states = mean_states(network, pieces, device)
        vectors[some] = torch.nn.functional.normalize(states, dim=-1).cpu().numpy()
    vectors[order] -= vectors[order].mean(0)
    return vectors.astype(np.float16)


def _places(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of so many places behind each start, end to end."""
    numbers: Ints = ranges(starts, starts + counts)[0]
    return numbers


def window_set(arrays: Arrays, prefix: str) -> WindowSet:
    """Return windows that were sent."""
    lists, places = arrays["lists"][arrays[prefix + "lists"]], arrays[prefix + "places"]
    rows = np.where(places == 255, 1, lists[np.arange(len(lists)), np.minimum(places, lists.shape[1] - 1)])
    starts = arrays[prefix + "starts"].astype(np.int64)
    spans = np.stack([starts, starts + arrays[prefix + "sizes"]], 1)
    offsets = [
        np.concatenate(([0], np.cumsum(arrays[prefix + name], dtype=np.int64))) for name in ("lengths", "mentions")
    ]
    return WindowSet(arrays[prefix + "pieces"], offsets[0], offsets[1], spans, rows.astype(np.int32), lists)


def with_short_names(windows: WindowSet, arrays: Arrays) -> WindowSet:
    """Return the windows, and behind them those with shortened names once more."""
    kept = arrays["short/kept"].astype(np.int64)
    short = kept[:, 1] > 0
    owner = np.repeat(np.arange(len(windows)), np.diff(windows.mention_offsets))
    first = windows.window_offsets[owner] + windows.spans[:, 0]
    sizes = windows.spans[:, 1] - windows.spans[:, 0]
    stays = np.ones(len(windows.pieces), bool)
    stays[_places(first[short], kept[short, 0])] = False
    stays[_places(first[short] + kept[short, 1], sizes[short] - kept[short, 1])] = False
    before = np.concatenate(([0], np.cumsum(stays)))
    offsets = before[windows.window_offsets]
    spans = np.stack([before[first] - offsets[owner], before[first + sizes] - offsets[owner]], 1)
    assert windows.candidates is not None
    candidates = np.where(short[:, None], arrays["lists"][arrays["short/lists"]], windows.candidates)
    copy = replace(windows, pieces=windows.pieces[stays], window_offsets=offsets, spans=spans, candidates=candidates)
    chosen = np.flatnonzero(np.bincount(owner[short], minlength=len(windows)))
    return joined(windows, part_of(copy, chosen))


def part_of(windows: WindowSet, chosen: NDArray[np.int64]) -> WindowSet:
    """Return some windows."""
    sizes, counts = np.diff(windows.window_offsets)[chosen], np.diff(windows.mention_offsets)[chosen]
    pieces = _places(windows.window_offsets[chosen], sizes)
    mentions = _places(windows.mention_offsets[chosen], counts)
    offsets = [np.concatenate(([0], np.cumsum(one))) for one in (sizes, counts)]
    assert windows.candidates is not None
    of_mentions = (windows.spans[mentions], windows.rows[mentions], windows.candidates[mentions])
    return WindowSet(windows.pieces[pieces], offsets[0], offsets[1], *of_mentions)


def joined(one: WindowSet, other: WindowSet) -> WindowSet:
    """Return windows, and others behind them."""

    def both(name: str) -> NDArray[Any]:
        first, second = getattr(one, name), getattr(other, name)
        if name.endswith("offsets"):
            return np.concatenate([first, second[1:] + first[-1]])
        return np.concatenate([first, second])

    return WindowSet(*(both(name) for name in WindowSet.__dataclass_fields__))


class Given:
    """What was sent and prepared: windows, sets, vectors."""

    def __init__(self, second: Path, work: Path) -> None:
        arrays = read_arrays(second)
        if (marked := arrays.get("marked")) is not None:
            (work / "marked.jsonl.xz").write_bytes(marked.tobytes())
            (work / "marked.done").touch()
        self.work, self.tokenizer = work, Tokenizer.load(work / "bert")
        self.train = with_short_names(window_set(arrays, "train/"), arrays)
        held_out = window_set(arrays, "held-out/")
        self.held_out = part_of(held_out, np.arange(0, len(held_out), max(1, len(held_out) // HELD_OUT)))
        names = {name.removesuffix("/pieces") for name in arrays if name.endswith("/pieces")}
        self.sets = {name: window_set(arrays, f"{name}/") for name in sorted(names - {"train", "held-out"})}
        self.counts, self.vectors = np.load(work / "counts.npy").tolist(), np.load(work / "vectors.npy")
        self.own = own_rows(self.counts, SETTINGS["vocabulary"]["own_links"])

    def network(self, shape: dict[str, Any], seed: int = 0) -> Network:
        """Return a network to be trained, with rows from text."""
        chance = torch.Generator().manual_seed(seed)
        network = network_from_bert(self.work / "bert", len(self.counts), chance, **shape)
        describe_table(network, self.vectors, torch.Generator().manual_seed(seed + 1), self.own)
        return network


def train_model(second: Path, work: Path, seconds: float, device: str) -> None:
    """Train for about so many seconds, measure, and write what comes back."""
    begun = time.monotonic()
    given = Given(second, work)
    network = given.network(SETTINGS["network"])
    recipe = Recipe().with_settings(SETTINGS["train"])
    told: list[dict[str, Any]] = []
    with processes(device) as group:
        if recipe.steps is None:
            pace = _pace(network, given, recipe, group)
            recipe = replace(recipe, steps=int((seconds - (time.monotonic() - begun)) / pace))
        for step in train(network, given.tokenizer, given.train, recipe, processes=group):
            if step.step % 50 == 0:
                line = f"step {step.step} of {step.steps}, loss {step.loss:.3f}, {step.accuracy:.3f}"
                print(f"{line}, {time.monotonic() - begun:.0f} s", flush=True)
            if step.step % TOLD == 0:
                told.append({"step": step.step, "loss": step.loss, "accuracy": step.accuracy})
        fold(network)
        network.precision = torch.bfloat16 if device == "cuda" else torch.float32
        told.append(_measured(network, given, group))
    print(told[-1], f"trained in {time.monotonic() - begun:.0f} s", flush=True)
    of_bert = {
        name: x.cpu() for name, x in network.state_dict().items() if name.startswith(("embeddings.", "encoder."))
    }
    torch.save({"state": of_bert, "config": replace(network.config, entities=len(SPECIAL))}, work / "encoder.pt")
    (work / "encoder.done").touch()
    summary = {"recipe": recipe.to_json(), "shape": SETTINGS["network"], "told": told}
    _write_back(network, given.own, work / "back", json.dumps(summary).encode())


def _pace(network: Network, given: Given, recipe: Recipe, group: Processes) -> float:
    """Return the seconds of a step, measured with rates of 0: nothing is learned."""
    still = replace(recipe, learning_rate=0.0, entity_rate=0.0, encoder_rate=0.0)
    marks = []
    for step in islice(train(network, given.tokenizer, given.train, still, processes=group), 16):
        float(step.sums[0])  # waits for the device
        marks.append(time.monotonic())
    return (marks[-1] - marks[5]) / 10  # the first steps also warm up


def _measured(network: Network, given: Given, group: Processes) -> dict[str, float]:
    """Return the accuracy on the sets that a model is chosen by and on held-out links."""

    def accuracy(windows: WindowSet, shown: float, among: float) -> float:
        asked = Recipe(mask_rate=1 - shown, batch=256, candidate_weight=among, candidates=30)
        return evaluate(network, given.tokenizer, windows, asked, group).accuracy

    found = {name: accuracy(windows, 0.0, 1.0) for name, windows in given.sets.items()}
    found["testa, seven tenths shown"] = accuracy(given.sets["testa"], 0.7, 1.0)
    found["held-out"] = accuracy(given.held_out, 0.0, 1.0)
    found["held-out, of all"] = accuracy(given.held_out, 0.0, 0.0)
    found["held-out, of all, nine tenths shown"] = accuracy(given.held_out, 0.9, 0.0)
    return found


def find_names(work: Path, device: str) -> None:
    """Prepare what the detector learns, wait for the network, and train it on that."""
    logging.basicConfig(level=logging.INFO)
    _wait(work / "marked.done")
    tokenizer = Tokenizer.load(work / "bert")
    texts = list(read_marked_texts([work / "marked.jsonl.xz"]))
    lessons = lessons_of(tokenizer, texts)
    _wait(work / "encoder.done")
    found = torch.load(work / "encoder.pt", weights_only=False)
    network = Network(found["config"])
    network.load_state_dict(found["state"], strict=False)  # the states of words need nothing else
    network.to(device).eval().requires_grad_(False)
    network.precision = torch.bfloat16 if device == "cuda" else torch.float32
    head = train_detector(network, tokenizer, lessons, DetectorRecipe().with_settings(SETTINGS["detector"]))
    (work / "names").mkdir(exist_ok=True)
    head.save(work / "names" / "detector.safetensors")
    scores = score_detector(LearnedDetector(network, tokenizer, head), texts)
    (work / "names" / "scores.txt").write_text("\n".join(map(str, scores)) + "\n")


def _wait(path: Path) -> None:
    while not path.exists():
        time.sleep(1)


def _write_back(network: Network, own: int, out: Path, told: bytes) -> None:
    """Write the network in fp16, rows in six bits a number, those that are text alone in four."""
    state = {name: x.detach().float().cpu() for name, x in network.state_dict().items()}
    table = state.pop("entity_embeddings.entity_embeddings.weight")
    bias = state.pop("entity_predictions.bias")
    shapes = {name: tuple(x.shape) for name, x in sorted(state.items())}
    config = network.config.to_json()
    arrays = {
        "network": torch.cat([state[name].flatten() for name in shapes]).half().numpy(),
        "network.json": np.frombuffer(json.dumps({"tensors": shapes, "config": config}).encode(), np.uint8),
        "told": np.frombuffer(told, np.uint8),
        "bias": bias.numpy(),
    }
    for name, rows, bits in (("own", table[:own], 6), ("text", table[own:], 4)):
        largest = 2 ** (bits - 1) - 1
        x = rows.numpy()
        scale = (np.abs(x).max(1, initial=1e-9) / largest).astype(np.float16)
        numbers = np.rint(x / scale.astype(np.float32)[:, None]).clip(-largest, largest) + largest
        arrays[f"{name}/numbers"] = pack_bits(numbers.astype(np.uint8), bits)
        arrays[f"{name}/scales"] = scale
    write_arrays(arrays, out, RETURNED, cores=16)


def main() -> int:
    """Run one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    for name, paths in {"prepare": ("parts", "work"), "train": ("parts", "work"), "names": ("work",)}.items():
        step = steps.add_parser(name)
        for path in paths:
            step.add_argument(path, type=Path)
        step.add_argument("--device", default="cuda")
        if name == "train":
            step.add_argument("--seconds", type=float, default=800.0, help="how long, where the recipe has no `steps`")
    given = parser.parse_args()
    if given.step == "prepare":
        prepare(given.parts, given.work, given.device)
    elif given.step == "train":
        train_model(given.parts, given.work, given.seconds, given.device)
    else:
        find_names(given.work, given.device)
    return 0


if __name__ == "__main__":
    sys.exit(main())
