"""What a separate verifier receives of the agent's sandbox: artifacts, and nothing else."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from intercode.core.errors import (
    DataError,
    SandboxError,
    SandboxKilledError,
    SandboxLostError,
    UsageError,
)
from intercode.integrations.harbor.tasks.tables import Artifact, CollectCommand
from intercode_sandbox import Sandbox
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.users import find_user

_MAX_SIZE = 1 << 30  # bytes of an artifact


def run_collect_commands(
    sandbox: BaseSandbox, commands: Sequence[CollectCommand], cwd: str
) -> None:
    """Run commands that write files for the verifier, and end their processes. A command that fails
    has no further effect."""
    for collect in commands:
        mark = sandbox.mark() if "processes" in sandbox.capabilities else None
        try:
            user = find_user(sandbox, collect.user or None)
            command = ["/bin/bash", "-c", collect.command]
            sandbox.run(command, cwd=cwd, timeout=collect.timeout, user=user)
        except (OSError, UsageError):  # there is no bash, no such directory or user any more
            continue
        if mark is not None:
            sandbox.kill_since(mark)


def copy_artifacts(
    agent: BaseSandbox, verifier: BaseSandbox, artifacts: Sequence[Artifact]
) -> None:
    """Copy artifacts to the same paths of a verifier's sandbox, in place of what is there.

    Artifacts that do not exist, are larger than 1 GiB or cannot be read are left out, and so are
    links. ``agent`` and ``verifier`` stay open. Raises OSError or SandboxError if an artifact
    cannot be written.
    """
    modes = agent.changes(digests=False)
    with tempfile.TemporaryDirectory() as scratch:
        for number, artifact in enumerate(artifacts):
            local = Path(scratch, str(number))
            if not _fetch(agent, artifact.source, local):
                continue
            verifier.run(["/bin/rm", "-rf", "--", artifact.source])
            if local.is_dir():
                _remove_excluded(local, artifact.exclude)
            elif artifact.source in modes:
                local.chmod(modes[artifact.source].mode & 0o777 | 0o400)
            _send(verifier, local, artifact.source)


def _fetch(agent: BaseSandbox, source: str, local: Path) -> bool:
    """Copy a file or directory to this machine. Return whether that succeeded."""
    sandbox = Sandbox.from_base(agent)
    try:
        sandbox.download(source, local, _MAX_SIZE)
    except SandboxKilledError:  # the agent's tar, for example
        return False
    except SandboxLostError:
        raise
    except (OSError, DataError, SandboxError):
        return False
    finally:
        sandbox.release()
    return True


def _send(verifier: BaseSandbox, local: Path, path: str) -> None:
    sandbox = Sandbox.from_base(verifier)
    try:
        sandbox.upload(local, path)
    finally:
        sandbox.release()


def _remove_excluded(top: Path, patterns: Sequence[str]) -> None:
    for path in sorted(top.rglob("*")) if patterns else ():
        if not is_excluded(str(path.relative_to(top)), patterns):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def is_excluded(path: str, patterns: Sequence[str]) -> bool:
    """Return whether a pattern of ``tar --exclude`` matches a path: some of its parts in a row."""
    parts = path.split("/")
    runs = [
        "/".join(parts[start:end])
        for start in range(len(parts))
        for end in range(start + 1, len(parts) + 1)
    ]
    plain = [pattern.removeprefix("./").rstrip("/") for pattern in patterns]
    return any(fnmatchcase(run, pattern) for run in runs for pattern in plain)
