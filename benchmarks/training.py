"""Speed and memory of training, against a plain loop over transformers' LUKE modules with padded batches.

    python benchmarks/training.py small OUT     # 12×384 encoder, 300,000 entities: both patterns, compiled or not
    python benchmarks/training.py base OUT      # BERT-base shape
    python benchmarks/training.py large OUT     # BERT-large shape, the paper's batch of 2,048 windows
    python benchmarks/training.py check OUT     # the fast path gives the losses and gradients of the exact one
    python benchmarks/training.py small OUT --tiny      # seconds on a CPU: shows that it runs, measures nothing

Data are random windows of 450 to 510 pieces and about 25 links, the same for all. Loops take turns, several rounds of
some steps each; the table gives the median round. The matrix peak is a product of two 8192×8192 matrices in bf16, and
the fraction counts the operations of the model (forward, and twice that backward), not recomputed ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import models
from torch import nn

from deixis.corpus.windows import WindowSet
from deixis.network.config import Config, WordsSee
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.training import Processes, Recipe, train
from deixis.training.objectives import outcome
from deixis.training.steps import Pass, Plan

Compile = Literal["on", "off"]
NAMES = {"on": ", compiled", "off": ""}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # the windows are random numbers: no others are asked for
TOKENIZER = Tokenizer(RawTokenizer(models.WordPiece({piece: 99 + row for row, piece in enumerate(PIECES)})))
MENTION_WIDTH = 30  # pieces of a mention that LUKE's position ids have room for
EXCHANGE = 300e9  # bytes/s at which several cards are assumed to sum gradients


@dataclass(frozen=True)
class Part:
    """The shape of a network, and how much of it is run at once."""

    layers: int
    hidden: int
    heads: int
    entities: int
    batch: int = 256  # windows a step
    pieces_at_once: int = 131_072
    luke_windows: int = 64  # windows of a padded batch
    steps: int = 12  # a round
    rounds: int = 3
    windows: int = 4096

    def config(self, words_see: WordsSee) -> Config:
        return Config(
            vocab_size=30522,
            hidden_size=self.hidden,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.hidden,
            entities=self.entities,
            entity_size=self.hidden,
            words_see=words_see,
        )


PARTS = {
    "small": Part(12, 384, 12, 300_000),
    "base": Part(12, 768, 12, 300_000, pieces_at_once=98_304, steps=8),
    "large": Part(24, 1024, 16, 128_040, batch=2048, pieces_at_once=65_536, luke_windows=32, steps=1, windows=8192),
}
TINY = Part(2, 32, 4, 500, batch=4, pieces_at_once=1500, luke_windows=2, steps=1, rounds=2, windows=64)


@dataclass
class Loop:
    """A loop that is being measured."""

    name: str
    steps: Iterator[tuple[int, float]]  # pieces and operations of a step that has begun
    memory: int = 0  # bytes at the highest, those of other loops not counted
    rounds: list[tuple[float, float]] = field(default_factory=list)  # pieces/s, operations/s

    def run(self, steps: int) -> None:
        wait()
        begun = time.perf_counter()
        done = [next(self.steps) for _ in range(steps)]
        wait()
        seconds = time.perf_counter() - begun
        self.rounds.append((sum(pieces for pieces, _ in done) / seconds, sum(work for _, work in done) / seconds))


def device() -> torch.device:
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def make_data(part: Part) -> WindowSet:
    """Return random windows of 450 to 510 pieces with about 25 links of one to four pieces."""
    dice = np.random.default_rng(0)
    lengths = dice.integers(450, 511, part.windows)
    counts = np.clip(dice.poisson(25, part.windows), 1, 128)
    mentions = int(counts.sum())
    starts = dice.integers(0, 440, mentions)
    return WindowSet(
        dice.integers(1000, 30000, lengths.sum()).astype(np.uint16),
        np.concatenate(([0], np.cumsum(lengths))),
        np.concatenate(([0], np.cumsum(counts))),
        np.stack((starts, starts + dice.integers(1, 5, mentions)), 1).astype(np.uint16),
        dice.integers(3, part.entities, mentions).astype(np.int32),
    )


def operations(part: Part, words_see: WordsSee, pieces: int, windows: int, mentions: int, targets: int) -> float:
    """Count multiplications and additions of forward and backward: three times those of forward."""
    static, answers = (pieces, mentions) if words_see == "answers" else (pieces + mentions, mentions)
    rows = static + answers
    length, most = static / windows, answers / windows
    linear = 2 * rows * 12 * part.hidden**2 * part.layers
    if words_see == "answers":
        seen = rows * (length + most)
    else:
        seen = static * length + answers * (length + most)
    attention = 4 * seen * part.hidden * part.layers
    head = 2 * targets * part.hidden * (part.entities + part.hidden)
    return 3.0 * (linear + attention + head)


def ours(part: Part, data: WindowSet, words_see: WordsSee, how: Compile) -> Iterator[tuple[int, float]]:
    """Train with deixis."""
    network = Network(part.config(words_see))
    network.initialise(torch.Generator().manual_seed(0))
    recipe = Recipe(batch=part.batch, pieces_at_once=part.pieces_at_once, epochs=1000)
    recipe = replace(recipe, compile=how, attention_dropout=0.0)
    mentions = len(data.rows) / len(data)
    for step in train(network, TOKENIZER, data, recipe, processes=Processes(device=device()), check_every=10_000):
        work = operations(part, words_see, step.pieces, step.windows, round(mentions * step.windows), step.targets)
        yield step.pieces, work


class Luke(nn.Module):
    """transformers' LUKE and its entity head, as the paper's authors would put them together today."""

    def __init__(self, part: Part) -> None:
        super().__init__()
        from transformers import LukeConfig, LukeModel
        from transformers.models.luke.modeling_luke import EntityPredictionHead

        config = LukeConfig(
            vocab_size=30522,
            hidden_size=part.hidden,
            num_hidden_layers=part.layers,
            num_attention_heads=part.heads,
            intermediate_size=4 * part.hidden,
            entity_vocab_size=part.entities,
            entity_emb_size=part.hidden,
            max_position_embeddings=514,
            type_vocab_size=2,
            use_entity_aware_attention=False,
            pad_token_id=0,
            attention_probs_dropout_prob=0.0,  # as in ours
        )
        self.luke: Any = LukeModel(config, add_pooling_layer=False)
        self.head: Any = EntityPredictionHead(config)
        self.head.decoder.weight = self.luke.entity_embeddings.entity_embeddings.weight

    def forward(self, inputs: dict[str, torch.Tensor], masked: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        states = self.luke(**inputs).entity_last_hidden_state
        return nn.functional.cross_entropy(self.head(states[masked]).float(), labels)


def luke_inputs(made: Pass) -> tuple[dict[str, torch.Tensor], torch.Tensor, torch.Tensor]:
    """Pad the windows of a pass as LUKE takes them."""
    batch, where = made.batch, device()
    static = batch.joint.queries.offsets.diff().tolist()
    counts = batch.answers.queries.offsets.diff().tolist()
    pieces = list(torch.split(batch.pieces, [a - b for a, b in zip(static, counts, strict=True)]))
    place = torch.arange(MENTION_WIDTH)
    spans = torch.where(
        place < (batch.ends - batch.starts).unsqueeze(-1), batch.starts.unsqueeze(-1) + place, -1
    )  # (mentions, 30)
    masked = torch.zeros(len(batch.starts), dtype=torch.bool)
    masked[made.targets] = True
    inputs = {
        "input_ids": nn.utils.rnn.pad_sequence(pieces, batch_first=True),
        "attention_mask": nn.utils.rnn.pad_sequence([torch.ones_like(x) for x in pieces], batch_first=True),
        "position_ids": torch.arange(max(map(len, pieces))).expand(len(pieces), -1),
        "entity_ids": nn.utils.rnn.pad_sequence(list(torch.split(made.entities, counts)), batch_first=True),
        "entity_attention_mask": nn.utils.rnn.pad_sequence(
            [torch.ones(n, dtype=torch.long) for n in counts], batch_first=True
        ),
        "entity_position_ids": nn.utils.rnn.pad_sequence(
            list(torch.split(spans, counts)), batch_first=True, padding_value=-1
        ),
    }
    at = nn.utils.rnn.pad_sequence(list(torch.split(masked, counts)), batch_first=True)
    return {name: x.to(where) for name, x in inputs.items()}, at.to(where), made.labels.to(where)


def luke(part: Part, data: WindowSet) -> Iterator[tuple[int, float]]:
    """Train with transformers' modules: padded batches, autocast, fused AdamW, softmax at the masked entities only."""
    where = device()
    model = Luke(part).to(where).train()
    adam = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=where.type == "cuda")
    recipe = Recipe(batch=part.luke_windows, pieces_at_once=1 << 40, epochs=1000)
    passes = max(1, part.batch // part.luke_windows)
    pieces, work, number = 0, 0.0, 0
    for step in Plan.of(data, TOKENIZER, recipe).run():
        (made,) = step.passes
        with torch.autocast(where.type, torch.bfloat16):
            loss = model(*luke_inputs(made))
        (loss / passes).backward()
        pieces, number = pieces + step.pieces, number + 1
        work += operations(part, "answers", step.pieces, step.windows, len(made.entities), step.targets)
        if number % passes == 0:
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            adam.zero_grad(set_to_none=True)
            yield pieces, work
            pieces, work = 0, 0.0


def peak() -> float:
    """Measure operations a second of a large product in bf16."""
    size = 8192 if torch.cuda.is_available() else 512
    a, b = (torch.randn(size, size, device=device(), dtype=torch.bfloat16) for _ in range(2))
    for _ in range(3):
        a @ b
    wait()
    begun = time.perf_counter()
    for _ in range(10):
        a @ b
    wait()
    return 10 * 2 * size**3 / (time.perf_counter() - begun)


def measure(part: Part, loops: dict[str, Iterator[tuple[int, float]]]) -> list[Loop]:
    """Warm every loop up, alone, then let them take turns."""
    running = []
    for name, steps in loops.items():
        held = torch.cuda.memory_allocated() if torch.cuda.is_available() else 0
        if torch.cuda.is_available():
            torch.cuda.reset_peak_memory_stats()
        loop = Loop(name, steps)
        begun = time.perf_counter()
        try:
            for _ in range(1 if part.batch > 1000 else 3):
                next(loop.steps)
            wait()
        except torch.cuda.OutOfMemoryError:
            print(f"{name}: does not fit", flush=True)
            continue
        loop.memory = (torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0) - held
        running.append(loop)
        print(f"{name}: first steps took {time.perf_counter() - begun:.1f} s", flush=True)
    for _ in range(part.rounds):
        for loop in running:
            loop.run(part.steps)
            print(f"{loop.name}: {loop.rounds[-1][0]:,.0f} pieces/s", flush=True)
    return running


def report(name: str, part: Part, loops: list[Loop], highest: float, out: Path) -> None:
    """Print the table and write it as JSON."""
    rows: list[dict[str, Any]] = []
    for loop in loops:
        pieces = statistics.median(rate for rate, _ in loop.rounds)
        work = statistics.median(rate for _, rate in loop.rounds)
        rows.append({"loop": loop.name, "pieces_per_s": pieces, "of_peak": work / highest, "bytes": loop.memory})
    print(f"\n{name}: matrix peak {highest / 1e12:.0f} Tflop/s")
    print(f"{'loop':34}{'pieces/s':>12}{'of peak':>9}{'GiB':>7}")
    for row in rows:
        print(f"{row['loop']:34}{row['pieces_per_s']:>12,.0f}{row['of_peak']:>9.1%}{row['bytes'] / 2**30:>7.1f}")
    result: dict[str, Any] = {
        "part": name,
        "shape": vars(part),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "torch": torch.__version__,
        "peak": highest,
        "loops": rows,
    }
    if name == "large" and rows:
        result["days"] = days(part, rows[0]["pieces_per_s"])
    out.mkdir(parents=True, exist_ok=True)
    (out / f"training-{name}.json").write_text(json.dumps(result, indent=1) + "\n")


def days(part: Part, pieces_per_s: float) -> dict[str, float]:
    """Extrapolate to the paper's recipe: seven epochs of ten million windows (of 482 pieces here)."""
    steps = 7 * 10e6 / 2048
    alone = 2048 * 482 / pieces_per_s
    parameters = 12 * part.layers * part.hidden**2 + (part.entities + 31_000) * part.hidden
    exchange = 2 * 4 * parameters / EXCHANGE
    result = {"1": steps * alone / 86400, "8": steps * (alone / 8 + exchange) / 86400}
    print(f"a step of 2,048 windows takes {alone:.2f} s; the paper's recipe {result['1']:.1f} days on one card,")
    print(f"{result['8']:.2f} on eight (gradients summed at an assumed {EXCHANGE / 1e9:.0f} GB/s, not overlapped)")
    return result


def check(part: Part, out: Path) -> None:
    """Compare the fast path (bf16, packed attention, compiled) with fp32, window by window: loss and gradients."""
    part = replace(part, windows=8, entities=5000)
    data = make_data(part)
    made = next(Plan.of(data, TOKENIZER, Recipe(batch=8)).run()).passes[0].to(device())
    rows = []
    for words_see in get_args(WordsSee):
        network = Network(part.config(words_see))
        network.initialise(torch.Generator().manual_seed(0))
        with torch.no_grad():  # larger weights than drawn, so that rows differ and attention matters
            for parameter in network.encoder.parameters():
                parameter.mul_(2.0)
        network.to(device()).eval()
        results: list[tuple[float, list[torch.Tensor]]] = []
        for precision, compiled in ((torch.float32, False), (torch.bfloat16, False), (torch.bfloat16, True)):
            network.precision = precision
            network.compile_layers(compiled and torch.cuda.is_available())
            network.zero_grad()
            loss = outcome(network, made, 0.0).loss / len(made.labels)
            loss.backward()  # type: ignore[no-untyped-call]
            gradients = [x.grad.flatten().double() for x in network.encoder.parameters() if x.grad is not None]
            results.append((float(loss.detach()), gradients))
        for name, (loss_, gradient) in zip(("fp32", "bf16", "bf16, compiled"), results, strict=True):
            pairs = zip(results[0][1], gradient, strict=True)
            cosines = [float(nn.functional.cosine_similarity(a, b, dim=0)) for a, b in pairs if float(a.norm()) > 1e-4]
            row = {"median": statistics.median(cosines), "lowest": min(cosines)}
            rows.append({"pattern": words_see, "way": name, "loss": loss_, **row})
            print(
                f"{words_see:14}{name:16}loss {loss_:.5f}   cosine with fp32's gradient, a tensor of the encoder:", row
            )
    out.mkdir(parents=True, exist_ok=True)
    (out / "training-check.json").write_text(json.dumps(rows, indent=1) + "\n")


def profile(steps: Iterator[tuple[int, float]], out: Path) -> None:
    """Write which kernels take the time of three steps."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    for _ in range(4):
        next(steps)
    with profiler(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as watched:
        for _ in range(3):
            next(steps)
        wait()
    out.mkdir(parents=True, exist_ok=True)
    table = watched.key_averages().table(sort_by="self_cuda_time_total", row_limit=40, max_name_column_width=90)
    (out / "training-profile.txt").write_text(table)
    print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=[*PARTS, "check"])
    parser.add_argument("out", type=Path, help="folder for the JSON")
    parser.add_argument("--tiny", action="store_true", help="a tiny shape, to see that it runs")
    parser.add_argument("--profile", choices=["answers", "placeholders"], help="show the kernels of one loop instead")
    parser.add_argument("--no-compile", action="store_true", help="leave the compiled loops out")
    parser.add_argument("--only", help="measure loops whose name contains this")
    parser.add_argument("--pieces-at-once", type=int)
    given = parser.parse_args()
    part = TINY if given.tiny else PARTS.get(given.part, PARTS["small"])
    if given.pieces_at_once:
        part = replace(part, pieces_at_once=given.pieces_at_once)
    if given.part == "check":
        check(part, given.out)
        return
    torch.set_float32_matmul_precision("high")
    data = make_data(part)
    if given.profile:
        profile(ours(part, data, given.profile, "off" if given.no_compile else "on"), given.out)
        return
    highest = peak()
    patterns: tuple[WordsSee, ...] = ("answers", "placeholders")
    ways: list[Compile] = [] if given.no_compile else ["on"]
    if given.part != "large":
        ways.append("off")
    loops = {
        f"deixis {words_see}{NAMES[how]}": ours(part, data, words_see, how)
        for how in ways
        for words_see in patterns
        if given.part != "large" or words_see == "answers"
    }
    if given.part != "large":
        loops["transformers' LUKE, padded"] = luke(part, data)
    if given.only:
        loops = {name: steps for name, steps in loops.items() if given.only in name}
    report(given.part, part, measure(part, loops), highest, given.out)


if __name__ == "__main__":
    main()
