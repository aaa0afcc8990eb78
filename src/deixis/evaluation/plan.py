"""Which sets, candidates and orders to evaluate, and doing it: `carry_out(plan, model)`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from deixis.datasets import NotInFolder, attach_source, open_dataset, read_redirects, read_titles
from deixis.datasets.dataset import Dataset
from deixis.datasets.published import Coreference
from deixis.documents import Resolutions
from deixis.errors import InputError
from deixis.evaluation.paper import FIVE
from deixis.evaluation.running import Disambiguates, Run, SetResult, describe, run_order
from deixis.evaluation.settings import TOP, DataSettings, SetsSettings
from deixis.knowledge.names import Names
from deixis.knowledge.source import CandidateSource
from deixis.settings import Settings

__all__ = ["LISTS", "PAPER_SETS", "Outcome", "Plan", "carry_out", "open_stores", "pairs_of", "prepared"]

LISTS = ("kb+yago", "ppr")  # candidate lists that come with the data
PAPER_SETS = ("aida-b", *FIVE)
Watch = Callable[[str, int, Iterator[Resolutions]], Iterable[Resolutions]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is evaluated: sets with candidates, and how they are read and answered."""

    data: Path
    pairs: tuple[tuple[str, str], ...]  # (set, candidates): kb+yago, ppr, given, or a key of `stores`
    settings: SetsSettings = field(default_factory=SetsSettings)
    stores: Mapping[str, CandidateSource] = field(default_factory=dict)
    redirects: Mapping[str, str] = field(default_factory=dict)
    titles: frozenset[str] | None = None

    @classmethod
    def read(
        cls,
        data: Path,
        pairs: tuple[tuple[str, str], ...],
        settings: DataSettings,
        stores: Mapping[str, CandidateSource],
        lead: Callable[[dict[str, str]], Mapping[str, str]] = lambda table: table,
    ) -> Plan:
        """Read the tables that the settings name; `lead` adds the titles that a model knows to lead to its entities."""
        redirects = lead({} if settings.redirects is None else read_redirects(settings.redirects))
        titles = None if settings.titles is None else frozenset(read_titles(settings.titles))
        return cls(data, pairs, SetsSettings(**settings.given()), stores, redirects, titles)

    @property
    def coreference(self) -> Coreference:
        """How persons take over candidates; the released code of 2021 reads lists that it has already replaced."""
        given = self.settings
        return "in_place" if given.coreference == "original" and given.released == "2021" else given.coreference

    def to_record(self) -> dict[str, Any]:
        """Return the JSON object of all that the figures depend on but for the model and the data."""
        settings = self.settings
        return {
            "orders": list(settings.order),
            "priors": list(settings.prior),
            "windows": settings.windows,
            "commit": settings.commit,
            "released": settings.released,
            "top": settings.top or TOP,
            "cut_ppr": settings.top is not None,
            "redirects": len(self.redirects),
            "titles": None if self.titles is None else len(self.titles),
            "coreference": self.coreference,
            "drop_first": settings.released is not None,
            "limit": settings.limit,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results, and one sentence for each pair that the data has no candidates for."""

    plan: Plan
    results: tuple[SetResult, ...]
    missing: tuple[str, ...]


def pairs_of(sets: Sequence[str], candidates: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Pair sets with candidates, the sets of the paper if none is named; PPRforNED is for AIDA only.

    Without candidates every set is paired with KB+YAGO, and the paper's also with PPRforNED.
    """
    given = candidates or (("kb+yago",) if sets else LISTS)
    chosen = sets or PAPER_SETS
    pairs = [(name, lists) for name in chosen for lists in given if lists != "ppr" or name.startswith("aida")]
    return tuple(pairs) or tuple(product(chosen, given))


def open_stores(names: Iterable[str], own: CandidateSource | None, top: int | None) -> dict[str, CandidateSource]:
    """Open the names among the candidates: those of the model (`model`), or folders."""
    stores: dict[str, CandidateSource] = {}
    for name in names:
        if name == "model":
            if own is None:
                raise InputError("--candidates model needs a model that has names")
            stores[name] = own
        elif name not in (*LISTS, "given"):
            if not Path(name).is_dir():
                raise InputError(f"--candidates {name}: expected kb+yago, ppr, model, given or a folder with names")
            stores[name] = Names.open(Path(name), k=top or TOP)
    return stores


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
    settings = plan.settings
    dataset = open_dataset(
        plan.data,
        name,
        candidates if candidates in LISTS else "none",
        coreference=plan.coreference,
        drop_first=settings.released is not None,
    )
    if settings.limit is not None:
        dataset = dataset.first(settings.limit)
    if plan.redirects:
        dataset = dataset.redirected(plan.redirects)
    if plan.titles is not None:
        dataset = dataset.among(plan.titles)
    if candidates in plan.stores:
        # Their titles are the model's own and are not renamed; redirects are applied when answers are compared.
        dataset = attach_source(dataset, plan.stores[candidates], f"the names {candidates}")
    if candidates != "ppr" or settings.top is not None:  # protocol 4: PPRforNED's lists stay whole
        dataset = dataset.top(settings.top or TOP)
    return dataset


def _evaluated(plan: Plan, dataset: Dataset, candidates: str, model: Disambiguates | None, watch: Watch) -> SetResult:
    runs: list[Run] = []
    recall = None
    if all(mention.candidates is not None for document in dataset.documents for mention in document.mentions):
        recall, baseline = describe(dataset, plan.redirects)
        runs.append(baseline)
    if model is not None:
        given = plan.settings
        for order, prior in product(given.order, given.prior):
            shown = partial(watch, f"{dataset.name} {candidates} {order}", len(dataset.documents))
            # top=None: the lists are cut already, and PPRforNED's never are.
            settings = Settings(
                order=order, windows=given.windows, commit=given.commit, released=given.released, prior=prior, top=None
            )
            runs.append(run_order(model, dataset, settings, redirects=plan.redirects, watch=shown))
    return SetResult(dataset, candidates, recall, tuple(runs))
