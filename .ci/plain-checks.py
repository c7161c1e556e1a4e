"""Checks the installed package in one plain container, as its PID 1. `.ci/plain` starts it.

    python3 plain-checks.py --install                     make /opt/intercode from the wheels
    python plain-checks.py --tier TIER [--compiler]       check everything with this isolation tier
    python plain-checks.py --tier none [--compiler]       the container has no tier: SQL works, and
                                                          everything else says what is missing
    python plain-checks.py --tier TIER --remedied         the container has the options that the
                                                          refusal named: now a suite can be played

Prints a line for each check. The exit status is 1 if one fails.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

INSTALLED = Path("/opt/intercode")
PROJECT = Path("/project")
WHEELS = Path("/wheels")
OPENENV = Path("/openenv")
PACKAGES, MEGABYTES = 24, 40  # bounds of what an installation needs, our three packages included
HOSTILE_CASES = 24
EPISODES = 8  # live when their owner is killed
REFUSAL_SECONDS = 20.0  # for a refusal; a hang would last longer
START_SECONDS = 120.0
GONE_SECONDS = 30.0
REMEDY = re.compile(
    r"least change: [^;]*(?:docker|podman) run (--[^;(]+)[^;]*; that gives ([^/;]+)"
)
OPEN_SANDBOX = """
import time
from intercode_sandbox import SandboxSpec, images, open_sandbox
spec = SandboxSpec(images.resolve("host"))
open_sandbox(spec).close()
began = time.perf_counter()
with open_sandbox(spec) as sandbox:
    seconds = time.perf_counter() - began
    print(sandbox.tier, sandbox.run(["/usr/bin/id", "-u"]).output.strip(), round(seconds, 3))
"""

PLAY_OPENENV = """
from intercode import datasets
from intercode_bash_env import IntercodeBashAction as Action, IntercodeBashEnv as Env
with Env(base_url="http://127.0.0.1:8000").sync() as client:
    client.reset(task=2)
    processes = client.step(Action(code="ls /proc").model_dump()).observation["text"]
    assert processes == "", f"the sandbox shows processes: {processes}"
    gold = datasets.load("starter:bash").tasks[2].gold
    client.step({"code": gold})
    ended = client.step({"code": "submit"})
    assert ended.done, ended
    print("reward", ended.reward)
