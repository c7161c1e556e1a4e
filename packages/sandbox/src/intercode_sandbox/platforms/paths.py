"""The directories in which this package keeps files, and the user id of sandboxes."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from intercode_sandbox.errors import ConfigError
from intercode_sandbox.platforms.files import has_user_ids

ROOT_SANDBOX_UID = 60600
"""The user id of sandboxes that root starts, in a range that Debian and systemd leave free."""


def cache_root() -> Path:
    """Return the directory of unpacked images and fetched data, and create it if it is absent.

    It is ``INTERCODE_CACHE``, else ``/var/cache/intercode`` for root, whose sandboxes must be able
    to read it, else ``$XDG_CACHE_HOME/intercode`` or ``~/.cache/intercode``.

    Other users of the machine cannot enter a directory that this function creates, nor the default
    one, so that they reach no file of an image that is writable for everybody. An existing
    ``INTERCODE_CACHE`` keeps its mode, unless it is empty; the directories of layers in it are
    closed. Raises ConfigError if another user could write to the directory or replace it, or owns
    or can write to something in it; programs in it are executed.
    """
    is_default = False
    if chosen := os.environ.get("INTERCODE_CACHE"):
        path = Path(chosen).absolute()
    elif has_user_ids() and os.geteuid() == 0:
        path, is_default = Path("/var/cache/intercode"), True
    else:
        home = os.environ.get("XDG_CACHE_HOME")
        path, is_default = (Path(home) if home else Path.home() / ".cache") / "intercode", True
    if not has_user_ids():
        _make_directory(path)
        return path
    try:
        _prepare_cache(path, is_default)
    except OSError as e:
        raise ConfigError(
            f"the cache {path} cannot be used: {e.filename or path}: {e.strerror}. Set "
            "INTERCODE_CACHE to a directory that this user can write to"
        ) from e
    return path


def _prepare_cache(path: Path, is_default: bool) -> None:
    """Create and check the cache, once in a process."""
    checked = (path, os.geteuid(), sandbox_uid())
    if checked in _checked_caches and path.is_dir():
        return
    created = _make_directory(path)
    require_own_directory(path)
    _require_own_children(path)
    if created or is_default or not any(path.iterdir()):
        _close_to_other_users(path)
    elif path.stat().st_mode & stat.S_IXOTH and path.stat().st_uid == os.geteuid():
        for name in _LAYER_DIRECTORIES:
            (path / name).mkdir(mode=0o700, exist_ok=True)
            _close_to_other_users(path / name)
    _checked_caches.add(checked)


_checked_caches: set[tuple[Path, int, int]] = set()
"""The cache directories that this process has checked, with its user id and that of sandboxes."""
_LAYER_DIRECTORIES = ("layers", "dated", "built", "containers", "skeletons", "staging")
"""The directories in a cache whose files have the modes that they have in a sandbox."""
_UNMAPPED_UID = 65534  # the owner of everything outside a user namespace


def _make_directory(path: Path) -> bool:
    """Create a directory and those above it, writable for this user alone. Return whether it was
    absent. Raises ConfigError if this user may not create it, as in a container that runs as a user
    without a home directory."""
    missing = [p for p in (path, *path.parents) if not p.exists()]
    for directory in reversed(missing):
        try:
            directory.mkdir(mode=0o755, exist_ok=True)
        except OSError as e:
            raise ConfigError(
                f"the cache {path} cannot be created: {directory}: {e.strerror}. Set "
                "INTERCODE_CACHE to a directory that this user can write to"
            ) from e
    return bool(missing)


def require_own_directory(path: Path) -> None:
    """Raise ConfigError if another user than root could write to a directory or replace it."""
    trusted = {0, os.geteuid()}
    outside = set() if is_initial_user_namespace() else {_UNMAPPED_UID}
    real = path.resolve()
    for part in dict.fromkeys((path, real, *path.parents, *real.parents)):
        info = part.lstat()
        itself = part in (path, real)
        if info.st_uid not in (trusted if itself else trusted | outside):
            raise ConfigError(
                f"the cache {path} is not safe to use: {part} belongs to the user with id "
                f"{info.st_uid}, who could replace what this process executes. Set INTERCODE_CACHE "
                "to a directory of your own, or change its owner"
            )
        if stat.S_ISLNK(info.st_mode):
            continue
        others = stat.S_IWGRP | stat.S_IWOTH if itself else stat.S_IWOTH
        sticky = info.st_mode & stat.S_ISVTX and not itself
        if info.st_mode & others and not sticky:
            raise ConfigError(
                f"the cache {path} is not safe to use: other users can write to {part} (mode "
                f"{stat.S_IMODE(info.st_mode):o}). Run `chmod go-w {part}`, or set INTERCODE_CACHE "
                "to a directory of your own"
            )


def _require_own_children(path: Path) -> None:
    """Raise ConfigError if another user than root owns, or can write to, something in a cache.

    Other users may have put it there while they could write to the cache. What they can write to in
    a cache that they cannot enter was made with a wide umask, and gets another mode.
    """
    widely = stat.S_IWGRP | (stat.S_IWOTH if _is_closed(path) else 0)
    for child in path.iterdir():
        try:
            info = child.lstat()
        except FileNotFoundError:  # another process has just removed it
            continue
        if info.st_uid not in (0, os.geteuid()):
            reason = f"belongs to the user with id {info.st_uid}"
        elif stat.S_ISLNK(info.st_mode):
            if child.exists():
                require_own_directory(child)
            continue
        elif info.st_mode & stat.S_IWOTH & ~widely:
            reason = f"can be written by other users (mode {stat.S_IMODE(info.st_mode):o})"
        else:
            if info.st_mode & widely:  # made with the umask 002 or 0
                with suppress(OSError):
                    child.chmod(stat.S_IMODE(info.st_mode) & ~widely)
            continue
        raise ConfigError(
            f"the cache {path} is not safe to use: {child} {reason}, who may have planted what "
            "this process executes. Remove it, or set INTERCODE_CACHE to a directory of your own"
        )


def _is_closed(path: Path) -> bool:
    """Return whether nobody but this user and its sandboxes can enter a directory."""
    info = path.stat()
    others = stat.S_IXOTH if info.st_gid == sandbox_uid() else stat.S_IXOTH | stat.S_IXGRP
    return info.st_uid == os.geteuid() and not info.st_mode & others


def is_initial_user_namespace() -> bool:
    """Return whether this process is in the machine's own user namespace, so that its root is the
    machine's root."""
    try:
        return Path("/proc/self/uid_map").read_text().split() == ["0", "0", "4294967295"]
    except OSError:
        return True


