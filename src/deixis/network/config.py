"""The shape of a network, its attention pattern among it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args

from deixis.errors import ArtefactError

__all__ = ["ACTIVATIONS", "Config", "WordsSee"]

WordsSee = Literal["answers", "placeholders", "words"]
ACTIVATIONS = ("gelu", "gelu_new", "relu")


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
    placeholder_layers: int | None = None  # top layers with placeholders; None: all
    answer_layers: int | None = None  # top layers with answers; None: all

    def __post_init__(self) -> None:
        if self.words_see not in get_args(WordsSee):
            raise ArtefactError(f"words_see is {self.words_see!r}; expected one of {', '.join(get_args(WordsSee))}")
        if self.hidden_act not in ACTIVATIONS:
            raise ArtefactError(f"hidden_act is {self.hidden_act!r}; expected one of {', '.join(ACTIVATIONS)}")
        if self.placeholder_layers is not None and self.words_see != "words":
            raise ArtefactError('placeholder_layers needs words_see="words"')
        if self.answer_layers is not None and self.words_see == "answers":
            raise ArtefactError('answer_layers needs words_see="placeholders" or words_see="words"')
        for name in ("placeholder_layers", "answer_layers"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= self.num_hidden_layers:
                raise ArtefactError(f"{name} is {value}; expected 1 to {self.num_hidden_layers}")
        if self.first_answer_layer < self.first_placeholder_layer:
            raise ArtefactError(
                f"answer_layers is {self.answer_layers or 'all'} and placeholder_layers {self.placeholder_layers}; "
                "answers start from their placeholders and cannot have more layers"
            )

    @property
    def first_placeholder_layer(self) -> int:
        """The lowest layer with placeholders, from 0."""
        return self.num_hidden_layers - (self.placeholder_layers or self.num_hidden_layers)

    @property
    def first_answer_layer(self) -> int:
        """The lowest layer with answers, from 0."""
        return self.num_hidden_layers - (self.answer_layers or self.num_hidden_layers)

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
        """Return the fields as a JSON object; fields of another attention pattern are left out."""
        return {name: value for name, value in asdict(self).items() if name != "placeholder_layers" or value}
