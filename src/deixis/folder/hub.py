"""Model folders on a hub: `hf://owner/name` is fetched once, kept, and checked by its manifest's digests.

huggingface_hub does the transport, keeps the files (HF_HOME), goes on where a connection broke off, and falls back to
what is kept where there is no network. HF_ENDPOINT names a hub other than huggingface.co.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deixis import __version__
from deixis.artefacts import MANIFEST, Manifest, digest_file
from deixis.errors import ArtefactError, InputError, MissingExtra

__all__ = ["fetch", "is_remote", "push"]

CARD = "README.md"
REPOSITORY = re.compile(r"hf:/+([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")  # a Path has one slash left
US: dict[str, Any] = {"library_name": "deixis", "library_version": __version__}


def is_remote(name: str | Path) -> bool:
    """Tell whether a name means a repository of a hub, and no folder.

    Examples:
        >>> is_remote("hf://owner/name"), is_remote("folder")
        (True, False)
    """
    return str(name).startswith("hf:")  # of "hf://" a Path leaves no more


def fetch(name: str | Path) -> Path:
    """Return the folder of a model from a hub; what is kept already and is whole is not fetched again."""
    repository, revision = _repository(name)
    hub = _hub()
    with _explained(hub, repository, revision):
        path = Path(hub.hf_hub_download(repository, MANIFEST, revision=revision, **US))
        manifest = Manifest.load(path, "model")
        # Only what the manifest lists, of the same commit: other files are of no use here, and may be large.
        commit, folder = path.parent.name, path.parent
        listed = [*manifest.files, CARD]
        hub.snapshot_download(repository, revision=commit, allow_patterns=listed, **US)
        if damaged := _damaged(manifest, folder):
            hub.snapshot_download(repository, revision=commit, allow_patterns=damaged, force_download=True, **US)
            damaged = _damaged(manifest, folder)
    if damaged:
        raise ArtefactError(
            f"hf://{repository} is damaged: {damaged[0]} is not the file that its {MANIFEST} lists; "
            "its owner has to push it again"
        )
    return folder


def push(folder: Path, name: str | Path, *, private: bool = False) -> str:
    """Put a model folder into a repository of a hub, which is made if need be; return the address of the commit.

    The repository then holds what the folder's manifest lists, and its card, in place of what it held before.
    """
    repository, revision = _repository(name)
    if revision is not None:
        raise InputError(f"{name} names a revision; push to hf://{repository}, which gets a new one")
    if not folder.is_dir():
        raise ArtefactError(f"{folder} is not a directory; expected a deixis model folder")
    manifest = Manifest.load(folder / MANIFEST, "model")
    manifest.verify(folder)
    hub = _hub()
    with _explained(hub, repository, None, to_write=True):
        api = hub.HfApi(**US)
        api.create_repo(repository, private=private or None, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            allow_patterns=[*manifest.files, MANIFEST, CARD],
            delete_patterns=["*"],
            commit_message=f"deixis {__version__}: model {manifest.digest[:12]}",
        )
    return str(done.commit_url)


def _repository(name: str | Path) -> tuple[str, str | None]:
    match = REPOSITORY.fullmatch(str(name))
    if match is None:
        raise InputError(f"{name} names no repository; expected hf://owner/name or hf://owner/name@revision")
    return match[1], match[2]


def _hub() -> Any:
    try:
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError:
        raise MissingExtra("huggingface_hub, which hf:// needs,", "hub") from None
    return huggingface_hub


def _damaged(manifest: Manifest, folder: Path) -> list[str]:
    """Return the files that are not as the manifest lists them."""
    return [
        name
        for name, expected in manifest.files.items()
        if not (folder / name).exists() or digest_file(folder / name) != expected
    ]


@contextmanager
def _explained(hub: Any, repository: str, revision: str | None, *, to_write: bool = False) -> Iterator[None]:
    """Say in one sentence what went wrong with a hub."""
    errors, where = hub.errors, hub.constants.ENDPOINT
    try:
        yield
    except errors.HFValidationError:
        raise InputError(f"{repository} cannot be the name of a repository; expected owner/name") from None
    except errors.RevisionNotFoundError:
        raise InputError(f"{where} has no revision {revision!r} of {repository}") from None
    except errors.GatedRepoError:
        raise InputError(f"{where} gives {repository} to those it has let in: ask there, then log in") from None
    except errors.RepositoryNotFoundError:
        hint = "log in with `hf auth login`, or set HF_TOKEN" if to_write else "log in if it is private"
        raise InputError(f"{where} has no repository {repository} for you; check its name, and {hint}") from None
    except errors.RemoteEntryNotFoundError:
        raise ArtefactError(f"{repository} at {where} has no {MANIFEST}; expected a model that deixis pushed") from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled):
        raise InputError(
            f"{where} does not answer, and {repository} was not fetched before; try again online"
        ) from None
    except errors.HfHubHTTPError as error:
        status = error.response.status_code
        if to_write and status in (401, 403):
            what = f"does not let you write to {repository}; log in with `hf auth login`, or set HF_TOKEN"
        else:
            what = f"answered {status} when asked for {repository}; try again later"
        raise InputError(f"{where} {what}") from None
    except errors.HTTPError as error:
        raise InputError(f"the connection to {where} broke off ({error}); try again: it goes on from there") from None
    except RuntimeError as error:  # of an upload, whatever its cause
        reason = str(error.__cause__ or error).partition("\n")[0].rstrip(".")
        raise InputError(
            f"pushing to {where} broke off ({reason}); try again: what arrived is not sent twice"
        ) from None
    except OSError as error:
        reason = error.strerror or str(error).partition("\n")[0]
        raise InputError(f"hf://{repository} cannot be kept: {reason}") from None
