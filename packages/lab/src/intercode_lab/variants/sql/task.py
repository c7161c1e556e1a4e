"""Makes variants of an SQL task."""

from __future__ import annotations

from dataclasses import replace

from intercode.core.types import Task
from intercode.environments.base.env import InterCodeEnv
from intercode_lab.families.choices import Choices
from intercode_lab.variants.making.makers import VariantMaker
from intercode_lab.variants.sql.database import read_database, write_variant
from intercode_lab.variants.sql.golds import read_golds
from intercode_lab.variants.sql.invented import with_rows
from intercode_lab.variants.sql.mutants import near_solutions
from intercode_lab.variants.sql.rows import other_rows


def make_variant(env: InterCodeEnv, seed: int) -> Task | None:
    """Return the task of an environment with other rows in its database, or None without one.

    The database is a file in the cache, of the same kind as the task's.
    """
    task = env.task
    if task.database is None:
        return None
    database = read_database(task.database)
    named = read_golds(task, database, "sqlite" if task.database.kind == "sqlite" else "mysql")
    choices = Choices("rows", task.id, seed)
    varied = other_rows(with_rows(database, named, choices), named, choices)
    path = write_variant(task.database, varied)
    return replace(task, database=replace(task.database, path=path))


MAKER = VariantMaker(make_variant, near_solutions)
