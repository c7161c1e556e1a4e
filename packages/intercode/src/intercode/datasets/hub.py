"""Datasets of the Hugging Face hub: ``hub:OWNER/NAME[@REVISION][?config=…&split=…&query=…]``.

The loader reads the files of one split from the dataset's repository at one commit. The commit is
part of the dataset's name, and so of every result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import translate
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.core.types import Dataset
from intercode.datasets import files, preprocess
from intercode.datasets.columns import parse_options
from intercode_sandbox.registry import unknown_name_error

_REPOSITORY = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?:@(?P<revision>[\w./-]+))?")
_OPTIONS = ("config", "split", "environment", "image", "preprocess")
_LOCAL_FILE_COLUMNS = ("files", "database", "probe")
"""Columns that would name files of this machine; a downloaded dataset may not have them."""
_SPLITS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test", "testing", "eval", "evaluation"),
}
"""Words in the names of files and directories that identify a split."""
_FORMATS = (".json", ".jsonl", ".csv", ".tsv", ".parquet")
"""The files of a split that no card declares. With one more format, a dataset could have other
tasks at the same commit."""
_METADATA_FILES = ("readme", "dataset_infos", "dataset_dict", "config")

_HTTP_LIBRARIES = ("httpx", "httpx2")
"""Libraries of HTTP whose errors the hub's client lets through, by its version."""

Splits = dict[str, list[str]]


def load(address: str) -> Dataset:
    """The Hugging Face hub has datasets in files of rows: hub:OWNER/NAME.

    Returns the rows of one split as tasks (see ``files.load``).

    The options ``config`` and ``split`` are required if the dataset has several.
    ``query=question`` fills a field from a column of another name. ``preprocess`` names a function
    that receives each row first. ``environment`` and ``image`` override where the tasks are played.
    ``HF_TOKEN`` and ``HF_ENDPOINT`` have their usual meaning.

    Raises UsageError for a dataset, revision, config or split that does not exist or is not
    accessible, DataError for rows that are not tasks, InfrastructureError if the hub does not
    answer.
    """
    name, columns, options = parse_options(address, _OPTIONS)
    match = _REPOSITORY.fullmatch(name)
    if match is None:
        raise UsageError(
            f"'hub:{address}' is not of the form hub:OWNER/NAME[@REVISION][?name=value]"
        )
    repo, revision = match.group("repo", "revision")
    commit, paths = _download(repo, revision, options.get("config"), options.get("split"))
    hook = preprocess.load_hook(options["preprocess"]) if "preprocess" in options else None
    given = (
        (w, path, _reject_local_files(row, repo))
        for path in paths
        for w, row in files.read_rows(path)
    )
    name = f"hub:{repo}@{commit}{address[len(name) :]}"
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
                    "download the dataset, inspect it, and load it as a file"
                )
    return row


