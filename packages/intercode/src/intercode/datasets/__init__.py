"""Datasets: loaders that turn rows into tasks, and the registry of their names."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from intercode.core.errors import UnknownNameError, UsageError
from intercode.core.packages import GYM_DISTRIBUTION, LAB
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
        "harbor": GYM_DISTRIBUTION,
        "hub": "intercode.datasets.hub:load",
        "intercode-alfa": "intercode.datasets.bash.intercode_alfa:load",
        "mbpp": "intercode.datasets.python.mbpp:load",
        "ic-ctf": "intercode.datasets.ctf.ic_ctf:load",
        "nl2bash": "intercode.datasets.bash.nl2bash:load",
        "spider": "intercode.datasets.sql.spider:load",
        "starter": "intercode.datasets.starter.suites:load",
        "swe-bench": GYM_DISTRIBUTION,
        "wikisql": "intercode.datasets.sql.wikisql:load",
        "worlds": LAB,
    },
    group="intercode.datasets",
    owner=GYM_DISTRIBUTION,
)
"""Loaders by name. A loader takes the name of a subset, or nothing, and returns a Dataset. If its
first parameter is called ``address``, it takes all that follows the name and a colon. One with the
parameter ``environment`` gets it for a name without a subset or an address.

>>> from intercode.datasets import datasets
>>> "starter" in datasets, datasets.load("starter")("sql").environment
(True, 'sql')
"""

__all__ = [
    "datasets",
    "is_dataset_file",
    "is_playable_name",
    "is_recordable",
    "load",
    "may_be_recorded",
]

Loader = TypeVar("Loader", bound=Callable[..., Any])

_FORMS = {
    "a registered name with a subset or an address": "nl2bash:fs_1 or harbor:/path/of/tasks",
    f"a {', '.join(files.SUFFIXES)} file": "tasks.jsonl",
    f"a directory with a {task_package.TASK_FILE}": "./my-task",
    "module:function or file.py:function": "my_benchmark.tasks:load",
}
"""The forms of specifications, each with an example."""
_LISTED_FORMS = "; ".join(f"{form}, such as {example}" for form, example in _FORMS.items())
_SPEC = re.compile(r"(?P<name>[^:@]+)(?::(?P<subset>[^@]+))?(?:@(?P<revision>.+))?")


def is_dataset_file(spec: str) -> bool:
    """Return whether a specification names a file of rows.

    Args:
        spec: A specification as for ``load``. The file need not exist.

    >>> from intercode.datasets import is_dataset_file
    >>> is_dataset_file("tasks.jsonl"), is_dataset_file("starter")
    (True, False)
    """
    return spec.partition("?")[0].lower().endswith(files.SUFFIXES)


def is_playable_name(name: str) -> bool:
    """Return whether a registered name alone is a specification: its loader needs no address.

    Args:
        name: The name of a dataset.

    Raises:
        UnknownNameError: No dataset has this name.

    >>> from intercode.datasets import is_playable_name
    >>> is_playable_name("starter"), is_playable_name("harbor")
    (True, False)
    """
    address = _parameters(datasets.load(name)).get("address")
    return address is None or address.default is not Parameter.empty


def may_be_recorded(test: Callable[[str], bool]) -> Callable[[Loader], Loader]:
    """Let records of others name some of the addresses of a loader.

    Loading these addresses must choose neither code nor a file of this machine.

    Args:
        test: Is called with an address, and returns whether a record may name it.

    Returns:
        A decorator for the loader.

    >>> from intercode.core import Dataset
    >>> from intercode.datasets import may_be_recorded
    >>> @may_be_recorded(lambda address: address in ("small", "large"))
    ... def load(address: str) -> Dataset:
    ...     return Dataset(f"mine:{address}", "bash", ())
    >>> load("small").name
    'mine:small'
    """

    def mark(loader: Loader) -> Loader:
        vars(loader)["is_recordable"] = test
        return loader

    return mark


def is_recordable(spec: str) -> bool:
    """Return whether a record of others may name a specification.

    It may name a registered dataset; of a loader that takes an address, what the loader allows
    (see ``may_be_recorded``).

    Args:
        spec: A specification as for ``load``.

    >>> from intercode.datasets import is_recordable
    >>> is_recordable("starter:sql"), is_recordable("./rows.py:load")
    (True, False)
    """
    name, *rest = re.split("[:@]", spec, maxsplit=1)
    if is_dataset_file(spec) or name not in datasets:
        return False
    loader = datasets.load(name)
    if not _takes_address(loader):
        return True
    test: Callable[[str], bool] = getattr(loader, "is_recordable", lambda _: False)
    return is_playable_name(name) and all(map(test, rest))


def load(
    dataset: str | os.PathLike[str] | Dataset | Iterable[Mapping[str, Any]],
    environment: str = "bash",
) -> Dataset:
    """Return the dataset that ``dataset`` is, or names.

    It is one of:

    - ``name[:subset][@revision]``: a registered dataset, such as ``nl2bash:fs_1``. A revision is
      the start of the pinned commit of its data or of its hash: seven digits or more.
    - ``name:address``: a registered loader of many datasets, such as ``hub:OWNER/NAME``,
      ``harbor:/path``, ``swe-bench:PATH`` and ``families:bash@seed=0..99``.
    - the path of a file of rows, such as ``tasks.jsonl`` (see ``files.load``).
      ``?query=question`` renames columns, ``?preprocess=file.py:function`` changes rows.
    - the directory of a task package (see ``task_package.load``).
    - ``package.module:function``, or ``module:function`` if no dataset has the module's name: a
      loader of your own, or a Dataset.
    - a Dataset, a DataFrame, or mappings as the rows of a file.

    ``@salt=random`` or ``@salt=SALT`` may follow what draws tasks from the seeds of episodes (see
    ``salt.salted``).

    Args:
        dataset: One of the above.
        environment: The environment of rows with tests. It also selects the tasks of ``starter``
            and ``families``.

    Raises:
        UnknownNameError: A name or a subset is unknown.
        DataError: Rows are broken.
        UsageError: Another form, missing data or another revision.
    """
    if isinstance(dataset, Dataset):
        return dataset
    if isinstance(dataset, str | os.PathLike):
        return _load_spec(os.fspath(dataset), environment)
    if hasattr(dataset, "to_dict") and hasattr(dataset, "iterrows"):  # a DataFrame
        dataset = [_without_empty_cells(row) for row in dataset.to_dict("records")]
    rows = list(dataset) if isinstance(dataset, Iterable) else []
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise UsageError(
            f"a dataset is a Dataset, rows with a query and a gold, or {_LISTED_FORMS}; not "
            f"{dataset!r:.80}"
        )
    located = ((f"row {n}", Path("rows"), row) for n, row in enumerate(rows))
    return files.build_dataset(located, "rows", "rows", None, environment)


def _without_empty_cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of a DataFrame without its empty cells, and with lists for arrays."""
    plain = {k: v.tolist() if hasattr(v, "tolist") else v for k, v in row.items()}
    return {k: v for k, v in plain.items() if v is not None and (v != v) is not True}


