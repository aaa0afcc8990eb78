"""spaCy: `nlp.add_pipe("deixis")` after any named-entity recogniser, or with our own detector.

    ent.kb_id_      the entity's title, "" where unresolved
    ent._.deixis    its `Resolution`: probability, kind, by what it is known, url, Wikidata id; why it was left open
    doc._.deixis    the `Resolutions`, in the order of `doc.ents` where these are the mentions

The entry point `spacy_factories` in pyproject.toml makes the pipe known by its name, without importing this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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

__all__ = ["LEFT_OUT", "DeixisPipe", "SpacyDetector", "make_pipe"]

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
BATCH = 64
CONFIG = "deixis.json"
KEPT = "deixis"  # in a document's user data, as plain lists: documents travel between processes


def _resolutions(doc: Doc) -> Resolutions | None:
    """Return what was decided for the mentions of a document, None where the pipe has not run."""
    kept = doc.user_data.get(KEPT)
    if kept is None:
        return None
    items = tuple(
        Resolution(
            start, end, text, entity, p, step, tuple(map(tuple, listed)), reason, known and Identity(*known), kind, by
        )
        for start, end, text, entity, p, step, listed, reason, known, kind, by in kept
    )
    return Resolutions(Document(doc.text, tuple(Mention(item.start, item.end) for item in items)), items)


def _keep(doc: Doc, resolutions: Resolutions) -> None:
    kept = []
    for r in resolutions:
        listed, identity = list(map(list, r.alternatives)), None if r.identity is None else list(r.identity)
        told = [r.reason, identity, r.kind, r.known_by]
        kept.append([r.start, r.end, r.text, r.entity, r.probability, r.step, listed, *told])
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
    """A pipe that gives entities of a spaCy document their titles."""

    def __init__(self, name: str, config: dict[str, Any]) -> None:
        self.name = name
        self._open(config)

    def _open(self, config: dict[str, Any]) -> None:
        if config["mentions"] not in ("auto", "ents", "deixis"):
            raise InputError(f"mentions is {config['mentions']!r}; expected auto, ents or deixis")
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
        waiting: list[Doc] = []
        for doc in stream:
            waiting.append(doc)
            if len(waiting) >= batch_size:
                yield from self._annotated(waiting)
                waiting = []
        yield from self._annotated(waiting)

    def _annotated(self, docs: list[Doc]) -> Iterator[Doc]:
        documents = [self._document(doc) for doc in docs]
        answers = self.disambiguator.disambiguate_many(documents, self._settings)
        for doc, resolutions in zip(docs, answers, strict=True):
            _annotate(doc, resolutions)
            yield doc

    def _document(self, doc: Doc) -> Document:
        mentions = self.config["mentions"]
        if mentions == "ents" or (mentions == "auto" and doc.has_annotation("ENT_IOB")):
            kept = [ent for ent in doc.ents if ent.label_ not in self._left_out]
            return Document(doc.text, tuple(Mention(ent.start_char, ent.end_char) for ent in kept))
        return self.disambiguator.find(doc.text)

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the pipe's configuration; the model stays in its folder."""
        return orjson.dumps(self.config)

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> DeixisPipe:
        """Take up a configuration, and open its model."""
        self._open(orjson.loads(data))
        return self

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the pipe's configuration; the model stays in its folder."""
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / CONFIG).write_bytes(self.to_bytes())

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> DeixisPipe:
        """Take up a configuration, and open its model."""
        return self.from_bytes((Path(path) / CONFIG).read_bytes())


def _annotate(doc: Doc, resolutions: Resolutions) -> None:
    """Set the titles of the document's entities, and add the mentions that were not among them."""
    _keep(doc, resolutions)
    titles = {(resolution.start, resolution.end): resolution.entity for resolution in resolutions}
    known = {(ent.start_char, ent.end_char) for ent in doc.ents}
    kept = [_titled(doc, ent, titles[ent.start_char, ent.end_char]) if _in(ent, titles) else ent for ent in doc.ents]
    labels = {(r.start, r.end): LABELS.get(r.kind or "", "ENTITY") for r in resolutions}
    added = (doc.char_span(*span, label=labels[span], alignment_mode="expand") for span in titles if span not in known)
    new = [_titled(doc, span, titles.get((span.start_char, span.end_char))) for span in added if span is not None]
    doc.set_ents(filter_spans([*kept, *new]))


def _in(ent: Span, titles: dict[tuple[int, int], str | None]) -> bool:
    return (ent.start_char, ent.end_char) in titles


def _titled(doc: Doc, span: Span, title: str | None) -> Span:
    return Span(doc, span.start, span.end, label=span.label, kb_id=title or "")


DEFAULTS = {
    "model": "",
    "mentions": "auto",
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
    order: str,
    answer_threshold: float | None,
    left_out: list[str],
    device: str,
) -> Callable[[Doc], Doc]:
    """Make the pipe.

    `mentions` are the document's entities ("ents"), those that our detector finds ("deixis"), or entities where a
    recogniser has run before, else the detector's ("auto"). Entities with a label of `left_out` stay untouched.
    """
    return DeixisPipe(
        name,
        {
            "model": str(model),
            "mentions": mentions,
            "order": order,
            "answer_threshold": answer_threshold,
            "left_out": list(left_out),
            "device": device,
        },
    )
