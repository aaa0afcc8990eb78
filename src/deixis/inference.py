"""The Disambiguator: documents or plain texts in, resolutions out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from deixis.artefacts import MANIFEST, Manifest
from deixis.disambiguation.answer_rule import ARBITRARY, AnswerRule
from deixis.disambiguation.choices import choices_of, list_candidates
from deixis.disambiguation.mention_table import Frame, linked_frame
from deixis.disambiguation.results import PendingDocument, resolve_by_prior, resolve_by_title, unresolved
from deixis.disambiguation.scheduling import Scheduler
from deixis.documents import (
    DOMAIN,
    Candidate,
    Document,
    Identity,
    Mention,
    Resolution,
    Resolutions,
    normalise_title,
    wikipedia_url,
)
from deixis.errors import InputError
from deixis.folder.model_folder import TITLE_PROBABILITY, ModelFolder, packaged_model
from deixis.knowledge.describe import Describer
from deixis.knowledge.detection import THRESHOLD, Detector, NameDetector, UnitedDetector
from deixis.knowledge.entities import Entity, KnownEntity, identities
from deixis.knowledge.knowledge import Knowledge
from deixis.knowledge.source import CandidateSource
from deixis.knowledge.vocabulary import Vocabulary
from deixis.network.detector import LearnedDetector
from deixis.network.encoding import Tokenizer
from deixis.network.kept_words import KeptWords
from deixis.network.model import Network
from deixis.network.precision import calibration_batch, check_precision, compute_in
from deixis.network.special import SPECIAL
from deixis.settings import Find, Precision, Settings

__all__ = ["Disambiguator"]

FOUND_TOGETHER = 64  # texts whose mentions are found in one go


@dataclass
class Disambiguator:
    """A network with its tokenizer, what it knows and, where there are any, a source of candidates and a detector.

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
    knowledge: Knowledge | Vocabulary
    candidates: CandidateSource | None = None  # of mentions that come without: the names of the knowledge
    detector: Detector | None = None  # finds the mentions of plain texts
    answer_threshold: float = 0.0  # the least probability of an answer in `link`
    prior: float = 0.0  # the weight of log p(e|m) in `link`
    answer_rule: AnswerRule | None = None  # makes probabilities of the evidence for answers
    title_probability: float = TITLE_PROBABILITY  # of an answer of which nothing but the title is known
    describer: Describer | None = None  # makes rows of new entities
    added: tuple[bytes, ...] = ()  # the entities that were added, as JSON
    wikidata: Mapping[str, str] = field(default_factory=dict)  # titles to ids, told in the results
    domain: str = DOMAIN  # of the wiki whose pages the entities are
    batch_rows: int = 8192  # padded rows of a batch: bounds memory
    group: int = 256  # windows sorted by length together
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    def __post_init__(self) -> None:
        self.network.to(self.device).eval()
        self._identities = identities(self.added)
        self._lines = dict(zip(self._identities, self.added, strict=True))  # by title

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
            >>> "Falcon (boat)" in Disambiguator.load("velm/model").knowledge
            True
        """
        device = torch.device(device)
        precision = precision or ("bf16" if device.type == "cuda" else "fp32")
        check_precision(precision, device)
        parts = ModelFolder.load(packaged_model() if folder is None else Path(folder))
        least = next(x for x in (detection_threshold, parts.linking.names, THRESHOLD) if x is not None)
        if precision == "int8":
            first, last = len(SPECIAL), len(parts.knowledge)
            some = map(parts.knowledge.title, range(first, last, max(1, (last - first) // 128)))
            compute_in(parts.network, precision, calibration_batch(parts.tokenizer, [*SPECIAL, *some]))
        else:
            compute_in(parts.network, precision)
        assert parts.folder is not None, "it was loaded"
        return cls(
            parts.network,
            parts.tokenizer,
            parts.knowledge,
            parts.names,
            _detector(parts, least),
            parts.linking.answers,
            parts.linking.prior,
            parts.linking.rule,
            parts.linking.title_probability,
            parts.describer,
            parts.known,
            domain=Manifest.load(parts.folder / MANIFEST, "model").parameters.get("domain", DOMAIN),
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
        if self.candidates is not None and self.candidates is not self.knowledge:
            raise InputError("names are added to those of the model; this one has another source of candidates")
        parts = ModelFolder(self.network, self.tokenizer, self.knowledge, describer=self.describer, known=self.added)
        more = add(parts, new, clashes=clashes)
        detector = self.detector
        if isinstance(detector, NameDetector) and more.names is not None:
            detector = replace(detector, names=more.names)
        elif isinstance(detector, UnitedDetector) and more.names is not None:
            learned = LearnedDetector(more.network, self.tokenizer, detector.learned.head, detector.learned.threshold)
            detector = replace(detector, learned=learned, names=replace(detector.names, names=more.names))
        return replace(
            self,
            network=more.network,
            knowledge=more.knowledge,
            candidates=more.names,
            detector=detector,
            added=more.known,
        )

    @property
    def vocabulary(self) -> Vocabulary:
        """The entities in the order of their rows; of knowledge it is made when asked for.

        Examples:
            >>> "Falcon (boat)" in Disambiguator.load("velm/model").vocabulary
            True
        """
        return self.knowledge if isinstance(self.knowledge, Vocabulary) else self.knowledge.vocabulary

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
        return self._resolve(self._find(texts, settings.find, keep=settings.windows == "overlapping"), settings)

    def link_frame(self, frame: Frame, column: str = "text", settings: Settings | None = None, **changes: Any) -> Frame:
        """Find and resolve the mentions of a column of texts: a frame of pandas or polars with one row a mention.

        The columns of a text are repeated for each of its mentions, as `explode` would; of pandas the index too.

        Examples:
            >>> import pandas
            >>> nlp = Disambiguator.load("velm/model")
            >>> news = pandas.DataFrame({"id": [7, 8], "text": ["Nobody.", "After the Silver Oar came Marlow."]})
            >>> nlp.link_frame(news)[["id", "mention", "entity"]].values.tolist()
            [[8, 'Silver Oar', 'Velm Cup (rowing)'], [8, 'Marlow', 'Ada Marlow (rower)']]
        """
        return linked_frame(frame, column, lambda texts: self.link_many(texts, settings, **changes))

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
            evidence=self.answer_rule is not None if settings.evidence is None else settings.evidence,
            windows=settings.windows or "overlapping",
        )

    def find(self, text: str | Document) -> Document:
        """Return the text with the mentions that the detector finds; a document with mentions as it is.

        Examples:
            >>> document = Disambiguator.load("velm/model").find("After the Silver Oar came Marlow.")
            >>> [document.surface(mention) for mention in document.mentions]
            ['Silver Oar', 'Marlow']
        """
        return next(self.find_many([text]))

    def find_many(self, texts: Iterable[str | Document], find: Find = "names") -> Iterator[Document]:
        """Yield many texts with the mentions that the detector finds, in their order; see `find`.

        Examples:
            >>> documents = Disambiguator.load("velm/model").find_many(["After the Silver Oar.", "Marlow won."])
            >>> [len(document.mentions) for document in documents]
            [1, 1]
        """
        return (document for document, _ in self._find(texts, find, keep=False))

    def _find(
        self, texts: Iterable[str | Document], find: Find, *, keep: bool
    ) -> Iterator[tuple[Document, KeptWords | None]]:
        """Yield texts with their mentions and, if asked for and possible, with what is kept of their words."""
        stream = (Document(text) if isinstance(text, str) else text for text in texts)
        while documents := list(islice(stream, FOUND_TOGETHER)):
            unread = [document.text for document in documents if not document.mentions]
            if unread and self.detector is None:
                raise InputError("this model has no names to find mentions by; give it a detector, or give mentions")
            found = iter(self._read(unread, find, keep=keep))
            for document in documents:
                if document.mentions:
                    yield document, None
                else:
                    mentions, kept = next(found)
                    yield replace(document, mentions=tuple(mentions)), kept

    def _read(
        self, texts: list[str], find: Find, *, keep: bool
    ) -> Iterable[tuple[Iterable[Mention], KeptWords | None]]:
        """Find the mentions of texts; the detector's words can be kept if it reads with the network that decides."""
        detector = self.detector
        if keep and isinstance(detector, UnitedDetector) and detector.learned.network is self.network:
            return detector.read(texts, find)
        if isinstance(detector, NameDetector | UnitedDetector):
            return ((mentions, None) for mentions in detector.find(texts, find))
        return (([Mention(*span) for span in detector.detect(text)], None) for text in texts if detector is not None)

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
            >>> from deixis import Candidate
            >>> nlp = Disambiguator.load("velm/model")
            >>> falcon = (Candidate("Falcon (boat)"), Candidate("Falcon (opening)"))  # in place of the store's
            >>> texts = ("The Silver Oar, then the Falcon.", "The Golden Rook, then the Falcon.")
            >>> mentions = [(Mention(4, end), Mention(end + 11, end + 17, candidates=falcon)) for end in (14, 15)]
            >>> [resolutions[1].entity for resolutions in nlp.disambiguate_many(map(Document, texts, mentions))]
            ['Falcon (boat)', 'Falcon (opening)']
        """
        settings = (settings or Settings()).changed(**changes)
        return self._resolve(((document, None) for document in documents), settings)

    def _resolve(
        self, documents: Iterable[tuple[Document, KeptWords | None]], settings: Settings
    ) -> Iterator[Resolutions]:
        """Resolve the mentions of documents, going on from what was kept of their words."""
        arbitrary = self._arbitrary() if settings.evidence else None
        scheduler = Scheduler(self.network, self.tokenizer, self.batch_rows, self.group, self.device, arbitrary)
        rule = self.answer_rule if settings.evidence else None
        for pending in scheduler.decide((self._begin(*document, settings) for document in documents), settings):
            yield pending.finish(settings.answer_threshold, self._identified, rule)

    def entity(self, title: str) -> KnownEntity | None:
        """Return what is known of an entity, by its title or by one that leads to it; None: there is no such entity.

        Examples:
            >>> nlp = Disambiguator.load("velm/model")
            >>> nlp.entity("velm Cup (rowing)").url
            'https://en.wikipedia.org/wiki/Velm_Cup_(rowing)'
            >>> print(nlp.entity("Atlantis"))
            None
        """
        number = self.knowledge.number(normalise_title(title))
        if number is None:
            return None
        title = self.knowledge.title(number)
        if isinstance(self.knowledge, Vocabulary):
            links, known_by = self.knowledge.counts[number], None
        else:
            links, known_by = self.knowledge.links(number), self.knowledge.known_by(number)
        known = KnownEntity(title, wikipedia_url(title), known_by=known_by, links=links)
        if (identity := self._identity(title, number)) is not None:
            known = replace(known, **identity._asdict())
        if title in self._lines:
            entity = Entity.from_json(self._lines[title])
            names = tuple(name.surface for name in entity.names)
            known = replace(known, description=entity.description, names=names)
        return known

    def _arbitrary(self) -> torch.Tensor:
        """Return some rows of B, always the same."""
        entities = self.network.config.entities - len(SPECIAL)
        return len(SPECIAL) + torch.arange(min(ARBITRARY, entities)) * max(1, entities // ARBITRARY)

    def _begin(self, document: Document, kept: KeptWords | None, settings: Settings) -> PendingDocument:
        """Look up what may be meant; mentions of which the network knows no candidate are resolved by prior."""
        lists, priors = list_candidates(
            document, self.candidates, with_priors=bool(settings.prior or settings.evidence)
        )
        choices = [choices_of(*pair, self.knowledge, settings) for pair in zip(lists, priors, strict=True)]
        resolutions = [
            None if choice.rows else self._unscored(document, place, lists[place])
            for place, choice in enumerate(choices)
        ]
        told = priors if settings.evidence else None
        return PendingDocument(document, choices, resolutions, {} if settings.trace else None, told, kept)

    def _unscored(self, document: Document, place: int, candidates: tuple[Candidate, ...]) -> Resolution:
        """Resolve a mention that the network cannot score: by prior, by title, or not at all."""
        if candidates:
            return resolve_by_prior(document, place, candidates)
        mention = document.mentions[place]
        if mention.candidates is not None:
            return unresolved(document, place, "no candidates")
        if self.candidates is None:
            return unresolved(document, place, "no names")
        title = None
        # Where candidates are from elsewhere, titles of the model's wiki say nothing.
        if self.candidates is self.knowledge and isinstance(self.knowledge, Knowledge):
            title = self.knowledge.title_named(document.surface(mention))
        if title is None:
            return unresolved(document, place, "no candidates")
        return resolve_by_title(document, place, title, self.title_probability)

    def _identified(self, resolution: Resolution) -> Resolution:
        """Say of an answer how its entity is known, where it is found and what it is called elsewhere."""
        title, knowledge, known_by = resolution.entity or "", self.knowledge, resolution.known_by
        number = None if isinstance(knowledge, Vocabulary) else knowledge.number(title)
        if number is not None and not isinstance(knowledge, Vocabulary):
            known_by = knowledge.known_by(number)
        return replace(resolution, identity=self._identity(title, number), known_by=known_by)

    def _identity(self, title: str, number: int | None) -> Identity | None:
        """Return where an entity is found and what it is called elsewhere; None: its page in the English Wikipedia."""
        own, wikidata = self._identities.get(title), self.wikidata.get(title)
        if wikidata is None and number is not None and not isinstance(self.knowledge, Vocabulary):
            wikidata = self.knowledge.wikidata(number)
        if own is None and wikidata is None and self.domain == DOMAIN:
            return None
        own = Identity(wikipedia_url(title, self.domain)) if own is None else own
        return own._replace(wikidata=own.wikidata or wikidata)


def _detector(parts: ModelFolder, least: float) -> NameDetector | UnitedDetector | None:
    """Return what finds the mentions of plain texts: the names of a model, with its learned detector if it has one."""
    if parts.names is None:
        return None
    names = NameDetector(parts.names, least)
    if parts.detector is None:
        return names
    return UnitedDetector(LearnedDetector(parts.network, parts.tokenizer, parts.detector), names)
