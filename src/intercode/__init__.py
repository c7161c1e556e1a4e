"""InterCode: interactive coding with execution feedback.

Code is the action, execution feedback is the observation::

    import intercode

    env = intercode.make("bash")
    query, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("ls")

Importing this package registers ``intercode/Bash-v1`` with Gymnasium and does nothing else.
``intercode.load_run(directory)`` reads what an evaluation has left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from intercode.envs import make, register

if TYPE_CHECKING:
    from intercode.report.loading import load_run

__version__ = "0.1.0"
__all__ = ["__version__", "load_run", "make"]

register()


def __getattr__(name: str) -> Any:
    """What is imported when it is first asked for."""
    if name == "load_run":
        from intercode.report.loading import load_run

        return load_run
    raise AttributeError(f"module 'intercode' has no attribute {name!r}")
