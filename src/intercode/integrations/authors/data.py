"""The rows of a data file as the authors' loader gives them, and as tasks of ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from intercode import datasets
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Task
from intercode.datasets import files
from intercode.datasets.data_files import use_data_root

Record = dict[str, Any]
Preprocess = Callable[[Record], list[str]]

_PUBLISHED_FILES = (
    (re.compile(r"nl2bash/nl2bash_(fs_[1-4])\.json"), "nl2bash:{}"),
    (re.compile(r"sql/spider/ic_spider_dev\.json"), "spider"),
    (re.compile(r"sql/bird/ic_bird\.json"), "bird"),
    (re.compile(r"sql/wikisql/ic_wikisql_dev\.json"), "wikisql"),
    (re.compile(r"python/mbpp/ic_mbpp\.json"), "mbpp"),
    (re.compile(r"python/apps/ic_apps\.json"), "apps"),
    (re.compile(r"ctf/ic_ctf\.json"), "ic-ctf"),
)
"""Where the authors' data files lie below their ``data`` directory, and what they are here."""


class IntercodeDataLoader:
    """The rows of a .json, .csv or .tsv file, each with ``query`` and perhaps ``gold``.

    Raises DataError for a file that is absent or broken, UsageError for a pickle.
    """

    def __init__(self, data_path: str) -> None:
        self.data_path, path = str(data_path), Path(data_path)
        if path.suffix.lower() in (".pkl", ".pickle"):
            raise UsageError(
                f"{path} is a pickle, which can run any code when it is read: "
                "write it as JSON (pandas: DataFrame.to_json(..., orient='records'))"
            )
        if path.suffix.lower() not in files.SUFFIXES:
            raise UsageError(f"{path} is none of {', '.join(files.SUFFIXES)}")
        self.data: list[Record] = [
            _parse_row(row, path, where) for where, row in files.read_rows(path)
        ]

    def get(self, index: int | None = None) -> Record:
        """The row at a position, or any row; without its empty cells."""
        if index is None:
            index = int(np.random.randint(0, len(self.data)))
        if not 0 <= index < len(self.data):
            raise UsageError(f"task {index} is out of range: {self.data_path} has {len(self)}")
        return dict(self.data[index])

    def __len__(self) -> int:
        return len(self.data)


def load_data_file(data_path: str, environment: str, loader: IntercodeDataLoader) -> Dataset:
    """The tasks of a data file: of a published one with all that belongs to them, which is looked
    for in the same tree; of another one its rows.

    Raises UsageError where that tree lacks something, or a file is another environment's.
    """
    path = Path(data_path).absolute()
    for pattern, name in _PUBLISHED_FILES:
        found = re.search(f"(?:^|/){pattern.pattern}$", path.as_posix())
        if found is None:
            continue
        root = Path(path.as_posix()[: found.start()] or "/")
        with use_data_root(root):
            dataset = datasets.load(name.format(*found.groups()))
        if dataset.environment != environment:
            raise UsageError(f"{path} is played by the {dataset.environment} environment")
        if len(dataset) != len(loader):
            raise DataError(f"{path} has {len(loader)} rows, of which {len(dataset)} make a task")
        return dataset
    rows = (_to_task(row, f"{path.stem}/{n}", path, n) for n, row in enumerate(loader.data))
    return Dataset(str(path), environment, tuple(rows), image="host", comparable=False)


def interactive_dataset(environment: str) -> Dataset:
    """What is played without data: one task that asks for nothing and has no gold."""
    return Dataset("interactive", environment, (Task("interactive/0", ""),), comparable=False)


def without_setup(dataset: Dataset) -> Dataset:
    """A dataset whose episodes begin as the authors' do: in ``/``, with nothing set up. What a
    task needs beyond that is their ``preprocess``'s."""
    return replace(dataset, tasks=tuple(replace(t, cwd="/", setup=None) for t in dataset.tasks))


def check_preprocess(preprocess: Any) -> Preprocess | None:
    """A function from a row to a list of commands. Raises UsageError for anything else."""
    if preprocess is not None and not callable(preprocess):
        raise UsageError(f"preprocess must be a function record -> list of str, not {preprocess!r}")
    function: Preprocess | None = preprocess
    return function


def _parse_row(row: Any, path: Path, where: str) -> Record:
    if not isinstance(row, Mapping) or "query" not in row:
        raise DataError(f"{path}, {where}: every row needs 'query'")
    return {str(k): v for k, v in row.items() if v is not None and v == v}  # NaN is not itself


def _to_task(row: Record, name: str, path: Path, number: int) -> Task:
    return files.to_task({"gold": None, **row}, name, path, f"row {number}")
