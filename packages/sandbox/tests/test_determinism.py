"""Sandboxes with a fixed clock and seeded random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from intercode.sessions.bash.persistent import BashSession
from intercode_sandbox import images
from intercode_sandbox.determinism import (
    Determinism,
    determinism_from_settings,
    parse_clock,
    resolve_determinism,
)
from intercode_sandbox.errors import ConfigError, UnknownNameError
from intercode_sandbox.types import Layer, LayerSpec
from support import backend
from support.sandboxes import open_test_sandbox

NOW = 1767225600  # 2026-01-01 00:00:00 UTC
Run = Callable[..., str]


@pytest.fixture
def run() -> Iterator[Callable[..., Run]]:
    """A fresh session in a sandbox with given settings, as a function from action to output."""
    with ExitStack() as opened:

        def start(**settings: object) -> Run:
            sandbox = opened.enter_context(open_test_sandbox(determinism=Determinism(**settings)))
            session = BashSession(sandbox)
            opened.callback(session.close)
            return lambda action: session.run(action, 60.0).output

        yield start


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("2026-01-01 00:00:00", (True, NOW)),
        ("2026-01-01", (True, NOW)),
        ("2026-01-01T00:00:01", (True, NOW + 1)),
        ("+3d", (False, 259200)),
        ("-90m", (False, -5400)),
        ("+5", (False, 5)),
        ("real", (False, 0)),
    ],
)
def test_a_clock_is_a_time_or_an_offset(text: str, meaning: tuple[bool, int]) -> None:
    assert parse_clock(text) == meaning


def test_invalid_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="'tomorrow'"):
        Determinism(clock="tomorrow")
    with pytest.raises(UnknownNameError, match="did you mean 'clock'"):
        determinism_from_settings({"clok": "+3d"})
    with pytest.raises(ConfigError, match="seed"):
        Determinism(seed=-1)
    with pytest.raises(ConfigError, match="32 hex digits"):
        Determinism(machine_id="mine")


def test_the_settings_of_an_environment() -> None:
    assert resolve_determinism(False) is None
    assert resolve_determinism(True) == Determinism()
    assert resolve_determinism({"clock": "+3d"}) == Determinism(clock="+3d")
    assert resolve_determinism(Determinism(seed=4)) == Determinism(seed=4)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("action", "output"),
    [
        ("date +%s%N", f"{NOW}000000000\n"),
        ("env -i /bin/date +%s", f"{NOW}\n"),
        ("echo $EPOCHSECONDS $EPOCHREALTIME $SECONDS", f"{NOW} {NOW}.000000 0\n"),
        ("printf '%(%F %T)T\\n' -1", "2026-01-01 00:00:00\n"),
        (
            "cd /tmp; touch f; stat -c '%X %Y %Z' f; ls -l --full-time f | cut -d' ' -f6,7",
            f"{NOW} {NOW} {NOW}\n2026-01-01 00:00:00.000000000\n",
        ),
        (
            "cd /tmp; touch f; touch -d '4 days ago' g; find . -type f -mmin -1; find . -mtime +2",
            "./f\n./g\n",
        ),
        (
            "cd /tmp; touch -d tomorrow f; date -r f +%F; touch g; [ f -nt g ] && echo newer",
            "2026-01-02\nnewer\n",
        ),
        (
            "cd /tmp; touch -d 2020-02-03 f; cp -p f g; tar c g | tar tv | awk '{print $4}'",
            "2020-02-03\n",
        ),
        ("sleep 0.05; timeout 0.1 sleep 9; echo $?", "124\n"),
        ("read -t 0.1 x < <(sleep 600); echo $(($? > 128))", "1\n"),
        (
            "hostname; cat /etc/machine-id; date +%Z; locale 2>/dev/null | grep ^LC_ALL",
            f"intercode\n{'c0de' * 8}\nUTC\nLC_ALL=C.UTF-8\n",
        ),
        ("stat -c %h /proc; ls -ld /proc | cut -d' ' -f2", "1\n1\n"),
        ("python3 -c 'import os; print(os.stat(\"/proc\").st_nlink)'", "1\n"),
        ("cp /etc/hostname /tmp/h; cmp /etc/hostname /tmp/h && mv /tmp/h /tmp/i; ls /tmp", "i\n"),
    ],
)
def test_a_fixed_clock_does_not_advance(run: Callable[..., Run], action: str, output: str) -> None:
    assert run()(action) == output


@pytest.mark.sandbox
def test_a_later_clock_tells_the_files_of_a_task_from_those_of_its_sandbox(tmp_path: Path) -> None:
    (tmp_path / "given").write_text("x")
    layer = images.resolve_layer(LayerSpec("dir", tmp_path))
    later = Determinism("2099-01-01")
    with open_test_sandbox(layers=(layer,), determinism=later) as sandbox:
        shown = sandbox.run(["sh", "-c", "touch /tmp/new; stat -c %y /given /tmp/new"]).output
    given, new = shown.splitlines()
    assert not given.startswith("2099-01-01") and new.startswith("2099-01-01"), shown


@pytest.mark.sandbox
def test_an_offset_clock_advances_and_shifts_file_dates(run: Callable[..., Run]) -> None:
    act = run(clock="+3d")
    ahead, here = run(clock="+3d")("date +%s"), run(clock="real")("date +%s")
    assert abs(int(ahead) - int(here) - 3 * 86400) <= 60
    assert (
        act(
            "cd /tmp; touch f; find . -name f -mmin -1; touch -d '5 hours ago' g; "
            "find . -name g -mmin +299 -mmin -301"
        )
        == "./f\n./g\n"
    )
    first, second = act("date +%s%N; date +%s%N").split()
    assert int(first) < int(second)


@pytest.mark.sandbox
def test_random_numbers_depend_on_the_seed_alone(run: Callable[..., Run]) -> None:
    draws = (
        "mktemp",
        "mktemp -u",
        "shuf -i 1-99 | md5sum",
        "bash -c 'echo $RANDOM'",
        "echo $RANDOM $RANDOM $SRANDOM",
        "python3 -c 'import random; print(random.random(), hash(\"x\"))'",
    )
    once, again, other = ([act(d) for d in draws] for act in (run(), run(), run(seed=5)))
    assert once == again
    assert all(a != b for a, b in zip(once, other, strict=True))


@pytest.mark.sandbox
@backend.not_in_chroot("process numbers are those of the machine")
def test_random_numbers_of_a_subshell_depend_on_its_process_number(run: Callable[..., Run]) -> None:
    subshells = "echo $(echo $RANDOM); (echo $RANDOM) | cat"
    assert run()(subshells) == run()(subshells)


@pytest.mark.sandbox
def test_random_continues_after_restore_and_in_a_new_shell() -> None:
    with open_test_sandbox(determinism=Determinism(clock="real", random="real")) as sandbox:
        first = BashSession(sandbox)
        values = [first.run("echo $RANDOM $?", 60.0).output for _ in range(3)]
        assert len(set(values)) == 3
        second = BashSession(sandbox)
        second.run("x=1; false", 60.0)
        third = BashSession(sandbox, state=second.state())
        assert [third.run("echo $RANDOM 0", 60.0).output for _ in range(2)] == values[1:]
        second.run("kill -9 $$", 60.0)
        assert second.run("echo $RANDOM 0", 60.0).output == values[2]


@pytest.mark.sandbox
def test_seeding_is_invisible_in_traces_and_keeps_the_exit_status() -> None:
    with open_test_sandbox(determinism=Determinism(clock="real", random="real")) as sandbox:
        session = BashSession(sandbox)
        assert session.run("(exit 7)", 60.0).exit_code == 7
        assert session.run("echo $?", 60.0).output == "7\n"
        session.run("set -x", 60.0)
        assert "RANDOM" not in session.run("echo traced", 60.0).output
        session.run("set +x; readonly RANDOM", 60.0)
        assert session.run("echo still here", 60.0).output == "still here\n"


@pytest.mark.namespace_only("an engine's overlay numbers directories by those of its own store")
def test_inode_numbers_do_not_depend_on_the_order_of_visits(tree: Layer) -> None:
    seen = set()
    for order in ("dir empty", "empty dir", "empty", "dir/a"):
        with open_test_sandbox(layers=(tree,), determinism=Determinism()) as sandbox:
            visited = sandbox.run(["sh", "-c", f"cd /data && ls -d {order} && ls -iR /data"]).output
            seen.add(visited.partition("/data:")[2])
    assert len(seen) == 1 and "dir" in seen.pop()
