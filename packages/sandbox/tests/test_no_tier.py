"""A machine that forbids user namespaces: the error names the least change, which works."""

from __future__ import annotations

import re
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import intercode_sandbox
from intercode.core.config import EvalConfig
from intercode_sandbox import Sandbox
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


@pytest.mark.sandbox
@pytest.mark.namespace_only("a sandbox, in which nothing may change its user")
def test_in_a_sandbox_doctor_finishes_its_list_and_names_the_refused_call() -> None:
    source = Path(intercode_sandbox.__file__).parents[1]
    mounts = {"/source": source, "/packages": sysconfig.get_path("purelib")}
    env = {"PYTHONPATH": "/source:/packages", "INTERCODE_CACHE": "/root/closed/cache"}
    command = ["python3", "-m", "intercode_sandbox"]
    with Sandbox("host", mounts=mounts, env=env, backend="namespace") as sandbox:
        sandbox.run("mkdir -p /root/closed/cache; chmod 700 /root/closed")
        opened = sandbox.run([*command, "run", "echo on"])
        assert opened.exit_code == 125
        assert "setresuid" in opened.stderr and "chmod" not in opened.stderr
        listed = sandbox.run([*command, "doctor"], timeout=120)
        assert "tier namespace/2 " in listed.stdout and "Not well: " in listed.stdout
        fixed = sandbox.run([*command, "doctor", "--fix"], timeout=120)
        assert "docker run --security-opt" in fixed.stdout
