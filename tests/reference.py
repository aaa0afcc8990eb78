"""The paper's model as transformers' own LUKE modules, and Algorithm 1 as a plain loop: what ours is compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from transformers import LukeConfig, LukeModel
from transformers.models.luke.modeling_luke import EntityPredictionHead

from deixis.documents import Document
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.network.special import MASK


class Luke(torch.nn.Module):
    """LUKE with BERT's positions, no entity-aware attention, and the entity head, with the weights of a network."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        shape = network.config
        self.config = LukeConfig(
            **{name: getattr(shape, name) for name in _SHARED},
            entity_vocab_size=shape.entities,
            entity_emb_size=shape.entity_size,
            use_entity_aware_attention=False,
            bert_model_name="bert-tiny-uncased",
            pad_token_id=0,
        )
        self.luke: Any = LukeModel(self.config, add_pooling_layer=False).eval()
        self.entity_predictions: Any = EntityPredictionHead(self.config).eval()
        self._fill({name: tensor.detach().clone() for name, tensor in network.state_dict().items()})

    def _fill(self, state: dict[str, Tensor]) -> None:
        table = state["entity_embeddings.entity_embeddings.weight"]
        table[MASK] = state.pop("entity_embeddings.mask_embedding")
        types = "entity_embeddings.token_type_embeddings.weight"
        state[types] = state[types].expand(self.config.type_vocab_size, -1)
        head = {name.removeprefix("entity_predictions."): x for name, x in state.items() if "entity_pred" in name}
        body = {name: x for name, x in state.items() if "entity_pred" not in name}
        self.luke.load_state_dict(body)
        self.entity_predictions.load_state_dict(head | {"decoder.weight": table})

    @torch.no_grad()
    def forward(self, pieces: Tensor, spans: list[tuple[int, int]], entities: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return states of words and entities, and scores over the whole vocabulary, of one window."""
        width = max(end - start for start, end in spans)
        positions = [[*range(start, end)] + [-1] * (width - end + start) for start, end in spans]
        out = self.luke(
            input_ids=pieces[None],
            position_ids=torch.arange(len(pieces))[None],
            entity_ids=entities[None],
            entity_position_ids=torch.tensor(positions)[None],
        )
        hidden = out.entity_last_hidden_state[0]
        return out.last_hidden_state[0], hidden, self.entity_predictions(hidden)


_SHARED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_act",
    "layer_norm_eps",
)


@dataclass(frozen=True)
class Decision:
    """What the plain loop decided for a mention."""

    entity: str
    probability: float
    step: int


def confidence_order(luke: Luke, tokenizer: Tokenizer, vocabulary: Vocabulary, document: Document) -> list[Decision]:
    """Algorithm 1 as printed: N whole passes, scores over all entities, then a softmax over the candidates."""
    encoding = tokenizer.encode(document.text, [(mention.start, mention.end) for mention in document.mentions])
    pieces = torch.tensor([tokenizer.cls, *encoding.pieces, tokenizer.sep])
    spans = [(int(start) + 1, int(end) + 1) for start, end in encoding.spans]
    entities = torch.full((len(spans),), MASK)
    decided: dict[int, Decision] = {}
    for step in range(1, len(spans) + 1):
        _, _, scores = luke(pieces, spans, entities)
        best = (-1.0, 0, 0)
        for place, mention in enumerate(document.mentions):
            if place in decided:
                continue
            rows = torch.tensor([vocabulary.row(candidate.entity) for candidate in mention.candidates or ()])
            probability, choice = torch.softmax(scores[place][rows], 0).max(0)
            if float(probability) > best[0]:
                best = (float(probability), place, int(rows[choice]))
        highest, place, row = best
        entities[place] = row
        decided[place] = Decision(vocabulary.titles[row], highest, step)
    return [decided[place] for place in range(len(spans))]
