"""deixis: which Wikipedia entity does each name in a text mean?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions
from deixis.errors import ArtefactError, DeixisError, InputError, MissingExtra

if TYPE_CHECKING:
    from deixis.inference import Disambiguator, Settings
    from deixis.network.precision import Arithmetic

__all__ = [
    "ArtefactError",
    "Candidate",
    "DeixisError",
    "Disambiguator",
    "Document",
    "InputError",
    "Mention",
    "MissingExtra",
    "Resolution",
    "Resolutions",
    "Settings",
    "load",
]

__version__ = "0.1.0"


def load(folder: str | Path | None = None, device: str = "cpu", arithmetic: Arithmetic | None = None) -> Disambiguator:
    """Open a model folder; without one, the model that deixis comes with.

    `arithmetic="int8"` is about twice as fast on a CPU; on a GPU it is bf16 if nothing is given.

    Examples:
        >>> import deixis
        >>> nlp = deixis.load("velm/model")
        >>> [resolution.entity for resolution in nlp("After the Silver Oar came Marlow.")]
        ['Velm Cup (rowing)', 'Ada Marlow (rower)']
    """
    from deixis.inference import Disambiguator

    return Disambiguator.load(folder, device, arithmetic=arithmetic)


def _drawn(resolutions: Resolutions) -> str:
    from deixis.rendering import linked_html

    return linked_html(resolutions)


Resolutions.drawn = _drawn


def __getattr__(name: str) -> Any:
    # Torch is imported when it is first needed, so that `import deixis` and `--help` stay instant.
    if name in ("Disambiguator", "Settings"):
        from deixis import inference

        return getattr(inference, name)
    raise AttributeError(f"module 'deixis' has no attribute {name!r}")
