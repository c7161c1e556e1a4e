"""Spider's development set as the InterCode authors lay it out: 1034 questions on 20 databases.

Yu et al., "Spider: A Large-Scale Human-Labeled Dataset for Complex and Cross-Domain Semantic
Parsing and Text-to-SQL Task" (arXiv 1809.08887).
"""

from __future__ import annotations

from intercode.core.types import Dataset
from intercode.datasets.sql import base

HARDNESS = ("easy", "medium", "hard", "extra")


def load(subset: str | None = None) -> Dataset:
    """Spider's development set, or a subset such as ``easy``, ``world_1``, ``verified``.

    Subsets are a hardness (``easy``, ``medium``, ``hard``, ``extra``), a database, ``verified`` for
    the tasks that the audit found sound, and ``schema`` for all of it with the schema in the
    prompt. Joined by ``+`` they hold together: ``hard+world_1+schema``.

    ``Task.data`` holds the ``schema``. Raises UnknownNameError for another subset, UsageError
    without the data, DataError for broken files.
    """
    places = base.find_files("spider", "ic_spider_dev.json", "ic_spider_dbs.sql")
    known = base.dump_schemas(places.dump)
    tasks = base.read_tasks("spider", places, "hardness", known)
    return base.select_tasks("spider", tasks, subset)
