"""Reads a data file in the authors' format, as plain rows and as tasks of this package."""

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
"""The authors' data files, by path in their ``data`` directory, and the datasets they are here."""


class IntercodeDataLoader:
    """Reads a .json, .jsonl, .csv, .tsv or .parquet file.

    Replaces the authors' class of the same name. ``data`` holds the rows, each with a
    ``query`` and optionally a ``gold``.

    Args:
        data_path: The path of the file.

    Raises:
        DataError: The file is missing or invalid.
        UsageError: The file is a pickle, or of another format.

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from intercode.paper.envs import IntercodeDataLoader
    >>> with TemporaryDirectory() as directory:
    ...     path = Path(directory, "rows.csv")
    ...     _ = path.write_text("query,gold\\nPrint 1.,echo 1\\n")
    ...     IntercodeDataLoader(str(path)).get(0)
    {'query': 'Print 1.', 'gold': 'echo 1'}
    """

    def __init__(self, data_path: str) -> None:
        self.data_path, path = str(data_path), Path(data_path)
        if path.suffix.lower() in (".pkl", ".pickle"):
            raise UsageError(
                f"{path} is a pickle, which can run any code when it is read: "
                "write it as JSON (pandas: DataFrame.to_json(..., orient='records'))"
            )
        if path.suffix.lower() not in files.SUFFIXES:
            raise UsageError(f"{path} must be one of {', '.join(files.SUFFIXES)}")
        self.data: list[Record] = [
            _parse_row(row, path, where) for where, row in files.read_rows(path)
        ]

    def get(self, index: int | None = None) -> Record:
        """Return a row without its empty cells.

        Args:
            index: The position of the row; None: a random one.

        Raises:
            UsageError: There is no such row.
        """
        if index is None:
            index = int(np.random.randint(0, len(self.data)))
        if not 0 <= index < len(self.data):
            raise UsageError(f"task {index} is out of range: {self.data_path} has {len(self)}")
        return dict(self.data[index])

    def __len__(self) -> int:
        return len(self.data)


def load_data_file(data_path: str, environment: str, loader: IntercodeDataLoader) -> Dataset:
    """Return the tasks of a data file.

    A file that the authors published is loaded with the databases, images and other files in the
    same directory tree. Of any other file, each row is a task. Raises UsageError if the tree lacks
    a file, or if the file belongs to another environment.
    """
    path = Path(data_path).absolute()
    for pattern, name in _PUBLISHED_FILES:
        match = re.search(f"(?:^|/){pattern.pattern}$", path.as_posix())
        if match is None:
            continue
        root = Path(path.as_posix()[: match.start()] or "/")
        with use_data_root(root):
            dataset = datasets.load(name.format(*match.groups()))
        if dataset.environment != environment:
            raise UsageError(f"{path} is played by the {dataset.environment} environment")
        if len(dataset) != len(loader):
            raise DataError(f"{path} has {len(loader)} rows, of which {len(dataset)} make a task")
        return dataset
    rows = (_to_task(row, f"{path.stem}/{n}", path, n) for n, row in enumerate(loader.data))
    return Dataset(str(path), environment, tuple(rows), image="host", comparable=False)


def interactive_dataset(environment: str) -> Dataset:
    """Return a dataset for use without a data file: one task without a query and a gold."""
    return Dataset("interactive", environment, (Task("interactive/0", ""),), comparable=False)


def without_setup(dataset: Dataset) -> Dataset:
    """Return the dataset with tasks that start in ``/`` and have no set-up, as the authors' do.

    Their package leaves any further preparation to ``preprocess``.
    """
    return replace(dataset, tasks=tuple(replace(t, cwd="/", setup=None) for t in dataset.tasks))


def check_preprocess(preprocess: Any) -> Preprocess | None:
    """Return ``preprocess``: None, or a function that returns a row's list of commands.

    Raises UsageError for anything that cannot be called.
    """
    if preprocess is not None and not callable(preprocess):
        raise UsageError(f"preprocess must be a function record -> list of str, not {preprocess!r}")
    function: Preprocess | None = preprocess
    return function


def _parse_row(row: Any, path: Path, where: str) -> Record:
    if not isinstance(row, Mapping) or "query" not in row:
        raise DataError(f"{path}, {where}: every row needs 'query'")
    return {str(k): v for k, v in row.items() if v is not None and v == v}  # NaN != NaN


def _to_task(row: Record, name: str, path: Path, number: int) -> Task:
    return files.to_task({"gold": None, **row}, name, path, f"row {number}")