"""


def install() -> None:
    """Make a virtual environment from the wheels, with the pip of a wheel."""
    wheels = sorted(WHEELS.glob("*.whl"))
    pip = next(wheel for wheel in wheels if wheel.name.startswith("pip-"))
    needed = [wheel for wheel in wheels if wheel != pip]
    size = sum(wheel.stat().st_size for wheel in needed) / 1e6
    if len(needed) > PACKAGES or size > MEGABYTES:
        names = ", ".join(wheel.name.split("-")[0] for wheel in needed)
        raise AssertionError(f"{len(needed)} packages of {size:.0f} MB are needed: {names}")
    run([sys.executable, "-m", "venv", "--without-pip", str(INSTALLED)])
    run(
        [
            sys.executable,
            str(pip / "pip"),
            "--python",
            str(INSTALLED / "bin/python"),
            "install",
            "--quiet",
            "--no-index",
            "--find-links",
            str(WHEELS),
            "intercode-gym",
        ]
    )
    print(f"installed from {len(needed)} wheels of {size:.0f} MB")


class Container:
    """The checks of one container. ``tier`` is the one that sandboxes must have here."""

    def __init__(self, tier: str, compiler: bool, remedied: bool) -> None:
        self.tier, self.compiler, self.remedied = tier, compiler, remedied
        self.work = Path(tempfile.mkdtemp(prefix="plain-"))
        self.cache = self.work / "cache"
        # a virtual environment's own programs first, as after activation
        path = f"{INSTALLED / 'bin'}:{os.environ['PATH']}"
        os.environ.update(PATH=path, PYTHONPATH=str(PROJECT / "tests"), PYTHONDONTWRITEBYTECODE="1")
        if os.geteuid():  # a user without a home directory
            os.environ["INTERCODE_CACHE"] = str(self.cache)

    def checks(self) -> Iterator[tuple[str, Callable[[], str]]]:
        """Yield every check with its name. It returns what to print of its result."""
        if self.remedied:
            yield "tier", self.opens_tier
            yield "starter:ctf", lambda: self.play("ctf")
            yield "kill -9", self.nothing_left
            return
        yield "container", self.is_plain
        if self.tier == "none":
            if os.geteuid():
                yield "no home directory", self.missing_home
            yield "doctor", self.doctor_names_a_remedy
            yield "starter:sql", lambda: self.play("sql")
            for suite in ("bash", "python", "ctf"):
                yield f"starter:{suite}", lambda suite=suite: self.refuses(suite)
            yield "demo", self.demo_refuses
            yield "remedy", self.name_remedy
            yield "landlock", self.play_with_landlock
        elif self.compiler:  # the rest is checked without one
            yield "starter:code", self.play_code
        else:
            yield "tier", self.opens_tier
            yield "demo", self.demo
            for suite in ("python", "ctf", "sql"):
                yield f"starter:{suite}", lambda suite=suite: self.play(suite)
            yield "starter:code", self.play_code
            yield f"{HOSTILE_CASES} hostile cases", self.withstands
            yield "kill -9", self.nothing_left
            yield "OpenEnv package", self.play_on_openenv
        yield "processes", self.no_processes

    # ------------------------------------------------------------------------------- the container

    def is_plain(self) -> str:
        """Check that the container has an engine's default restrictions, and what it was made
        for."""
        status = Path("/proc/self/status").read_text()
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Seccomp"].strip() == "2", "no seccomp filter: these are not the defaults"
        capabilities = int(fields["CapEff"], 16)
        assert not capabilities & 1 << 21, "CAP_SYS_ADMIN is no default"  # its number is 21
        assert bool(shutil.which("gcc")) == self.compiler, "another image was expected"
        networks = [
            line.split(":")[0].strip()
            for line in Path("/proc/net/dev").read_text().splitlines()[2:]
        ]
        assert set(networks) <= {"lo"}, f"the container has a network: {networks}"
        return f"user {os.geteuid()}, capabilities {capabilities:x}"

    def no_processes(self) -> str:
        """Check that no process is left but this one."""
        left = wait_until(lambda: not other_processes(), GONE_SECONDS)
        assert left is not None, f"still running: {other_processes()}"
        return ""

    # ---------------------------------------------------------------------------------- with a tier

    def opens_tier(self) -> str:
        """Check that the default sandbox is of the expected tier, and that doctor says so."""
        done = run([sys.executable, "-c", OPEN_SANDBOX])
        tier, user, seconds = done.stdout.split()
        assert tier.split("/")[0] == self.tier, f"the tier is {tier}"
        done = intercode("doctor")
        assert done.returncode == 0, f"doctor ended with {done.returncode}: {done.stdout}"
        return f"{tier}, user {user}, opened in {seconds} s"

    def demo(self) -> str:
        """Play what `make demo` plays."""
        done = run([sys.executable, str(PROJECT / "examples/demo.py")], cwd=self.work)
        return done.stdout.splitlines()[-1]

    def play(self, suite: str, *options: str) -> str:
        """Play a starter suite with its golds; every one must solve its task."""
        from intercode.core import trajectories

        out = self.work / f"run-{suite}"
        began = time.perf_counter()
        done = intercode("eval", f"starter:{suite}", "--agent", "gold", "--out", str(out), *options)
        seconds = time.perf_counter() - began
        assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
        episodes = list(trajectories.read_trajectories(out / trajectories.TRAJECTORIES_FILE))
        failed = [episode.task for episode in episodes if not episode.success]
        assert episodes and not failed, f"gold fails {failed}: {done.stderr}"
        tier = json.loads((out / "run.json").read_text())["tier"]
        assert suite == "sql" or tier.split("/")[0] == self.tier, f"the tier is {tier}"
        return f"{len(episodes)} tasks, {len(episodes) / seconds:.1f}/s"

    def play_code(self) -> str:
        """Play the tasks of the Code suite whose compiler is here, which is that of C or none."""
        from intercode import datasets

        if not self.compiler:
            done = intercode("eval", "starter:code", "--agent", "gold", "--out", "/tmp/no-compiler")
            said = done.stdout + done.stderr
            assert done.returncode and "gcc" in said, f"status {done.returncode}: {said}"
            return "names the missing compilers"
        names = [task.id for task in datasets.load("starter:code").tasks if task.group == "c"]
        return self.play("code", "--tasks", ",".join(names[::2]))

    def withstands(self) -> str:
        """Run a sample of the hostile suite."""
        command = ["-m", "hostile", "--sample", str(HOSTILE_CASES), "--backend", self.tier]
        done = run([sys.executable, *command], cwd=self.work)
        return " ".join(done.stdout.splitlines()[-2].split()[1:])

    def nothing_left(self) -> str:
        """Kill the owner of live episodes: processes, files and mounts must go."""
        from intercode_sandbox.platforms.paths import cache_root

        before = files_of_sandboxes(cache_root())
        mounts = Path("/proc/self/mountinfo").read_text()
        owner = subprocess.Popen(
            [sys.executable, "-m", "support.live_owner", str(EPISODES)],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.work,
        )
        assert owner.stdout is not None
        assert owner.stdout.readline().strip() == "ready", "the owner did not start"
        users = {uid for _, _, uid in other_processes()}
        count = len(other_processes())
        owner.kill()
        owner.wait()
        took = wait_until(lambda: not other_processes(), GONE_SECONDS)
        assert took is not None, f"still running: {other_processes()}"
        assert Path("/proc/self/mountinfo").read_text() == mounts, "mounts are left"
        # An owner that is killed while it makes the files of a sandbox leaves them to the next one.
        run([sys.executable, "-c", OPEN_SANDBOX])
        gone = wait_until(lambda: files_of_sandboxes(cache_root()) <= before, GONE_SECONDS)
        assert gone is not None, f"files are left: {files_of_sandboxes(cache_root()) - before}"
        return f"{count} processes of {len(users)} users ended in {took:.1f} s"

    def play_on_openenv(self) -> str:
        """Serve an OpenEnv package as its Dockerfile says, and play an episode with its client."""
        *_, last = (OPENENV / "env/Dockerfile").read_text().splitlines()
        command = ["/usr/bin/python3", "-m", *json.loads(last.removeprefix("CMD "))]
        environment = {**os.environ, "PYTHONPATH": str(OPENENV / "packages")}
        log = self.work / "openenv.log"
        with log.open("w") as file:
            server = subprocess.Popen(
                command, cwd=OPENENV / "env", env=environment, stdout=file, stderr=file
            )
        try:
            took = wait_until(lambda: serves(server), START_SECONDS)
            assert took is not None and server.poll() is None, f"no server: {log.read_text()}"
            played = subprocess.run(
                [command[0], "-c", PLAY_OPENENV],
                cwd="/tmp",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
        finally:
            server.terminate()
            server.wait()
        assert played.stdout == "reward 1.0\n", played.stdout + played.stderr + log.read_text()
        return f"serves after {took:.1f} s"

    # ------------------------------------------------------------------------------ without a tier

    def missing_home(self) -> str:
        """Check that a user who has no home directory reads what to set."""
        environment = {k: v for k, v in os.environ.items() if k != "INTERCODE_CACHE"}
        done = intercode("eval", "starter:sql", "--agent", "gold", environment=environment)
        assert done.returncode and "INTERCODE_CACHE" in done.stderr, f"it says: {done.stderr}"
        return done.stderr.strip()

    def doctor_names_a_remedy(self) -> str:
        """Check that doctor ends with a failure and text to paste."""
        done = intercode("doctor")
        assert done.returncode == 1, f"status {done.returncode}: {done.stdout}"
        assert "the least change: " in done.stdout, done.stdout
        return ""

    def refuses(self, suite: str) -> str:
        """Check that a suite ends at once, with the remedy and without a record of errors."""
        out = self.work / f"run-{suite}"
        done = intercode("eval", f"starter:{suite}", "--agent", "gold", "--out", str(out))
        said = f"status {done.returncode}: {done.stdout}{done.stderr}"
        assert done.returncode not in (0, None) and "the least change: " in done.stderr, said
        assert "Traceback" not in done.stderr, said
        assert not (out / "trajectories.jsonl").exists(), "episodes were recorded"
        return ""

    def name_remedy(self) -> str:
        """Return the options that the least change adds and the tier that they give, for
        `.ci/plain` to try them."""
        done = intercode("eval", "starter", "--agent", "gold")
        found = REMEDY.search(done.stderr)
        assert found, f"no options of an engine are named: {done.stderr}"
        return f"{found[1].strip()} -> {found[2]}"

    def play_with_landlock(self) -> str:
        """Play a suite with the tier that has to be asked for, where the kernel and the engine
        allow it; else the refusal says what is missing."""
        done = intercode("eval", "starter", "--agent", "gold")
        if "`--backend landlock` works here" not in done.stderr:
            refused = intercode("eval", "starter", "--agent", "gold", "--backend", "landlock")
            assert refused.returncode and "Landlock" in refused.stderr, refused.stderr
            return refused.stderr.strip()
        self.tier = "landlock"
        played = self.play("python", "--backend", "landlock")
        gone = wait_until(lambda: not files_of_sandboxes(self.cache), GONE_SECONDS)
        assert gone is not None, "directories are left"
        return played

    def demo_refuses(self) -> str:
        """Check that the demo ends at once, too."""
        done = subprocess.run(
            [sys.executable, str(PROJECT / "examples/demo.py")],
            cwd=self.work,
            capture_output=True,
            text=True,
            timeout=REFUSAL_SECONDS,
            check=False,
        )
        assert done.returncode and "the least change: " in done.stderr, done.stderr
        return ""


# --------------------------------------------------------------------------------------- processes


def run(command: list[str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command. Raises AssertionError with its output if it fails."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (
        f"{' '.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}"
    )
    return done


def intercode(
    *words: str, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the installed program, in a directory that it can write to."""
    return subprocess.run(
        [str(INSTALLED / "bin/intercode"), *words],
        cwd="/tmp",
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=None if words[0] == "eval" and "--out" in words else REFUSAL_SECONDS,
    )