def _load_spec(spec: str, environment: str) -> Dataset:
    unsalted, mark, given = spec.rpartition(salt.MARK)
    if mark:
        return salt.salted(_load_spec(unsalted, environment), given)
    name, colon, address = spec.partition(":")
    if name in datasets and _takes_address(loader := datasets.load(name)):
        return _call(loader, address if colon else None, environment, spec)
    if is_dataset_file(spec):
        path, columns, options = parse_options(spec, ("preprocess",))
        hook = preprocess.load_hook(options["preprocess"]) if "preprocess" in options else None
        return replace(files.load(Path(path), columns, hook, environment), name=spec)
    if task_package.is_package(Path(spec)) and spec not in datasets:
        return task_package.load(Path(spec))
    match = _SPEC.fullmatch(spec)
    if match is None:
        raise UsageError(f"{spec!r} is not a dataset: write {_LISTED_FORMS}")
    name, subset, revision = match.group("name", "subset", "revision")
    if (name.startswith(".") or "/" in name) and not (subset and name.endswith(".py")):
        raise _path_error(spec, name)
    if name not in datasets and subset and ("." in name or is_module(name)):
        loader, subset = load_object(f"{name}:{subset}"), None
        if isinstance(loader, Dataset):
            return replace(loader, name=spec)
        if not callable(loader):
            raise UsageError(f"{spec!r} is neither a Dataset nor a function that returns one")
    else:
        try:
            loader = datasets.load(name)
        except UnknownNameError as e:
            if os.path.isdir(spec):
                raise _directory_error(spec) from e
            raise UnknownNameError(f"{e}; or write {_LISTED_FORMS}") from e
    if isinstance(loader, ModuleType):  # an installed task package
        if subset:
            raise UsageError(f"{spec!r}: the task package {name!r} has no subsets")
        loader = partial(task_package.load, Path(str(loader.__file__)).parent)
    elif file := getattr(sys.modules.get(loader.__module__), "__file__", None):
        hide_from_host_image(Path(file))
    dataset = _call(loader, subset, environment, spec)
    if revision:
        _check_revision(name, revision, dataset)
    return replace(dataset, name=spec)


