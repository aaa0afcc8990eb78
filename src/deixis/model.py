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

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from typing import Any, Literal, get_args

import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from torch import Tensor, nn

from deixis.batching import Batch
from deixis.errors import ArtefactError
from deixis.vocabulary import MASK

__all__ = ["Config", "EntityTable", "Network", "Static", "WordsSee"]

WordsSee = Literal["answers", "placeholders"]
ACTIVATIONS: Mapping[str, Callable[[], nn.Module]] = {
    "gelu": nn.GELU,
    "gelu_new": partial(nn.GELU, approximate="tanh"),
    "relu": nn.ReLU,
}
KeysValues = tuple[Tensor, Tensor]  # each (windows, heads, rows, hidden / heads)


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


class Output(nn.Module):
    """A projection back to the residual stream, and its layer norm."""

    def __init__(self, size: int, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        out: Tensor = self.LayerNorm(self.dropout(self.dense(x)) + residual)
        return out


class SelfAttention(nn.Module):
    """The three projections of attention."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)


class Attention(nn.Module):
    """Rows that see themselves, and cached rows where given."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.self = SelfAttention(config.hidden_size)
        self.output = Output(config.hidden_size, config)
        self.heads = config.num_attention_heads
        self.dropout = config.dropout

    def split(self, x: Tensor) -> Tensor:
        """(windows, rows, hidden) → (windows, heads, rows, hidden / heads)"""
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def keys_values(self, rows: Tensor) -> KeysValues:
        """Return what other rows see of these."""
        return self.split(self.self.key(rows)), self.split(self.self.value(rows))

    def forward(self, rows: Tensor, seen: KeysValues, mask: Tensor | None) -> Tensor:
        """Attend from rows (windows, rows, hidden) to all that `seen` holds."""
        dropout = self.dropout if self.training else 0.0
        query = self.split(self.self.query(rows))
        attended = F.scaled_dot_product_attention(query, *seen, attn_mask=mask, dropout_p=dropout)
        out: Tensor = self.output(attended.transpose(1, 2).flatten(2), rows)
        return out


class Intermediate(nn.Module):
    """The wide half of the feed-forward block."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.intermediate_size)
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

    def forward(self, rows: Tensor, seen: KeysValues, mask: Tensor | None) -> Tensor:
        rows = self.attention(rows, seen, mask)
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
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, pieces: Tensor) -> Tensor:
        positions = self.position_embeddings.weight[: pieces.shape[1]]
        x = self.word_embeddings(pieces) + self.token_type_embeddings.weight[0] + positions
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

    def quantised(self, precision: Literal["fp32", "fp16", "int8"]) -> EntityTable:
        """Return the table in another precision."""
        x = self(torch.arange(len(self.weight), device=self.weight.device)).detach()
        if precision == "fp32":
            return EntityTable(x)
        if precision == "fp16":
            return EntityTable(x.half())
        scale = x.abs().amax(-1).clamp_min(1e-12) / 127
        return EntityTable((x / scale.unsqueeze(-1)).round().to(torch.int8), scale)


class EntityEmbeddings(nn.Module):
    """Token, type and position embedding of entities (B, C_entity, E)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.entity_embeddings = EntityTable(torch.empty(config.entities, config.entity_size))
        # [MASK] has a vector of its own, so that fine-tuning can train it while B stays fixed (protocol 12).
        self.mask_embedding = nn.Parameter(torch.empty(config.entity_size))
        self.entity_embedding_dense = (
            nn.Linear(config.entity_size, config.hidden_size, bias=False)
            if config.entity_size != config.hidden_size
            else nn.Identity()
        )
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size)
        self.token_type_embeddings = nn.Embedding(1, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.dropout)

    def positions(self, batch: Batch) -> Tensor:
        """Average E over the pieces of each mention: (windows, mentions, hidden)."""
        place = torch.arange(batch.pieces.shape[1], device=batch.pieces.device)
        inside = (place >= batch.starts.unsqueeze(-1)) & (place < batch.ends.unsqueeze(-1))
        weight = self.position_embeddings.weight[: len(place)]
        average: Tensor = inside.to(weight.dtype) @ weight
        return average / (batch.ends - batch.starts).unsqueeze(-1)

    def forward(self, entities: Tensor, positions: Tensor) -> Tensor:
        """Embed rows of B (windows, mentions), MASK among them, at averaged positions."""
        token = torch.where((entities == MASK).unsqueeze(-1), self.mask_embedding, self.entity_embeddings(entities))
        x = self.entity_embedding_dense(token) + self.token_type_embeddings.weight[0] + positions
        out: Tensor = self.dropout(self.LayerNorm(x))
        return out


