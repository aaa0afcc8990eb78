"""Which sets, candidates and orders to evaluate, and doing it: `carry_out(plan, model)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from deixis.datasets import SETS, NotInFolder, attach_source, open_dataset
from deixis.datasets.dataset import Dataset
from deixis.datasets.published import Coreference
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.evaluation.paper import FIVE
from deixis.evaluation.running import Disambiguates, Run, SetResult, describe, run_order
from deixis.knowledge.source import CandidateSource

__all__ = ["LISTS", "PAPER_SETS", "Outcome", "Plan", "carry_out", "pairs_of", "prepared"]

LISTS = ("kb+yago", "ppr")  # candidate lists that come with the data
PAPER_SETS = ("aida-b", *FIVE)
Watch = Callable[[str, int, Iterator[Resolutions]], Iterable[Resolutions]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is evaluated; the defaults follow the paper's text."""

    data: Path
    pairs: tuple[tuple[str, str], ...]  # (set, candidates): kb+yago, ppr, given, or a key of `stores`
    orders: tuple[str, ...] = ("local", "natural", "confidence")
    priors: tuple[float, ...] = (0.0,)  # weights of log p(e|m), each with every order; 0: the paper
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the model: windows, unknown, commit
    stores: Mapping[str, CandidateSource] = field(default_factory=dict)
    top: int | None = 30
    cut_ppr: bool = False  # protocol 4: these lists stay whole
    redirects: Mapping[str, str] = field(default_factory=dict)
    titles: frozenset[str] | None = None
    coreference: Coreference = "original"
    drop_first: bool = False
    limit: int | None = None

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of all that the figures depend on but for the model and the data."""
        return {
            "orders": list(self.orders),
            "priors": list(self.priors),
            **self.settings,
            "top": self.top,
            "cut_ppr": self.cut_ppr,
            "redirects": len(self.redirects),
            "titles": None if self.titles is None else len(self.titles),
            "coreference": self.coreference,
            "drop_first": self.drop_first,
            "limit": self.limit,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results, and one sentence for each pair that the data has no candidates for."""

    plan: Plan
    results: tuple[SetResult, ...]
    missing: tuple[str, ...]


def pairs_of(sets: Sequence[str], candidates: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pair sets with candidates; PPRforNED is for AIDA only, so other sets are not paired with it."""
    if not sets:
        raise InputError(f"no set was named; give --set ({', '.join(SETS)}) or --all")
    pairs = [(name, given) for name in sets for given in candidates if given != "ppr" or name.startswith("aida")]
    return tuple(pairs) or tuple((name, given) for name in sets for given in candidates)


def carry_out(plan: Plan, model: Disambiguates | None, watch: Watch = lambda label, total, results: results) -> Outcome:
    """Read every pair and, where there is a model, run every order.

    With one pair missing candidates are an error; with several they are said, and the others go on.
    """
    results, missing = [], []
    for name, candidates in plan.pairs:
        try:
            dataset = prepared(plan, name, candidates)
        except NotInFolder as error:
            if len(plan.pairs) == 1:
                raise
            missing.append(str(error))
            with suppress(NotInFolder):  # its counts are still shown where the set itself is there
                results.append(SetResult(open_dataset(plan.data, name), f"no {candidates}", None))
            continue
        results.append(_evaluated(plan, dataset, candidates, model, watch))
    if not results:
        raise InputError("; ".join(missing))
    return Outcome(plan, tuple(results), tuple(missing))


def prepared(plan: Plan, name: str, candidates: str) -> Dataset:
    """Read a set with candidates, as the plan wants it."""
    lists = candidates if candidates in LISTS else "none"
    dataset = open_dataset(plan.data, name, lists, coreference=plan.coreference, drop_first=plan.drop_first)
    if plan.limit is not None:
        dataset = dataset.first(plan.limit)
    if plan.redirects:
        dataset = dataset.redirected(plan.redirects)
    if plan.titles is not None:
        dataset = dataset.among(plan.titles)
    if candidates in plan.stores:
        # Their titles are the model's own and are not renamed; redirects are applied when answers are compared.
        dataset = attach_source(dataset, plan.stores[candidates], f"the store {candidates}")
    if plan.top is not None and (candidates != "ppr" or plan.cut_ppr):
        dataset = dataset.top(plan.top)
    return dataset


def _evaluated(plan: Plan, dataset: Dataset, candidates: str, model: Disambiguates | None, watch: Watch) -> SetResult:
    runs: list[Run] = []
    recall = None
    if all(mention.candidates is not None for document in dataset.documents for mention in document.mentions):
        recall, baseline = describe(dataset, plan.redirects)
        runs.append(baseline)
    if model is not None:
        for order, prior in product(plan.orders, plan.priors):
            shown = partial(watch, f"{dataset.name} {candidates} {order}", len(dataset.documents))
            # top=None: the lists are cut already, and PPRforNED's never are.
            settings = {**plan.settings, "prior": prior, "top": None}
            runs.append(run_order(model, dataset, order, redirects=plan.redirects, watch=shown, **settings))
    return SetResult(dataset, candidates, recall, tuple(runs))
