"""The paper's own figures (its tables 1 to 3), to stand beside ours."""

from __future__ import annotations

__all__ = ["FIVE", "FREQUENCY_BINS", "PAPER", "PAPER_FREQUENCY", "paper_figure"]

FIVE = ("msnbc", "aquaint", "ace2004", "cweb", "wiki")
_COLUMNS = (("aida-b", "kb+yago"), ("aida-b", "ppr"), *((name, "kb+yago") for name in FIVE))
_ROWS = {
    ("zero-shot", "confidence"): (92.4, 94.6, 96.3, 93.5, 91.9, 78.9, 89.1),
    ("zero-shot", "natural"): (91.7, 94.0, 96.1, 92.9, 91.9, 78.4, 89.2),
    ("zero-shot", "local"): (90.8, 94.0, 96.1, 91.9, 91.9, 78.4, 88.8),
    ("fine-tuned", "confidence"): (95.0, 97.1, 94.1, 91.5, 90.7, 78.3, 87.6),
    ("fine-tuned", "natural"): (94.8, 97.0, 94.1, 90.9, 90.7, 78.3, 87.4),
    ("fine-tuned", "local"): (94.5, 96.8, 94.1, 90.8, 90.7, 78.2, 87.2),
}

# (variant, order) -> {(set, candidates): per cent}
PAPER = {row: dict(zip(_COLUMNS, figures, strict=True)) for row, figures in _ROWS.items()}

# Table 3: annotations of the gold entity in the training corpus, both ends included.
FREQUENCY_BINS: tuple[tuple[int, int | None], ...] = ((0, 0), (1, 10), (11, 50), (51, None))
PAPER_FREQUENCY = {  # the first bin as printed there
    "confidence": (1.0, 95.55, 96.98, 96.64),
    "natural": (1.0, 95.55, 96.70, 96.38),
    "local": (1.0, 95.55, 96.43, 95.80),
}


def paper_figure(variant: str, order: str, name: str, candidates: str) -> float | None:
    """Return what the paper reports, in per cent, or None where it reports nothing."""
    return PAPER.get((variant, order), {}).get((name, candidates))
