"""How the authors' environment sees a file system: a git repository at `/` whose ignore file names
the top-level directories of a Linux system at any depth (upstream: docker/docker.gitignore,
bash_env.py). Used by the ``original`` profile only."""

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
"""Makes the repository; git ignores the trees of the ignore file."""

RESET = "git reset --hard; git clean -fd;"
"""What the authors run before every episode; the first time it deletes all empty directories."""


def status(box: OriginalBashSession) -> tuple[tuple[str, str], ...]:
    """The (path, code) pairs that the authors read out of ``git status --short``.

    The text is split at white space and paired up, so a path with a blank garbles what follows.
    An odd last word, on which their code raises, is left out.
    """
    words = box.execute(_STATUS, "/", _SECONDS).output.split()
    return tuple((words[i + 1], words[i]) for i in range(0, len(words) - 1, 2))


def refresh(box: OriginalBashSession) -> None:
    """Have git look at files that are as they were committed but lie elsewhere, as all do in a
    container: it would else take them for changed ones, and a reset write them again, with new
    dates and the modes that git knows."""
    box.execute("git update-index -q --refresh;", "/", _SECONDS)


def checksums(box: OriginalBashSession, entries: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """What the authors' hash command prints for each added, untracked or copied entry.

    Files with a dot in their path go to ``md5sum``; others to ``md5deep``, which the image lacks,
    so that both sides print the same error.
    """
    sums: dict[str, str] = {}
    for path, code in entries:
        if code in _CHECKED_CODES and path not in sums:
            command = ["md5sum", path] if "." in path else ["md5deep", "-r", path]
            sums[path] = box.execute_argv(command, "/", _SECONDS).output
    return sums


def prepare(box: OriginalBashSession) -> None:
    """Make the repository and reset once. Raises SandboxError where git fails (is it there?)."""
    for command in (COMMIT, RESET):
        result = box.execute_argv(["/bin/bash", "-c", command], "/", 300.0)
        if not result.ok:
            raise SandboxError(
                f"the original profile needs git in the image; it said: {result.output.strip()!r}"
            )
