"""The network: a BERT encoder over words and entities, and its entity head (paper 3.1 and 3.2).

Rows of a window are words W, and for each mention an answer A (its entity, or [MASK]); in the second of the two
attention patterns also a placeholder P (always [MASK]). A row of the table sees the columns marked ×.

    words_see="answers" (the paper)        words_see="placeholders"
        W A                                    W P A
      W × ×   every answer changes every     W × × ·   W and P never depend on an answer:
      A × ×   row: each step is a whole      P × × ·   they are read once a window, and a
              pass                           A × × ×   step computes the few A rows only

With `answer_layers=k` the answers exist in the top k layers only: each starts from its placeholder's state there,
plus the entity's embedding. Decoding and training know two calls, whatever the pattern: `read` makes what does not
depend on the answers, `answer` the state of every answer row. Parameters are named as in Hugging Face's BERT and
LUKE, so that their folders load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from numpy.typing import NDArray
from torch import Tensor, nn

from deixis.errors import ArtefactError
from deixis.network.attention import Packed, Segments
from deixis.network.batching import Batch, behind
from deixis.network.quantisation import quantise_rows, round_rows
from deixis.network.special import MASK

__all__ = ["Config", "EntityTable", "Network", "Static", "WordsSee"]

WordsSee = Literal["answers", "placeholders"]
ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_new": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
}
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
ROWS_AT_ONCE = 512  # on a CPU; one window may have more
KeysValues = tuple[Tensor, Tensor]  # each (heads, rows, hidden / heads)


@dataclass(frozen=True, slots=True)
class Config:
    """The shape of a network; BERT's fields have BERT's names."""

    vocab_size: int
    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    intermediate_size: int
    entities: int  # rows of B
    entity_size: int  # columns of B; projected where it is not hidden_size
    max_position_embeddings: int = 512
    type_vocab_size: int = 2
    hidden_act: str = "gelu"
    layer_norm_eps: float = 1e-12
    dropout: float = 0.1
    words_see: WordsSee = "answers"
    answer_layers: int | None = None  # None: all

    def __post_init__(self) -> None:
        if self.words_see not in get_args(WordsSee):
            raise ArtefactError(f"words_see is {self.words_see!r}; expected one of {', '.join(get_args(WordsSee))}")
        if self.hidden_act not in ACTIVATIONS:
            raise ArtefactError(f"hidden_act is {self.hidden_act!r}; expected one of {', '.join(ACTIVATIONS)}")
        if self.answer_layers is not None:
            if self.words_see == "answers":
                raise ArtefactError('answer_layers goes with words_see="placeholders" only')
            if not 1 <= self.answer_layers <= self.num_hidden_layers:
                raise ArtefactError(f"answer_layers is {self.answer_layers}; expected 1 to {self.num_hidden_layers}")

    @classmethod
    def of_bert(cls, bert: Mapping[str, Any], entities: int, **settings: Any) -> Config:
        """Take the shape from the config.json of a BERT folder."""
        kind = bert.get("model_type", "bert")
        if kind != "bert":
            raise ArtefactError(f"config.json has the model_type {kind!r}; expected a BERT encoder")
        known = {field.name for field in fields(cls)}
        shape = {name: value for name, value in bert.items() if name in known}
        return cls(**{**shape, "entities": entities, "entity_size": shape["hidden_size"], **settings})

    def to_json(self) -> dict[str, Any]:
        """Return the fields as a JSON object."""
        return asdict(self)


class Linear(nn.Linear):
    """A projection in the precision of its rows; the weights stay in fp32."""

    def reset_parameters(self) -> None:
        """Draw nothing: `Network.initialise` does, or a folder has the weights."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.to(x.dtype), None if self.bias is None else self.bias.to(x.dtype))


class Embedding(nn.Embedding):
    """A table of vectors."""

    def reset_parameters(self) -> None:
        """Draw nothing, as `Linear`; torch would load its compiler to draw normal numbers for a folder's network."""


