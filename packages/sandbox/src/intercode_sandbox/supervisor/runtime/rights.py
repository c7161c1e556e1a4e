"""Prepares what takes rights that sandboxes do not have, and drops every other right of root."""

from __future__ import annotations

import errno
import os

from . import seccomp
from . import syscalls as sys_
from .device_nodes import OWN, DeviceNodes
from .id_maps import enter_user_namespace
from .user_ids import UserIds

TYPE_CHECKING = False  # importing typing would double this process's memory
if TYPE_CHECKING:
    from typing import Any

STAGE = f"{OWN}/stage"
"""Where sandboxes with a user id of their own are mounted."""
_KEPT_CAPABILITIES = (
    sys_.CAP_DAC_OVERRIDE,
    sys_.CAP_KILL,
    sys_.CAP_SETGID,
    sys_.CAP_SETUID,
    sys_.CAP_SYS_ADMIN,
)
"""What user ids for sandboxes take: to open layers and control groups, to end supervisors, to
become other users, and to show files to them."""


class Rights:
    """What was prepared for the sandboxes: device nodes, user ids or the reason why there are
    none, the maps of an ordinary user's subordinate ids, and where the directories of root that
    sandboxes show are bound."""

    def __init__(self, nodes: DeviceNodes) -> None:
        self.nodes = nodes
        self.user_ids: UserIds | None = None
        self.user_ids_error = "only root can give each sandbox a user id of its own"
        self.id_maps: dict[str, str] = {}
        self.bound: dict[str, str] = {}


def prepare_rights(request: dict[str, Any]) -> Rights:
    """As root: prepare what only root can, and lose all other rights. As another user: map its
    subordinate ids if the sandboxes have several users. Raises OSError."""
    if os.geteuid() != 0:
        rights = Rights(DeviceNodes(may_mount=False))
        if request["users"]:
            rights.id_maps = enter_user_namespace(request["id_ranges"])
        return rights
    may_mount = True
    try:
        sys_.unshare(sys_.CLONE_NEWNS)
    except PermissionError:  # root of a container
        may_mount = False
        if request["binds"]:
            raise
    if may_mount:
        sys_.mount("none", "/", flags=sys_.MS_REC | sys_.MS_SLAVE)
    rights = Rights(DeviceNodes(may_mount))
    for number, (source, target) in enumerate(request["binds"]):
        place = target
        if rights.nodes.are_own:  # in a directory that every user can reach
            place = f"{OWN}/bound{number}"
        rights.bound[source] = place
        os.makedirs(place, exist_ok=True)
        sys_.mount(source, place, flags=sys_.MS_BIND | sys_.MS_REC)
    _prepare_user_ids(rights, request)
    if request["users"] and rights.user_ids is None:
        raise OSError(rights.user_ids_error)
    if rights.user_ids is None:
        _become(request["uid"])
    return rights


def _become(uid: int) -> None:
    try:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    except OSError as e:  # root of a container without CAP_SETUID, or whose ids are few
        raise OSError(
            e.errno, f"becoming the user {uid} (setgroups, setresuid): {e.strerror}"
        ) from e


def _prepare_user_ids(rights: Rights, request: dict[str, Any]) -> None:
    """Use a user id for each sandbox if that is possible, and keep the capabilities for it."""
    try:
        if not rights.nodes.are_own:
            raise PermissionError(errno.EPERM, "root may not mount or make device nodes here")
        os.mkdir(STAGE, 0o755)
        ids = UserIds(request["uid"], has_users=request["users"])
        ids.check_overlay(request["cache"], STAGE)
        sys_.keep_capabilities(*_KEPT_CAPABILITIES)
    except OSError as e:
        rights.user_ids_error = error_text(e)
    else:
        rights.user_ids, rights.user_ids_error = ids, ""


def install_seccomp_filter(rights: Rights, has_users: bool, has_groups: bool) -> None:
    """Install the filter of system calls for this process and its children, for good.

    Nothing that they execute gains rights by a set-user-ID program, except in sandboxes with
    several users, user ids of their own and control groups: there, each supervisor decides.
    """
    if not (has_users and has_groups and rights.user_ids):
        sys_.prctl(sys_.PR_SET_NO_NEW_PRIVS, 1)
    sys_.install_filter(seccomp.build_filter(sys_.ARCH, sys_.KEY, has_users=has_users))


def error_text(error: OSError) -> str:
    """Return the text of an error, with the file if there is one."""
    return f"{error.filename}: {error.strerror}" if error.filename else str(error.strerror)
