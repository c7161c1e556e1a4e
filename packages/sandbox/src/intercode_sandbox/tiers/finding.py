"""The result of a check of this machine."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check. ``needed``: no sandbox works without the feature. ``fix``: how to
    get it."""

    name: str
    ok: bool
    detail: str = ""
    fix: str = ""
    needed: bool = False
