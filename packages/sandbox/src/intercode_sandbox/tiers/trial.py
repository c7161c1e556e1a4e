"""The limits of the sandboxes that the checks of tiers open."""

from __future__ import annotations

from intercode_sandbox.contract import Limits

TRIAL_LIMITS = Limits(processes=16, open_files=64, file_size=1 << 20, address_space=1 << 28)
"""Low ones, because a hard limit of this process (``ulimit -H``) below the default limits of
sandboxes does not mean that the tier does not work."""
