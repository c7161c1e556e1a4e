"""kill -9 of an owner, launcher, supervisor or PID 1 ends its sandboxes soon, and no others."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from intercode_sandbox.contract import BaseSandbox
from intercode_sandbox.namespace.sandbox import NamespaceSandbox
from support import traces
from support.live_owner import LiveOwner
from support.sandboxes import open_test_sandbox

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only(
        "a launcher and its supervisors; test_containers.py kills containers"
    ),
]
_SECONDS = 60.0  # benchmarks/bench_kills.py measures the actual time
_NUMBER = 6


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[LiveOwner]:
    open_test_sandbox().close()  # skips the test if there is no sandbox
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:  # the sandboxes' user must reach the cache
        if parent.owner() == tmp_path.owner() and len(parent.parts) > 2:
            parent.chmod(0o755)
    with LiveOwner(_NUMBER, tmp_path) as opened:
        assert len(opened.family.launchers) == 1
        assert len(opened.family.supervisors) >= len(opened.family.inits) >= _NUMBER
        yield opened


def gone(owner: LiveOwner) -> None:
    took = traces.eventually(lambda: not owner.left(), _SECONDS)
    assert took is not None, owner.left()


def test_the_owner(owner: LiveOwner) -> None:
    owner.process.kill()
    owner.process.wait()
    gone(owner)
    launchers = owner.family.launchers
    assert traces.eventually(lambda: not traces.living(launchers), _SECONDS) is not None


@pytest.mark.slow
def test_the_launcher(owner: LiveOwner) -> None:
    (launcher,) = owner.family.launchers
    os.kill(launcher[0], signal.SIGKILL)
    assert [owner.hear() for _ in range(_NUMBER)] == ["lost one"] * _NUMBER
    gone(owner)
    assert owner.process.poll() is None
    assert traces.family(owner.process.pid).launchers != owner.family.launchers


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["inits", "supervisors"])
def test_one_sandbox(owner: LiveOwner, kind: str) -> None:
    family = owner.family
    sleeping = traces.sleeping(family)
    init, supervisor = traces.sandbox_of(sleeping[0][0])
    mine = [p for p in family.sandboxes if p[0] in (init, supervisor, sleeping[0][0])]
    others = sleeping[1:]
    os.kill(init if kind == "inits" else supervisor, signal.SIGKILL)
    assert owner.hear() == "lost one"
    assert traces.eventually(lambda: not traces.living(tuple(mine)), _SECONDS) is not None
    assert traces.living(tuple(others)) == others
    assert owner.process.poll() is None


def test_the_template() -> None:
    with ExitStack() as stack:

        def template() -> int:
            opened.append(stack.enter_context(open_test_sandbox()))
            assert isinstance(opened[-1], NamespaceSandbox)
            return int(opened[-1].connection.handshake["template"])

        opened: list[BaseSandbox] = []
        killed = template()
        os.kill(killed, signal.SIGKILL)
        assert killed != [template() for _ in range(4)][-1]  # two were prewarmed
        assert all(sandbox.run(["true"]).ok for sandbox in opened)
        with opened[-1].fork() as copy:  # which freezes the group, where there is one
            assert copy.run(["true"]).ok
