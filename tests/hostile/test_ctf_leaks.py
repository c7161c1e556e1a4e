"""A flag is nowhere in the sandbox except in the task's own files, whichever flag was submitted."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import intercode
from intercode.core.types import Layer
from intercode.datasets.ctf.starter import CREATE_FILES
from intercode.environments.ctf.env import CTFEnv
from support.sandboxes import eventually

pytestmark = pytest.mark.sandbox
PLACES = "/ctf /dev/shm /etc /home /mnt /opt/intercode /root /run /srv /tmp /var /.git"
LOOK = (
    "grep -rlaE --devices=skip '{0}' {1} 2> /dev/null; "
    "for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/self/mountinfo; do "
    "cat $f 2> /dev/null | tr '\\0' '\\n' | grep -qE '{0}' && echo $f; done; set | grep -aE '{0}'; "
    "history | grep -E '{0}'; true"
)
needs_git = pytest.mark.skipif(
    shutil.which("git", path="/usr/bin") is None,
    reason="the original profile needs git in the image, and `host` has none: apt install git",
)
SHOWN = {"unlisted", "behind", "permissions", "history", "trail"}


def _found(env: CTFEnv) -> str:
    """Return the paths of the current task's flag in the sandbox. The search does not find
    itself."""
    flag = str(env.task.flag)
    inner = "".join(c if c.isalnum() or c == "_" else "." for c in flag[1:])
    return env.step(LOOK.format(f"[{flag[0]}]{inner}", PLACES))[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "profile", ["standard", pytest.param("original", marks=[needs_git, pytest.mark.paper])]
)
def test_a_random_flag_is_not_in_the_sandbox(profile: str) -> None:
    with intercode.make("ctf", "starter:ctf", profile=profile, timeout=60.0) as env:
        for name in sorted(CREATE_FILES):
            if name.rpartition("/")[2] in SHOWN:
                continue
            env.reset(options={"task": name})
            flag = env.task.flag
            assert env.submit(f"{flag}x")[4]["refused"] and env.score().value == 0.0
            assert _found(env) == "", name
            observation, *_, info = env.step("submit nothing of the kind")
            assert flag not in observation + repr(info) + str(env.render())
            if name.endswith("keys"):  # the search finds what is there
                assert flag in env.step(f"echo '{flag}' > /tmp/x; cat /tmp/x")[0]
                assert "/tmp/x" in _found(env)


@pytest.mark.slow
def test_an_upstream_task_shows_its_own_files_and_no_solution(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_DATA", str(data_dir))
    with intercode.make("ctf", "ic-ctf:offline", image="host", timeout=60.0) as env:
        seen = 0
        for task in env.dataset.tasks:
            assets = [p for p in task.files[0].path.rglob("*") if p.is_file()]
            if any(str(task.flag).encode() in p.read_bytes() for p in assets):
                continue
            seen += 1
            if seen % 8:
                continue  # a few of them suffice
            env.reset(options={"task": task.id})
            assert env.step("ls /ctf")[0] == f"{task.id.rpartition('/')[2]}\n"
            assert env.step("ls -A")[0].split("\n")[:-1] == sorted(
                (p.name for p in assets), key=lambda n: n.lstrip(".").lower()
            )
            assert _found(env) == "", task.id
            names = (
                r"find / -xdev \( -name solution -o -name 'ic_ctf*' -o -name 'ctf_solutions*' \)"
            )
            assert env.step(f"{names} -not -path '/usr/*' 2> /dev/null")[0] == ""
        assert seen > 30


def test_a_solution_that_was_fetched_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "ctf" / "task_assets" / "0"
    (assets / "solution").mkdir(parents=True)
    (assets / "solution" / "README.md").write_text("the flag is picoCTF{s3cret}")
    (assets / "riddle.txt").write_text("?")
    (tmp_path / "ctf" / "ic_ctf.json").write_text('[{"query": "q", "gold": "picoCTF{s3cret}"}]')
    monkeypatch.setenv("INTERCODE_DATA", str(tmp_path))
    with intercode.make("ctf", "ic-ctf", image="host", timeout=60.0) as env:
        env.reset()
        assert env.step("ls -AR /ctf")[0] == "/ctf:\n0\n\n/ctf/0:\nriddle.txt\n"
        assert _found(env) == ""
        layers: tuple[Layer, ...] = env.context.spec.layers
        assert all(b"s3cret" not in p.read_bytes() for f in layers for p in f.root.rglob("*.md"))
        assert env.submit("picoCTF{s3cret}")[1] == 1.0


def test_nothing_runs_on_when_an_episode_is_closed() -> None:
    mark = "86421.125"

    def alive() -> bool:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # the process has just ended
                if mark.encode() in path.read_bytes():
                    return True
        return False

    with intercode.make("ctf", "starter:ctf") as env:
        env.reset(seed=1)
        env.step(f"setsid sleep {mark} > /dev/null 2>&1 & disown; (sleep {mark} &) &")
        eventually(alive, "they have started")
        env.reset(seed=2)
        eventually(lambda: not alive(), "the processes of an episode that was left are gone")
        env.step(f"nohup sleep {mark} > /dev/null 2>&1 &")
        eventually(alive, "it has started")
    eventually(lambda: not alive(), "the processes of an episode that was closed are gone")
