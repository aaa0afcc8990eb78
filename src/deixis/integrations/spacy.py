"""spaCy: `nlp.add_pipe("deixis")` after any named-entity recogniser, or with our own detector.

    ent.kb_id_      the entity's title, or its Wikidata id with `kb_id="wikidata"`; "" where there is none
    ent.label_      the recogniser's, or the kind that our detector finds
    ent._.deixis    its `Resolution`: probability, kind, by what it is known, url, Wikidata id; why it was left open
    doc._.deixis    the `Resolutions`, in the order of `doc.ents` where these are the mentions

The entry point `spacy_factories` in pyproject.toml makes the pipe known by its name, without importing this module.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from deixis.documents import Document, Identity, Mention, Resolution, Resolutions
from deixis.errors import InputError, MissingExtra
from deixis.inference import Disambiguator
from deixis.settings import Settings

try:
    from spacy import load as load_pipeline
    from spacy.language import Language
    from spacy.tokens import Doc, Span
    from spacy.util import filter_spans
except ImportError as error:
    if (error.name or "").split(".")[0] == "spacy":
        raise MissingExtra("spaCy", "spacy") from None
    raise

__all__ = ["LEFT_OUT", "DeixisPipe", "SpacyDetector", "displacy_ents", "make_pipe"]

# Labels of spaCy's pipelines that name nothing of which there is an article.
LEFT_OUT = ("CARDINAL", "DATE", "MONEY", "ORDINAL", "PERCENT", "QUANTITY", "TIME")
# spaCy's own labels of the kinds of names that our detector finds.
LABELS = {
    "person": "PERSON",
    "organisation": "ORG",
    "place": "LOC",
    "work": "WORK_OF_ART",
    "product": "PRODUCT",
    "event": "EVENT",
    "group": "NORP",
}
UNNAMED = "ENTITY"  # the label of a mention whose kind is not known
# The kinds of what recognisers find, by their labels.
KINDS = {label: kind for kind, label in LABELS.items()} | {
    "PER": "person",
    "GPE": "place",
    "FAC": "place",
    "LAW": "work",
    "MISC": "other",
}
BATCH = 64
CONFIG = "deixis.json"
KEPT = "deixis"  # in a document's user data, as plain lists: documents travel between processes


TOLD = tuple(one.name for one in fields(Resolution) if one.name != "evidence")  # what documents keep of a resolution


def _resolutions(doc: Doc) -> Resolutions | None:
    """Return what was decided for the mentions of a document, None where the pipe has not run."""
    kept = doc.user_data.get(KEPT)
    if kept is None:
        return None
    items = tuple(map(_told, kept))
    return Resolutions(Document(doc.text, tuple(Mention(r.start, r.end, kind=r.kind) for r in items)), items)


def _told(kept: dict[str, Any]) -> Resolution:
    told = {name: value for name, value in kept.items() if name in TOLD}  # a later deixis may tell more
    told["alternatives"] = tuple(map(tuple, told["alternatives"]))
    told["identity"] = None if told["identity"] is None else Identity(*told["identity"])
    return Resolution(**told)


def _keep(doc: Doc, resolutions: Resolutions) -> None:
    kept = []
    for resolution in resolutions:
        told = {name: getattr(resolution, name) for name in TOLD}
        told["alternatives"] = [list(pair) for pair in resolution.alternatives]
        told["identity"] = None if resolution.identity is None else list(resolution.identity)
        kept.append(told)
    doc.user_data[KEPT] = kept


def _resolution(span: Span) -> Resolution | None:
    """Return what was decided for an entity, None for a span that is no mention."""
    place = span.start_char, span.end_char
    return next((found for found in _resolutions(span.doc) or () if (found.start, found.end) == place), None)


if not Doc.has_extension("deixis"):
    Doc.set_extension("deixis", getter=_resolutions)
    Span.set_extension("deixis", getter=_resolution)


class SpacyDetector:
    """The entities of a spaCy pipeline as mentions: a `Detector` for `Disambiguator.detector`."""

    def __init__(self, nlp: Language, left_out: Iterable[str] = LEFT_OUT) -> None:
        self._nlp, self._left_out = nlp, frozenset(left_out)

    @classmethod
    def load(cls, name: str) -> SpacyDetector:
        """Open a pipeline by its name or folder."""
        try:
            return cls(load_pipeline(name))
        except OSError:
            raise InputError(f"there is no spaCy pipeline {name}; run: python -m spacy download {name}") from None

    def detect(self, text: str) -> list[tuple[int, int]]:
        """Return the spans of the entities."""
        ents = self._nlp(text).ents
        return [(ent.start_char, ent.end_char) for ent in ents if ent.label_ not in self._left_out]


class DeixisPipe:
    """A pipe that gives entities of a spaCy document their titles or Wikidata ids."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.name = name
        self._open(config)

    def _open(self, config: dict[str, Any]) -> None:
        for key, allowed in ALLOWED.items():
            if config[key] not in allowed:
                raise InputError(f"{key} is {config[key]!r}; expected one of {', '.join(allowed)}")
        self.config = dict(config)
        settings = Settings(order=config["order"], answer_threshold=config["answer_threshold"])
        self._left_out = frozenset(config["left_out"])
        self.disambiguator = Disambiguator.load(config["model"] or None, config["device"])
        self._settings = self.disambiguator.for_texts(settings)

    def __call__(self, doc: Doc) -> Doc:
        """Resolve the mentions of one document."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = BATCH) -> Iterator[Doc]:
        """Resolve the mentions of many documents, batched together."""
        waiting = iter(stream)
        while docs := list(islice(waiting, batch_size)):
            for doc, resolutions in zip(docs, self._linked(docs), strict=True):
                _keep(doc, resolutions)
                doc.set_ents(_linked_ents(doc, resolutions, self.config["kb_id"]))
                yield doc

    def _linked(self, docs: list[Doc]) -> Iterator[Resolutions]:
        """Yield the resolutions of documents: of the entities of a recogniser, or of what our detector finds."""
        mentions = self.config["mentions"]
        ours = [mentions == "deixis" or (mentions == "auto" and not doc.has_annotation("ENT_IOB")) for doc in docs]
        pairs = list(zip(docs, ours, strict=True))
        texts, known = [doc.text for doc, own in pairs if own], [self._recognised(doc) for doc, own in pairs if not own]
        found = self.disambiguator.link_many(texts, self._settings)
        given = self.disambiguator.disambiguate_many(known, self._settings)
        yield from (next(found if own else given) for own in ours)

    def _recognised(self, doc: Doc) -> Document:
        kept = [ent for ent in doc.ents if ent.label_ not in self._left_out]
        return Document(
            doc.text, tuple(Mention(ent.start_char, ent.end_char, kind=KINDS.get(ent.label_)) for ent in kept)
        )

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the pipe's configuration; the model stays in its folder."""
        return orjson.dumps(self.config)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> DeixisPipe:
        """Take up a configuration, and open its model."""
        config = DEFAULTS | orjson.loads(data)  # an earlier deixis wrote fewer keys
        if config != self.config:  # the model is open already where nothing differs
            self._open(config)
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the pipe's configuration; the model stays in its folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / CONFIG).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> DeixisPipe:
        """Take up a configuration, and open its model."""
        return self.from_bytes((Path(path) / CONFIG).read_bytes())