class Transform(nn.Module):
    """m_e = layernorm(gelu(W_f h_e + b_f)) (equation 2)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.entity_size)
        self.LayerNorm = nn.LayerNorm(config.entity_size, config.layer_norm_eps)
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

    words: Tensor  # (windows, pieces, hidden): embedded words; empty where the words are in `past`
    start: Tensor | None  # (windows, mentions, hidden): placeholders' states under the first answer layer
    positions: Tensor  # (windows, mentions, hidden): averaged position embeddings
    past: tuple[KeysValues, ...]  # of the static rows, for each answer layer
    seen: Tensor | None  # (windows, 1, 1, rows) bool: the rows an answer sees, answers included; None: all

    def select(self, windows: Tensor) -> Static:
        """Return the part of some windows."""
        return Static(
            self.words[windows],
            None if self.start is None else self.start[windows],
            self.positions[windows],
            tuple((keys[windows], values[windows]) for keys, values in self.past),
            None if self.seen is None else self.seen[windows],
        )


class Network(nn.Module):
    """The paper's model: `read` windows once, `answer` as often as their entities change, score with the head."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.embeddings = WordEmbeddings(config)
        self.entity_embeddings = EntityEmbeddings(config)
        self.encoder = Encoder(config)
        self.entity_predictions = EntityHead(config)
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

    def read(self, batch: Batch) -> Static:
        """Compute all that does not depend on the answers."""
        words = self.embeddings(batch.pieces)
        positions = self.entity_embeddings.positions(batch)
        if self.config.words_see == "answers":
            return Static(words, None, positions, (), _mask(batch.is_piece, batch.is_mention))
        return self._read_with_placeholders(batch, words, positions)

    def _read_with_placeholders(self, batch: Batch, words: Tensor, positions: Tensor) -> Static:
        self.static_passes += 1
        placeholders = self.entity_embeddings(torch.full_like(batch.starts, MASK), positions)
        rows = torch.cat((words, placeholders), 1)
        mask = _mask(batch.is_piece, batch.is_mention)
        layers = self.encoder.layers
        first = len(layers) - (self.config.answer_layers or len(layers))
        start, past = None, []
        for index, layer in enumerate(layers):
            if index == first and first > 0:
                start = rows[:, words.shape[1] :]
            seen = layer.attention.keys_values(rows)
            if index >= first:
                past.append(seen)
            if index < len(layers) - 1:  # of the last layer the answers see keys and values only
                rows = layer(rows, seen, mask)
        seen_by_answers = None if mask is None else _mask(batch.is_piece, batch.is_mention, batch.is_mention)
        return Static(words[:, :0], start, positions, tuple(past), seen_by_answers)

    def answer(self, static: Static, entities: Tensor) -> Tensor:
        """Return h_e of every answer row (windows, mentions, hidden), given the entity or MASK each row holds."""
        answers = self.entity_embeddings(entities, static.positions)
        if static.start is not None:
            answers = answers + static.start
        rows = torch.cat((static.words, answers), 1)
        layers = self.encoder.layers
        top = len(static.past) or len(layers)
        for index, layer in enumerate(layers[-top:]):
            keys, values = layer.attention.keys_values(rows)
            if static.past:
                keys = torch.cat((static.past[index][0], keys), 2)
                values = torch.cat((static.past[index][1], values), 2)
            rows = layer(rows, (keys, values), static.seen)
        return rows[:, static.words.shape[1] :]

    def candidate_rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Gather B* and b*_o of candidates (…, candidates): once for all steps."""
        return self.entity_embeddings.entity_embeddings(rows), self.entity_predictions.bias[rows]

    def score(self, hidden: Tensor, candidates: tuple[Tensor, Tensor]) -> Tensor:
        """Return B*·m_e + b*_o (equation 3) for every candidate."""
        weight, bias = candidates
        logits: Tensor = (weight @ self.entity_predictions(hidden).unsqueeze(-1)).squeeze(-1) + bias
        return logits


def _mask(*parts: Tensor) -> Tensor | None:
    """Join masks of rows into one that attention takes; None, which is faster, where nothing is padding."""
    mask = torch.cat(parts, 1)[:, None, None]
    return None if bool(mask.all()) else mask
