"""A machine that forbids user namespaces: the error names the least change, which works."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from support.without_namespaces import run_without_namespaces

COMMAND = [sys.executable, "-m", "intercode", "eval", "starter", "--agent=gold", "--limit=1"]


@pytest.fixture
def home() -> Iterator[Path]:
    """Return a directory that another user can reach, unlike ``tmp_path``."""
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.mark.sandbox
@pytest.mark.namespace_only("user namespaces are forbidden")
def test_without_user_namespaces_the_least_change_is_named_and_works(home: Path) -> None:
    assert EvalConfig("starter", "gold").backend == "auto"
    refused = run_without_namespaces([*COMMAND, f"--out={home}/refused"], home)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "no sandbox works on this machine: no namespace/1 and namespace/2: " in refused.stderr
    assert not (home / "refused").exists()
    change = re.search(r"the least change: as root: (sysctl -w \S+=\d+)", refused.stderr)
    assert change is not None, refused.stderr

    name, _, value = change.group(1).removeprefix("sysctl -w ").partition("=")
    remedy = f"echo {value} > /proc/sys/{name.replace('.', '/')}"
    changed = run_without_namespaces([*COMMAND, f"--out={home}/changed"], home, remedy)
    assert changed.returncode == 0, changed.stderr
    assert re.search(r"^sandboxes: namespace/2 \(no namespace/1: .+\)$", changed.stderr, re.M)


@pytest.mark.sandbox
@pytest.mark.namespace_only("user namespaces are forbidden")
def test_a_tier_that_is_asked_for_fails_at_once_with_its_own_remedy(home: Path) -> None:
    words = ["--backend=namespace/2", f"--out={home}/run"]
    refused = run_without_namespaces([*COMMAND, *words], home)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "user.max_user_namespaces=10000; that gives namespace/1" in refused.stderr
    assert not (home / "run").exists()