def _close_to_other_users(path: Path) -> None:
    """Let only this user and the group of its sandboxes enter a directory, if the file system and
    the user namespace allow that."""
    info = path.stat()
    is_root = os.geteuid() == 0
    mode = 0o710 if is_root else 0o700
    if info.st_uid != os.geteuid():
        return
    with suppress(OSError):
        if is_root and info.st_gid != sandbox_uid():
            os.chown(path, -1, sandbox_uid())
        if stat.S_IMODE(info.st_mode) != mode:
            path.chmod(mode)


def state_path() -> Path:
    """Return the directory of command histories and unfinished play sessions, which need not exist.

    It is ``$XDG_STATE_HOME/intercode``, or ``~/.local/state/intercode``.
    """
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "intercode"


def state_root() -> Path:
    """Create the directory of `state_path` and return it."""
    path = state_path()
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    return path


def config_path(name: str) -> Path:
    """Return the path of a file that the user may have written, in ``INTERCODE_CONFIG``, else in
    ``$XDG_CONFIG_HOME/intercode`` or ``~/.config/intercode``. Raises ConfigError if
    ``INTERCODE_CONFIG`` is no directory, and RuntimeError if this user has no home directory."""
    if chosen := os.environ.get("INTERCODE_CONFIG"):
        if not Path(chosen).is_dir():
            raise ConfigError(f"INTERCODE_CONFIG={chosen} is no directory")
        return Path(chosen).absolute() / name
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "intercode" / name


def user_file(name: str) -> Path | None:
    """Return the path of a file that the user has written (`config_path`), or None if there is
    none, also because this user has no home directory or may not read it."""
    with suppress(OSError, RuntimeError):  # RuntimeError: Path.home() finds no directory
        path = config_path(name)
        return path if path.is_file() else None
    return None


def sandbox_uid() -> int:
    """Return the user and group id that owns the files of sandboxes on this machine."""
    uid = os.geteuid() if has_user_ids() else 0
    return uid if uid != 0 else int(os.environ.get("INTERCODE_SANDBOX_UID", ROOT_SANDBOX_UID))


def cache_remedy() -> str:
    """Return what lets the user of sandboxes into the cache; empty if nothing keeps it out."""
    blocked = closed_directory(cache_root())
    return f"chmod o+x {blocked}, or set INTERCODE_CACHE to another directory" if blocked else ""


def closed_directory(path: Path) -> Path | None:
    """Return a directory that keeps the user of sandboxes out of a path; None if none does."""
    uid = sandbox_uid()
    return next((p for p in (path, *path.parents) if not _can_enter(p, uid)), None)


def _can_enter(directory: Path, uid: int) -> bool:
    status = directory.stat()
    if status.st_uid == uid:
        bit = stat.S_IXUSR
    else:  # the group of sandboxes has the same id
        bit = stat.S_IXGRP if status.st_gid == uid else stat.S_IXOTH
    return bool(status.st_mode & bit) or (uid == os.geteuid() and os.access(directory, os.X_OK))
