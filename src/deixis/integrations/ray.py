"""Ray as the engine beyond one machine: documents linked by actors.

Ray moves the names of blocks, not their texts: an actor holds one `Disambiguator`, reads a block from the storage that
all hosts share, and writes its answers there. A killed actor is started again by Ray and does its block again; a run
that was killed as a whole goes on with the blocks that have no output.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from deixis.artefacts import MANIFEST, Manifest
from deixis.documents import Document, Resolutions
from deixis.errors import ArtefactError, DeixisError, InputError, MissingExtra

try:
    import pyarrow as pa
    import ray
    import ray.data
    from ray.exceptions import RayError
except ImportError as error:
    if (error.name or "").split(".")[0] in ("ray", "pyarrow"):
        raise MissingExtra("Ray", "ray") from None
    raise

from deixis.folder.model_folder import opened, packaged_model
from deixis.inference import Disambiguator
from deixis.integrations.blocks import Block, Row, cut, files_of, link_block, linked_table
from deixis.settings import Settings

__all__ = ["BLOCK", "Link", "cluster", "link_files"]

BLOCK = 8 << 20  # bytes of plain JSONL: what a kill can cost


class Link:
    """Links the rows of a dataset, with one model an actor; without a folder, the model that deixis comes with.

    Rows have a `text` and perhaps `mentions`; they gain `resolutions`, one a mention, and `reason`, which says of a
    row that is no document why. Batches of some hundred rows are best: windows are sorted by length within them.
    """

    def __init__(
        self,
        model: str | Path | None = None,
        device: str = "cpu",
        settings: Settings | None = None,
        *,
        detection_threshold: float | None = None,
    ) -> None:
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the actors are the parallelism
        self._nlp = Disambiguator.load(model, device, detection_threshold=detection_threshold)
        self._settings = settings or Settings()

    def __call__(self, batch: pa.Table | Mapping[str, Any]) -> pa.Table:
        """Link a batch, a table or columns by their names."""
        table = batch if isinstance(batch, pa.Table) else pa.table({name: list(of) for name, of in batch.items()})
        return linked_table(table, self.answers)[0]

    def answers(self, given: Sequence[Document | InputError]) -> Iterator[Resolutions | InputError]:
        """Yield what is said of each document, in their order; of what is none, why."""
        linked = self._nlp.link_many((item for item in given if isinstance(item, Document)), self._settings)
        for item in given:
            yield next(linked) if isinstance(item, Document) else item


class _LinkBlocks:
    """Links blocks; a row of its result is a row that was done, so that Ray's progress counts documents."""

    def __init__(self, **options: Any) -> None:
        self._link = Link(**options)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[Any]]:
        columns = zip(batch["path"], batch["start"], batch["end"], batch["output"], strict=True)
        blocks = [Block(Path(path), int(start), int(end), Path(output)) for path, start, end, output in columns]
        done = [row for block in blocks for row in link_block(block, self._link.answers)]
        return {field: [getattr(row, field) for row in done] for field in Row._fields}


def link_files(
    inputs: Sequence[Path],
    folder: Path,
    model: Path | None = None,
    *,
    device: str = "cpu",
    settings: Settings | None = None,
    detection_threshold: float | None = None,
    workers: int | None = None,
    size: int = BLOCK,
) -> dict[str, int]:
    """Link document files block by block into a folder, and return what was counted in this run.

    Blocks that are finished are not done again. `workers` actors, by default one a CPU of the cluster, or one a GPU
    where the device is one. Call it within `cluster()`.
    """
    settings = settings or Settings()
    files = [path.absolute() for path in files_of(inputs)]
    read, made = opened(model or packaged_model())
    manifest = Manifest(
        "linked",
        {
            **settings.model_dump(),
            "detection_threshold": detection_threshold,
            "size": size,
            "inputs": [[str(path), path.stat().st_size, path.stat().st_mtime_ns] for path in files],
        },
        {"model": made.digest},
    )
    blocks = cut(files, folder.absolute(), size)
    _claim(folder, manifest)
    left = [block for block in blocks if not block.is_finished]
    counts = Counter({"blocks": len(left), "blocks that were there": len(blocks) - len(left)})
    if left:
        options = {
            "model": model and read.absolute(),
            "device": device,
            "settings": settings,
            "detection_threshold": detection_threshold,
        }
        counts.update(_counted(_linked(left, device.split(":")[0] == "cuda", workers, options)))
    replace(manifest, counts={"blocks": len(blocks)}).save(folder / MANIFEST)
    return dict(counts)


def _claim(folder: Path, manifest: Manifest) -> None:
    """Take over a folder that a run of the same began, or begin it."""
    if (folder / MANIFEST).exists():
        found = Manifest.load(folder / MANIFEST, "linked")
        if replace(found, counts={}) != manifest:
            changed = [name for name, value in manifest.parameters.items() if found.parameters.get(name) != value]
            raise ArtefactError(
                f"{folder} holds answers of another run: {', '.join(changed or ['the model'])} differs; "
                "give the same again or another folder"
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} holds something else; give an empty folder, or one of a run to go on with")
    else:
        manifest.save(folder / MANIFEST)


def _linked(blocks: Sequence[Block], on_gpu: bool, workers: int | None, options: Mapping[str, Any]) -> Any:
    """Return the dataset of the rows that actors do."""
    unit = "GPU" if on_gpu else "CPU"
    actors = workers or int(ray.cluster_resources().get(unit, 0))
    if actors < 1:
        raise InputError(f"the cluster has no {unit}; start it on hosts that have one, or change the device")
    items = [asdict(block) | {"path": str(block.path), "output": str(block.output)} for block in blocks]
    return ray.data.from_items(items, override_num_blocks=len(items)).map_batches(
        _LinkBlocks,
        fn_constructor_kwargs=dict(options),
        batch_size=1,
        compute=ray.data.ActorPoolStrategy(size=min(actors, len(blocks))),
        **({"num_gpus": 1} if on_gpu else {"num_cpus": 1}),
    )


def _counted(dataset: Any) -> Counter[str]:
    counts: Counter[str] = Counter({"documents": 0, "mentions": 0, "rows that are no document": 0})
    with _own_errors():
        for batch in dataset.iter_batches(batch_size=None):
            refused = int(batch["refused"].sum())
            counts["documents"] += len(batch["refused"]) - refused
            counts["mentions"] += int(batch["mentions"].sum())
            counts["rows that are no document"] += refused
    return counts


# --- The cluster ------------------------------------------------------------------------------------------------------


@contextmanager
def cluster(address: str | None = None) -> Iterator[None]:
    """Join a cluster: the one at `address`, RAY_ADDRESS, this machine's, or a new one."""
    if ray.is_initialized():
        yield
        return
    try:
        ray.init(address)
    except (ConnectionError, RuntimeError, ValueError) as error:
        where = "here" if address is None else f"at {address}"
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(
            f"no Ray cluster answers {where} ({said}); start one with `ray start --head`, and where it has a token, "
            "set RAY_AUTH_MODE=token here too"
        ) from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _own_errors() -> Iterator[None]:
    """Raise our own errors as they were raised on another machine, and Ray's in a sentence."""
    try:
        yield
    except RayError as error:
        cause: BaseException | None = error
        while cause is not None and (not isinstance(cause, DeixisError) or isinstance(cause, RayError)):
            cause = getattr(cause, "cause", None) or cause.__cause__
        if cause is not None:
            raise cause from None
        raise InputError(f"Ray stopped: {str(error).strip().splitlines()[-1]}; run the same again to go on") from error
