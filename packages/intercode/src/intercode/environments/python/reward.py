"""The Python reward of the paper.

Paper (arXiv 2306.14898, section 3.2): the share of a task's tests that the submitted function
passes.
"""

from __future__ import annotations

from intercode.environments.base.rewards import share_of_passed_tests as standard

__all__ = ["standard"]
