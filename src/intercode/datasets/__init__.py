"""Datasets: rows become tasks. A dataset is ``name[:subset][@revision]`` or a file."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from intercode.datasets import files
from intercode.datasets.pins import load_pins
from intercode.errors import UnknownNameError, UsageError
from intercode.registry import Registry, load_object
from intercode.types import Dataset

datasets = Registry(
    "dataset",
    {
        "apps": "intercode.datasets.apps:load",
        "bird": "intercode.datasets.bird:load",
        "mbpp": "intercode.datasets.mbpp:load",
        "ic-ctf": "intercode.datasets.ctf:load",
        "nl2bash": "intercode.datasets.nl2bash:load",
        "spider": "intercode.datasets.spider:load",
        "starter": "intercode.datasets.starter:load",
        "wikisql": "intercode.datasets.wikisql:load",
    },
)
"""Names to loaders. A loader takes the subset's name, or nothing, and gives a Dataset."""

STARTER = "starter"
_SPEC = re.compile(r"(?P<name>[^:@]+)(?::(?P<subset>[^@]+))?(?:@(?P<revision>.+))?")


def load(spec: str, environment: str = "bash") -> Dataset:
    """The dataset that ``spec`` names; ``starter`` alone are the starter tasks of ``environment``.

    ``spec`` is ``name[:subset][@revision]``, the path of a .json, .jsonl, .csv or .tsv file (see
    ``files.load``), or ``package.module:function`` of a loader of your own. A revision is the start
    (seven digits or more) of the commit that the data are pinned to or of the dataset's hash.

    Raises UnknownNameError for an unknown name or subset, UsageError for absent data or another
    revision, DataError for a file that is broken.
    """
    if spec.lower().endswith(files.SUFFIXES):
        return files.load(Path(spec))
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
            message = f"{e}; or the path of a {', '.join(files.SUFFIXES)} file"
            raise UnknownNameError(message) from e
    if spec == STARTER:
        subset = environment
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
