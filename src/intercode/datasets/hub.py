"""Datasets of the Hugging Face hub: ``hub:OWNER/NAME[@REVISION][?config=…&split=…&query=…]``.

What is loaded are the files of one split in the dataset's own repository, at one commit, which
stands in the dataset's name and so in every result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import files, preprocess
from intercode.datasets.columns import parse_options
from intercode.datasets.hub_files import split_files

SCHEME = "hub:"
_REPOSITORY = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_OPTIONS = ("config", "split", "environment", "image", "preprocess")
_LOCAL_FILE_COLUMNS = ("files", "database", "look")
"""Columns that name files of the machine on which a dataset lies: not for what strangers wrote."""


def load(spec: str) -> Dataset:
    """The rows of one split as tasks (see ``files.load``).

    ``config`` and ``split`` are needed where there are several; ``query=question`` fills a field
    from a column of another name, and ``preprocess`` is a function that is given each row before
    that; ``environment`` and ``image`` say where the tasks are played, if not as rows of a file
    are. ``HF_TOKEN`` and ``HF_ENDPOINT`` are as elsewhere.

    Raises UsageError for what is not there or not allowed, DataError for rows that are no tasks,
    InfrastructureError where the hub does not answer.
    """
    place, columns, options = parse_options(spec, _OPTIONS)
    match = _REPOSITORY.fullmatch(place.removeprefix(SCHEME))
    if match is None:
        raise UsageError(f"{spec!r} is not of the form {SCHEME}OWNER/NAME[@REVISION][?name=value]")
    repo, revision = match.group("repo", "revision")
    commit, paths = _download(repo, revision, options.get("config"), options.get("split"))
    hook = preprocess.load_hook(options["preprocess"]) if "preprocess" in options else None
    given = (
        (w, path, _reject_local_files(row, repo))
        for path in paths
        for w, row in files.read_rows(path)
    )
    name = f"{SCHEME}{repo}@{commit}{spec[len(place) :]}"
    rows = preprocess.prepare_rows(given, hook)
    dataset = files.build_dataset(rows, name, repo.rpartition("/")[2], columns)
    return replace(
        dataset,
        environment=options.get("environment", dataset.environment),
        image=options.get("image", dataset.image),
        notes="rows of a dataset on the Hugging Face hub",
    )


def _reject_local_files(row: Any, repo: str) -> Any:
    if isinstance(row, Mapping):
        for name in _LOCAL_FILE_COLUMNS:
            if row.get(name):
                raise DataError(
                    f"{repo} has a column {name!r}, which would name files of this machine: "
                    "download the dataset, look at it, and play it as a file"
                )
    return row


def _download(
    repo: str, revision: str | None, config: str | None, split: str | None
) -> tuple[str, list[Path]]:
    """The commit that a revision is, and the files of a split at it, in the hub's own cache."""
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as e:
        raise UsageError(
            f"{SCHEME}{repo} needs huggingface_hub: pip install 'intercode-gym[hub]'"
        ) from e
    with _translate_errors(repo, revision):
        info = HfApi().dataset_info(repo, revision=revision)
        names = [s.rfilename for s in info.siblings or ()]
    configs = info.card_data.get("configs") if info.card_data else None
    commit, chosen = str(info.sha), split_files(repo, names, configs, config, split)
    get: Callable[..., Any] = hf_hub_download
    with _translate_errors(repo, revision):
        paths = [Path(get(repo, name, repo_type="dataset", revision=commit)) for name in chosen]
    return commit, paths


@contextmanager
def _translate_errors(repo: str, revision: str | None) -> Iterator[None]:
    """The hub's errors in our words."""
    import httpx
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as e:
        raise UsageError(
            f"the dataset {repo} asks for terms to be accepted: do so on its page, then set "
            "HF_TOKEN or run `hf auth login`"
        ) from e
    except errors.RevisionNotFoundError as e:
        raise UsageError(f"the dataset {repo} has no revision {revision!r}") from e
    except errors.RepositoryNotFoundError as e:
        raise UsageError(
            f"the hub has no dataset {repo}, or it is a private one: set HF_TOKEN or run "
            "`hf auth login`"
        ) from e
    except (errors.HfHubHTTPError, errors.OfflineModeIsEnabled, httpx.HTTPError, OSError) as e:
        raise InfrastructureError(f"cannot get the dataset {repo} from the hub: {e}") from e
