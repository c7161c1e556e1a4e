"""What a process can inherit, and that a program in a sandbox finds the default of each, however
its owner was started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from intercode_sandbox import Limits, SandboxSpec, images, open_sandbox
from intercode_sandbox.errors import SandboxUnavailableError
from support.inheritance import owner
from support.ordinary_user import run_as_ordinary_user

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("it opens sandboxes of every tier of this machine"),
]

LIMITS = Limits()
UNLIMITED, NO_LIMIT = -1, [-1, -1]
DEFAULTS: dict[str, Any] = {
    "ignored signals": [],
    "blocked signals": 0,
    "pending signals": 0,
    "ignored by bash": "",
    "policy": 0,
    "scheduling flags": 0,
    "niceness": 0,
    "real-time priority": 0,
    "input and output priority": 0,
    "oom_score_adj": "500",
    "umask": 0o22,
    "descriptors": [0, 1, 2],
    "terminal": False,
    "leads its session": True,
    "groups": [],
    "keys": -1,
    "directory": "/",
    "time zone": "UTC",
    "personality": 0,
    "machine": os.uname().machine,
    "dumpable": 1,
    "coredump_filter": "00000033",
    "timer slack": 50_000,
    "securebits": 0,
    "no_new_privs": 1,
    "end with the parent": 0,
    "huge pages off": 0,
    "write or execute": 0,
    "machine checks": 2,
    "time stamp counter": 1,
    "inheritable capabilities": "0",
    "ambient capabilities": "0",
    "limit AS": [LIMITS.address_space] * 2,
    "limit FSIZE": [LIMITS.file_size] * 2,
    "limit NOFILE": [LIMITS.open_files] * 2,
    "limit STACK": [8 << 20, UNLIMITED],
    "limit CORE": [0, 0],
    "limit NICE": [0, 0],
    "limit RTPRIO": [0, 0],
    "limit CPU": NO_LIMIT,
    "limit DATA": NO_LIMIT,
    "limit RSS": NO_LIMIT,
    "limit RTTIME": NO_LIMIT,
    "limit MEMLOCK": [1 << 20] * 2,
    "limit MSGQUEUE": [256 << 10] * 2,
}
"""What a process inherits, with the default in every tier. Everything else that the probe reports
is the same as for an owner without deviations."""
_CAPABILITIES = {"namespace": "a00424fb", "landlock": "0", "chroot": "0"}
_VARIABLES = {
    "HOME",
    "HOSTNAME",
    "PATH",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "SANDBOX_ROOT",
    "TMPDIR",
    "TZ",
}
_PER_SANDBOX = {"directory", "limit NPROC"}
"""What differs from sandbox to sandbox in the tier ``landlock``: the directory of the sandbox, and
the number of the user's processes, with those of the sandbox."""
_NOT_ON_EVERY_MACHINE = {"speculation", "merged memory", "allowed priorities"}
_KEPT_BY_THE_KERNEL = {
    name: f"limit {limit}"
    for name, limit in (
        ("stack", "STACK"),
        ("data", "DATA"),
        ("processor time", "CPU"),
        ("pending signals", "SIGPENDING"),
        ("message queues", "MSGQUEUE"),
        ("locked memory", "MEMLOCK"),
    )
}
"""Hard limits, which only a user with CAP_SYS_RESOURCE raises again."""
_REFUSED = {
    "files": "open_files",
    "processes": "processes",
    "file size": "file_size",
    "address space": "address_space",
}
"""Those that a sandbox needs: it is not opened with lower ones than its limits say."""
_MAY_RAISE = bool(
    int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16) >> 24 & 1
)
TIERS = ("namespace/1", "namespace/2", "chroot", "landlock")
_SOME = ("none", "ignored signals", "blocked signals", "umask", "personality", "soft files")


def _require(tier: str) -> None:
    try:
        open_sandbox(SandboxSpec(images.resolve("host")), tier).close()
    except SandboxUnavailableError as e:
        pytest.skip(f"no {tier} on this machine: {e}")


