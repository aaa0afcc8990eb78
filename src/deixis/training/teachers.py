"""Teachers: models whose scores over the candidates of a mention another model learns. Not in the paper.

Two models that were trained apart are wrong about different names, and together less often than either. One that has
learnt what both say of many texts, linked or not, answers nearly as they do together. Of words in lower case the
teachers' scores can be mixed with log p(e|m): what "security" means is told by how it is used, more than by the topic.

Other people's candidate lists hold more than ours: entities of the same topic that nobody calls by that name. So the
teachers are also asked about rivals, the entities that the pupil itself finds likeliest.

Links are right, and what inference decides is not always. So the pupil answers each pass a second time, with the
surest of its own answers shown as entities, as confidence order will show them, and is taught what is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor

from deixis.documents import LEAST_PRIOR
from deixis.errors import InputError
from deixis.folder.model_folder import ModelFolder
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import Batch
from deixis.network.model import Network
from deixis.network.reading import Static
from deixis.network.special import MASK, PAD, SPECIAL, UNK
from deixis.training.objectives import Outcome, labelled_loss, read_targets, score_rows
from deixis.training.recipe import Recipe
from deixis.training.steps import Pass

__all__ = ["Lesson", "Teachers", "find_rivals", "lesson_loss", "show_decisions", "taught"]

NEVER = -1e4  # the score of what is no candidate; not infinite, as its difference from itself would be no number
AT_ONCE = 1024  # targets whose scores over the whole vocabulary are in memory: 0.5 GB with 115,000 entities


@dataclass(frozen=True, slots=True)
class Lesson:
    """What teachers say of the targets of a pass."""

    rows: Tensor  # (targets, n) entities they were asked about
    known: Tensor  # (targets, n) bool: that there are, and that all teachers know
    scores: Tensor  # (targets, n) fp32


@dataclass(frozen=True, slots=True, eq=False)
class Teachers:
    """Networks, the part of each in the mean of their scores, and their rows of the pupil's entities."""

    networks: tuple[Network, ...]
    weights: tuple[float, ...]
    rows: tuple[Tensor, ...]  # (entities,) of the pupil; UNK where a teacher does not know one

    @classmethod
    def of(cls, models: Sequence[tuple[ModelFolder, float]], pupil: ModelFolder) -> Teachers:
        """Take model folders with their weights, which add up to 1; they read pieces as the pupil does."""
        total = sum(weight for _, weight in models)
        if abs(total - 1) > 1e-6:
            raise InputError(f"the weights of the teachers add up to {total:g}; expected 1")
        for model, _ in models:
            if _pieces(model) != _pieces(pupil):
                raise InputError("a teacher has another tokenizer than the model it teaches; train both from one BERT")
        return cls(
            tuple(model.network.eval() for model, _ in models),
            tuple(weight for _, weight in models),
            tuple(_rows(model.vocabulary, pupil.vocabulary) for model, _ in models),
        )

    def to(self, device: torch.device, precision: torch.dtype) -> Teachers:
        """Return the teachers on a device, reading in a precision."""
        for network in self.networks:
            network.to(device)
            network.precision = precision
        return Teachers(self.networks, self.weights, tuple(rows.to(device) for rows in self.rows))

    @torch.no_grad()
    def read(self, batch: Batch) -> tuple[Static, ...]:
        """Read a batch, for as many lessons as are wanted."""
        return tuple(network.read(batch) for network in self.networks)

    @torch.no_grad()
    def teach(self, read: Sequence[Static], data: Pass, asked: Tensor, favours: Tensor) -> Lesson:
        """Return what the teachers say of entities (targets, n), PAD for none; they are shown what the pupil is."""
        known, scores = asked != PAD, favours
        for network, static, weight, rows in zip(self.networks, read, self.weights, self.rows, strict=True):
            states = read_targets(network, replace(data, entities=rows[data.entities]), static)
            theirs = rows[asked]
            scores = scores + weight * score_rows(network, states, theirs)
            known = known & (theirs != UNK)
        return Lesson(asked, known, scores)


def taught(network: Network, data: Pass, recipe: Recipe, teachers: Teachers) -> Outcome:
    """Predict the targets of a pass: those with a label as ever, and all of them as the teachers do.

    What is counted as correct is what the teachers say too: nothing else is known where nothing is labelled.
    """
    static, read = network.read(data.batch), teachers.read(data.batch)
    states = read_targets(network, data, static)
    result = _learn(network, states, data, recipe, teachers, read)
    if recipe.decided == 0:
        return result
    shown = show_decisions(network, states, data, recipe.decided)
    again = _learn(network, read_targets(network, shown, static), shown, recipe, teachers, read)
    return Outcome(result.loss + again.loss, result.correct)