def serves(server: subprocess.Popen[bytes]) -> bool:
    """Return whether a server at port 8000 answers, or has ended."""
    if server.poll() is not None:
        return True
    try:
        with urllib.request.urlopen("http://127.0.0.1:8000/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def other_processes() -> list[tuple[int, str, int]]:
    """Return number, name and user of every other process. Collects orphans that have ended, as
    PID 1 must."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    found = []
    for entry in filter(str.isdigit, os.listdir("/proc")):
        if int(entry) != os.getpid():
            with suppress(OSError):
                name = Path("/proc", entry, "comm").read_text().strip()
                found.append((int(entry), name, Path("/proc", entry).stat().st_uid))
    return found


def files_of_sandboxes(cache: Path) -> set[str]:
    """Return the paths in a cache that exist while sandboxes do, unlike cached images."""
    return {
        str(path) for name in ("stage", "roots", "private") for path in (cache / name).glob("*")
    }


def wait_until(condition: Callable[[], bool], seconds: float) -> float | None:
    """Return the seconds until a condition holds, or None if it does not in time."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            return None
        time.sleep(0.02)
    return time.monotonic() - began


def main() -> int:
    """Parse the command line and run the checks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--tier", default="none")
    parser.add_argument("--compiler", action="store_true")
    parser.add_argument("--remedied", action="store_true")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if options.install:
        install()
        return 0
    status = 0
    container = Container(options.tier, options.compiler, options.remedied)
    for name, check in container.checks():
        began = time.monotonic()
        try:
            said, result = check(), "ok"
        except Exception:
            said, result, status = traceback.format_exc(), "FAILED", 1
        print(f"{result} {name}: {time.monotonic() - began:.1f} s  {said}".rstrip(), flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
