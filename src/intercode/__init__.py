"""InterCode: interactive coding with execution feedback.

Code is the action, execution feedback is the observation::

    import intercode

    env = intercode.make("bash")
    query, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("ls")

Importing this package registers ``intercode/Bash-v1`` and the like with Gymnasium, and does nothing
else. ``intercode.make_vec("bash", num_envs=64)`` steps many environments in parallel,
``intercode.Pool`` keeps hundreds of episodes live for a trainer,
``intercode.evaluate("starter", "try-again", model=...)`` runs an agent on a dataset,
``intercode.load_run(directory)`` reads the results, and
``intercode.Sandbox("host")`` is a sandbox without a task. Every package lists its other
public names in ``__all__``, such as ``intercode.core``; names in no such list are private.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode.core.lazy import lazy_imports
from intercode.core.version import __version__
from intercode.environments import make, register

if TYPE_CHECKING:
    from intercode.environments.base.pool import Pool
    from intercode.environments.base.vector import make_vec
    from intercode.evaluation.evaluate.run import evaluate, evaluate_async
    from intercode.results.run import load_run
    from intercode.sandbox import Sandbox

__all__ = [
    "Pool",
    "Sandbox",
    "__version__",
    "evaluate",
    "evaluate_async",
    "load_run",
    "make",
    "make_vec",
]

__getattr__ = lazy_imports(
    __name__,
    {
        "Pool": ".environments.base.pool",
        "Sandbox": ".sandbox",
        "evaluate": ".evaluation.evaluate.run",
        "evaluate_async": ".evaluation.evaluate.run",
        "load_run": ".results.run",
        "make_vec": ".environments.base.vector",
    },
)

register()
