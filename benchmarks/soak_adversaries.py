"""Plays honest episodes among hostile ones, and checks that the honest ones are unharmed.

    python benchmarks/soak_adversaries.py [--episodes 20000] [--hostile 0.05] [--workers 2]
        [--seed 1] [--out runs/adversaries.jsonl]

Episodes of Bash, SQL and Python on the starter tasks, with 1 s for each action. An honest agent
runs the gold and must get the reward 1. A hostile one runs a case of the hostile suite (drawn by
the seed) in place of a solution. Golds that take long for that limit are left out. Chunks of
episodes are recorded in --out, and a run with the same arguments continues there. The exit status
is 1 if an honest episode got another reward or was lost, a hostile one was paid in full, the host
was harmed, or a resource of the workers grew. An honest episode whose gold exceeds the limit is
counted by itself, also if it is a hidden test that does: on a busy machine that is no wrong
reward."""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import multiprocessing
import multiprocessing.util
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from soak import quarters

import intercode
from hostile.cases import all_cases
from hostile.planted import Planted
from hostile.sql.cases import all_cases as all_sql_cases
from hostile.trial import BACKENDS
from intercode.core.errors import InfrastructureError
from intercode.environments.base.env import InterCodeEnv
from intercode.results.report import render
from intercode.results.tables import Table
from support import traces

LIMIT = 1.0  # seconds for an action
_QUICK = 0.1  # maximum seconds of a gold that is played
_CHUNK = 100  # episodes
_NAMES = ("bash", "sql", "python")
COUNTED = (
    "honest",
    "honest: another reward",
    "honest: timed out",
    "honest: lost",
    "hostile",
    "hostile: paid in full",
    "hostile: lost",
    "time-outs",
)
_PYTHON = (
    "import os; os._exit(0)",
    "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
    "while True: pass",
    "x = []\nwhile True: x.append(bytearray(1 << 22))",
    "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
    "import builtins, sys\nbuiltins.len = sys.exit; sys.modules.clear()",
    "class Any(int):\n def __eq__(self, other): return True\n __hash__ = int.__hash__\n"
    "def ENTRY(*a, **k): return Any(1)",
    "def ENTRY(*a, **k):\n while True: pass",
    "def ENTRY(*a, **k):\n import os; os.abort()",
    "def ENTRY(*a, **k):\n import os; os.write(1, b'{\"passed\": true}' * 9999); os._exit(0)",
    "import os, threading\nfor n in range(3, 99):\n try: os.close(n)\n except OSError: pass",
    "import shutil; shutil.rmtree('/', ignore_errors=True)",
    "def ENTRY(*a, **k): return ENTRY(*a, **k)",
    "import ctypes; ctypes.string_at(0)",
    "raise SystemExit(0)",
    "print('x' * (1 << 24))",
)


class Worker:
    """The environments of one process, and the objects on the host that nobody may reach."""

    def __init__(self, tasks: dict[str, list[int]], hostile: float) -> None:
        self.tasks, self.hostile = tasks, hostile
        self.planted = Planted(BACKENDS["namespace"])
        self.envs = {name: _make(name) for name in _NAMES}
        self.cases = [case for case in all_cases() if not case.fault]
        self.sql_cases = [case for case in all_sql_cases() if not case.kind.startswith("known")]
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    def close(self) -> None:
        """Close the environments, and remove the objects on the host."""
        for env in self.envs.values():
            env.close()
        self.planted.close()

    def chunk(self, seed: int, count: int) -> dict[str, Any]:
        """Play episodes; return what happened, and the resources of this process."""
        rng, start = random.Random(seed), time.monotonic()
        self.counts, self.faults = Counter(), []
        for _ in range(count):
            self._episode(rng)
        try:
            self.planted.unharmed()
        except AssertionError as e:
            self.faults.append(f"seed {seed}: {e}")
        found = {"counts": dict(self.counts), "faults": self.faults, "worker": os.getpid()}
        return {**found, "seconds": time.monotonic() - start, "resources": _resources()}

    def _episode(self, rng: random.Random) -> None:
        name, hostile = rng.choice(_NAMES), rng.random() < self.hostile
        task, draw = rng.choice(self.tasks[name]), rng.getrandbits(64)
        kind = "hostile" if hostile else "honest"
        self.counts[kind] += 1
        env, what = self.envs[name], f"{kind}, {name}, task {task}"
        try:
            env.reset(options={"task": task})
            what, actions = (
                self._actions(env, name, random.Random(draw))
                if hostile
                else (f"honest, {env.task.id}", [str(env.task.gold)])
            )
            reward, timed_out = self._play(env, actions)
        except InfrastructureError as e:
            self.counts[f"{kind}: lost"] += 1
            if not hostile:
                self.faults.append(f"{what}: {type(e).__name__}: {e}")
            env.close()
            self.envs[name] = _make(name)
            return
        if hostile and reward >= 1.0:
            self.counts["hostile: paid in full"] += 1
            self.faults.append(f"{what} on {env.task.id} got {reward}")
        if not hostile and reward != 1.0 and (timed_out or _test_timed_out(env)):
            self.counts["honest: timed out"] += 1
        elif not hostile and reward != 1.0:
            self.counts["honest: another reward"] += 1
            self.faults.append(f"{what} got {reward}")

    def _actions(self, env: InterCodeEnv, name: str, rng: random.Random) -> tuple[str, list[str]]:
        """Return the name and the actions of a hostile case."""
        if name == "sql":
            sql = rng.choice(self.sql_cases)
            place = str(self.planted.directory)
            return sql.name, [
                code.replace("PLANTED", str(self.planted.file)).replace("FOLDER", place)
                for code in sql.does
            ]
        if name == "python" and rng.random() < 0.5:
            code = rng.choice(_PYTHON)
            return code, [code.replace("ENTRY", str(env.task.data["entry"]))]
        case = rng.choice(self.cases)
        actions = [self.planted.fill(action) for action in case.actions]
        if name == "python":
            run = "import subprocess; subprocess.run(['bash', '-c', {!r}], errors='replace')"
            actions = [run.format(action) for action in actions]
        return case.name, actions

    def _play(self, env: InterCodeEnv, actions: list[str]) -> tuple[float, bool]:
        """Run actions and submit. Return the reward of the episode, and whether an action exceeded
        its limit."""
        total, timed_out = 0.0, False
        for action in actions:
            _, reward, terminated, truncated, info = env.step(action)
            total += float(reward)
            timed_out |= bool(info.get("timed_out"))
            self.counts["time-outs"] += bool(info.get("timed_out"))
            if terminated or truncated:
                return total, timed_out
        return total + float(env.submit()[1]), timed_out


