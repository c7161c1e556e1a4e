"""Datasets: loaders that turn rows into tasks, and the registry of their names."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.packages import GYM, LAB
from intercode.core.types import Dataset
from intercode.datasets import files, preprocess, salt, task_package
from intercode.datasets.columns import parse_options
from intercode.datasets.pins import load_pins
from intercode_sandbox.hidden_files import hide_from_host_image
from intercode_sandbox.registry import Registry, is_module, load_object

datasets = Registry(
    "dataset",
    {
        "apps": "intercode.datasets.python.apps:load",
        "bird": "intercode.datasets.sql.bird:load",
        "families": LAB,
        "intercode-alfa": "intercode.datasets.bash.intercode_alfa:load",
        "mbpp": "intercode.datasets.python.mbpp:load",
        "ic-ctf": "intercode.datasets.ctf.ic_ctf:load",
        "nl2bash": "intercode.datasets.bash.nl2bash:load",
        "spider": "intercode.datasets.sql.spider:load",
        "starter": "intercode.datasets.starter.suites:load",
        "swe-bench": GYM,
        "wikisql": "intercode.datasets.sql.wikisql:load",
    },
    group="intercode.datasets",
    owner=GYM,
)
"""Loaders by name. A loader takes the name of a subset, or nothing, and returns a Dataset."""

__all__ = ["datasets", "is_dataset_file", "load"]

STARTER, FAMILIES = "starter", "families"
_SPEC = re.compile(r"(?P<name>[^:@]+)(?::(?P<subset>[^@]+))?(?:@(?P<revision>.+))?")
_PATHS = f"a {', '.join(files.SUFFIXES)} file, of a directory with a {task_package.TASK_FILE}"


def is_dataset_file(spec: str) -> bool:
    """Return whether a specification names a file of rows."""
    return spec.partition("?")[0].lower().endswith(files.SUFFIXES)


_SCHEMES = Registry(
    "scheme of datasets",
    {
        "families": LAB,
        "hub": "intercode.datasets.hub:load",
        "harbor": GYM,
        "swe-bench": GYM,
    },
    group="intercode.dataset_schemes",
    owner=GYM,
)
"""Loaders by the word before the colon. A loader takes the whole specification."""


def load(spec: str | os.PathLike[str], environment: str = "bash") -> Dataset:
    """Return the dataset that ``spec`` names. A specification is one of:

    - ``name[:subset][@revision]``: a registered dataset. A revision is the start of the pinned
      commit of its data or of its hash: seven digits or more.
    - the path of a .json, .jsonl, .csv, .tsv or .parquet file (see ``files.load``).
      ``?query=question`` renames columns, ``?preprocess=file.py:function`` changes rows.
    - ``families:ENVIRONMENT``: drawn tasks (see ``families.selection``).
    - ``hub:OWNER/NAME``: a dataset of the Hugging Face hub (see ``hub.load``).
    - ``harbor:/path``: Harbor's task directories (see ``harbor.task_directory.load``).
    - ``swe-bench:verified`` or ``swe-bench:PATH``: rows of SWE-bench (see ``swe_bench.rows.load``).
    - any of them and ``@salt=random`` or ``@salt=SALT``, if it draws tasks from the seeds of
      episodes (see ``salt.salted``).
    - the directory of a task package (see ``task_package.load``), or a loader of your own:
      ``package.module:function``, or ``module:function`` if no dataset has the module's name.

    ``environment`` is the subset of ``starter`` and ``families`` if ``spec`` names none, and the
    environment of rows with tests. Raises UnknownNameError for an unknown name or subset,
    UsageError for missing data or another revision, DataError for a broken file.
    """
    spec = os.fspath(spec) if isinstance(spec, os.PathLike) else spec
    if not isinstance(spec, str):
        raise UsageError(f"load takes a name or a path, such as 'starter', not {spec!r:.80}")
    unsalted, mark, given = spec.rpartition(salt.MARK)
    if mark:
        return salt.salted(load(unsalted, environment), given)
    if spec == FAMILIES:
        return _checked(datasets.load(FAMILIES)(environment), spec)
    scheme, colon, _ = spec.partition(":")
    if colon and _is_scheme(scheme):
        return _checked(_SCHEMES.load(scheme)(spec), spec)
    if is_dataset_file(spec):
        path, columns, options = parse_options(spec, ("preprocess",))
        hook = preprocess.load_hook(options["preprocess"]) if "preprocess" in options else None
        return replace(files.load(Path(path), columns, hook, environment), name=spec)
    if task_package.is_package(Path(spec)) and spec not in datasets:
        return task_package.load(Path(spec))
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(
            f"{spec!r} is not a dataset; write name[:subset][@revision] or a file's path"
        )
    name, subset, revision = match.group("name", "subset", "revision")
    if (name.startswith(".") or "/" in name) and not (subset and name.endswith(".py")):
        raise _path_error(spec, name)
    if name not in datasets and subset and ("." in name or is_module(name)):
        loader, subset = load_object(f"{name}:{subset}"), None
    else:
        try:
            loader = datasets.load(name)
        except UnknownNameError as e:
            raise UnknownNameError(f"{e}; or the path of {_PATHS}, or module:function") from e
    subset = environment if spec == STARTER else subset
    if isinstance(loader, ModuleType):  # an installed task package
        if subset:
            raise UsageError(f"{spec!r}: the task package {name!r} has no subsets")
        loader = partial(task_package.load, Path(str(loader.__file__)).parent)
    elif file := getattr(sys.modules.get(loader.__module__), "__file__", None):
        hide_from_host_image(Path(file))
    dataset = _checked(loader(subset) if subset else loader(), spec)
    if revision:
        _check_revision(name, revision, dataset)
    return replace(dataset, name=spec)


def _is_scheme(word: str) -> bool:
    """Return whether a word before a colon names a scheme, and not a dataset of this package."""
    if datasets.is_built_in(word):
        return _SCHEMES.is_built_in(word)
    return word in _SCHEMES


def _checked(dataset: object, spec: str) -> Dataset:
    """Return what a loader returned. Raises UsageError unless it is a dataset."""
    if not isinstance(dataset, Dataset):
        raise UsageError(
            f"the loader of {spec!r} returned a {type(dataset).__name__}, not a Dataset"
        )
    return dataset


def _path_error(spec: str, path: str) -> UsageError:
    """Return the error for a specification with a path that is not that of a dataset."""
    if not os.path.exists(path):
        return UsageError(f"no such file or directory: {path}")
    return UsageError(f"{spec!r} is not a dataset: name the path of {_PATHS}, or file.py:function")


def _check_revision(name: str, revision: str, dataset: Dataset) -> None:
    """Raise UsageError unless ``revision`` starts the pinned commit or the dataset's hash."""
    pins = load_pins()
    known = [dataset.hash] + ([pins[name].commit] if name in pins else [])
    if len(revision) < 7 or not any(k.startswith(revision) for k in known):
        raise UsageError(
            f"{name!r} has no revision {revision!r}; there is {' or '.join(known)} "
            "(seven digits or more): use one of these, or leave the revision out"
        )
