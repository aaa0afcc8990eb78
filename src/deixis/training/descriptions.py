"""Rows of B from text: B_e = E_e + W·x_e, where x_e is a frozen vector of what is written about the entity.

Not in the paper. An entity that training saw rarely, or never, gets a row from its description; on export the sum is
folded into one table, so that inference knows nothing of it. Entities with few links may have no E_e at all: a row of
numbers for each would be learned by heart. They have one bias together, that of an entity with few links.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812 - the field's own name for it
from numpy.typing import NDArray
from torch import Tensor, nn

from deixis.artefacts import read_lines, write_aside
from deixis.documents import normalise_title
from deixis.errors import ArtefactError, InputError
from deixis.folder.model_folder import network_from_bert
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import pack
from deixis.network.encoding import Tokenizer
from deixis.network.entity_table import EntityTable
from deixis.network.model import Network
from deixis.network.special import SPECIAL

__all__ = [
    "DescribedTable",
    "describe",
    "describe_table",
    "fold",
    "load_vectors",
    "mean_states",
    "own_rows",
    "read_descriptions",
    "save_vectors",
]

Vectors = NDArray[np.float16]
PIECES = 128  # of a description that are read
AT_ONCE = 65_536  # pieces in one pass


class DescribedTable(EntityTable):
    """B while it is trained: E of the first entities, and a projection W of vectors x of all, which stay the same."""

    vectors: Tensor

    def __init__(self, weight: Tensor, vectors: Tensor, projection: Tensor) -> None:
        super().__init__(weight)  # (entities with a row of their own, entity_size): the most linked ones come first
        self.register_buffer("vectors", vectors, persistent=False)  # (entities, vector) fp16
        self.projection = nn.Parameter(projection)  # (entity_size, vector)
        self.dropout = 0.0  # the part of the entities that have nothing but their text in a pass of training

    def __len__(self) -> int:
        return len(self.vectors)

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows (…) of B as (…, entity_size)."""
        vectors, last = self.vectors[rows], len(self.weight) - 1
        own = F.embedding(rows.clamp_max(last), self.weight) * (rows <= last).unsqueeze(-1)
        return self._kept(own, vectors) + F.linear(vectors.float(), self.projection)

    def whole(self) -> Tensor:
        """Return all of B, (entities, entity_size)."""
        own = self._kept(self.weight, self.vectors[: len(self.weight)])
        own = F.pad(own, (0, 0, 0, len(self) - len(own)))
        if not self.vectors.is_cuda:
            return own + F.linear(self.vectors.float(), self.projection)
        # The product is as long as the vocabulary. In bf16, not fp16: gradients of rare entities would vanish there.
        return own + F.linear(self.vectors.bfloat16(), self.projection.bfloat16())

    def _kept(self, weight: Tensor, vectors: Tensor) -> Tensor:
        """Return what entities have beside their text, without that of those who must do without it this time.

        No entity leans on its own part alone, so that one which has none yet, or has it from two links, is still
        found by its text.
        """
        if not self.training or self.dropout == 0:
            return weight
        kept = torch.rand(weight.shape[:-1], device=weight.device) >= self.dropout
        return weight * (kept | ~vectors.any(-1)).unsqueeze(-1)

    def share(self, bias: nn.Parameter) -> None:
        """Let entities without an E_e learn one bias together."""
        own = len(self.weight)
        if own < len(self):

            def shared(grad: Tensor) -> Tensor:
                return torch.cat([grad[:own], grad[own:].mean().expand(len(grad) - own)])

            bias.register_hook(shared)  # type: ignore[no-untyped-call]  # torch leaves it without types


def describe_table(
    network: Network, vectors: Vectors, generator: torch.Generator | None, own: int | None = None
) -> None:
    """Give a network rows from text: W is drawn from a generator, or fitted to B, which then stays what it is.

    The first `own` rows have numbers of their own beside; all, if not given.
    """
    table = network.entity_embeddings.entity_embeddings
    if len(vectors) != network.config.entities:
        raise ArtefactError(
            f"the descriptions have {len(vectors)} rows but the vocabulary {network.config.entities}; "
            "make them again with this vocabulary"
        )
    given = torch.from_numpy(np.ascontiguousarray(vectors, np.float16))
    rows = table.whole().detach()
    if generator is not None:
        projection = torch.zeros(network.config.entity_size, vectors.shape[1]).normal_(0.0, 0.02, generator=generator)
    else:
        # Where rows are text alone, W is theirs exactly.
        projection = _fitted(rows, given) if own is None else _fitted(rows[own:], given[own:])
        rows = rows - F.linear(given.float(), projection)
    network.entity_embeddings.entity_embeddings = DescribedTable(rows[:own].clone(), given, projection)


def own_rows(counts: Sequence[int], least: int) -> int:
    """Return how many of the first rows are of entities with at least so many links, the special ones among them."""
    own = sum(count >= least for count in counts) + len(SPECIAL)
    if any(count >= least for count in counts[own:]):
        raise InputError(
            "rows of their own need a vocabulary in the order of its counts, as `deixis wikipedia vocabulary` makes it"
        )
    return own


