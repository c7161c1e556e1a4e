"""A check of a dataset for its tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from intercode.core.types import Dataset
from intercode.evaluation.check.dataset import check
from intercode_sandbox.checks import require


def check_dataset(dataset: str | Path | Dataset, **settings: Any) -> None:
    """Check the tasks of a dataset like ``intercode check``.

    Every gold must score 1 and always reach the same state, an agent that does nothing must not
    score 1, and nothing of a gold may be readable in the sandbox.

    Args:
        dataset: A name, a file, the directory of a task package or, in a test that lies there, the
            test's own ``__file__``.
        **settings: Those of ``evaluation.check.dataset.check``.

    Raises:
        AssertionError: A task is not sound. The message names each fault.
        UsageError: The dataset or a setting does not exist.
    """
    if not isinstance(dataset, Dataset):
        path = Path(dataset)
        dataset = str(path.resolve().parent if path.suffix == ".py" else dataset)
    report = check(dataset, **settings)
    faults = "; ".join(f"{f.task}: {f.kind}: {f.detail}" for f in report.faults)
    require(report.sound, f"{len(report.unsound)} of {report.tasks} tasks are not sound: {faults}")
