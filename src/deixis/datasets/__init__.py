"""Benchmark data in: one reader a format, all giving documents and a report of what was not taken as it stands."""

from __future__ import annotations

from deixis.datasets.catalogue import SETS, NotInFolder, attach_source, open_dataset, read_set, read_texts
from deixis.datasets.dataset import Dataset, Report
from deixis.datasets.jsonl import read_jsonl, stream_documents
from deixis.datasets.lists import import_lists
from deixis.wikipedia.redirects import read_redirects
from deixis.wikipedia.titles import read_titles

__all__ = [
    "SETS",
    "Dataset",
    "NotInFolder",
    "Report",
    "attach_source",
    "import_lists",
    "open_dataset",
    "read_jsonl",
    "read_redirects",
    "read_set",
    "read_texts",
    "read_titles",
    "stream_documents",
]
