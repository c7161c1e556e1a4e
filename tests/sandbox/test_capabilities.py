"""Optional features of a sandbox: those of the back ends, and how a missing one is refused."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from intercode.core.errors import SandboxError
from intercode.sandbox import Sandbox
from intercode.sandbox.contract import Capability
from support import back_end
from support.sandboxes import open_test_sandbox

pytestmark = pytest.mark.sandbox


def test_a_back_end_lists_its_capabilities(sandbox: Sandbox) -> None:
    assert {"recycle", "replace_files", "save_files"} <= sandbox.capabilities
    assert sandbox.capabilities <= set(get_args(Capability))
    assert ("seal" in sandbox.capabilities) != back_end.is_container()
    assert not sandbox.is_lost


def test_a_missing_capability_is_refused_by_name(sandbox: Sandbox, tmp_path: Path) -> None:
    for name, call in {
        "recycle": lambda: Sandbox.recycle(sandbox),
        "replace_files": lambda: Sandbox.replace_files(sandbox, tmp_path),
        "save_files": lambda: Sandbox.write_upper(sandbox, tmp_path),
        "seal": lambda: Sandbox.seal(sandbox),
        "checkpoint": lambda: Sandbox.checkpoint(sandbox, 1, ()),
    }.items():
        with pytest.raises(SandboxError, match=f"{sandbox.tier} cannot do this: {name}"):
            call()


@pytest.mark.namespace_only("only namespace sandboxes are sealed")
def test_a_sealed_layer_opens_sandboxes_until_it_is_released() -> None:
    sandbox = open_test_sandbox()
    sandbox.write_file("/tmp/f", b"1")
    layer = sandbox.seal()
    with layer.open() as first, layer.open() as second:
        assert first.read_file("/tmp/f") == second.read_file("/tmp/f") == b"1"
        layer.release()
        assert first.read_file("/tmp/f") == b"1"