def _test_timed_out(env: InterCodeEnv) -> bool:
    """Return whether a hidden test of the finished episode exceeded its time limit."""
    failed = env.score().details.get("failed", {})
    return any("over the time limit" in reason for reason in failed.values())


def _make(name: str) -> InterCodeEnv:
    return intercode.make(name, timeout=LIMIT)


def _resources() -> dict[str, float]:
    gc.collect()
    if hasattr(_LIBC, "malloc_trim"):  # memory that malloc keeps for later is no leak
        _LIBC.malloc_trim(0)
    family = traces.family(os.getpid())
    return {
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "memory of the owners (MB)": traces.proportional((family.owner,)) / 1e6,
        "memory of the launchers (MB)": traces.proportional(family.launchers) / 1e6,
        "processes": len(family.sandboxes),
    }


def quick_tasks() -> dict[str, list[int]]:
    """Return the tasks of each environment whose gold solves them in little time."""
    found: dict[str, list[int]] = {}
    for name in _NAMES:
        with _make(name) as env:
            times: dict[int, float] = {}
            for task in (*range(len(env.dataset)),) * 2:
                env.reset(options={"task": task})
                start = time.monotonic()
                env.step(str(env.task.gold))
                took = time.monotonic() - start
                times[task] = min(times.get(task, took), took)
                env.submit()
            found[name] = [task for task, took in times.items() if took <= _QUICK]
    return found


_LIBC = ctypes.CDLL(None)
_worker: Worker | None = None


def _begin(tasks: dict[str, list[int]], hostile: float) -> None:
    global _worker
    _worker = Worker(tasks, hostile)
    multiprocessing.util.Finalize(None, _worker.close, exitpriority=1)


def _chunk(job: tuple[int, int, int]) -> dict[str, Any]:
    number, seed, count = job
    assert _worker is not None
    return {"number": number, **_worker.chunk(seed, count)}


def _recorded(path: Path, settings: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks of an earlier run with these settings; begin a new record otherwise. The
    first line holds the settings and the tasks."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    if lines and lines[0]["settings"] == settings:
        return lines
    path.parent.mkdir(parents=True, exist_ok=True)
    first = {"settings": settings, "tasks": quick_tasks()}
    path.write_text(json.dumps(first) + "\n")
    return [first]


def main() -> int:
    """Parse the command line, play, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--hostile", type=float, default=0.05)
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/adversaries.jsonl"))
    args = parser.parse_args()
    settings = {"episodes": args.episodes, "hostile": args.hostile, "seed": args.seed}
    first, *chunks = _recorded(args.out, settings)
    done = {chunk["number"] for chunk in chunks}
    jobs = [
        (number, args.seed * 1_000_000 + number, min(_CHUNK, args.episodes - number * _CHUNK))
        for number in range(-(-args.episodes // _CHUNK))
        if number not in done
    ]
    context, new = multiprocessing.get_context("spawn"), list[dict[str, Any]]()
    with (
        context.Pool(args.workers, _begin, (first["tasks"], args.hostile)) as pool,
        args.out.open("a") as record,
    ):
        for chunk in pool.imap_unordered(_chunk, jobs):
            record.write(json.dumps(chunk) + "\n")
            record.flush()
            new.append(chunk)
        pool.close()
        pool.join()  # the workers end by themselves, and remove what they made
    return _report(first["tasks"], [*chunks, *new], new)


def _report(
    tasks: dict[str, list[int]], chunks: list[dict[str, Any]], new: list[dict[str, Any]]
) -> int:
    counts = sum((Counter(chunk["counts"]) for chunk in chunks), Counter[str]())
    rows = tuple((name, counts[name]) for name in COUNTED)
    tables = [Table("adversaries", "Episodes", ("what", "count"), rows)]
    samples = [{"seconds": 0.0, "episodes": 0.0, **chunk["resources"]} for chunk in new]
    grew = False
    if len(samples) >= 8:
        table, grew = quarters(samples)
        tables.append(table)
    print(render(tables, "text"))
    seconds = sum(chunk["seconds"] for chunk in chunks)
    used = ", ".join(f"{len(found)} {name}" for name, found in tasks.items())
    print(f"{seconds:.0f} s of workers; tasks: {used}")
    faults = [fault for chunk in chunks for fault in chunk["faults"]]
    for fault in faults[:50]:
        print("FAULT", fault[:1000])
    return 1 if grew or faults else 0


if __name__ == "__main__":
    sys.exit(main())
