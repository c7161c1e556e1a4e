"""InterCode in Inspect: the tasks ``intercode/bash|sql|python|ctf|code``, ``intercode/environment``
for every other environment, the sandbox provider ``intercode``, our agents as the solver
``intercode/strategy``, and the scorer ``intercode/reward``.

Inspect finds this module by its entry point. It needs the extra ``inspect``.
"""

from __future__ import annotations

try:
    import inspect_ai  # noqa: F401
except ModuleNotFoundError as e:
    raise ImportError("this needs Inspect: pip install 'intercode-gym[inspect]'") from e

from intercode.integrations.inspect.configuration import SandboxConfig
from intercode.integrations.inspect.environment_sandbox import EnvironmentSandbox
from intercode.integrations.inspect.sandbox import InterCodeSandbox
from intercode.integrations.inspect.tasks import (
    bash,
    code,
    ctf,
    environment,
    python,
    reward,
    sql,
    strategy,
)

__all__ = [
    "EnvironmentSandbox",
    "InterCodeSandbox",
    "SandboxConfig",
    "bash",
    "code",
    "ctf",
    "environment",
    "python",
    "reward",
    "sql",
    "strategy",
]
