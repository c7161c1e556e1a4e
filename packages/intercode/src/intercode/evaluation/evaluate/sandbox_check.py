"""Finds out before a run whether this machine can open its sandboxes, and says what would help."""

from __future__ import annotations

import sys

from intercode.core.errors import (
    InfrastructureError,
    SandboxError,
    SandboxUnavailableError,
    TaskError,
)
from intercode.environments.base.sandboxed_env import uses_sandbox
from intercode.evaluation.evaluate.plan import Plan
from intercode_sandbox import SandboxSpec, describe_choice, open_sandbox
from intercode_sandbox.platforms.paths import cache_remedy
from intercode_sandbox.tiers.remedies import least_change
from intercode_sandbox.tiers.tier_table import tiers_of

_ANYWHERE = "reports, comparisons, `intercode view` and SQL work everywhere"


def require_sandboxes(plan: Plan) -> str:
    """Open and close one sandbox of a plan's image, if its environment uses sandboxes.

    Returns what was chosen for ``auto``, to be printed; empty if nothing was. Without this, each
    episode on a machine without sandboxes would be recorded as an error. Raises
    SandboxUnavailableError with what would help.
    """
    with plan.make_env() as env:
        if not uses_sandbox(env):
            return ""
        try:
            open_sandbox(SandboxSpec(env.image), env.backend).close()
        except TaskError:  # recorded when its task is played; others may have sandboxes
            pass
        except SandboxError as e:
            raise with_remedy(e, env.backend) from e
        except InfrastructureError:  # a registry did not answer; other tasks may have another one
            if env.image_name:
                raise
        backend = env.backend
    return describe_choice(backend)


def with_remedy(error: SandboxError, backend: str) -> SandboxUnavailableError:
    """Return an error with the least change of this machine that would make a back end work.

    A remedy for the cache comes first, because every tier needs the cache.
    """
    if sys.platform != "linux":
        return SandboxUnavailableError(f"{error}; {_ANYWHERE}")
    change = cache_remedy() or least_change(tier.name for tier in tiers_of(backend))
    if not change:
        return SandboxUnavailableError(f"{error}; `intercode doctor` describes this machine")
    if change in str(error):
        return SandboxUnavailableError(str(error))
    return SandboxUnavailableError(f"{error}; the least change: {change}")
