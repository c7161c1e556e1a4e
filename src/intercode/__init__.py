"""InterCode: interactive coding with execution feedback.

Code is the action, execution feedback is the observation::

    import intercode

    env = intercode.make("bash")
    query, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("ls")

Importing this package registers ``intercode/Bash-v1`` and the like with Gymnasium, and does nothing
else. ``intercode.make_vec("bash", num_envs=64)`` steps many environments in parallel,
``intercode.Pool`` keeps hundreds of episodes live for a trainer, ``intercode.evaluate(config)``
runs an agent on a dataset, ``intercode.load_run(directory)`` reads the results, and
``intercode.Sandbox`` is the type of every sandbox (see ``intercode.sandbox.open_sandbox``).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from intercode.core.version import __version__
from intercode.environments import make, register

if TYPE_CHECKING:
    from intercode.environments.base.pool import Pool
    from intercode.environments.base.vector import make_vec
    from intercode.evaluation.evaluate.run import evaluate
    from intercode.results.run import load_run
    from intercode.sandbox import Sandbox

__all__ = ["Pool", "Sandbox", "__version__", "evaluate", "load_run", "make", "make_vec"]

_LAZY_IMPORTS = {
    "Pool": "intercode.environments.base.pool",
    "Sandbox": "intercode.sandbox",
    "evaluate": "intercode.evaluation.evaluate.run",
    "load_run": "intercode.results.run",
    "make_vec": "intercode.environments.base.vector",
}

register()


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name in _LAZY_IMPORTS:
        return getattr(import_module(_LAZY_IMPORTS[name]), name)
    raise AttributeError(f"module 'intercode' has no attribute {name!r}")