def _learn(
    network: Network, states: Tensor, data: Pass, recipe: Recipe, teachers: Teachers, read: Sequence[Static]
) -> Outcome:
    """Compare the states of the targets with their labels and with what the teachers say, who have read the batch."""
    assert data.candidates is not None and data.labelled is not None
    labels, candidates = (x.index_select(0, data.labelled) for x in (data.labels, data.candidates))
    picked = states.index_select(0, data.labelled)
    told = labelled_loss(network, picked, labels, candidates, recipe.candidate_weight)
    rivals = find_rivals(network, states, data.candidates, recipe.rivals)
    asked = torch.cat((data.candidates, rivals), -1)
    lesson = teachers.teach(read, data, asked, _favours(data, rivals, recipe))
    result = lesson_loss(network, states, lesson, recipe.temperature)
    return Outcome((1 - recipe.teacher_weight) * told.loss + recipe.teacher_weight * result.loss, result.correct)


@torch.no_grad()
def show_decisions(network: Network, states: Tensor, data: Pass, most: float) -> Pass:
    """Return a pass whose surest targets are what the model takes them for, and no targets any more.

    How many is drawn for each window, up to the part `most` of them: inference meets every part.
    """
    assert data.candidates is not None
    exists = data.candidates != PAD
    logits = score_rows(network, states, data.candidates).masked_fill(~exists, float("-inf"))
    chance, choice = torch.softmax(logits, -1).nan_to_num(0.0).max(-1)
    can = exists.any(-1) & (data.entities[data.targets] == MASK)
    counts = torch.from_numpy(data.batch.mention_counts).to(states.device, non_blocking=True)
    window = torch.repeat_interleave(counts, output_size=len(data.entities))[data.targets]  # rising, as targets are
    order = torch.argsort(window + 0.4 * (1 - chance.double()) + 0.4 * ~can)  # by window, the surest first
    targets = torch.bincount(window, minlength=len(counts))
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order), device=order.device) - (targets.cumsum(0) - targets)[window]
    wanted = (torch.rand(len(counts), device=states.device) * most * targets).floor()
    decided = can & (place < wanted[window])
    entities = data.entities.clone()
    answers = data.candidates.gather(-1, choice.unsqueeze(-1)).squeeze(-1)
    entities[data.targets[decided]] = answers[decided]
    left = ~decided
    return replace(
        data,
        entities=entities,
        targets=data.targets[left],
        labels=data.labels[left],
        candidates=data.candidates[left],
        labelled=None if data.labelled is None else (data.labels[left] != MASK).nonzero().squeeze(1),
        favours=None if data.favours is None else data.favours[left],
    )


def lesson_loss(network: Network, states: Tensor, lesson: Lesson, temperature: float) -> Outcome:
    """Sum the divergence of the model's probabilities from the teachers' at a temperature.

    Times its square, so that the gradients of a warmer comparison are as large as those of a cold one.
    """
    mine, theirs = (
        F.log_softmax((scores / temperature).masked_fill(~lesson.known, NEVER), -1)
        for scores in (score_rows(network, states, lesson.rows), lesson.scores)
    )
    loss = temperature**2 * (theirs.exp() * (theirs - mine)).sum()
    return Outcome(loss, (mine.argmax(-1) == theirs.argmax(-1)).sum())


@torch.no_grad()
def find_rivals(network: Network, states: Tensor, candidates: Tensor, number: int) -> Tensor:
    """Return the likeliest entities of the whole vocabulary that are no candidates, (targets, number), PAD for one."""
    if number == 0:
        return candidates[:, :0]
    table, bias = network.entity_embeddings.entity_embeddings.whole(), network.entity_predictions.bias
    table = table.to(network.precision)
    found = []
    for first in range(0, len(states), AT_ONCE):
        logits = (states[first : first + AT_ONCE].to(network.precision) @ table.t()).float() + bias
        logits[:, : len(SPECIAL)] = float("-inf")
        found.append(logits.topk(min(number, logits.shape[1]), sorted=False).indices)
    rivals = torch.cat(found)
    listed = (rivals.unsqueeze(-1) == candidates.unsqueeze(-2)).any(-1)
    return rivals.masked_fill(listed, PAD)


def _favours(data: Pass, rivals: Tensor, recipe: Recipe) -> Tensor:
    """Return what is added to the teachers' scores of candidates and rivals: a rival has the least of priors."""
    assert data.candidates is not None
    if data.favours is None:
        return torch.zeros((len(rivals), data.candidates.shape[1] + rivals.shape[1]), device=rivals.device)
    is_word = (data.favours < 0).any(-1, keepdim=True)  # of names the priors are flat
    least = is_word * (recipe.word_prior * math.log(LEAST_PRIOR))
    return torch.cat((data.favours, least.expand(rivals.shape)), -1)


def _pieces(model: ModelFolder) -> list[str]:
    return model.tokenizer.tokens(range(len(model.tokenizer)))


def _rows(teacher: Vocabulary, pupil: Vocabulary) -> Tensor:
    """Return the teacher's row of each of the pupil's; special rows are the same."""
    found = (teacher.row(title) for title in pupil.entities)
    return torch.tensor([*range(len(SPECIAL)), *(UNK if row is None else row for row in found)])
