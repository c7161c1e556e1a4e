"""How much of an output an observation has, and how much of that a model is sent.

A sandbox keeps the beginning and the end of each stream (``Limits.output``, in bytes). How each of
them cuts is in ``intercode_sandbox.long_output``.
"""

from __future__ import annotations

MAX_OBSERVATION_LENGTH = 1 << 21
"""The characters of an observation. What a sandbox keeps by default of both streams fits."""
OBSERVATION_LIMIT = 4000
"""The characters of an observation that a model is sent if its agent, or its trainer, sets none."""
