"""Action policies: rules over the actions that an environment executes.

A policy guides an agent, and makes its attempts to break the rules countable. It is no security
boundary: code can do the same thing under many names, and its text does not show them all. The
sandbox is the boundary.

A rule is ``kind:pattern``. ``docs/policies.md`` lists the kinds. An action is refused if a ``deny``
rule matches a part of it, or if there are ``allow`` rules of a kind and none of them matches a part
of that kind. A refusal is an observation: it costs a turn, nothing is executed, and
``info["refused"]`` is true.
"""

from __future__ import annotations

from intercode.environments.base.policy.policy import Policy, PolicyGuard, PolicySource

__all__ = ["Policy", "PolicyGuard", "PolicySource"]
