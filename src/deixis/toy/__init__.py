"""The island of Velm: a small invented Wikipedia that runs through everything in seconds on a CPU.

Its dump (`velm.xml`) has pages whose names are ambiguous: two Ada Marlows, two Velm Cups, two Falcons. Its two diaries
have the same words and different links: only the other entities tell which Marlow is meant. `build` takes it all the
way, with the functions behind the commands: dump → articles → vocabulary, store → windows → training → model folder.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer as RawTokenizer
from tokenizers import models, normalizers, pre_tokenizers

from deixis.corpus.counting import build_vocabulary
from deixis.corpus.names import NameSources, build_store
from deixis.corpus.settings import PackingConfig
from deixis.corpus.shards import build_windows
from deixis.corpus.windows import WindowSet
from deixis.documents import Document, Mention
from deixis.folder.model_folder import ModelFolder
from deixis.knowledge.assemble import FromStore
from deixis.knowledge.names import Names
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.config import Config, WordsSee
from deixis.network.encoding import Tokenizer
from deixis.network.model import Network
from deixis.training import Recipe, Step, train
from deixis.wikipedia.articles import read_articles
from deixis.wikipedia.extraction import build_articles

__all__ = ["DUMP", "RECIPE", "build", "marked"]

DUMP = Path(__file__).with_name("velm.xml")
# Nothing comes from a trained BERT here, so one stage trains everything. Windows are a sentence or two long, so that
# there are some hundred of them.
RECIPE = Recipe(epochs=200, batch=32, learning_rate=2e-3, warmup_steps=20, seed=1)
MAX_PIECES = 24


def build(folder: Path, words_see: WordsSee = "placeholders", recipe: Recipe = RECIPE) -> Iterator[Step]:
    """Make every artefact of the island in a folder, its model in `folder / "model"`; yield the training steps."""
    articles, vocabulary, store = folder / "articles.jsonl.zst", folder / "vocabulary.jsonl", folder / "store"
    build_articles([DUMP], articles, workers=1)
    build_vocabulary([articles], vocabulary)
    build_store(NameSources(articles=[articles]), store)
    tokenizer = make_tokenizer(article.text for article in read_articles(articles))
    tokenizer.save(folder)
    build_windows([articles], vocabulary, folder, folder / "windows", PackingConfig(max_pieces=MAX_PIECES, held_out=0))
    entities = Vocabulary.load(vocabulary)
    network = make_network(len(tokenizer), len(entities), words_see)
    windows = WindowSet.open(folder / "windows", "train", entities)
    yield from train(network, tokenizer, windows, recipe)
    names = FromStore.of(entities, Names.open(store))
    ModelFolder(network, tokenizer, entities).save(folder / "model", source=names)


def make_tokenizer(texts: Iterator[str]) -> Tokenizer:
    """Return a word-piece tokenizer that knows the words of the island and spells all others."""
    words = sorted({word for text in texts for word in re.findall(r"\w+", text.lower())})
    letters = [*string.ascii_lowercase, *string.digits, *string.punctuation]
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters, *("##" + letter for letter in letters), *words]
    raw = RawTokenizer(models.WordPiece({piece: row for row, piece in enumerate(dict.fromkeys(pieces))}))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return Tokenizer(raw)


def make_network(pieces: int, entities: int, words_see: WordsSee) -> Network:
    """Return a network as small as the island."""
    config = Config(
        vocab_size=pieces,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        entities=entities,
        entity_size=64,
        words_see=words_see,
    )
    network = Network(config)
    network.initialise(torch.Generator().manual_seed(0))
    return network


def marked(text: str) -> Document:
    """Return a document from a text with its mentions in brackets: `[Marlow] rowed the [Falcon|Falcon (boat)].`

    What stands behind a bar is the gold entity.
    """
    plain, mentions = "", []
    for part in re.split(r"(\[[^\]]+\])", text):
        if part.startswith("["):
            surface, _, gold = part[1:-1].partition("|")
            mentions.append(Mention(len(plain), len(plain) + len(surface), gold or None))
            plain += surface
        else:
            plain += part
    return Document(plain, tuple(mentions))