def _run_owner(tier: str, ordinary: bool, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    command = [sys.executable, owner.__file__, tier, *names]
    if ordinary:
        done = run_as_ordinary_user(command)
    else:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    states: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return states


def _expected(tier: str, ordinary: bool) -> dict[str, Any]:
    kind = tier.partition("/")[0]
    capabilities = _CAPABILITIES[kind]
    expected = {
        **DEFAULTS,
        "limit NPROC": [LIMITS.processes + (tier == "namespace/1")] * 2,
        "limit SIGPENDING": [1024, 1024],
        **{f"{name} capabilities": capabilities for name in ("effective", "permitted", "bounding")},
    }
    if kind == "landlock":
        for name in (*_PER_SANDBOX, "limit SIGPENDING"):
            del expected[name]
        if ordinary:  # who cannot remove any; nothing gets them
            del expected["bounding capabilities"]
    return expected


def _check(tier: str, ordinary: bool = False, names: Sequence[str] = ()) -> None:
    states, expected = _run_owner(tier, ordinary, names), _expected(tier, ordinary)
    plain = states["none"]
    assert {name: plain[name] for name in expected} == expected
    assert set(plain["variables"]) <= _VARIABLES
    for name, state in states.items():
        if name in _NOT_ON_EVERY_MACHINE and state.get("error", "").startswith("cannot deviate"):
            continue
        if name in _REFUSED and not _MAY_RAISE and (name, tier) != ("processes", "landlock"):
            assert f"the limit {_REFUSED[name]} = " in state["error"], (name, state)
            continue
        ignored = _PER_SANDBOX if tier == "landlock" else set()
        kept = set() if _MAY_RAISE else {_KEPT_BY_THE_KERNEL.get(name)}
        differing = {key: state.get(key) for key in plain if state.get(key) != plain[key]}
        facts = differing.pop("kept hard limits", {})
        assert not set(differing) - ignored - kept, (name, differing, state.get("error"))
        limit = differing.get(_KEPT_BY_THE_KERNEL.get(name, ""))
        assert list(facts.values()) == ([limit[1]] if limit else []), (name, facts, differing)


@pytest.mark.parametrize("tier", TIERS)
def test_a_program_inherits_no_signals_masks_and_limits(tier: str) -> None:
    _require(tier)
    _check(tier, names=_SOME)


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_a_program_inherits_nothing_from_the_owner(tier: str) -> None:
    """Every deviation of ``support/inheritance/owner.py``."""
    _require(tier)
    _check(tier)


@pytest.mark.slow
@pytest.mark.parametrize("tier", ["namespace/2", "landlock"])
def test_a_program_inherits_nothing_from_an_ordinary_user(tier: str) -> None:
    _require(tier)
    _check(tier, ordinary=True)


_SHOWN = """
trap -p; umask; nice; ulimit -Sn; ulimit -Hs; ulimit -Ss; date +%Z; uname -m; echo "$LANG$TZ$IFS."
cat <&9; test -t 0 || echo no terminal
"""


@pytest.mark.parametrize("tier", TIERS)
def test_the_launching_shell_changes_nothing(tier: str) -> None:
    """As with ``nohup``, ``nice`` and ``setarch``, and in the background of a script."""
    _require(tier)
    run = [sys.executable, "-m", "intercode", "sandbox", "run", "--backend", tier]
    deviate = (
        "trap '' INT HUP PIPE TERM USR1; umask 077; ulimit -Sn 256; ulimit -Ss 1024; "
        "exec 9</etc/passwd; "
        'TZ=Asia/Kathmandu LANG=de_DE.UTF-8 exec nohup setarch -R nice -n 5 "$@"'
    )
    may_nice = ["nice"] if os.geteuid() == 0 else []
    shown = [*run, "--", "bash", "-c", _SHOWN if may_nice else _SHOWN.replace("nice;", "")]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=False, timeout=120).stdout
        for command in (shown, ["bash", "-c", deviate, "bash", *shown])
    ]
    assert outputs[0] == outputs[1] and "1024\nunlimited\n8192\nUTC\n" in outputs[0]


_KEPT = """
import json, os, sys
import intercode
from intercode_sandbox import Sandbox
from intercode_sandbox.doctor_checks import _check_hard_limits
with Sandbox("host") as sandbox:
    shown = sandbox.run("ulimit -Hs; ulimit -Ht").stdout
with intercode.make("bash", "starter") as env:
    recorded = env.result_metadata().get("hard_limits")
print(json.dumps([shown, recorded, [f.detail for f in _check_hard_limits()]]))
"""


def test_a_lower_hard_limit_that_stays_is_a_recorded_fact() -> None:
    """For a user without CAP_SYS_RESOURCE, whom the kernel lets raise none."""
    without = "import ctypes, os, sys; ctypes.CDLL(None).prctl(24, 24, 0, 0, 0); "
    command = [sys.executable, "-c", without + "os.execv(sys.argv[1], sys.argv[1:])"]
    lower = ["/bin/bash", "-c", 'ulimit -s 1024; ulimit -t 999; exec "$@"', "bash"]
    values = []
    for shell in (lower, ["/usr/bin/env"]):
        words = [*command, *shell, sys.executable, "-c", _KEPT]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        values.append(json.loads(done.stdout))
    (shown, recorded, (detail,)), plain = values
    assert shown == "1024\n999\n" and recorded["stack"] == 1 << 20
    assert recorded["processor_time"] == 999 and "stack 1048576, " in detail
    assert "stack" not in (plain[1] or {}) and plain[0] == "unlimited\nunlimited\n"


@pytest.mark.parametrize("tier", TIERS)
def test_a_lower_hard_limit_is_an_error_with_the_way_out(tier: str) -> None:
    _require(tier)
    if _MAY_RAISE:
        pytest.skip("this user may raise hard limits again")
    command = [sys.executable, "-m", "intercode", "sandbox", "run", "--backend", tier]
    lower = ["bash", "-c", 'ulimit -n 250; exec "$@"', "bash", *command]
    done = subprocess.run([*lower, "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 125, done
    assert "the limit open_files = 1024 is above the hard limit of this machine or shell, 250" in (
        done.stderr
    )
    asked = [*lower, "--limit", "open_files=200", "--", "bash", "-c", "ulimit -n"]
    assert subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "200\n"
