"""Action policies: rules that say which actions an environment lets through.

A policy guides whoever acts, and makes what was tried against it countable. It is no security
boundary: code has endless ways to do a thing under another name, and a language's text does not
tell them all. The sandbox is the boundary.

A rule is ``kind:pattern``; ``docs/policies.md`` lists the kinds. An action is refused where a
``deny`` rule finds something in it, or where there are ``allow`` rules of a kind and something of
that kind is covered by none. A refusal is an observation: it costs a turn, nothing is executed, and
``info["refused"]`` tells it.
"""

from __future__ import annotations

from intercode.environments.base.policy.guard import PolicyGuard
from intercode.environments.base.policy.policy import Policy, PolicySource, Unparsed, read_policy
from intercode.environments.base.policy.rules import KINDS, Rule, make_rule

__all__ = [
    "KINDS",
    "Policy",
    "PolicyGuard",
    "PolicySource",
    "Rule",
    "Unparsed",
    "make_rule",
    "read_policy",
]  # fmt: skip
