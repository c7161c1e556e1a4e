"""Hides from this package what Windows does not have, as if it ran there.

A Python process executes this module when it starts with this directory in PYTHONPATH; so do its
child processes. Modules of this package cannot import the hidden modules and see neither the hidden
names of other modules nor that the system is Linux. The standard library, tests and other packages
are not affected, because Python was built for Linux here.
"""

from __future__ import annotations

import builtins
import importlib
import sys
from types import ModuleType
from typing import Any

PACKAGES = ("intercode", "intercode_sandbox", "intercode_sql", "intercode_lab")
"""What is tested without Linux."""
HIDDEN_MODULES = frozenset(
    [
        "fcntl",
        "resource",
        "pwd",
        "grp",
        "termios",
        "tty",
        "pty",
        "syslog",
        "spwd",
        "crypt",
        "posix",
        "readline",
        "curses",
    ]
)
_OS = """
chown chroot confstr copy_file_range ctermid eventfd fchdir fchmod fchown fdatasync fork forkpty
fpathconf fstatvfs getegid geteuid getgid getgrouplist getgroups getloadavg getpgid getpgrp
getpriority getresgid getresuid getsid getuid getxattr initgroups killpg lchown listxattr lockf
login_tty major makedev memfd_create minor mkfifo mknod nice openpty pathconf pidfd_open pipe2
posix_fadvise posix_fallocate posix_openpt posix_spawn posix_spawnp pread preadv pwrite pwritev
readv register_at_fork removexattr sched_getaffinity sched_setaffinity sched_yield sendfile
set_blocking setegid seteuid setgid setgroups setns setpgid setpriority setregid setresgid setresuid
setreuid setsid setuid setxattr splice statvfs sync sysconf tcgetpgrp tcsetpgrp ttyname uname
unshare wait wait3 wait4 waitid writev O_ASYNC O_CLOEXEC O_DIRECTORY O_DSYNC O_NOATIME
O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH O_SYNC O_TMPFILE MFD_CLOEXEC MFD_ALLOW_SEALING P_PID
P_PIDFD WNOHANG WUNTRACED
WIFEXITED WIFSIGNALED WEXITSTATUS WTERMSIG CLONE_NEWNS CLONE_NEWUSER GRND_NONBLOCK getrandom
"""
_SIGNAL = """
ITIMER_PROF ITIMER_REAL ITIMER_VIRTUAL SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGIO SIGKILL SIGPIPE
SIGPROF SIGQUIT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGURG SIGUSR1 SIGUSR2 SIGVTALRM
SIGWINCH SIGXCPU SIGXFSZ alarm getitimer pause pidfd_send_signal pthread_kill pthread_sigmask
setitimer siginterrupt sigpending sigtimedwait sigwait sigwaitinfo
"""
_SOCKET = (
    "AF_ALG AF_NETLINK AF_PACKET AF_UNIX AF_VSOCK CMSG_LEN CMSG_SPACE SCM_RIGHTS recv_fds send_fds"
)


class PartialModule(ModuleType):
    """A module without some names and with other values of some."""

    def __init__(self, real: ModuleType, hidden: str, values: dict[str, object]) -> None:
        super().__init__(real.__name__, real.__doc__)
        vars(self).update(_real=real, _hidden=frozenset(hidden.split()), _values=values)

    def __getattr__(self, name: str) -> Any:
        if name in self._hidden:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} (hidden)")
        return self._values[name] if name in self._values else getattr(self._real, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)


def _partial_modules() -> dict[str, PartialModule]:
    hidden: dict[str, tuple[str, dict[str, object]]] = {
        "os": (_OS, {}),
        "signal": (_SIGNAL, {}),
        "socket": (_SOCKET, {}),
        "select": ("poll epoll devpoll kqueue", {}),
        "sys": ("", {"platform": "win32"}),
        "platform": ("", {"system": lambda: "Windows", "machine": lambda: "AMD64"}),
    }
    return {
        name: PartialModule(importlib.import_module(name), *change)
        for name, change in hidden.items()
    }


PARTIAL_MODULES = _partial_modules()
_import = builtins.__import__


def import_hiding(
    name: str, variables: Any = None, local: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """Import as ``__import__`` does, for modules of this package without what is hidden."""
    importer = str((variables or {}).get("__name__", ""))
    if importer == "__main__":
        importer = str(getattr(variables.get("__spec__"), "name", ""))
    top = name.partition(".")[0]
    if level or importer.partition(".")[0] not in PACKAGES:
        return _import(name, variables, local, fromlist, level)
    if top in HIDDEN_MODULES:
        message = f"No module named {name!r} (hidden)"
        raise ModuleNotFoundError(message, name=name)
    if name not in PARTIAL_MODULES:
        found = _import(name, variables, local, fromlist, level)
        return PARTIAL_MODULES.get(top, found) if not fromlist else found
    partial = PARTIAL_MODULES[name]
    for wanted in fromlist or ():
        if not hasattr(partial, wanted):
            message = f"cannot import name {wanted!r} from {name!r} (hidden)"
            raise ImportError(message, name=name)
    return partial


def _hide_kernel_files(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and str(arguments[0]).startswith(("/proc/", "/sys/")):
        raise FileNotFoundError(2, "No such file or directory", arguments[0])


builtins.__import__ = import_hiding
sys.addaudithook(_hide_kernel_files)
