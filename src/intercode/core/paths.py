"""The directories in which this package keeps files, and the user id of sandboxes."""

from __future__ import annotations

import os
from pathlib import Path

ROOT_SANDBOX_UID = 60600
"""The user id of sandboxes that root starts, in a range that Debian and systemd leave free."""


def cache_root() -> Path:
    """Return the directory of unpacked images and fetched data, and create it if it is absent.

    It is ``INTERCODE_CACHE``, else ``/var/cache/intercode`` for root, whose sandboxes must be able
    to read it, else ``$XDG_CACHE_HOME/intercode`` or ``~/.cache/intercode``.
    """
    if chosen := os.environ.get("INTERCODE_CACHE"):
        path = Path(chosen).absolute()
    elif os.geteuid() == 0:
        path = Path("/var/cache/intercode")
    else:
        home = os.environ.get("XDG_CACHE_HOME")
        path = (Path(home) if home else Path.home() / ".cache") / "intercode"
    path.mkdir(parents=True, exist_ok=True, mode=0o755)
    return path


def state_root() -> Path:
    """Return the directory of command histories and unfinished play sessions, and create it.

    It is ``INTERCODE_STATE``, else ``$XDG_STATE_HOME/intercode`` or ``~/.local/state/intercode``.
    """
    if chosen := os.environ.get("INTERCODE_STATE"):
        path = Path(chosen).absolute()
    else:
        home = os.environ.get("XDG_STATE_HOME")
        path = (Path(home) if home else Path.home() / ".local" / "state") / "intercode"
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def sandbox_uid() -> int:
    """Return the user and group id that owns the files of sandboxes on this machine."""
    uid = os.geteuid()
    return uid if uid != 0 else int(os.environ.get("INTERCODE_SANDBOX_UID", ROOT_SANDBOX_UID))
