"""deixis: which Wikipedia entity does each name in a text mean?"""

from __future__ import annotations

from deixis.documents import Candidate, Document, Mention, Resolution, Resolutions
from deixis.errors import ArtefactError, DeixisError, InputError, MissingExtra

__all__ = [
    "ArtefactError",
    "Candidate",
    "DeixisError",
    "Document",
    "InputError",
    "Mention",
    "MissingExtra",
    "Resolution",
    "Resolutions",
]

__version__ = "0.1.0"
