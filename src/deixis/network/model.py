"""The network: a BERT encoder over words and entities, and its entity head (paper 3.1 and 3.2).

Rows of a window are words W, and for each mention an answer A (its entity, or [MASK]); in two of the three attention
patterns also a placeholder P (always [MASK]). A row of the table sees the columns marked ×.

    words_see="answers" (the paper)    words_see="placeholders"    words_see="words"
        W A                                W P A                       W P A
      W × ×                              W × × ·                     W × · ·
      A × ×                              P × × ·                     P × × ·
                                         A × × ×                     A × × ×
    every answer changes every row:    W and P are read once,      W is plain BERT, read before a mention is
    each step is a whole pass          a step computes A only      known; then P, then A

Answers exist in the top `answer_layers` layers: each starts from its placeholder's state there, plus the entity's
embedding. Placeholders of "words" exist in the top `placeholder_layers`: each starts from the mean state of its
mention's words there, plus the embedding of [MASK].

Decoding and training know two calls, whatever the pattern: `read` computes what does not depend on the answers,
`answer` the state of every answer. Parameters are named as in Hugging Face's BERT and LUKE, so that their folders load.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.network.attention import Packed
from deixis.network.batching import Batch
from deixis.network.config import Config
from deixis.network.embeddings import EntityEmbeddings, WordEmbeddings
from deixis.network.head import EntityHead
from deixis.network.layers import Attention, Encoder, KeysValues
from deixis.network.reading import Reading, Static

__all__ = ["Network"]

ROWS_AT_ONCE = 512  # on a CPU; one window may have more


class Network(nn.Module):
    """The paper's model: `read` windows once, `answer` as often as their entities change, score with the head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embeddings = WordEmbeddings(config)
        self.entity_embeddings = EntityEmbeddings(config)
        self.encoder = Encoder(config)
        self.entity_predictions = EntityHead(config)
        self.precision = torch.float32  # of the rows; training on a GPU takes bf16
        self.compiled = False

    def initialise(self, generator: torch.Generator) -> None:
        """Draw every weight from N(0, 0.02); biases 0, layer norms 1 and 0 (protocol 11)."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                if name.endswith("LayerNorm.weight"):
                    parameter.fill_(1.0)
                elif name.endswith("bias"):
                    parameter.zero_()
                else:
                    parameter.normal_(0.0, 0.02, generator=generator)

    def set_dropout(self, hidden: float, attention: float | None = None) -> None:
        """Set the dropout of training; that of attention is the same unless given."""
        for module in self.modules():
            if isinstance(module, nn.Dropout):
                module.p = hidden
            elif isinstance(module, Attention):
                module.dropout = hidden if attention is None else attention

    def compile_layers(self, compiled: bool) -> None:
        """Compile what each layer does after its attention, where small operations on many rows add up; or undo it."""
        self.compiled = compiled
        for layer in self.encoder.layers:
            layer.compiled = torch.compile(layer.finish, dynamic=True) if compiled else None

    def words(self, batch: Batch) -> Tensor:
        """Return the last states of words that see words only: plain BERT, whatever the pattern."""
        layers = self.config.num_hidden_layers
        last = self._run(self._embed(batch), 0, batch.words, keep=layers, finish=True).last
        assert last is not None, "they were asked for"
        return last

    def read_words(self, batch: Batch, finish: bool = False, states: Collection[int] = ()) -> Reading:
        """Read the words of the pattern "words", for which no mention needs to be known; `finish`: up to the top.

        `states` are the layers, from 1, after which their states are wanted too, for a detector.
        """
        keep = self.config.first_placeholder_layer
        return self._run(self._embed(batch), 0, batch.words, keep=keep, finish=finish, states=states)

    def word_states(self, batch: Batch, layers: Collection[int]) -> tuple[Tensor, ...]:
        """Return the states after some layers, from 1, of words that see words only, whatever the pattern."""
        rows, states = self._embed(batch), []
        for index, layer in enumerate(self.encoder.layers[: max(layers)], 1):
            query, own = layer.attention.project(rows)
            rows = layer(rows, query, own, batch.words)
            if index in layers:
                states.append(rows)
        return tuple(states)

    def open(self, batch: Batch, words: Sequence[Reading] = ()) -> Static:
        """Read a batch for many calls of `answer`; `words` is what was kept of the words of each window, if it was.

        On a CPU window by window: few rows are as fast as many there, and what they need in between stays in its cache.
        """
        parts, kept = [batch] if batch.pieces.is_cuda else batch.parts(ROWS_AT_ONCE), iter(words)
        return Static.of([self.read(part, list(islice(kept, len(part)))) for part in parts], batch)

    def read(self, batch: Batch, words: Sequence[Reading] = ()) -> Static:
        """Compute all that does not depend on the answers; `words` is what was kept of each window, if it was."""
        positions = self.entity_embeddings.positions(batch)
        counts, queries = (batch.piece_counts, batch.mention_counts), batch.answers.queries
        if self.config.words_see == "answers":
            return Static(self._embed(batch), None, positions, (), batch.joint, counts, queries)
        placeholders = self._entities(None, positions)
        first, above = self.config.first_placeholder_layer, self.config.first_answer_layer
        if self.config.words_see == "words":
            attend = batch.placeholders
            read = Reading.joined(words, attend) if words else self.read_words(batch)
            if first > 0:
                spans = batch.span_pieces, batch.span_offsets
                placeholders = placeholders + F.embedding_bag(spans[0], read.under, spans[1], mode="mean")
            attend = replace(attend, first_at=None) if words else attend
            reading = self._run(placeholders, first, attend, keep=above, before=read.past)
            start = reading.under
        else:
            embedded = self._embed(batch)
            rows = batch.joint.append(embedded, placeholders)
            reading = self._run(rows, first, batch.joint, keep=above)
            start = batch.joint.appended(reading.under, embedded)
        none = placeholders[:0]
        return Static(none, start if above > 0 else None, positions, reading.past, batch.answers, counts, queries)

    def answer(self, static: Static, entities: Tensor) -> Tensor:
        """Return h_e of the wanted answers (wanted, hidden), given the entity or MASK of every mention (mentions,)."""
        held = entities if static.mentions is None else entities.index_select(0, static.mentions)
        answers = self._entities(held, static.positions)
        if static.start is not None:
            answers = answers + static.start
        attend, last = static.attend, self.encoder.layers[-1]
        rows, first = attend.append(static.words, answers), self.config.first_answer_layer
        top = self.config.num_hidden_layers - 1
        # Of the last layer only the wanted answers are needed, and of all others what these see.
        reading = self._run(rows, first, attend, keep=top, before=static.past)
        rows = attend.appended(reading.under, static.words)
        rows = rows if static.wanted is None else rows.index_select(0, static.wanted)
        seen, queries = reading.past[0], last.attention.queries(rows)
        out: Tensor = last(rows, queries, seen, replace(attend, queries=static.queries))
        return out

    def _run(
        self,
        rows: Tensor,
        first: int,
        attend: Packed,
        *,
        keep: int,
        before: tuple[KeysValues, ...] = (),
        finish: bool = False,
        states: Collection[int] = (),
    ) -> Reading:
        """Take rows through the layers from `first` on, and keep what was under layer `keep` and seen from there.

        `before` are, layer by layer, the keys and values of earlier rows that these see too. The last layer computes
        keys and values only, unless its states are wanted.
        """
        layers, under, past, wanted = self.encoder.layers, rows, [], []
        for index, layer in enumerate(layers[first:], first):
            goes_on = finish or index < len(layers) - 1
            if index == keep:
                under = rows
            query, own = layer.attention.project(rows) if goes_on else (None, layer.attention.keys_values(rows))
            seen = own
            if before:
                keys, values = before[index - first]
                seen = attend.append(keys, own[0]), attend.append(values, own[1])
            if index >= keep:
                past.append(seen)
            if query is not None:
                rows = layer(rows, query, seen, attend)
            if index + 1 in states:
                wanted.append(rows)
        return Reading(under, tuple(past), rows if finish else None, tuple(wanted))

    def _embed(self, batch: Batch) -> Tensor:
        embedded: Tensor = self.embeddings(batch.pieces, batch.places)
        return embedded.to(self.precision)

    def _entities(self, entities: Tensor | None, positions: Tensor) -> Tensor:
        embedded: Tensor = self.entity_embeddings(entities, positions)
        return embedded.to(self.precision)

    def candidate_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Gather B* and b*_o of candidates (…): once for all steps."""
        return self.entity_embeddings.entity_embeddings(rows), self.entity_predictions.bias[rows].float()

    def score(self, hidden: Tensor, candidates: tuple[Tensor, Tensor], mention: Tensor) -> Tensor:
        """Return B*·m_e + b*_o (equation 3) of candidates (candidates,), each of one mention: a row of h_e."""
        weight, bias = candidates
        states = self.entity_predictions(hidden.float()).index_select(0, mention)
        logits: Tensor = torch.linalg.vecdot(weight, states) + bias
        return logits
