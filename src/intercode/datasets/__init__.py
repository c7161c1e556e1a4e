"""Datasets: rows become tasks. A dataset is ``name[:subset][@revision]`` or a file."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.registry import Registry, load_object
from intercode.core.types import Dataset
from intercode.datasets import files, hub, preprocess, task_package
from intercode.datasets.columns import parse_options
from intercode.datasets.harbor import task_directory
from intercode.datasets.pins import load_pins

datasets = Registry(
    "dataset",
    {
        "apps": "intercode.datasets.python.apps:load",
        "bird": "intercode.datasets.sql.bird:load",
        "mbpp": "intercode.datasets.python.mbpp:load",
        "ic-ctf": "intercode.datasets.ctf.ic_ctf:load",
        "nl2bash": "intercode.datasets.bash.nl2bash:load",
        "spider": "intercode.datasets.sql.spider:load",
        "starter": "intercode.datasets.starter.suites:load",
        "wikisql": "intercode.datasets.sql.wikisql:load",
    },
    group="intercode.datasets",
)
"""Names to loaders. A loader takes the subset's name, or nothing, and gives a Dataset."""

STARTER = "starter"
_SPEC = re.compile(r"(?P<name>[^:@]+)(?::(?P<subset>[^@]+))?(?:@(?P<revision>.+))?")


def is_dataset_file(spec: str) -> bool:
    """Whether a dataset is a file of the user's own."""
    return spec.partition("?")[0].lower().endswith(files.SUFFIXES)


def load(spec: str, environment: str = "bash") -> Dataset:
    """The dataset that ``spec`` names. ``environment`` is whose starter tasks ``starter`` alone
    means, and what plays a file's rows that could be Python's or Code's.

    ``spec`` is ``name[:subset][@revision]``, the path of a .json, .jsonl, .csv, .tsv or .parquet
    file (see ``files.load``; ``?query=question`` fills a field from another column, and
    ``?preprocess=file.py:function`` has each row made ready), the directory of a task package (see
    ``package.load``), ``hub:`` for the Hugging Face hub (see ``hub.load``), ``harbor:`` for
    Harbor's task directories (see ``harbor.load``), or ``package.module:function`` of a loader of
    your own. A revision is the start (seven digits or more) of the commit that the data are pinned
    to or of the dataset's hash.

    Raises UnknownNameError for an unknown name or subset, UsageError for absent data or another
    revision, DataError for a file that is broken.
    """
    if spec.startswith(hub.SCHEME):
        return hub.load(spec)
    if spec.startswith(task_directory.SCHEME):
        return task_directory.load(spec)
    if is_dataset_file(spec):
        place, columns, options = parse_options(spec, ("preprocess",))
        hook = preprocess.load_hook(options["preprocess"]) if "preprocess" in options else None
        return replace(files.load(Path(place), columns, hook, environment), name=spec)
    if task_package.is_package(Path(spec)) and spec not in datasets:
        return task_package.load(Path(spec))
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(f"{spec!r} is no dataset; write name[:subset][@revision] or a file's path")
    name, subset, revision = match.group("name", "subset", "revision")
    if name not in datasets and "." in name and subset:
        loader, subset = load_object(f"{name}:{subset}"), None
    else:
        try:
            loader = datasets.load(name)
        except UnknownNameError as e:
            forms = ", ".join(files.SUFFIXES)
            message = f"{e}; or the path of a {forms} file, or of a directory with a {task_package.TASK_FILE}"
            raise UnknownNameError(message) from e
    if spec == STARTER:
        subset = environment
    if isinstance(loader, ModuleType):  # a task package that is installed
        if subset:
            raise UsageError(f"{spec!r}: the task package {name!r} has no subsets")
        loader = partial(task_package.load, Path(str(loader.__file__)).parent)
    dataset = loader(subset) if subset else loader()
    if not isinstance(dataset, Dataset):
        raise UsageError(f"the loader of {spec!r} gave {type(dataset).__name__}, not a Dataset")
    if revision:
        _check_revision(name, revision, dataset)
    return replace(dataset, name=spec)


def _check_revision(name: str, revision: str, dataset: Dataset) -> None:
    """Raise UsageError unless ``revision`` starts the pinned commit or the dataset's hash."""
    pins = load_pins()
    known = [dataset.hash] + ([pins[name].commit] if name in pins else [])
    if len(revision) < 7 or not any(k.startswith(revision) for k in known):
        raise UsageError(
            f"{name!r} has no revision {revision!r}; there is {' or '.join(known)} "
            "(seven digits or more): leave the revision out to take it"
        )