def _download(
    repo: str, revision: str | None, config: str | None, split: str | None
) -> tuple[str, list[Path]]:
    """Return the commit of a revision, and the files of a split at it in the hub's own cache."""
    try:
        from huggingface_hub import HfApi, hf_hub_download
    except ImportError as e:
        raise UsageError(
            f"hub:{repo} needs huggingface_hub: pip install 'intercode-gym[data]'"
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
    """Raise the errors of the hub's client as errors of this package."""
    from huggingface_hub import errors

    try:
        yield
    except errors.GatedRepoError as e:
        raise UsageError(
            f"the dataset {repo} is gated: accept its terms on its page, then set HF_TOKEN or run "
            "`hf auth login`"
        ) from e
    except errors.RevisionNotFoundError as e:
        raise UsageError(f"the dataset {repo} has no revision {revision!r}") from e
    except errors.RepositoryNotFoundError as e:
        raise UsageError(
            f"the hub has no dataset {repo}, or it is private: set HF_TOKEN or run `hf auth login`"
        ) from e
    except Exception as e:
        known = isinstance(e, (errors.HfHubHTTPError, errors.OfflineModeIsEnabled, OSError))
        if not known and type(e).__module__.partition(".")[0] not in _HTTP_LIBRARIES:
            raise
        raise InfrastructureError(f"cannot get the dataset {repo} from the hub: {e}") from e


def split_files(
    repo: str, names: Sequence[str], configs: Any, config: str | None, split: str | None
) -> list[str]:
    """Return the files of a split, in order.

    ``configs`` is the list of configs in the dataset's card. Without it, files are assigned by
    name: a file or directory whose name begins with that of a split belongs to it, all other files
    belong to ``train``. Raises UsageError with the known names if the choice is ambiguous or empty.
    """
    known = _declared_splits(names, configs) or _splits_by_name(names)
    if not any(paths for splits in known.values() for paths in splits.values()):
        raise UsageError(
            f"{repo} has no {', '.join(_FORMATS)} file; the hub converts most datasets to "
            f"Parquet: try hub:{repo}@refs/convert/parquet"
        )
    chosen = known[_select(repo, "config", config, known, _default_config(configs))]
    return chosen[_select(repo, "split", split, chosen, None)]


def _select(
    repo: str, what: str, chosen: str | None, known: Mapping[str, Any], default: str | None
) -> str:
    if chosen is not None:
        if chosen not in known:
            raise unknown_name_error(f"{what} of {repo}", chosen, list(known))
        return chosen
    if len(known) == 1:
        return next(iter(known))
    if default in known:
        return str(default)
    choices = ", ".join(sorted(known))
    raise UsageError(f"{repo} has more than one {what}: choose one with ?{what}=… from {choices}")


def _default_config(configs: Any) -> str | None:
    rows = [row for row in configs or () if isinstance(row, Mapping)]
    marked = [str(row.get("config_name")) for row in rows if row.get("default")]
    return marked[0] if marked else "default"


def _declared_splits(names: Sequence[str], configs: Any) -> dict[str, Splits]:
    """Return the files by config and split that a card declares. ``data_files`` is a pattern, a
    list of patterns, or a list of ``{split, path}``."""
    declared: dict[str, Splits] = {}
    for row in configs or ():
        if not isinstance(row, Mapping) or "data_files" not in row:
            continue
        given = row["data_files"]
        parts = given if isinstance(given, list) else [given]
        folder = str(row.get("data_dir") or "")
        splits = declared.setdefault(str(row.get("config_name", "default")), {})
        for part in parts:
            split, paths = ("train", part)
            if isinstance(part, Mapping):
                split, paths = str(part.get("split", "train")), part.get("path", [])
            for pattern in paths if isinstance(paths, list) else [paths]:
                wanted = str(PurePosixPath(folder, str(pattern)))
                fits = sorted(n for n in names if _glob_pattern(wanted).fullmatch(n))
                splits.setdefault(split, []).extend(fits)
    return declared


@cache
def _glob_pattern(text: str) -> re.Pattern[str]:
    """Compile a glob in which ``*`` matches within a directory and ``**`` across directories."""
    parts = [
        ".*" if part == "**" else translate(part)[4:-3].replace(".*", "[^/]*")
        for part in text.split("/")
    ]
    return re.compile("/".join(parts).replace(".*/", "(?:.*/)?"))


def _splits_by_name(names: Sequence[str]) -> dict[str, Splits]:
    """Return the files by config and split, by their names. The directory above the split is the
    config: the hub's conversion to Parquet writes ``CONFIG/SPLIT/0000.parquet``."""
    splits: dict[str, Splits] = {}
    for name in sorted(names):
        path = PurePosixPath(name)
        ignored = path.stem.lower() in _METADATA_FILES or path.name.startswith(".")
        if path.suffix.lower() not in _FORMATS or ignored:
            continue
        split = _split_name(path.stem)
        above = path.parts[:-1]
        if split is None and above:
            split, above = _split_name(above[-1]), above[:-1] if _split_name(above[-1]) else above
        config = "/".join(part for part in above if part != "data") or "default"
        splits.setdefault(config, {}).setdefault(split or "train", []).append(name)
    return splits


def _split_name(word: str) -> str | None:
    first = re.split(r"[^a-z]", word.lower(), maxsplit=1)[0]
    return next((split for split, words in _SPLITS.items() if first in words), None)
