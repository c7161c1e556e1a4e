"""Users of sandboxes."""

from __future__ import annotations

import os


def has_set_user_id(tier: str) -> bool:
    """Return whether set-user-ID programs have an effect in sandboxes with users on this tier."""
    return tier == "namespace/1" and os.geteuid() == 0
