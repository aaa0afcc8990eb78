"""The Disambiguator: documents or plain texts in, resolutions out."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from deixis.documents import (
    LEAST_PRIOR,
    Candidate,
    Document,
    Identity,
    Mention,
    Resolution,
    Resolutions,
    Step,
    wikipedia_url,
)
from deixis.errors import InputError
from deixis.folder.model_folder import Linking, ModelFolder, packaged_model
from deixis.knowledge.describe import Describer
from deixis.knowledge.detection import THRESHOLD, Detector, NameDetector
from deixis.knowledge.entities import Entity, identities
from deixis.knowledge.names import Names
from deixis.knowledge.source import CandidateSource
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.batching import batches_of, make_batch
from deixis.network.decoding import Observer, Question, decode
from deixis.network.encoding import Tokenizer, Window, windows_of
from deixis.network.model import Network
from deixis.network.precision import check_arithmetic, compute_in, usual_windows
from deixis.network.special import MASK, PAD, UNK
from deixis.settings import Precision, Settings

__all__ = ["Disambiguator"]

Chances = tuple[tuple[str, float], ...]  # titles and probabilities


@dataclass(slots=True)
class _Pending:
    """A document under way."""

    document: Document
    options: list[_Options]  # one a mention
    resolutions: list[Resolution | None]
    windows_left: int = 0
    passes: int = 0
    read: bool = False  # all of its windows are known
    trace: dict[int, dict[int, Chances]] | None = None  # step -> open mention -> its candidates


@dataclass(frozen=True, slots=True)
class _Options:
    """The distinct candidates of a mention and their rows."""

    titles: tuple[str, ...]
    rows: tuple[int, ...]  # MASK: scored 0
    favour: tuple[float, ...]  # added to the score: the weighted logarithm of the prior


@dataclass(frozen=True, slots=True)
class _Task:
    """A window of a document."""

    pending: _Pending
    window: Window


@dataclass
class Disambiguator:
    """A network with its tokenizer, vocabulary and, where there are any, candidate store and detector.

    It holds no state of a call, so threads may share one.

    Examples:
        >>> nlp = Disambiguator.load("velm/model")
        >>> for resolution in nlp("After the Silver Oar came Marlow."):
        ...     print(resolution.step, resolution.text, "→", resolution.entity)
        1 Silver Oar → Velm Cup (rowing)
        2 Marlow → Ada Marlow (rower)
    """

    network: Network
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    candidates: CandidateSource | None = None
    detector: Detector | None = None  # finds the mentions of plain texts
    answer_threshold: float = 0.0  # the least probability of an answer in `link`
    prior: float = 0.0  # the weight of log p(e|m) in `link`
    describer: Describer | None = None  # makes rows of new entities
    added: tuple[bytes, ...] = ()  # the entities that were added, as JSON
    wikidata: Mapping[str, str] = field(default_factory=dict)  # titles to ids, told in the results
    batch_rows: int = 8192  # padded rows of a batch: bounds memory
    group: int = 256  # windows sorted by length together
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        self.network.to(self.device).eval()
        self._identities = identities(self.added)

    @classmethod
    def load(
        cls,
        folder: str | Path | None = None,
        device: str | torch.device = "cpu",
        *,
        precision: Precision | None = None,
        detection_threshold: float | None = None,
    ) -> Disambiguator:
        """Open a model folder; without one, the model that deixis comes with.

        `precision` is what the network computes in (network/precision.py): fp32 if not given, on a GPU bf16. A name is
        taken as a mention if its link probability is at least `detection_threshold`; the model's own if not given.

        Examples:
            >>> len(Disambiguator.load("velm/model").vocabulary) > 20
            True
        """
        device = torch.device(device)
        precision = precision or ("bf16" if device.type == "cuda" else "fp32")
        check_arithmetic(precision, device)
        parts = ModelFolder.load(packaged_model() if folder is None else Path(folder))
        least = _least(parts.linking) if detection_threshold is None else detection_threshold
        usual = usual_windows(parts.tokenizer, parts.vocabulary.titles) if precision == "int8" else None
        compute_in(parts.network, precision, usual)
        return cls(
            parts.network,
            parts.tokenizer,
            parts.vocabulary,
            parts.store,
            None if parts.store is None else NameDetector(parts.store, least),
            parts.linking.answers,
            parts.linking.prior,
            parts.describer,
            parts.known,
            device=device,
        )

    def with_entities(self, entities: Iterable[Entity | Mapping[str, Any]], *, clashes: bool = False) -> Disambiguator:
        """Return one that knows more entities, given as records of `deixis entities add`; this one stays as it is.

        An entity that is known already is refused, or with `clashes` made anew.

        Examples:
            >>> import deixis
            >>> from deixis.knowledge.describe import Describer
            >>> nlp = deixis.load("velm/model")
            >>> texts = {title: title for title in nlp.vocabulary.entities}  # better: what is written about them
            >>> nlp.describer = Describer.fit(nlp.network, nlp.tokenizer, nlp.vocabulary, texts)
            >>> more = nlp.with_entities([{"title": "Tilda Brandt", "description": "a rower of Velm"}])
            >>> more("Tilda Brandt won.")[0].entity
            'Tilda Brandt'
        """
        from deixis.folder.edit import add  # which editing alone needs

        new = [entity if isinstance(entity, Entity) else Entity.from_record(entity) for entity in entities]
        store = self.candidates if isinstance(self.candidates, Names) else None
        if store is None and self.candidates is not None:
            raise InputError("names are added to a store of deixis; this one has another source of candidates")
        parts = ModelFolder(self.network, self.tokenizer, self.vocabulary, store)
        more = add(replace(parts, describer=self.describer, known=self.added), new, clashes=clashes)
        detector = self.detector
        if isinstance(detector, NameDetector) and more.store is not None:
            detector = replace(detector, store=more.store)
        return replace(
            self,
            network=more.network,
            vocabulary=more.vocabulary,
            candidates=more.store,
            detector=detector,
            added=more.known,
        )

    def __call__(self, text: str, settings: Settings | None = None, **changes: Any) -> Resolutions:
        """Find the mentions of a text and resolve them; the same as `link`.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> [resolution.entity for resolution in nlp("After the Golden Rook came Brandt.")]
            ['Velm Cup (chess)', 'Lena Brandt (composer)']
        """
        return self.link(text, settings, **changes)

    def link(self, text: str | Document, settings: Settings | None = None, **changes: Any) -> Resolutions:
        """Find the mentions of a text and resolve them; `changes` are settings, as in `answer_threshold=0.5`.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> print(nlp.link("Marlow was there.", answer_threshold=1)[0].entity)  # nobody is that sure
            None
        """
        return next(self.link_many([text], settings, **changes))

    def link_many(
        self, texts: Iterable[str | Document], settings: Settings | None = None, **changes: Any
    ) -> Iterator[Resolutions]:
        """Find and resolve the mentions of many texts, in their order; a document keeps the mentions that it has.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> texts = ["After the Silver Oar came Marlow.", "After the Golden Rook came Marlow."]
            >>> [linked[1].entity for linked in nlp.link_many(texts)]
            ['Ada Marlow (rower)', 'Ada Marlow (chess player)']
        """
        settings = self.for_texts((settings or Settings()).changed(**changes))
        return self.disambiguate_many(map(self.find, texts), settings)

    def for_texts(self, settings: Settings) -> Settings:
        """Return settings for plain texts: the model's own threshold and prior, and overlapping windows, unless given.

        A window a mention, as the paper has it, costs the square of a long text's mentions; half-overlapping windows
        read every mention with at least a quarter of a window on either side, at twice the price of reading it once.

        Examples:
            >>> Disambiguator.load("velm/model").for_texts(Settings(answer_threshold=0.5)).answer_threshold
            0.5
        """
        threshold = settings.answer_threshold
        return settings.changed(
            answer_threshold=self.answer_threshold if threshold is None else threshold,
            prior=self.prior if settings.prior is None else settings.prior,
            windows=settings.windows or "overlapping",
        )

    def find(self, text: str | Document) -> Document:
        """Return the text with the mentions that the detector finds; a document with mentions as it is.

        Examples:
            >>> document = Disambiguator.load("velm/model").find("After the Silver Oar came Marlow.")
            >>> [document.surface(mention) for mention in document.mentions]
            ['Silver Oar', 'Marlow']
        """
        document = Document(text) if isinstance(text, str) else text
        if document.mentions:
            return document
        if self.detector is None:
            raise InputError(
                "this model has no candidate store to find mentions by; give it a detector, or give mentions"
            )
        return replace(document, mentions=tuple(Mention(*span) for span in self.detector.detect(document.text)))

    def disambiguate(self, document: Document, settings: Settings | None = None, **changes: Any) -> Resolutions:
        """Resolve the mentions of one document; `changes` are fields of the settings, e.g. `order="local"`.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> document = Document("The Silver Oar came before Marlow.", (Mention(4, 14), Mention(27, 33)))
            >>> [resolution.entity for resolution in nlp.disambiguate(document, order="natural")]
            ['Velm Cup (rowing)', 'Ada Marlow (rower)']
        """
        return next(self.disambiguate_many([document], settings, **changes))

    def disambiguate_many(
        self, documents: Iterable[Document], settings: Settings | None = None, **changes: Any
    ) -> Iterator[Resolutions]:
        """Resolve the mentions of many documents, in their order; read as they are needed, batched together.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> falcon = (Candidate("Falcon (boat)"), Candidate("Falcon (opening)"))  # in place of the store's
            >>> texts = ("The Silver Oar, then the Falcon.", "The Golden Rook, then the Falcon.")
            >>> mentions = [(Mention(4, end), Mention(end + 11, end + 17, candidates=falcon)) for end in (14, 15)]
            >>> [resolutions[1].entity for resolutions in nlp.disambiguate_many(map(Document, texts, mentions))]
            ['Falcon (boat)', 'Falcon (opening)']
        """
        settings = (settings or Settings()).changed(**changes)
        queue: deque[_Pending] = deque()
        group: list[_Task] = []
        for task in self._tasks(documents, settings, queue):
            if task is not None:
                group.append(task)
            if len(group) >= self.group or len(queue) >= 4 * self.group:
                self._decide_group(group, settings)
                group = []
                while queue and queue[0].read and queue[0].windows_left == 0:
                    yield self._finish(queue.popleft(), settings.answer_threshold)
        self._decide_group(group, settings)
        while queue:
            yield self._finish(queue.popleft(), settings.answer_threshold)

    def _decide_group(self, group: list[_Task], settings: Settings) -> None:
        for places in batches_of([task.window for task in group], self.batch_rows):
            self._decide([group[place] for place in places], settings)

    def _tasks(
        self, documents: Iterable[Document], settings: Settings, queue: deque[_Pending]
    ) -> Iterator[_Task | None]:
        """Yield the windows of all documents, noting each document in the queue; None at the end of each."""
        stream = iter(documents)
        while chunk := list(islice(stream, 64)):  # so many are tokenised together
            encodings = self.tokenizer.encode_many([(d.text, [(m.start, m.end) for m in d.mentions]) for d in chunk])
            for document, encoding in zip(chunk, encodings, strict=True):
                pending = self._begin(document, settings)
                queue.append(pending)
                for window in windows_of(self.tokenizer, encoding, settings.windows or "per_mention"):
                    if any(pending.options[mention].rows for mention in _counting(window)):
                        pending.windows_left += 1
                        yield _Task(pending, window)
                pending.read = True
                yield None

    def _finish(self, pending: _Pending, threshold: float | None) -> Resolutions:
        items = tuple(
            resolution or _unresolved(pending.document, place, "longer than a window")
            for place, resolution in enumerate(pending.resolutions)
        )
        settled = tuple(self._identified(_settled(resolution, threshold)) for resolution in items)
        return Resolutions(pending.document, settled, pending.passes, _trace(pending, items))

    def _identified(self, resolution: Resolution) -> Resolution:
        """Return the resolution with what is known of its entity elsewhere."""
        title = resolution.entity
        if title is None or not (title in self._identities or title in self.wikidata):
            return resolution
        own = self._identities.get(title, Identity(wikipedia_url(title)))
        return replace(resolution, identity=own._replace(wikidata=own.wikidata or self.wikidata.get(title)))

    def _begin(self, document: Document, settings: Settings) -> _Pending:
        lists = self._candidates(document)
        priors = self._priors(document, lists) if settings.prior else [{} for _ in lists]
        options = [self._options(listed, settings, known) for listed, known in zip(lists, priors, strict=True)]
        missing = "no candidates" if self.candidates else "no candidates: none given, and the model has no store"
        resolutions: list[Resolution | None] = [
            None if option.rows else _without_network(document, place, lists[place], missing)
            for place, option in enumerate(options)
        ]
        return _Pending(document, options, resolutions, trace={} if settings.trace else None)

    def _candidates(self, document: Document) -> list[tuple[Candidate, ...]]:
        if all(mention.candidates is not None for mention in document.mentions):
            return [mention.candidates or () for mention in document.mentions]
        if self.candidates is None:
            return [mention.candidates or () for mention in document.mentions]
        found = self.candidates.candidates(document)
        return [
            given if mention.candidates is None else mention.candidates
            for mention, given in zip(document.mentions, found, strict=True)
        ]

    def _priors(self, document: Document, lists: list[tuple[Candidate, ...]]) -> list[dict[str, float]]:
        """Return p(e|m) of the candidates of each mention: as given with them, else as the store has it."""
        asked: list[tuple[Candidate, ...]] = [() for _ in lists]
        if self.candidates is not None and any(c.prior is None for listed in lists for c in listed):
            asked = self.candidates.candidates(document)
        return [
            {c.entity: c.prior for c in (*stored, *_distinct(listed)) if c.prior is not None}
            for stored, listed in zip(asked, lists, strict=True)
        ]

    def _options(self, candidates: tuple[Candidate, ...], settings: Settings, priors: Mapping[str, float]) -> _Options:
        chosen = _cut(_distinct(candidates), settings.top)
        names = [candidate.entity for candidate in chosen]
        found = list(zip(names, map(self.vocabulary.row, names), strict=True))
        known = [(title, row) for title, row in found if row is not None]
        unknown = sorted(title for title, row in found if row is None) if len(known) < len(found) else []
        if settings.released == "2022" and unknown:
            known.append((unknown[0], UNK))
        elif settings.released == "2021":
            known.extend((title, MASK) for title in unknown)
        if not known:
            return _Options((), (), ())
        titles, rows = zip(*known, strict=True)
        if not settings.prior:
            return _Options(titles, rows, ())
        favour = tuple(settings.prior * math.log(max(priors.get(title, 0.0), LEAST_PRIOR)) for title in titles)
        return _Options(titles, rows, favour)

    def _decide(self, tasks: list[_Task], settings: Settings) -> None:
        batch = make_batch([task.window for task in tasks]).to(self.device)
        question = _question(tasks, settings).to(self.device)
        observe = _tracing(tasks) if settings.trace else None
        decisions = decode(self.network, batch, question, settings.order, settings.commit, observe)
        passes, steps, choices = (x.tolist() for x in (decisions.passes, decisions.step, decisions.choice))
        probabilities = decisions.probabilities.numpy()
        first = 0
        for task, passed in zip(tasks, passes, strict=True):
            pending, window = task.pending, task.window
            pending.windows_left -= 1
            pending.passes += passed
            for mention, place in zip(_counting(window), _places(window), strict=True):
                at = first + place
                if choices[at] >= 0:
                    chances = probabilities[at, : len(pending.options[mention].rows)].tolist()
                    pending.resolutions[mention] = _resolution(pending, mention, choices[at], chances, steps[at])
            first += len(window.mentions)


def _least(linking: Linking) -> float:
    return THRESHOLD if linking.names is None else linking.names


def _places(window: Window) -> list[int]:
    """Return the places of the mentions of a window whose answers count."""
    return list(range(len(window.mentions))) if window.counting is None else list(window.counting.tolist())


def _counting(window: Window) -> list[int]:
    """Return which mentions of the document those are."""
    return list((window.mentions if window.counting is None else window.mentions[window.counting]).tolist())


def _distinct(candidates: tuple[Candidate, ...]) -> list[Candidate]:
    """Merge duplicates: the first keeps its place, the highest prior wins."""
    if len({candidate.entity for candidate in candidates}) == len(candidates):
        return list(candidates)
    merged: dict[str, Candidate] = {}
    for candidate in candidates:
        seen = merged.get(candidate.entity)
        if seen is None or (candidate.prior or 0.0) > (seen.prior or 0.0):
            merged[candidate.entity] = candidate
    return list(merged.values())


def _cut(candidates: list[Candidate], top: int | None) -> list[Candidate]:
    """Keep the `top` by prior; without priors there is no honest rule to cut by (protocol 4)."""
    if top is None or len(candidates) <= top or any(candidate.prior is None for candidate in candidates):
        return candidates
    return sorted(candidates, key=lambda candidate: -(candidate.prior or 0.0))[:top]


def _without_network(document: Document, place: int, candidates: tuple[Candidate, ...], missing: str) -> Resolution:
    """Resolve a mention that the network cannot score: by prior where there are candidates, else not at all."""
    mention = document.mentions[place]
    distinct = _distinct(candidates)
    if not distinct:
        return _unresolved(document, place, "no candidates" if mention.candidates == () else missing)
    weights = [candidate.prior or 0.0 for candidate in distinct]
    total = sum(weights)
    shares = [weight / total if total > 0 else 1 / len(weights) for weight in weights]
    ranked = sorted(zip((c.entity for c in distinct), shares, strict=True), key=lambda pair: -pair[1])
    return Resolution(
        mention.start, mention.end, document.surface(mention), ranked[0][0], ranked[0][1], 1, tuple(ranked)
    )


def _unresolved(document: Document, place: int, reason: str) -> Resolution:
    mention = document.mentions[place]
    return Resolution(mention.start, mention.end, document.surface(mention), None, 0.0, 0, (), reason)


def _question(tasks: list[_Task], settings: Settings) -> Question:
    """Lay the candidates of the windows' mentions out as tensors."""
    numbers = np.array([len(task.window.mentions) for task in tasks])
    mentions = [(task.pending, mention) for task in tasks for mention in task.window.mentions.tolist()]
    options = [pending.options[mention] for pending, mention in mentions]
    initial = np.full(len(options), MASK, np.int64)
    sizes = np.array([len(option.rows) for option in options])
    exists = np.arange(sizes.max(initial=1)) < sizes[:, None]
    if settings.released is not None:
        initial[sizes == 0] = PAD
    candidates = np.full(exists.shape, PAD, np.int64)
    candidates[exists] = np.fromiter(chain.from_iterable(option.rows for option in options), np.int64, sizes.sum())
    favour = None
    if settings.prior:
        favour = np.zeros(exists.shape, np.float32)
        favour[exists] = np.fromiter(chain.from_iterable(o.favour for o in options), np.float32, sizes.sum())
    counts = np.zeros(len(options), bool)
    first = np.cumsum(numbers) - numbers
    counts[np.concatenate([start + _places(task.window) for start, task in zip(first, tasks, strict=True)])] = True
    # In natural order a centred mention comes in its turn, unless the released code's way is asked for (protocol 9).
    centred = counts & np.repeat([task.window.centred for task in tasks], numbers)
    if settings.order == "natural" and settings.released is None:
        centred[:] = False
    arrays = (candidates, favour, initial, counts, centred, np.repeat(np.arange(len(tasks)), numbers))
    return Question(*(None if array is None else torch.from_numpy(array) for array in arrays))  # type: ignore[arg-type]


