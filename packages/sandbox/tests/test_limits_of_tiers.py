"""A limit means the same in every tier of this machine, and ``Result.limit_exceeded`` names it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import pytest

from intercode.sessions.bash.fresh import FreshShellSession
from intercode.sessions.bash.persistent import BashSession
from intercode.sessions.python.session import PythonSession
from intercode_sandbox import Limits, Sandbox, silence
from intercode_sandbox.errors import SandboxUnavailableError, UsageError
from intercode_sandbox.validation import FRACTIONS
from support.sandboxes import PATIENCE
from support.time_limits import limit_at

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("it opens sandboxes of every tier of this machine"),
]
TIERS = ("namespace/1", "namespace/2", "chroot", "landlock")
MIB = 1 << 20
ALLOCATE = "import signal; x = bytearray({} << 20); print('held', flush=True); {}"
EXCEEDING = {
    "memory": (Limits(memory=100 * MIB), ALLOCATE.format(300, "signal.pause()")),
    "file_size": (Limits(file_size=MIB), "open('f', 'wb').write(bytes(2 << 20))"),
    "open_files": (Limits(open_files=64), "f = [open('/dev/null') for _ in range(99)]"),
    "address_space": (Limits(address_space=1 << 30), "bytearray(2 << 30)"),
    "cpu": (Limits(cpu_seconds=0.3), "while True: pass"),
}


@contextmanager
def _open(tier: str, limits: Limits) -> Iterator[Sandbox]:
    try:
        sandbox = Sandbox("host", limits=limits, backend=tier)
    except SandboxUnavailableError as e:
        pytest.skip(f"no {tier} on this machine: {e}")
    with sandbox:
        yield sandbox


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", EXCEEDING)
def test_a_program_over_a_limit_fails_and_the_result_names_it(tier: str, name: str) -> None:
    limits, code = EXCEEDING[name]
    with _open(tier, limits) as sandbox:
        for command in (["python3", "-c", code], f"python3 -c {code!r}"):
            result: Any = sandbox.run(command, timeout=60)
            assert not result.ok and result.limit_exceeded == name, (command, result)
        assert sandbox.run("false").limit_exceeded == ""
        assert sandbox.run("echo File too large").limit_exceeded == ""


@pytest.mark.parametrize("tier", ["namespace/2", "chroot", "landlock"])
def test_a_tier_without_control_groups_refuses_a_limit_on_processors(tier: str) -> None:
    with _open(tier, Limits()), pytest.raises(SandboxUnavailableError, match="control group"):
        Sandbox("host", limits=Limits(cpus=0.5), backend=tier)


@pytest.mark.parametrize("tier", TIERS)
def test_a_program_that_a_shell_reports_as_killed_for_its_file(tier: str) -> None:
    with _open(tier, Limits(file_size=MIB)) as sandbox:
        for command in ("head -c 2M /dev/zero > f; exit $?", "exec head -c 2M /dev/zero > f"):
            result = sandbox.run(command)
            assert not result.ok and result.limit_exceeded == "file_size", result


@pytest.mark.parametrize("tier", TIERS)
def test_processes_together_have_the_memory_limit(tier: str) -> None:
    one = f'python3 -c "{ALLOCATE.format(60, "signal.pause()")}" & '
    with _open(tier, Limits(memory=150 * MIB)) as sandbox:
        result = sandbox.run(["bash", "-c", f"{one * 3} wait -n; exit $?"], timeout=60)
        assert not result.ok and result.limit_exceeded == "memory", result


@pytest.mark.parametrize("tier", TIERS)
def test_files_do_not_count_as_memory(tier: str) -> None:
    """Wherever they are: in the tiers of namespaces they are in memory."""
    with _open(tier, Limits(memory=100 * MIB, disk=300 * MIB)) as sandbox:
        assert sandbox.run("head -c 200M /dev/zero > f; cat f > /dev/null").ok
        held = sandbox.run(["python3", "-c", ALLOCATE.format(50, "")])
        assert held.ok and held.stdout == "held\n" and held.limit_exceeded == ""
        over = sandbox.run(["python3", "-c", ALLOCATE.format(150, "signal.pause()")], timeout=60)
        assert not over.ok and over.limit_exceeded == "memory"
        assert sandbox.run("wc -c < f").stdout.strip() == str(200 * MIB)


@pytest.mark.parametrize("tier", TIERS)
def test_the_limit_of_each_directory_that_can_be_filled_is_named(tier: str) -> None:
    """/dev/shm has a file system of its own in some tiers, and belongs to the disk in others."""
    with _open(tier, Limits(disk=80 * MIB, memory=400 * MIB, file_size=512 * MIB)) as sandbox:
        for place in ("/dev/shm", "/tmp", "/run", "/var/tmp", "$HOME", "$TMPDIR", "."):
            if not sandbox.run(f": > {place}/filled").ok:
                continue
            full = sandbox.run(f"yes > {place}/filled", timeout=60)
            own = tier.startswith("namespace/") and place == "/dev/shm"
            assert full.limit_exceeded == ("shared_memory" if own else "disk"), (place, full)
            assert sandbox.run(f"rm {place}/filled").limit_exceeded == ""


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("name", ["memory", "cpu"])
def test_a_killed_process_is_named_when_its_shell_goes_on(tier: str, name: str) -> None:
    limits, code = EXCEEDING[name]
    with _open(tier, limits) as sandbox:
        result = sandbox.run(f"python3 -c {code!r}; echo done", timeout=60)
        assert (result.exit_code, result.limit_exceeded) == (0, name)
        assert result.stdout.endswith("done\n")
        assert sandbox.run("echo done").limit_exceeded == ""


@pytest.mark.parametrize("tier", TIERS)
def test_a_silent_command_is_killed_and_one_that_writes_is_not(tier: str) -> None:
    with _open(tier, Limits(idle_timeout=2)) as sandbox:
        result = sandbox.run("echo begin; sleep 600", timeout=None)
        assert (result.stdout, result.exit_code) == ("begin\n", None)
        assert (result.limit_exceeded, result.timed_out) == ("idle_timeout", False)
        late = sandbox.run("while :; do echo on; sleep 0.1; done", timeout=4)
        assert (late.limit_exceeded, late.timed_out) == ("", True)


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize(
    ("session", "setting", "code", "check"),
    [
        (BashSession, "x=1", "echo begin >&2; sleep 600", "echo $x"),
        (FreshShellSession, "x=1", "echo begin; sleep 600", "echo $x"),
        (PythonSession, "x = 1", "print('begin', flush=True); __import__('time').sleep(600)", "x"),
    ],
)
def test_a_silent_action_is_stopped_and_the_session_goes_on(
    tier: str, session: Any, setting: str, code: str, check: str
) -> None:
    with (
        _open(tier, Limits(idle_timeout=PATIENCE)) as sandbox,
        closing(session(sandbox.base)) as opened,
    ):
        assert opened.run(setting, PATIENCE).ok
        with limit_at("begin"):
            result = opened.run(code, 9 * PATIENCE)
        assert (result.exit_code, result.timed_out, result.silent) == (None, False, True)
        assert result.observation.startswith("begin\n")
        assert "\n[killed: silent for 120 s" in result.observation
        assert opened.run(check, PATIENCE).output == "1\n"


def test_silence_is_counted_from_the_last_output_and_up_to_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = SimpleNamespace(monotonic=lambda: now.time, time=100.0)
    monkeypatch.setattr(silence, "time", now)
    limit = silence.Silence(10)
    limit.begin()
    assert limit.left(deadline=200) == 10
    now.time = 109.0
    assert limit.left(deadline=105) == -4 and limit.is_over(105) and not limit.exceeded
    limit.begin()
    assert limit.left(deadline=200) == 10
    now.time = 119.0
    assert limit.left(deadline=200) == 0 and limit.exceeded
    assert limit.left(deadline=200) == 81, "what it takes to give up is not limited by silence"
    assert silence.Silence(None).left(deadline=120) == 1


@pytest.mark.parametrize("tier", TIERS)
def test_sandboxes_with_the_least_values_work(tier: str) -> None:
    bounds = {limit.name: limit.metadata["least"] for limit in fields(Limits) if limit.metadata}
    least = replace(Limits(), **{name: bounds[name] for name in bounds.keys() - set(FRACTIONS)})
    for name, bound in bounds.items():
        with pytest.raises(UsageError, match=f"the limit {name} .* of at least"):
            Sandbox("host", limits=replace(least, **{name: bound - 0.05}), backend=tier)
    with _open(tier, least) as sandbox:
        assert sandbox.run("echo a | cat > f; cat f", timeout=60).stdout == "a\n"
        with closing(BashSession(sandbox.base)) as shell:
            assert shell.run('a=(*); cat <<< "${#a[@]}" # ' + "x" * 5000, 60).exit_code == 0
        with closing(PythonSession(sandbox.base)) as python:
            assert python.run("print(6 * 7)", 60).output == "42\n"
