"""Optional features of a sandbox: those of the back ends, and how a missing one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from intercode_sandbox import Capability
from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.errors import MissingCapabilityError, SandboxError
from support import backend
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


def test_a_backend_lists_its_capabilities(sandbox: BaseSandbox) -> None:
    assert {"processes", "fork", "restore", "recycle", "save"} <= sandbox.capabilities
    assert sandbox.capabilities <= set(get_args(Capability))
    assert ("seal" in sandbox.capabilities) != backend.is_container()
    assert not sandbox.is_lost


def test_a_missing_capability_is_refused_by_name(sandbox: BaseSandbox, tmp_path: Path) -> None:
    for name, purpose, call in [
        ("processes", "end the processes", lambda: BaseSandbox.kill_since(sandbox, 0)),
        ("processes", "list the processes", lambda: BaseSandbox.processes(sandbox)),
        ("processes", "find the processes", lambda: BaseSandbox.descendants(sandbox, 2)),
        ("processes", "interrupt a process", lambda: BaseSandbox.signal(sandbox, 2, 9)),
        ("fork", "copy its files", lambda: BaseSandbox.fork(sandbox)),
        (
            "restore",
            "replace its files",
            lambda: BaseSandbox.replace_files(sandbox, sandbox),
        ),
        ("recycle", "reset it", lambda: BaseSandbox.recycle(sandbox)),
        ("save", "write its files", lambda: BaseSandbox.save(sandbox, tmp_path)),
        ("seal", "keep its files without a copy", lambda: BaseSandbox.seal(sandbox)),
        ("checkpoint", "move a live process", lambda: BaseSandbox.checkpoint(sandbox, 1, ())),
    ]:
        lacks = f"tier {sandbox.tier} lacks the capability '{name}', which is needed to {purpose}"
        with pytest.raises(MissingCapabilityError, match=lacks):
            call()


@pytest.mark.namespace_only("only namespace sandboxes are sealed")
def test_a_sealed_layer_opens_sandboxes_until_it_is_closed() -> None:
    sandbox = open_test_sandbox()
    sandbox.write("/tmp/f", b"1")
    layer = sandbox.seal()
    with layer.open() as first, layer.open_last() as second:
        assert first.read("/tmp/f") == second.read("/tmp/f") == b"1"
        with pytest.raises(SandboxError, match="only be opened in a new sandbox"):
            first.restore(layer)
        layer.close()
        layer.close()
        assert first.read("/tmp/f") == b"1"
    with pytest.raises(ValueError, match="freed already"):
        layer.open()
