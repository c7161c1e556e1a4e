"""Agents that are programs: which there are, how each is started, and how it reports results."""

from intercode.agents.programs.agent import ProgramAgent
from intercode.agents.programs.program import Launch

__all__ = ["Launch", "ProgramAgent"]