def _fitted(rows: Tensor, vectors: Tensor) -> Tensor:
    """Return the W that brings W·x nearest to the rows, by least squares; a trace of ridge keeps it finite."""
    x = vectors.double()
    moments = x.T @ x
    ridge = 1e-4 * moments.diagonal().mean().clamp_min(1e-9) * torch.eye(len(moments), dtype=x.dtype)
    projection: Tensor = torch.linalg.solve(moments + ridge, x.T @ rows.double()).T
    return projection.float().contiguous()


def fold(network: Network) -> None:
    """Make one plain table of E and W·x, where the network has them apart."""
    table = network.entity_embeddings.entity_embeddings
    if isinstance(table, DescribedTable):
        network.entity_embeddings.entity_embeddings = EntityTable(table.whole().detach())


def read_descriptions(paths: Sequence[Path]) -> dict[str, str]:
    """Read lines `title TAB description`, further fields ignored; the first of a title wins."""
    found: dict[str, str] = {}
    for path in paths:
        for number, line in read_lines(path):
            fields = line.decode("utf-8", "replace").split("\t")
            if len(fields) < 2:
                raise InputError(f"{path}:{number} has no tab; expected title TAB description")
            found.setdefault(normalise_title(fields[0]), fields[1])
    return found


@torch.no_grad()
def describe(
    encoder: Path,
    vocabulary: Vocabulary,
    descriptions: dict[str, str],
    device: torch.device,
    *,
    prefix: str = "",
    titles_alone: bool = False,
    centre: bool = False,
) -> Vectors:
    """Return x_e for every row: the mean of the encoder's states over "title: description", of length 1.

    A row without a description is 0, unless `titles_alone` says to read the title. `prefix` is what the encoder
    wants before a text (E5: "query: "). `centre` subtracts the mean of all vectors: encoders give all texts much
    in common.
    """
    network = network_from_bert(encoder, len(SPECIAL), torch.Generator()).to(device).eval()
    network.precision = torch.bfloat16 if device.type == "cuda" else torch.float32
    tokenizer = Tokenizer.load(encoder)
    texts = {}
    for row, title in enumerate(vocabulary):
        if row >= len(SPECIAL) and (title in descriptions or titles_alone):
            texts[row] = f"{prefix}{title}: {descriptions[title]}" if title in descriptions else f"{prefix}{title}"
    vectors = np.zeros((len(vocabulary), network.config.hidden_size), np.float32)
    for rows, pieces in _grouped(tokenizer, texts):
        vectors[rows] = F.normalize(mean_states(network, pieces, device), dim=-1).cpu().numpy()
    if centre and texts:
        vectors[list(texts)] -= vectors[list(texts)].mean(0)
    return vectors.astype(np.float16)


def _grouped(tokenizer: Tokenizer, texts: dict[int, str]) -> Iterator[tuple[list[int], list[NDArray[np.int64]]]]:
    """Yield rows and their texts' pieces, as many as are read at once."""
    rows, lists, size = list(texts), [], 0
    begin = 0
    for first in range(0, len(rows), 1024):
        for encoding in tokenizer.encode_many([(texts[row], []) for row in rows[first : first + 1024]]):
            pieces = np.concatenate(([tokenizer.cls], encoding.pieces[: PIECES - 2], [tokenizer.sep])).astype(np.int64)
            lists.append(pieces)
            size += len(pieces)
            if size >= AT_ONCE:
                yield rows[begin : begin + len(lists)], lists
                begin, lists, size = begin + len(lists), [], 0
    if lists:
        yield rows[begin:], lists


def mean_states(network: Network, lists: Sequence[NDArray[np.int64]], device: torch.device) -> Tensor:
    """Return the mean state (texts, hidden) of each text's pieces, [CLS] and [SEP] among them."""
    counts = np.array([len(pieces) for pieces in lists])
    none = np.zeros(len(lists), np.int64)
    batch = pack(np.concatenate(lists), counts, np.zeros((0, 2), np.int64), none).to(device)
    states = network.words(batch).float()
    owner = torch.from_numpy(np.repeat(np.arange(len(lists)), counts)).to(device)
    sums = torch.zeros(len(lists), states.shape[1], device=device).index_add_(0, owner, states)
    return sums / torch.from_numpy(counts).to(device).unsqueeze(-1)


def save_vectors(vectors: Vectors, path: Path) -> str:
    """Write vectors as .npy; return their digest."""
    with write_aside(path) as file:
        np.save(file, vectors)
    return hashlib.sha256(vectors.tobytes()).hexdigest()


def load_vectors(path: Path) -> Vectors:
    """Read vectors that `save_vectors` wrote."""
    try:
        vectors: Vectors = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; expected vectors of descriptions (.npy)") from None
    except (ValueError, OSError, EOFError) as error:
        raise ArtefactError(f"{path} is no array of vectors: {error}") from None
    if vectors.ndim != 2:
        raise ArtefactError(f"{path} has the shape {vectors.shape}; expected (entities, size)")
    return vectors
