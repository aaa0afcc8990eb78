"""The loop: one generator of steps for pretraining and fine-tuning (paper 3.4, appendix A and B)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from deixis.corpus.windows import WindowSet
from deixis.errors import DeixisError
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.training.checkpoints import Saving
from deixis.training.descriptions import DescribedTable
from deixis.training.distributed import Processes
from deixis.training.objectives import AddedLoss, outcome
from deixis.training.optimiser import Optimiser, freeze
from deixis.training.recipe import Recipe
from deixis.training.steps import Plan, StepData, ahead

__all__ = ["Diverged", "HeldOut", "Step", "evaluate", "train"]


class Diverged(DeixisError):  # noqa: N818 - a state of the run
    """The loss is no number any more, or far above where it started."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """How well masked entities of held-out windows are predicted."""

    loss: float  # a target
    accuracy: float
    targets: int


@dataclass(frozen=True, slots=True)
class Step:
    """One update. Loss and accuracy stay on the device until they are asked for: asking waits for the step."""

    step: int  # from 1
    steps: int
    epoch: int  # from 1
    epochs: float
    windows: int
    pieces: int
    targets: int
    sums: Tensor  # (2,): loss, and correctly predicted targets
    norm: Tensor  # (): of the gradient, before clipping
    held_out: HeldOut | None = None  # at the end of an epoch, where held-out data were given

    @property
    def loss(self) -> float:
        """The mean loss of a target."""
        return float(self.sums[0]) / max(1, self.targets)

    @property
    def accuracy(self) -> float:
        """The part of the targets whose entity had the highest score."""
        return float(self.sums[1]) / max(1, self.targets)


def train(
    network: Network,
    tokenizer: Tokenizer,
    data: WindowSet,
    recipe: Recipe,
    *,
    held_out: WindowSet | None = None,
    processes: Processes | None = None,
    saving: Saving | None = None,
    added: AddedLoss | None = None,
    check_every: int = 20,
) -> Iterator[Step]:
    """Train a network in place and yield every step.

    With `saving`, the run continues from the newest checkpoint there, and writes its own. When the generator is
    exhausted the network holds the trained weights, in fp32. What `added` returns is added to the loss of each pass.
    """
    processes = processes or Processes()
    run = _Run(network, Plan.of(data, tokenizer, recipe), processes, added)
    first = 0 if saving is None else run.restore(saving)
    steps = ahead(run.plan.run(first, processes.rank, processes.size), pin=processes.device.type == "cuda")
    watch = _Watch(check_every)
    try:
        for item in steps:
            step = run.step(item)
            at_end = (item.step + 1) % run.plan.steps_per_epoch == 0 or item.step + 1 == run.plan.steps
            saves = saving is not None and (at_end or saving.is_due(item.step + 1))
            watch.look(step, now=saves or at_end)
            if at_end and held_out is not None:
                step = run.with_held_out(step, held_out)
            if saves and saving is not None:
                run.save(saving, item.step + 1)
            yield step
    finally:
        steps.close()  # type: ignore[attr-defined]  # a generator: its thread ends with it
        run.close()


class _Run:
    """A network with all that its training needs."""

    def __init__(self, network: Network, plan: Plan, processes: Processes, added: AddedLoss | None) -> None:
        recipe = plan.recipe
        self.network, self.plan, self.processes, self.recipe, self.added = network, plan, processes, recipe, added
        on_gpu = processes.device.type == "cuda"
        network.to(processes.device).train()
        bf16 = recipe.precision == "bf16" or (recipe.precision == "auto" and on_gpu)
        network.precision = torch.bfloat16 if bf16 else torch.float32
        network.set_dropout(recipe.dropout, recipe.attention_dropout)
        table = network.entity_embeddings.entity_embeddings
        if isinstance(table, DescribedTable):
            table.dropout = recipe.row_dropout
            table.share(network.entity_predictions.bias)
        network.compile_layers(recipe.compile == "on" or (recipe.compile == "auto" and on_gpu))
        if on_gpu:
            torch.set_float32_matmul_precision("high")  # the few products that stay in fp32 use the tensor cores too
        trained = freeze(network, recipe)
        self.optimiser = Optimiser(trained, network.config.num_hidden_layers, plan.steps, recipe)

    def step(self, item: StepData) -> Step:
        """Take one step: as many passes as it needs, then an update."""
        device = self.processes.device
        # Dropout is a function of seed, step and process: a resumed run draws what the killed one would have.
        torch.manual_seed(hash((self.recipe.seed, item.step, self.processes.rank)) % 2**63)
        sums = torch.zeros(2, device=device)
        for one in item.passes:
            result = outcome(self.network, one.to(device), self.recipe.candidate_weight, self.added)
            (result.loss / max(1, item.targets)).backward()  # type: ignore[no-untyped-call]
            sums += torch.stack((result.loss.detach(), result.correct.float()))
        self.processes.sum_gradients(self.optimiser.named.values())
        self.processes.sum(sums)
        norm = self.optimiser.update(item.step)
        told = (item.epoch + 1, self.recipe.epochs, item.windows, item.pieces, item.targets)
        return Step(item.step + 1, self.plan.steps, *told, sums, norm)

    def with_held_out(self, step: Step, data: WindowSet) -> Step:
        """Return the step with what held-out windows say of the network now."""
        return replace(step, held_out=evaluate(self.network, self.plan.tokenizer, data, self.recipe, self.processes))

    def save(self, saving: Saving, step: int) -> None:
        """Write a checkpoint, from one process, while the others wait."""
        if self.processes.leads:
            weights = {f"weight/{name}": parameter.detach() for name, parameter in self.optimiser.named.items()}
            saving.save({**weights, **self.optimiser.state()}, step, self.recipe)
        self.processes.wait()

    @torch.no_grad()
    def restore(self, saving: Saving) -> int:
        """Go on from the newest checkpoint; return the number of steps it had taken."""
        found = saving.newest(self.recipe)
        if found is None:
            return 0
        step, saved = found
        for name, parameter in self.optimiser.named.items():
            parameter.copy_(saved[f"weight/{name}"])
        self.optimiser.restore(saved)
        return step

    def close(self) -> None:
        """Leave the network as inference takes it."""
        self.network.precision = torch.float32
        self.network.compile_layers(False)
        self.network.eval()


class _Watch:
    """Looks at the loss now and then, as looking waits for the device, and stops a run that is lost."""

    def __init__(self, every: int) -> None:
        self.every = every
        self.first: float | None = None

    def look(self, step: Step, now: bool) -> None:
        if self.first is not None and not now and step.step % self.every:
            return
        loss = step.loss
        if not math.isfinite(loss):
            said = f"the loss of step {step.step} is {loss}"
        elif self.first is not None and loss > 3 * self.first + 1:
            said = f"the loss of step {step.step} is {loss:.2f}, far above the {self.first:.2f} it started from"
        else:
            self.first = loss if self.first is None else self.first
            return
        raise Diverged(
            f"{said}; lower learning_rate (or encoder_rate, entity_rate), raise warmup_steps, or set precision=fp32, "
            "then run again: it goes on from the last checkpoint"
        )


@torch.no_grad()
def evaluate(
    network: Network, tokenizer: Tokenizer, data: WindowSet, recipe: Recipe, processes: Processes | None = None
) -> HeldOut:
    """Predict the masked entities of held-out windows; the masks are always the same."""
    processes = processes or Processes()
    plan = Plan.of(data, tokenizer, replace(recipe, word_dropout=0.0, wrong_rate=0.0))
    was = network.training
    network.eval()
    sums = torch.zeros(3, device=processes.device, dtype=torch.float64)
    for item in plan.all(recipe.batch, processes.rank, processes.size):
        for one in item.passes:
            result = outcome(network, one.to(processes.device), recipe.candidate_weight)
            sums += torch.stack((result.loss, result.correct, result.loss.new_tensor(len(one.labels)))).double()
    network.train(was)
    loss, correct, targets = processes.sum(sums).tolist()
    return HeldOut(loss / max(1, targets), correct / max(1, targets), int(targets))
