"""The file system as the authors' environment sees it: a git repository at `/`.

Its ignore file names the top-level directories of a Linux system at any depth (upstream:
docker/docker.gitignore, bash_env.py). Only the ``original`` profile uses it.
"""

from __future__ import annotations

from intercode.core.errors import SandboxError
from intercode.sessions.bash.original import OriginalBashSession

_IGNORED_NAMES = (
    "bin", "boot", "dev", "etc", "home", "lib", "media", "opt", "proc", "root", "run", "sbin",
    "srv", "sys", "usr", "var", ".dockerenv",
)  # fmt: skip
IGNORE_FILE = "\n".join(_IGNORED_NAMES) + "\n"
_STATUS = "git status --short;"
_CHECKED_CODES = ("A", "??", "C")
_SECONDS = 60.0

COMMIT = """
export GIT_AUTHOR_DATE=2026-11-20T00:00:00Z GIT_COMMITTER_DATE=2026-11-20T00:00:00Z
git config --global user.email intercode@pnlp.org &&
git config --global user.name intercode &&
cd / && git init --quiet && git add -A && git commit --quiet --message='initial commit'
"""
"""Makes the repository. git ignores the trees named in the ignore file."""

RESET = "git reset --hard; git clean -fd;"
"""The authors run this before every episode. The first time it deletes all empty directories."""


def status(session: OriginalBashSession) -> tuple[tuple[str, str], ...]:
    """Return the (path, code) pairs that the authors read from ``git status --short``.

    They split the text at white space and pair up the words, so a blank in a path garbles the rest.
    An odd last word, on which their code raises, is left out.
    """
    words = session.execute(_STATUS, "/", _SECONDS).output.split()
    return tuple((words[i + 1], words[i]) for i in range(0, len(words) - 1, 2))


def refresh(session: OriginalBashSession) -> None:
    """Have git update its index.

    In a container all files are unchanged but on another file system. Without this, git takes them
    for changed ones, and a reset writes them again with new dates and with the modes that git
    knows.
    """
    session.execute("git update-index -q --refresh;", "/", _SECONDS)


def checksums(session: OriginalBashSession, entries: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return what the authors' hash command prints for each added, untracked or copied entry.

    Files with a dot in their path go to ``md5sum``, others to ``md5deep``, which the image lacks,
    so that agent and gold print the same error.
    """
    sums: dict[str, str] = {}
    for path, code in entries:
        if code in _CHECKED_CODES and path not in sums:
            command = ["md5sum", path] if "." in path else ["md5deep", "-r", path]
            sums[path] = session.execute_argv(command, "/", _SECONDS).output
    return sums


def prepare(session: OriginalBashSession) -> None:
    """Make the repository and reset it once. Raises SandboxError where git fails or is missing."""
    for command in (COMMIT, RESET):
        result = session.execute_argv(["/bin/bash", "-c", command], "/", 300.0)
        if not result.ok:
            raise SandboxError(
                f"the original profile needs git in the image; it said: {result.output.strip()!r}"
            )
