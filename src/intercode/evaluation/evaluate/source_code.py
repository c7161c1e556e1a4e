"""Where the code of a user's own agents, rewards and loaders comes from: file and git commit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from intercode.core.config import EvalConfig

_GIT_TIMEOUT = 10.0


def source_versions(config: EvalConfig) -> dict[str, Any]:
    """For each setting that names ``package.module:object``: the module's file name and, where it
    lies in a git repository, the commit and whether the file differs from it."""
    named = {"agent": config.agent, "reward": config.reward, "dataset": config.dataset}
    found = {}
    for setting, name in named.items():
        module = sys.modules.get((name or "").partition(":")[0])
        file = getattr(module, "__file__", None)
        if file and ":" in (name or "") and not (name or "").startswith("intercode."):
            found[setting] = {"file": Path(file).name, **_commit(Path(file))}
    return found


def _commit(file: Path) -> dict[str, Any]:
    commit = _git(file, "rev-parse", "HEAD")
    if commit is None:
        return {}
    status = _git(file, "status", "--porcelain", "--", file.name)
    return {"commit": commit, "changed": status != ""}


def _git(file: Path, *words: str) -> str | None:
    """What git says in a file's directory; None where there is no git or no repository."""
    command = ["git", "-C", str(file.parent), "--no-optional-locks", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
