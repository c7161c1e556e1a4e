"""Decides whether an exception in the path of an action is the agent's or the machine's.

It is the agent's unless the machine is shown to be at fault: a process that we own, and that the
agent cannot reach, has failed. Otherwise an agent could cause exceptions to have an episode played
again in which it has failed. Such an *action error* ends the episode with the score 0. It is a
result, and it may be a fault of this package or of a user's reward function: it is counted, and
recorded with its trace.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Protocol

from intercode.core.errors import (
    BudgetError,
    EnvironmentStateError,
    GoldError,
    InfrastructureError,
    SandboxKilledError,
    TaskImageError,
)
from intercode.core.types import ActionError
from intercode.environments.base.rewards import RewardFunctionError

_NEVER_OF_AGENT = (EnvironmentStateError, GoldError, TaskImageError, BudgetError)
"""Errors of the caller, of what a task brings, and of limits."""
_MAX_MESSAGE = 500  # characters


class _AgentWorkspace(Protocol):
    """The part of a workspace that is asked whether it still answers."""

    def changed_paths(self) -> list[str]: ...


def machine_error(
    error: Exception, workspace: _AgentWorkspace | None, check_machine: Callable[[], object]
) -> Exception | None:
    """Return the error to raise if the machine has failed, or None for an action error.

    ``workspace``: the agent's. ``check_machine`` uses what the agent cannot reach, such as another
    sandbox, and raises if that fails. Raises SandboxKilledError if what ran in the agent's sandbox
    has ended it.
    """
    if isinstance(error, RewardFunctionError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    if isinstance(error, _NEVER_OF_AGENT):
        return error
    if isinstance(error, InfrastructureError) and error.machine_failed:
        return error
    if not isinstance(error, InfrastructureError | OSError):
        return None
    raised = error if isinstance(error, InfrastructureError) else _as_infrastructure_error(error)
    try:
        if workspace is not None:
            workspace.changed_paths()
    except SandboxKilledError:
        raise
    except InfrastructureError as e:
        if e.machine_failed:
            return raised
    except Exception:
        pass  # whatever else it says shows nothing of the machine
    try:
        check_machine()
    except Exception:
        return raised
    return None


def _as_infrastructure_error(error: OSError) -> InfrastructureError:
    found = InfrastructureError(f"the machine failed: {type(error).__name__}: {error}")
    found.__cause__ = error
    return found


def describe_action_error(error: Exception) -> ActionError:
    """Return the record of an action error, and warn of one that a reward function raised, which
    else nobody would see who trains on the scores."""
    if isinstance(error, RewardFunctionError):
        cause, reward = error.__cause__, "" if error.is_own else error.reward
        trace = "".join(traceback.format_exception(cause)).rstrip("\n")
        if reward:
            warnings.warn(f"{error}; the episode scores 0", RuntimeWarning, stacklevel=2)
        return ActionError(type(cause).__name__, str(error)[:_MAX_MESSAGE], trace, reward)
    trace = "".join(traceback.format_exception(error)).rstrip("\n")
    return ActionError(type(error).__name__, str(error)[:_MAX_MESSAGE], trace)
