"""A part of BIRD's development set as the InterCode authors lay it out: 338 questions on three
databases.

Li et al., "Can LLM Already Serve as A Database Interface? A BIg Bench for Large-Scale Database
Grounded Text-to-SQLs" (arXiv 2305.03111).
"""

from __future__ import annotations

from intercode.core.types import Dataset, Task
from intercode.datasets.sql import base

HARDNESS = ("simple", "moderate", "challenging")


def load(subset: str | None = None) -> Dataset:
    """A part of BIRD's development set, or a subset such as ``simple``, ``superhero``.

    Subsets are a hardness (``simple``, ``moderate``, ``challenging``), a database, ``schema`` and
    ``evidence`` for all of it with the schema, or with the row's piece of knowledge, in the prompt.
    Joined by ``+`` they hold together.

    ``Task.data`` holds ``schema``, ``evidence`` and ``question_id``. Raises UnknownNameError for
    another subset, UsageError without the data, DataError for broken files.
    """
    places = base.find_files("bird", "ic_bird.json", "ic_bird_dbs.sql")
    known = base.dump_schemas(places.dump)
    tasks = base.read_tasks("bird", places, "difficulty", known)
    return base.select_tasks("bird", tasks, subset, evidence=_with_evidence)


def _with_evidence(task: Task) -> Task:
    evidence = str(task.data.get("evidence") or "").strip()
    return base.with_note(task, f"What is known: {evidence}") if evidence else task
