"""Harbor: its tasks as an environment, our tasks in its format, its trials in our sandboxes.

``InterCodeEnvironment`` needs Harbor, which runs on Python 3.12 and newer; nothing else here does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from intercode_sandbox.lazy import lazy_imports

if TYPE_CHECKING:
    from intercode.integrations.harbor.env import HarborEnv
    from intercode.integrations.harbor.provider import InterCodeEnvironment

__all__ = ["HarborEnv", "InterCodeEnvironment"]

__getattr__ = lazy_imports(__name__, {"HarborEnv": ".env", "InterCodeEnvironment": ".provider"})
