"""Compares the content of files that an agent and a gold have left different."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import closing

from intercode.core.types import FileEntry
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.results.explanation import TextComparison
from intercode.sandbox.contract import BaseSandbox

MAX_FILES = 8
"""Files whose content is compared at most."""
MAX_BYTES = 64 << 10
"""The size above which the content of a file is not shown."""
_GOLD_SECONDS = 120.0
_NO_FILE = "(no file)"
_CHANGED = "(another content each time)"
Files = Mapping[str, FileEntry]


def compare_contents(env: SandboxedEnv, agent: Files, gold: Files) -> list[TextComparison]:
    """Return the contents of the files whose content differs, at most ``MAX_FILES`` of them.

    The agent's are read from the sandbox of its episode, the gold's from another one in
    which it runs again. A file that is large, is no text, or that the gold now leaves with another
    content is described in words.
    """
    paths = [path for path in sorted({*agent, *gold}) if _content_differs(path, agent, gold)]
    paths = paths[:MAX_FILES]
    if not paths:
        return []
    ours = [_read(env.scored_sandbox, path, agent.get(path)) for path in paths]
    theirs = _gold_contents(env, paths, gold)
    return [
        TextComparison(f"content of {path}", given, expected)
        for path, given, expected in zip(paths, ours, theirs, strict=True)
        if given != expected  # equal for a change of the mode only
    ]


def _content_differs(path: str, agent: Files, gold: Files) -> bool:
    """Return whether one side has a file with a content that the other has not."""
    found = (agent.get(path), gold.get(path))
    ours, theirs = (e.digest if e and e.kind == "file" else "" for e in found)
    return ours != theirs


def _gold_contents(env: SandboxedEnv, paths: Sequence[str], files: Files) -> list[str]:
    """Return the contents that a gold leaves. Of several golds, the one that leaves these files."""
    contents: list[str] = []
    for gold in env.task.golds:
        with closing(env.open_workspace()) as workspace:
            workspace.run(gold, _GOLD_SECONDS)
            contents = [_read(workspace.sandbox, path, files.get(path)) for path in paths]
        if _CHANGED not in contents:
            break
    return contents


def _read(sandbox: BaseSandbox, path: str, entry: FileEntry | None) -> str:
    """Return the content of a file as text. With the entry of a changed file, only that content."""
    try:
        data = sandbox.read(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return _NO_FILE
    except OSError as e:
        return f"(not shown: {e.strerror or e})"
    if entry and entry.kind == "file" and hashlib.sha256(data).hexdigest() != entry.digest:
        return _CHANGED
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError:
        return f"(no text: {len(data)} bytes)"