def _linked_ents(doc: Doc, resolutions: Resolutions, kb_id: str) -> list[Span]:
    """Return the document's entities with their ids, and the mentions that were not among them."""
    by_span = {(resolution.start, resolution.end): resolution for resolution in resolutions}
    ents = []
    for ent in doc.ents:
        resolution = by_span.pop((ent.start_char, ent.end_char), None)
        ents.append(ent if resolution is None else _linked(doc, ent, resolution, kb_id))
    for resolution in by_span.values():  # a mention within a token becomes the whole token
        span = doc.char_span(resolution.start, resolution.end, alignment_mode="expand")
        if span is not None:
            # Of spans that overlap the longest stays; what a recogniser said of a part of it is kept.
            part = next((ent for ent in span.ents if ent.label_ in KINDS), None)
            named = Span(doc, span.start, span.end, label=part.label, span_id=part.id) if part else span
            ents.append(_linked(doc, named, resolution, kb_id))
    return filter_spans(ents)


def _linked(doc: Doc, span: Span, resolution: Resolution, kb_id: str) -> Span:
    label = span.label_ or LABELS.get(resolution.kind or "", UNNAMED)
    return Span(doc, span.start, span.end, label=label, kb_id=_kb_id(resolution, kb_id), span_id=span.id)


def _kb_id(resolution: Resolution, kb_id: str) -> str:
    if kb_id == "title" or resolution.entity is None:
        return resolution.entity or ""
    return resolution.wikidata or ""


def displacy_ents(doc: Doc) -> dict[str, Any]:
    """Return what displaCy draws: the entities of a document, each with a link to its own page.

        displacy.render(displacy_ents(doc), style="ent", manual=True)

    displaCy itself knows one template of addresses for all entities; entities of your own and other wikis have others.
    """
    resolutions = _resolutions(doc) or ()
    ents = []
    for ent in doc.ents:
        drawn = {"start": ent.start_char, "end": ent.end_char, "label": ent.label_}
        linked = next((r for r in resolutions if ent.start_char <= r.start and r.end <= ent.end_char), None)
        if linked is not None and linked.entity is not None:  # displaCy escapes texts, but neither ids nor addresses
            drawn |= {"kb_id": html.escape(ent.kb_id_ or linked.entity), "kb_url": html.escape(linked.url or "#")}
        ents.append(drawn)
    return {"text": doc.text, "ents": ents, "title": doc.user_data.get("title")}


ALLOWED = {"mentions": ("auto", "ents", "deixis"), "kb_id": ("title", "wikidata")}
DEFAULTS = {
    "model": "",
    "mentions": "auto",
    "kb_id": "title",
    "order": "confidence",
    "answer_threshold": None,
    "left_out": list(LEFT_OUT),
    "device": "cpu",
}


@Language.factory("deixis", default_config=DEFAULTS, assigns=["doc.ents", "token.ent_kb_id", "doc._.deixis"])
def make_pipe(
    nlp: Language,
    name: str,
    model: str,
    mentions: str,
    kb_id: str,
    order: str,
    answer_threshold: float | None,
    left_out: list[str],
    device: str,
) -> Callable[[Doc], Doc]:
    """Make the pipe.

    `mentions` are the document's entities ("ents"), those that our detector finds ("deixis"), or entities where a
    recogniser has run before, else the detector's ("auto"). Entities with a label of `left_out` stay untouched.
    `kb_id` is what entities are given: the "title", or the "wikidata" id where it is known.
    """
    given = {"model": str(model), "mentions": mentions, "kb_id": kb_id, "order": order, "device": device}
    return DeixisPipe(name, given | {"answer_threshold": answer_threshold, "left_out": list(left_out)})
