"""What finding the mentions costs: plain text to answers beside the same mentions and candidates given beforehand.

    python benchmarks/one_read.py --model MODEL --data BENCHMARKS --set aida-b --detector DETECTOR
    python benchmarks/one_read.py … --every 4 --rounds 5 --threads 1
    python benchmarks/one_read.py … --profile 20    # where the time of plain text goes, function by function

Ways, which take turns text by text, over the same weights:

    one read      words see words, so that disambiguation goes on from what the detector read
    given         the same model; the mentions of "one read" and their candidates are given
    two reads     the model's own pattern and the same detector
    dictionary    the model's own pattern; mentions are found by its names alone

A model with another pattern gives meaningless answers in the first two ways; their cost is that of one trained so. With
one thread seconds are of the CPU, which others on the machine disturb less, else of the wall; medians of the rounds.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

import torch

import deixis
from deixis.datasets.catalogue import read_texts
from deixis.documents import Document, Mention
from deixis.inference import Disambiguator
from deixis.knowledge.detection import NameDetector, UnitedDetector
from deixis.network.detector import DetectorHead, LearnedDetector
from deixis.rendering import Table

COLUMNS = ("way", "seconds", "beside given", "mentions", "passes")


def with_detector(nlp: Disambiguator, head: DetectorHead) -> Disambiguator:
    """Return a model that finds mentions with a learned detector and its names."""
    names = nlp.detector.names if isinstance(nlp.detector, UnitedDetector) else nlp.detector
    assert isinstance(names, NameDetector), "the model has no names"
    return replace(nlp, detector=UnitedDetector(LearnedDetector(nlp.network, nlp.tokenizer, head), names))


def reading_once(model: Path | None, placeholder_layers: int) -> Disambiguator:
    """Open a model with the pattern changed to that in which words see words only."""
    nlp = deixis.load(model)
    config = nlp.network.config
    if config.words_see != "words":
        layers = min(config.answer_layers or placeholder_layers, placeholder_layers)
        changed = replace(config, words_see="words", placeholder_layers=placeholder_layers, answer_layers=layers)
        nlp.network.config = changed
    return nlp


def given(nlp: Disambiguator, text: str) -> Document:
    """Return a text with the mentions that are found in it and their candidates."""
    document = nlp.find(text)
    assert nlp.candidates is not None
    listed = nlp.candidates.candidates(document)
    return replace(
        document,
        mentions=tuple(
            Mention(one.start, one.end, candidates=candidates, kind=one.kind)
            for one, candidates in zip(document.mentions, listed, strict=True)
        ),
    )


def seconds() -> float:
    """Return a clock: of the CPU with one thread, else of the wall."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def measure(ways: dict[str, tuple[Disambiguator, list[list[str | Document]]]], rounds: int) -> Table:
    """Link chunks of texts in every way, in turns."""
    spent: dict[str, list[float]] = {way: [] for way in ways}
    mentions, passes = dict.fromkeys(ways, 0), dict.fromkeys(ways, 0)
    chunks = len(next(iter(ways.values()))[1])
    for number in range(rounds):
        for place in range(chunks):
            for way, (nlp, texts) in ways.items():
                if place == 0:
                    spent[way].append(0.0)
                begun = seconds()
                found = list(nlp.link_many(texts[place]))
                spent[way][number] += seconds() - begun
                if number == 0:
                    mentions[way] += sum(map(len, found))
                    passes[way] += sum(one.passes for one in found)
    middle = {way: median(each) for way, each in spent.items()}
    rows = [
        (way, f"{time_:.2f}", f"{time_ / middle['given']:.3f}", f"{mentions[way]:,}", f"{passes[way]:,}")
        for way, time_ in middle.items()
    ]
    return Table(f"{torch.get_num_threads()} threads, median of {rounds} rounds", COLUMNS, tuple(rows))


def profiled(nlp: Disambiguator, texts: Sequence[str | Document], most: int) -> None:
    """Print the functions in which linking the texts spends most."""
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    list(nlp.link_many(texts))
    profile.disable()
    pstats.Stats(profile).strip_dirs().sort_stats("tottime").print_stats(most)
    pstats.Stats(profile).strip_dirs().sort_stats("cumtime").print_stats(2 * most)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print one table, or a profile."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="a model folder; that which deixis comes with if not given")
    parser.add_argument("--data", type=Path, required=True, help="the folder with the benchmarks")
    parser.add_argument("--set", default="aida-b")
    parser.add_argument("--detector", type=Path, help="a detector.safetensors, where the model has none")
    parser.add_argument("--placeholder-layers", type=int, default=6, help="where the model has another pattern")
    parser.add_argument("--every", type=int, default=1, help="take every so many texts")
    parser.add_argument("--chunk", type=int, default=16, help="texts that are linked together")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--profile", type=int, metavar="FUNCTIONS")
    options = parser.parse_args(arguments)
    torch.set_num_threads(options.threads)
    own, once = deixis.load(options.model), reading_once(options.model, options.placeholder_layers)
    if options.detector is not None:
        head = DetectorHead.load(options.detector)
    elif isinstance(own.detector, UnitedDetector):
        head = own.detector.learned.head
    else:
        parser.error("the model has no learned detector; give one with --detector")
    twice, once = with_detector(own, head), with_detector(once, head)
    texts: list[str | Document] = [one.text for one in read_texts(options.data, options.set).documents]
    texts = texts[:: options.every]
    if options.profile:
        profiled(once, texts, options.profile)
        return
    chunks = [texts[first : first + options.chunk] for first in range(0, len(texts), options.chunk)]
    marked: list[list[str | Document]] = [[given(once, str(text)) for text in chunk] for chunk in chunks]
    names = replace(own, detector=twice.detector.names) if isinstance(twice.detector, UnitedDetector) else own
    ways = {
        "one read": (once, chunks),
        "given": (once, marked),
        "two reads": (twice, chunks),
        "dictionary": (names, chunks),
    }
    words = sum(len(str(text).split()) for text in texts)
    print(f"{options.set}: {len(texts)} texts, {words:,} words")
    print(measure(ways, options.rounds).to_markdown())


if __name__ == "__main__":
    main()
