"""Every back end of this machine passes the conformance suite, as docs/sandbox.md says."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from intercode_sandbox import SandboxSpec, check_sandbox, open_sandbox, resolve_image
from intercode_sandbox.errors import SandboxUnavailableError
from intercode_sandbox.namespace.launcher import Launcher
from intercode_sandbox.testing import CONFORMANCE_POINTS
from support import requirements
from support.sandbox_server import serving_sandboxes

pytestmark = [pytest.mark.sandbox, pytest.mark.namespace_only("tries all back ends by itself")]

_PAGE = Path(__file__).resolve().parents[3] / "docs" / "sandbox.md"
_ROW = re.compile(r"^\| `([\w/:]+)` \| (\d+) of (\d+) \| (.*) \|$", re.MULTILINE)
TABLE = {
    name: (int(passed), int(of), others)
    for name, passed, of, others in _ROW.findall(_PAGE.read_text(encoding="utf-8"))
}


@contextmanager
def backend(kind: str) -> Iterator[str]:
    """Yield the name of a back end for ``open_sandbox``. The test is skipped, or fails where the
    machine must have the engine, if it does not work here."""
    if kind.startswith("container/"):
        requirements.require(kind.removeprefix("container/"))
    if kind == "chroot" and os.geteuid() != 0:
        pytest.skip("the tier chroot needs root")
    if kind == "namespace/1" and not Launcher.get().cgroup_directories:
        pytest.skip(Launcher.get().cgroups_error)
    if kind != "remote:URL":
        yield kind
        return
    with serving_sandboxes() as server:
        yield server.kind


@pytest.mark.heavy
@pytest.mark.skipif(platform.machine() != "x86_64", reason="checkpoints need x86_64")
@pytest.mark.parametrize("kind", TABLE)
def test_a_backend_passes_the_points_of_the_table(kind: str) -> None:
    with backend(kind) as name:
        spec = SandboxSpec(resolve_image("host", name), users=kind.startswith("namespace"))
        points = check_sandbox(lambda: open_sandbox(spec, name))
        if not spec.users:
            several = SandboxSpec(spec.image, users=True)
            with pytest.raises(SandboxUnavailableError, match="has one user, root: use the back"):
                open_sandbox(several, name)
    print(f"{kind}: {len(points)} of {len(CONFORMANCE_POINTS)}")
    missing = [point for point in CONFORMANCE_POINTS if point not in points]
    assert TABLE[kind] == (len(points), len(CONFORMANCE_POINTS), ", ".join(missing) or "none")


def test_the_table_has_every_backend() -> None:
    containers = ["container/docker", "container/podman"]
    assert [*TABLE] == [
        "namespace/1",
        "namespace/2",
        *containers,
        "chroot",
        "landlock",
        "remote:URL",
    ]
