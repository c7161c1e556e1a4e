"""Finds changed files as the authors' code does, with a git repository at ``/``.

The ignore file names the top-level directories of a Linux system, and git ignores these names at
any depth (see docker/docker.gitignore and bash_env.py of the authors' repository).
"""

from __future__ import annotations

from intercode.core.errors import SandboxError
from intercode.core.types import Image, Layer
from intercode.paper.bash.session import OriginalBashSession
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.images.build.capture import captured_layer, layer_key

_IGNORED_NAMES = (
    "bin",
    "boot",
    "dev",
    "etc",
    "home",
    "lib",
    "media",
    "opt",
    "proc",
    "root",
    "run",
    "sbin",
    "srv",
    "sys",
    "usr",
    "var",
    ".dockerenv",
)
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
"""Creates the repository. Directories in the ignore file are not part of it."""

RESET = "git reset --hard; git clean -fd;"
"""The authors run this before every episode. The first time it deletes all empty directories."""


def status(session: OriginalBashSession) -> tuple[tuple[str, str], ...]:
    """Return the (path, code) pairs that the authors' code reads from ``git status --short``.

    It splits the text at white space and takes two words at a time, so all pairs after a path with
    a space are wrong. A single last word is left out; the authors' code fails there.
    """
    words = session.execute(_STATUS, "/", _SECONDS).output.split()
    return tuple((words[i + 1], words[i]) for i in range(0, len(words) - 1, 2))


def refresh(session: OriginalBashSession) -> None:
    """Make git update its index after the files were moved to another file system.

    This happens in containers: inode numbers change and contents do not. Without this call, git
    treats all files as changed, and a reset writes them again with new dates and modes.
    """
    session.execute("git update-index -q --refresh;", "/", _SECONDS)


def checksums(session: OriginalBashSession, entries: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return the output of the authors' hash command for each added, untracked or copied path.

    The command is ``md5sum`` for paths with a dot and ``md5deep`` for others. The image lacks
    ``md5deep``, so its output is the same error for agent and gold.
    """
    sums: dict[str, str] = {}
    for path, code in entries:
        if code in _CHECKED_CODES and path not in sums:
            command = ["md5sum", path] if "." in path else ["md5deep", "-r", path]
            sums[path] = session.execute_argv(command, "/", _SECONDS).output
    return sums


def prepare(session: OriginalBashSession) -> None:
    """Create the repository and reset it once. Raises SandboxError if git fails or is missing."""
    for command in (COMMIT, RESET):
        result = session.execute_argv(["/bin/bash", "-c", command], "/", 300.0)
        if not result.ok:
            raise SandboxError(
                "the original profile needs git in the image, but git failed: "
                f"{result.output.strip()!r}"
            )


def git_layer(image: Image, layers: tuple[Layer, ...]) -> Layer:
    """Return the repository over an image and its layers as the authors' image has it, reset
    once."""

    def work(sandbox: BaseSandbox) -> None:
        sandbox.write("/.gitignore", IGNORE_FILE.encode())
        prepare(OriginalBashSession(sandbox))

    key = layer_key("git", image.digest, *(layer.digest for layer in layers))
    return captured_layer(key, image, layers, work)
