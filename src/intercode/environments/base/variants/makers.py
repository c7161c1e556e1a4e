"""The functions that make variants of tasks, by environment.

An environment that has variants registers a function (environment, seed) -> task. The environment
has been reset to the task; the result is the task in another initial state. The same task and seed
give the same variant on every machine: all choices are digests of both.
"""

from __future__ import annotations

from intercode.sandbox.registry import Registry

VARIANT_MAKERS = Registry(
    "variants of environment",
    {
        "bash": "intercode.environments.bash.variants.task:make_variant",
        "sql": "intercode.environments.sql.variants.task:make_variant",
    },
)
"""The function of each environment that makes variants of a task."""

NEAR_SOLUTIONS = Registry(
    "near solutions of environment",
    {"sql": "intercode.environments.sql.variants.mutants:near_solutions"},
)
"""The function of each environment that makes wrong solutions of a task, of a task: those that good
variants find out."""
