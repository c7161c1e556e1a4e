"""Rows of a Parquet file, read a batch at a time by the library pyarrow."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError, UsageError

_BATCH = 1024


def read_parquet(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every row with the words that say where it stands; its empty cells are left out.

    Raises UsageError without the library, DataError for a file that is absent or broken.
    """
    try:
        arrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as e:
        raise UsageError(
            f"reading {path} needs pyarrow: pip install 'intercode-gym[parquet]'"
        ) from e
    try:
        with parquet.ParquetFile(path) as file:
            number = 0
            for batch in file.iter_batches(_BATCH):
                for row in batch.to_pylist():
                    yield f"row {number}", {k: v for k, v in row.items() if v is not None}
                    number += 1
    except FileNotFoundError as e:
        raise DataError(f"cannot read {path}: there is no such file") from e
    except (OSError, arrow.ArrowException) as e:
        raise DataError(f"{path} cannot be read as Parquet: {e}") from e