def _resolution(pending: _Pending, place: int, choice: int, chances: list[float], step: int) -> Resolution:
    document, titles = pending.document, pending.options[place].titles
    mention = document.mentions[place]
    ranked = sorted(zip(titles, chances, strict=True), key=itemgetter(1), reverse=True)
    surface = document.surface(mention)
    return Resolution(mention.start, mention.end, surface, titles[choice], chances[choice], step, tuple(ranked))


def _tracing(tasks: list[_Task]) -> Observer:
    """Return what notes the probabilities of every pass in the documents of the tasks."""
    firsts = accumulate((len(task.window.mentions) for task in tasks), initial=0)
    places = [
        (first + place, task.pending, mention)
        for first, task in zip(firsts, tasks, strict=False)
        for place, mention in zip(_places(task.window), _counting(task.window), strict=True)
    ]

    def observe(steps: torch.Tensor, is_open: torch.Tensor, probabilities: torch.Tensor) -> None:
        taken, opened, chances = steps.tolist(), is_open.tolist(), probabilities.cpu()
        for at, pending, mention in places:
            if opened[at] and pending.trace is not None:
                titles = pending.options[mention].titles
                noted = tuple(zip(titles, chances[at, : len(titles)].tolist(), strict=True))
                pending.trace.setdefault(taken[at], {})[mention] = noted

    return observe


def _settled(resolution: Resolution, threshold: float | None) -> Resolution:
    """Return the resolution, unresolved where its probability is under the threshold."""
    if threshold is None or resolution.entity is None or resolution.probability >= threshold:
        return resolution
    reason = f"unsure: {resolution.entity} has {resolution.probability:.2f}, under the threshold of {threshold:g}"
    return replace(resolution, entity=None, reason=reason)


def _trace(pending: _Pending, items: tuple[Resolution, ...]) -> tuple[Step, ...] | None:
    """Join what was noted of each step with what was decided in it."""
    if pending.trace is None:
        return None
    decided: dict[int, list[int]] = {}
    for place, resolution in enumerate(items):
        if resolution.entity is not None:
            decided.setdefault(resolution.step, []).append(place)
    steps = sorted(decided.keys() | pending.trace.keys())
    return tuple(Step(step, tuple(decided.get(step, ())), pending.trace.get(step, {})) for step in steps)
