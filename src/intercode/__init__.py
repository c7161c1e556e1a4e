"""InterCode: interactive coding with execution feedback.

Code is the action, execution feedback is the observation::

    import intercode

    env = intercode.make("bash")
    query, info = env.reset(seed=1)
    observation, reward, terminated, truncated, info = env.step("ls")

Importing this package registers ``intercode/Bash-v1`` with Gymnasium and does nothing else.
"""

from __future__ import annotations

from intercode.envs import make, register

__version__ = "0.1.0"
__all__ = ["__version__", "make"]

register()
