"""Small random worlds for tests: a tokenizer, networks and documents, each made from a seed."""

from __future__ import annotations

import random
import string
from typing import Any

import torch
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import models, normalizers, pre_tokenizers

from deixis.documents import Candidate, Document, Mention
from deixis.inference import Disambiguator
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import Config
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.network.special import SPECIAL

WORDS = ["the", "cup", "world", "messi", "played", "in", "rugby", "final", "a", "won", "of", "city", "team", "goal"]
ENTITIES = 60


def make_tokenizer() -> Tokenizer:
    """Return a lower-casing word-piece tokenizer that can spell anything in ASCII."""
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters), *WORDS]
    vocabulary = {piece: row for row, piece in enumerate(dict.fromkeys(pieces))}
    raw = RawTokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return Tokenizer(raw)


def make_vocabulary(entities: int = ENTITIES) -> Vocabulary:
    """Return a vocabulary of invented entities."""
    return Vocabulary.of(f"Entity {number}" for number in range(entities))


def all_of(store: Names) -> FromStore:
    """Return all entities of a store of names, with these."""
    titles, links = zip(*store.titles(), strict=True)
    return FromStore.of(Vocabulary([*SPECIAL, *titles], [0] * len(SPECIAL) + [*links]), store)


def make_network(seed: int = 0, **settings: Any) -> Network:
    """Return a small network with weights large enough that answers differ and inputs matter."""
    shape = {
        "vocab_size": len(make_tokenizer()),
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "entities": ENTITIES + 3,
        "entity_size": 32,
    }
    network = Network(Config(**(shape | settings)))
    generator = torch.Generator().manual_seed(seed)
    network.initialise(generator)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.15)
    return network.eval()


def make_disambiguator(seed: int = 0, **settings: Any) -> Disambiguator:
    """Return a disambiguator over a random network."""
    return Disambiguator(make_network(seed, **settings), make_tokenizer(), make_vocabulary())


def make_document(seed: int, words: int = 40, mentions: int = 6, candidates: int = 5) -> Document:
    """Return a random document; one mention in four has a single candidate."""
    dice = random.Random(seed)
    text, spans = "", []
    places = set(dice.sample(range(words), min(words, mentions)))
    for place in range(words):
        word = dice.choice(WORDS)
        if place in places:
            spans.append((len(text), len(text) + len(word)))
        text += word + " "
    return Document(text, tuple(_mention(start, end, candidates, dice) for start, end in spans), id=f"random {seed}")


def _mention(start: int, end: int, candidates: int, dice: random.Random) -> Mention:
    number = 1 if dice.random() < 0.25 else dice.randint(2, candidates)
    titles = [f"Entity {entity}" for entity in dice.sample(range(ENTITIES), number)]
    return Mention(start, end, candidates=tuple(Candidate(title, 1 / (rank + 2)) for rank, title in enumerate(titles)))