class LayerNorm(nn.LayerNorm):
    """A layer norm in the precision of its rows (its sums are in fp32 all the same)."""

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.dtype), self.bias.to(x.dtype), self.eps)


class Output(nn.Module):
    """A projection back to the residual stream, and its layer norm."""

    def __init__(self, size: int, config: Config) -> None:
        super().__init__()
        self.dense = Linear(size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + residual)
        return out


class SelfAttention(nn.Module):
    """The three projections of attention: query, key and value."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = Linear(size, size)
        self.key = Linear(size, size)
        self.value = Linear(size, size)

    def forward(self, rows: Tensor, first: int = 0, last: int = 3) -> tuple[Tensor, ...]:
        """Return some of the three, `first` to before `last`, each (rows, hidden)."""
        parts = (self.query, self.key, self.value)[first:last]
        if not torch.is_grad_enabled():
            return tuple(part(rows) for part in parts)
        # One wide product is faster than three, and joining the weights costs little beside the rows of training.
        weight = torch.cat([part.weight for part in parts]).to(rows.dtype)
        bias = torch.cat([part.bias for part in parts]).to(rows.dtype)
        return F.linear(rows, weight, bias).chunk(len(parts), -1)


class Attention(nn.Module):
    """Rows that see what they are given keys and values of."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self: nn.Module = SelfAttention(config.hidden_size)  # or the same in other arithmetic
        self.output = Output(config.hidden_size, config)
        self.heads = config.num_attention_heads
        self.dropout = config.dropout

    def _split(self, parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """(rows, hidden) → (heads, rows, hidden / heads)"""
        return tuple(part.view(len(part), self.heads, -1).transpose(0, 1) for part in parts)

    def queries(self, rows: Tensor) -> Tensor:
        """Return what rows look for."""
        return self._split(self.self(rows, 0, 1))[0]

    def keys_values(self, rows: Tensor) -> KeysValues:
        """Return what other rows see of these."""
        keys, values = self._split(self.self(rows, 1, 3))
        return keys, values

    def project(self, rows: Tensor) -> tuple[Tensor, KeysValues]:
        """Return the queries of rows, and what other rows see of them."""
        query, keys, values = self._split(self.self(rows, 0, 3))
        return query, (keys, values)

    def forward(self, query: Tensor, seen: KeysValues, attend: Packed) -> Tensor:
        """Attend from queries to all that `seen` holds: (rows, hidden)."""
        dropout = self.dropout if self.training else 0.0
        return attend(query, *seen, dropout).transpose(0, 1).flatten(1)


class Intermediate(nn.Module):
    """The wide half of the feed-forward block."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.intermediate_size)
        self.activation = ACTIVATIONS[config.hidden_act]()

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.activation(self.dense(x))
        return out


class Layer(nn.Module):
    """One layer of BERT, whose rows may also see rows computed earlier."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.attention = Attention(config)
        self.intermediate = Intermediate(config)
        self.output = Output(config.intermediate_size, config)

    def forward(self, rows: Tensor, query: Tensor, seen: KeysValues, attend: Packed) -> Tensor:
        """Return the next states of rows, given their queries and the keys and values of all they see."""
        return self.finish(self.attention(query, seen, attend), rows)

    def finish(self, attended: Tensor, rows: Tensor) -> Tensor:
        """Do what comes after the attention: nothing here looks from one row to another."""
        rows = self.attention.output(attended, rows)
        out: Tensor = self.output(self.intermediate(rows), rows)
        return out


class Encoder(nn.Module):
    """The stack of layers."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.layer = nn.ModuleList(Layer(config) for _ in range(config.num_hidden_layers))

    @property
    def layers(self) -> list[Layer]:
        return list(self.layer)  # type: ignore[arg-type]  # ModuleList is untyped in its items


class WordEmbeddings(nn.Module):
    """Token, type and position embedding of words (A, C_word, D)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.word_embeddings = Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, pieces: Tensor, places: Tensor) -> Tensor:
        """Embed pieces (pieces,) at their places in their windows."""
        x = self.word_embeddings(pieces) + self.token_type_embeddings.weight[0] + self.position_embeddings(places)
        out: Tensor = self.dropout(self.LayerNorm(x))
        return out


