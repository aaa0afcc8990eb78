"""deixis: which Wikipedia entity does each name in a text mean?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions
from deixis.errors import ArtefactError, DeixisError, InputError, MissingExtra

if TYPE_CHECKING:
    from deixis.inference import Disambiguator
    from deixis.settings import Precision, Settings

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

__version__ = "0.3.0"


def load(folder: str | Path | None = None, device: str = "cpu", precision: Precision | None = None) -> Disambiguator:
    """Open a model folder, or `hf://owner/name` from a hub; without one, the model that deixis comes with.

    `precision="int8"` is 1.4 to 1.6 times as fast on a CPU; on a GPU it is bf16 if nothing is given.

    Examples:
        >>> import deixis
        >>> nlp = deixis.load("velm/model")
        >>> [resolution.entity for resolution in nlp("After the Silver Oar came Marlow.")]
        ['Velm Cup (rowing)', 'Ada Marlow (rower)']
    """
    from deixis.inference import Disambiguator

    return Disambiguator.load(folder, device, precision=precision)


def __getattr__(name: str) -> Any:
    # Torch is imported when it is first needed, so that `import deixis` and `--help` stay instant.
    if name == "Disambiguator":
        from deixis.inference import Disambiguator

        return Disambiguator
    if name == "Settings":
        from deixis.settings import Settings

        return Settings
    raise AttributeError(f"module 'deixis' has no attribute {name!r}")
