"""Determines of what the root directory of a sandbox is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from intercode_sandbox.contract import SandboxSpec, mounts_error, refuse_rules
from intercode_sandbox.errors import SandboxError
from intercode_sandbox.supervisor import root_files
from intercode_sandbox.supervisor.supervised_sandbox import unlimited_processors_error


@dataclass(frozen=True, slots=True)
class RootLayout:
    """What a root directory is made of.

    ``trees``: directories to copy, the topmost first. ``shared``: of each directory of this machine
    that the sandbox shows, its path, the path in the sandbox, and a name of its content.
    ``hidden``: paths in the sandbox that are shown empty. ``recycle_key`` is equal for sandboxes
    that can replace each other.
    """

    trees: tuple[Path, ...]
    shared: tuple[tuple[str, str, str], ...]
    hidden: tuple[str, ...]
    env: dict[str, str]
    recycle_key: str


_cache: list[tuple[object, RootLayout]] = []
_CACHE_SIZE = 16


def root_layout(spec: SandboxSpec) -> RootLayout:
    """Return the layout for a specification. The last few results are cached.

    Raises SandboxError for features that this back end does not have.
    """
    mounts = root_files.anonymous_mounts(spec, "")  # they change when a hidden file is deleted
    key = (spec, mounts)
    for known, result in _cache:
        if known == key:
            return result
    if spec.limits.cpus is not None:
        raise unlimited_processors_error("chroot")
    if spec.mounts:
        raise mounts_error("chroot")
    refuse_rules(spec, "chroot")
    if spec.upper is not None:
        raise SandboxError(
            "a sandbox of the tier chroot cannot keep its writable layer in a directory: use a "
            "namespace sandbox"
        )
    result = _build_layout(spec, mounts)
    if all(tree.is_dir() for tree in result.trees):
        _cache[:] = [(key, result), *_cache[: _CACHE_SIZE - 1]]
    return result


def _build_layout(spec: SandboxSpec, anonymous_mounts: list[list[str]]) -> RootLayout:
    files, binds = root_files.generate_root_files(spec)
    trees = [
        root_files.root_tree(spec, files),
        *(layer.root for layer in reversed(spec.all_layers)),
    ]
    digests = [trees[0].name, *(layer.digest for layer in spec.all_layers)]
    if spec.image.root is not None:
        trees.append(spec.image.root)
        digests.append(spec.image.digest)
    home = root_files.python_home()
    pairs = [(source, target) for source, target in binds]
    hidden = []
    for source, target in anonymous_mounts:
        if home and source == home[0]:
            pairs.append((source, target))
        else:
            hidden.append(target)
    shared = [(*pair, _content_name(*pair, hidden)) for pair in pairs]
    inputs = [
        digests,
        list(map(str, trees)),
        shared,
        hidden,
        spec.network,
        spec.hostname,
        asdict(spec.limits),
    ]
    key = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:24]
    return RootLayout(tuple(trees), tuple(shared), tuple(hidden), _environment(spec, trees), key)


def _environment(spec: SandboxSpec, trees: Sequence[Path]) -> dict[str, str]:
    """Return the environment variables of commands. Without /proc a Java program does not find the
    libraries beside it."""
    env = root_files.environment(spec)
    for top in [Path("/")] if spec.image.root is None else trees:
        for library in sorted(top.glob("usr/lib/jvm/*/lib/libjli.so")):
            return {"LD_LIBRARY_PATH": f"/{library.parent.relative_to(top)}", **env}
    return env


def _content_name(source: str, target: str, hidden: list[str]) -> str:
    """Return a name for what a sandbox shows of a directory. It changes when programs are
    installed: that changes the directory, one in it, or one in those."""
    top = Path(source)
    parts: list[object] = [source, target, hidden]
    for path in (top, *sorted(top.glob("*/")), *sorted(top.glob("*/*/"))):
        with suppress(OSError):
            parts.append([str(path), path.stat().st_mtime_ns])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:24]