class EntityTable(nn.Module):
    """B: one row an entity, in fp32, fp16, or int8 with a scale a row; rows come out in the scale's precision."""

    def __init__(self, weight: Tensor, scale: Tensor | None = None) -> None:
        super().__init__()
        if weight.dtype == torch.int8 and scale is None:
            raise ArtefactError("an int8 entity table needs one scale a row")
        # Only a table in full precision is trained; the others are read as they lie on disk.
        self.weight = nn.Parameter(weight, requires_grad=weight.dtype == torch.float32)
        self.scale = None if scale is None else nn.Parameter(scale, requires_grad=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows (…) of B as (…, entity_size)."""
        if self.weight.dtype == torch.float32:
            return F.embedding(rows, self.weight)
        x = self.weight[rows].float()
        return x if self.scale is None else x * self.scale[rows].unsqueeze(-1)

    def whole(self) -> Tensor:
        """Return all of B, (entities, entity_size)."""
        return (
            self.weight
            if self.weight.dtype == torch.float32
            else self(torch.arange(len(self.weight), device=self.weight.device))
        )

    def quantised(self, precision: Literal["fp32", "fp16", "int8"], seen: Tensor | None = None) -> EntityTable:
        """Return the table in another precision; int8 is rounded for vectors m_e (seen, entity_size), if given."""
        if precision == "int8" and self.weight.dtype == torch.int8:
            return self  # as it was rounded
        x = self.whole().detach()
        if precision == "fp32":
            return EntityTable(x)
        if precision == "fp16":
            return EntityTable(x.half())
        return EntityTable(*(quantise_rows(x) if seen is None else round_rows(x, seen)))


class EntityEmbeddings(nn.Module):
    """Token, type and position embedding of entities (B, C_entity, E)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.entity_embeddings = EntityTable(torch.empty(config.entities, config.entity_size))
        # [MASK] has a vector of its own, so that fine-tuning can train it while B stays fixed (protocol 12).
        self.mask_embedding = nn.Parameter(torch.empty(config.entity_size))
        self.entity_embedding_dense = (
            Linear(config.entity_size, config.hidden_size, bias=False)
            if config.entity_size != config.hidden_size
            else nn.Identity()
        )
        self.position_embeddings = Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = Embedding(1, config.hidden_size)
        self.LayerNorm = LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def positions(self, batch: Batch) -> Tensor:
        """Average E over the pieces of each mention: (mentions, hidden)."""
        place = torch.arange(batch.longest, device=batch.pieces.device)
        inside = (place >= batch.starts.unsqueeze(-1)) & (place < batch.ends.unsqueeze(-1))
        weight = self.position_embeddings.weight[: len(place)]
        average: Tensor = inside.to(weight.dtype) @ weight
        return average / (batch.ends - batch.starts).unsqueeze(-1)

    def forward(self, entities: Tensor | None, positions: Tensor) -> Tensor:
        """Embed rows of B (mentions,), MASK among them, at averaged positions; None: all are MASK."""
        token: Tensor = self.mask_embedding
        if entities is not None:
            token = torch.where((entities == MASK).unsqueeze(-1), token, self.entity_embeddings(entities))
        x = self.entity_embedding_dense(token) + self.token_type_embeddings.weight[0] + positions
        out: Tensor = self.dropout(self.LayerNorm(x))
        return out


class Transform(nn.Module):
    """m_e = layernorm(gelu(W_f h_e + b_f)) (equation 2)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = Linear(config.hidden_size, config.entity_size)
        self.LayerNorm = LayerNorm(config.entity_size, config.layer_norm_eps)
        self.activation = ACTIVATIONS[config.hidden_act]()

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.activation(self.dense(hidden)))
        return out


class EntityHead(nn.Module):
    """What turns h_e into m_e, and b_o; B is the entity table itself (equation 1)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.transform = Transform(config)
        self.bias = nn.Parameter(torch.empty(config.entities))

    def forward(self, hidden: Tensor) -> Tensor:
        out: Tensor = self.transform(hidden)
        return out


@dataclass(frozen=True, slots=True)
class Static:
    """What of some windows does not depend on their answers, made once by `Network.read`."""

    words: Tensor  # (pieces, hidden): embedded words; empty where the words are in `past`
    start: Tensor | None  # (mentions, hidden): placeholders' states under the first answer layer
    positions: Tensor  # (mentions, hidden): averaged position embeddings
    past: tuple[KeysValues, ...]  # of the static rows, for each answer layer
    attend: Packed  # how answers, behind the words or the static rows, see them and each other
    counts: tuple[Ints, Ints]  # pieces and mentions of each window
    queries: Segments  # of the answers whose last states are wanted
    mentions: Tensor | None = None  # (answers,): which of the batch's mentions have a row; None: all
    wanted: Tensor | None = None  # (wanted,): the answers whose last states are wanted; None: all

    @classmethod
    def of(cls, parts: Sequence[Static], batch: Batch) -> Static:
        """Join what was read of a batch in parts, with room for the answers beside what they see."""
        starts = [part.start for part in parts if part.start is not None]
        layers = zip(*(part.past for part in parts), strict=True)
        past = tuple((batch.answers.roomy(keys), batch.answers.roomy(values)) for keys, values in map(_apart, layers))
        return Static(
            torch.cat([part.words for part in parts]),
            torch.cat(starts) if starts else None,
            torch.cat([part.positions for part in parts]),
            past,
            replace(batch.answers, first=None) if past else batch.together,
            (batch.piece_counts, batch.mention_counts),
            batch.answers.queries,
        )

    def among(self, wanted: Bools) -> Static:
        """Return the part of the windows that have wanted mentions (mentions,); of the last layer, of those alone."""
        pieces, mentions = self.counts
        asked = np.bincount(np.repeat(np.arange(len(mentions)), mentions)[wanted], minlength=len(mentions))
        running = asked > 0  # (windows,)
        inside = np.repeat(running, mentions)  # (mentions,)
        device = self.positions.device
        rows = torch.from_numpy(np.flatnonzero(inside)).to(device, non_blocking=True)
        words, attend = self.words, self.attend
        if self.past:  # a window that does not run has no queries; what was seen of it stays where it is
            queries = Segments.of(np.where(running, mentions, 0)).to(device)
            attend = replace(attend, queries=queries, behind=attend.behind.index_select(0, rows))
        else:
            of_words = torch.from_numpy(np.flatnonzero(np.repeat(running, pieces))).to(device, non_blocking=True)
            words = words.index_select(0, of_words)
            attend = behind(pieces[running], mentions[running]).to(device)
            asked = asked[running]
        return Static(
            words,
            None if self.start is None else self.start.index_select(0, rows),
            self.positions.index_select(0, rows),
            self.past,
            attend,
            self.counts,
            Segments.of(asked).to(device),
            rows,
            torch.from_numpy(np.flatnonzero(wanted[inside])).to(device, non_blocking=True),
        )


def _apart(seen: Sequence[KeysValues]) -> tuple[list[Tensor], list[Tensor]]:
    return [keys for keys, _ in seen], [values for _, values in seen]


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
        self.static_passes = 0  # how often the static side was run through its layers; for tests and benchmarks

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

    def compile_layers(self, compiled: bool, tuned: bool = False) -> None:
        """Compile what each layer does after its attention, where small operations on many rows add up; or undo it."""
        self.compiled = compiled
        for layer in self.encoder.layers:
            layer.__dict__.pop("finish", None)
            if compiled:
                layer.finish = torch.compile(  # type: ignore[method-assign]
                    layer.finish, dynamic=True, mode="max-autotune-no-cudagraphs" if tuned else None
                )

    def words(self, batch: Batch) -> Tensor:
        """Return the last states of the words of windows without mentions: plain BERT."""
        rows: Tensor = self.embeddings(batch.pieces, batch.places).to(self.precision)
        for layer in self.encoder.layers:
            rows = layer(rows, *layer.attention.project(rows), batch.together)
        return rows

    def open(self, batch: Batch) -> Static:
        """Read a batch for many calls of `answer`.

        On a CPU window by window: few rows are as fast as many there, and what they need in between stays in its cache.
        """
        parts = [batch] if batch.pieces.is_cuda else batch.parts(ROWS_AT_ONCE)
        return Static.of([self.read(part) for part in parts], batch)

    def read(self, batch: Batch) -> Static:
        """Compute all that does not depend on the answers."""
        words = self.embeddings(batch.pieces, batch.places).to(self.precision)
        positions = self.entity_embeddings.positions(batch)
        counts = batch.piece_counts, batch.mention_counts
        if self.config.words_see == "answers":
            return Static(words, None, positions, (), batch.together, counts, batch.answers.queries)
        start, past = self._read_with_placeholders(batch, words, positions)
        return Static(words[:0], start, positions, past, batch.answers, counts, batch.answers.queries)

    def _read_with_placeholders(
        self, batch: Batch, words: Tensor, positions: Tensor
    ) -> tuple[Tensor | None, tuple[KeysValues, ...]]:
        self.static_passes += 1
        placeholders = self._entities(None, positions)
        attend = batch.together
        rows = attend.join(words, placeholders)
        layers = self.encoder.layers
        first = len(layers) - (self.config.answer_layers or len(layers))
        start, past = None, []
        for index, layer in enumerate(layers):
            if index == first and first > 0:
                start = attend.second(rows, words)
            if index == len(layers) - 1:  # of the last layer the answers see keys and values only
                past.append(layer.attention.keys_values(rows))
                break
            query, seen = layer.attention.project(rows)
            if index >= first:
                past.append(seen)
            rows = layer(rows, query, seen, attend)
        return start, tuple(past)

    def answer(self, static: Static, entities: Tensor) -> Tensor:
        """Return h_e of the wanted answers (wanted, hidden), given the entity or MASK of every mention (mentions,)."""
        held = entities if static.mentions is None else entities.index_select(0, static.mentions)
        answers = self._entities(held, static.positions)
        if static.start is not None:
            answers = answers + static.start
        attend = static.attend
        rows = attend.join(static.words, answers)
        layers = self.encoder.layers[-(len(static.past) or self.config.num_hidden_layers) :]
        for index, layer in enumerate(layers[:-1]):
            query, seen = layer.attention.project(rows)
            rows = layer(rows, query, self._seen(static, index, seen), attend)
        # In the last layer nobody sees a row any more but through its keys and values.
        last = layers[-1]
        seen = self._seen(static, -1, last.attention.keys_values(rows))
        rows = attend.second(rows, static.words)
        rows = rows if static.wanted is None else rows.index_select(0, static.wanted)
        out: Tensor = last(rows, last.attention.queries(rows), seen, replace(attend, queries=static.queries))
        return out

    def _seen(self, static: Static, index: int, own: KeysValues) -> KeysValues:
        """Return the keys and values of what answers see in a layer: the static rows and each other."""
        if not static.past:
            return own
        keys, values = static.past[index]
        return static.attend.join(keys, own[0]), static.attend.join(values, own[1])

    def _entities(self, entities: Tensor | None, positions: Tensor) -> Tensor:
        embedded: Tensor = self.entity_embeddings(entities, positions)
        return embedded.to(self.precision)

    def candidate_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Gather B* and b*_o of candidates (…): once for all steps."""
        return self.entity_embeddings.entity_embeddings(rows), self.entity_predictions.bias[rows]

    def score(self, hidden: Tensor, candidates: tuple[Tensor, Tensor], mention: Tensor) -> Tensor:
        """Return B*·m_e + b*_o (equation 3) of candidates (candidates,), each of one mention: a row of h_e."""
        weight, bias = candidates
        states = self.entity_predictions(hidden.float()).index_select(0, mention)
        logits: Tensor = torch.linalg.vecdot(weight, states) + bias
        return logits