def _parameters(loader: Any) -> Mapping[str, Parameter]:
    return signature(loader).parameters if callable(loader) else {}


def _takes_address(loader: Any) -> bool:
    return next(iter(_parameters(loader)), "") == "address"


def _call(loader: Any, part: str | None, environment: str, spec: str) -> Dataset:
    """Return what a loader returns for a subset or an address, or for neither.

    Raises UsageError if that is no dataset, the loader needs an address, or it has no subsets.
    """
    given: dict[str, Any] = {}
    parameters = _parameters(loader)
    if part and callable(loader) and not parameters:
        raise UsageError(f"{spec!r}: the dataset {spec.partition(':')[0]!r} has no subsets")
    if not part:
        if "address" in parameters and not is_playable_name(spec.partition(":")[0]):
            raise UsageError(f"{spec!r} needs an address after the name and a colon")
        given = {"environment": environment} if "environment" in parameters else {}
    dataset = loader(part) if part else loader(**given)
    if not isinstance(dataset, Dataset):
        raise UsageError(
            f"the loader of {spec!r} returned a {type(dataset).__name__}, not a Dataset"
        )
    return dataset


def _path_error(spec: str, path: str) -> UsageError:
    """Return the error for a specification with a path that is not that of a dataset."""
    if not os.path.exists(path):
        name, _, part = path.partition("/")
        hint = f"; did you mean {name}:{part}?" if name in datasets else ""
        return UsageError(f"no such file or directory: {path}{hint}")
    if os.path.isdir(path):
        return _directory_error(path)
    return UsageError(f"{spec!r} is not a dataset: write {_LISTED_FORMS}")


def _directory_error(path: str) -> UsageError:
    """Return the error for a directory that is no task package."""
    return UsageError(
        f"the directory {path} has no {task_package.TASK_FILE}: write one (`intercode new` makes a "
        "package), name a file of rows in it, or write harbor:PATH for tasks in Harbor's format"
    )


def _check_revision(name: str, revision: str, dataset: Dataset) -> None:
    """Raise UsageError unless ``revision`` starts the pinned commit or the dataset's hash."""
    pins = load_pins()
    known = [dataset.hash] + ([pins[name].commit] if name in pins else [])
    if len(revision) < 7 or not any(k.startswith(revision) for k in known):
        raise UsageError(
            f"{name!r} has no revision {revision!r}; there is {' or '.join(known)} "
            "(seven digits or more): use one of these, or leave the revision out"
        )
