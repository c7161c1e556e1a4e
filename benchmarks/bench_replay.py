"""Records deterministic episodes, executes them again while the machine is busy, and compares.

    python benchmarks/bench_replay.py [--episodes 500] [--busy 4] [--parallel 2] [--keep DIR]

An episode plays some of the commands below on a starter task, in an order from a fixed seed. Every
second one is scored after each turn, every third ends with the task's gold. During the replay,
processes that compute and write files keep every core busy. The exit status is 1 if an observation,
a reward or a hash differs.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import intercode
from intercode.core import trajectories
from intercode.core.types import AgentOutput
from intercode.evaluation.replay import log_replay
from intercode.evaluation.replay.branching import ScriptedAgent
from intercode.evaluation.rollout import rollout
from intercode.results.report import render
from intercode.results.tables import Table

COMMANDS = (
    "date; date +%s%N; echo $EPOCHSECONDS $EPOCHREALTIME; printf '%(%F %T)T\\n' -1",
    "echo $RANDOM $RANDOM $(echo $RANDOM) $SRANDOM; (echo $RANDOM) | cat; bash -c 'echo $RANDOM'",
    "python3 -c 'import random, time, uuid; print(random.random(), time.time(), uuid.uuid4())'",
    "python3 -c 'print({str(i) for i in range(20)}, hash(\"x\"), id(3))'",
    'perl -e \'print time, join(",", keys %{{map {$_ => 1} 1..9}}), "\\n"\'',
    "awk 'BEGIN { srand(); print srand(), rand() }'; shuf -i 1-20 | tr '\\n' ' '",
    "mkdir -p /tmp/w; cd /tmp/w; touch a b; ls -la --full-time; stat a",
    "cd /tmp; mktemp; mktemp -d; ls -la",
    "find /srv -newermt 2024-05-02 -printf '%p %t %s\\n'; find / -xdev -mmin -5 -type f",
    "find /srv -name '*.csv' -exec wc -l {} + ; du -s /srv; ls -i /srv/quaywheel",
    "ls -lR --full-time /srv | md5sum; tar cf - -C /srv quaywheel | md5sum",
    "tar czf /tmp/s.tgz -C /srv quaywheel; mkdir -p /tmp/u; tar xzf /tmp/s.tgz -C /tmp/u; "
    "ls -l --full-time /tmp/u; md5sum /tmp/s.tgz",
    "for i in $(seq 200); do echo $i $RANDOM; done | sort -R | md5sum",
    "sort -t, -k3 /srv/quaywheel/data/*.csv | uniq -c | sort -rn | head",
    "declare -A m=([x]=1 [y]=2 [z]=3); echo ${!m[@]} ${m[@]}; arr=($RANDOM b); echo ${#arr[@]}",
    "f() { local v=$1; echo f $v $FUNCNAME $SECONDS; }; f 1; trap 'echo bye' EXIT; alias l='ls'",
    "set -x; echo traced; cd /; set +x; x=$((x + 1)); export x; umask 027; env | sort",
    "sleep 0.2 & echo $! $$ $BASHPID $PPID; wait; jobs; echo $?",
    "(sleep 0.4; echo late > /tmp/late) & disown; cat /tmp/late 2>&1; wait; sleep 1; ls /tmp",
    "time sleep 0.1; times; SECONDS=5; echo $SECONDS; read -t 0.1 line < <(sleep 1); echo $?",
    "timeout 0.2 sleep 5; echo $?; false; echo $?; cat /nowhere; nosuchcommand",
    "exit 3",
    "kill -9 $$",
    "exec echo gone",
    "x=7; y='a b'; unset z; pwd; echo \"$x $y\"; cd -; false",
    "echo $x $y $?; set | grep -c =; declare -p x y",
    "cat <<'END' > /tmp/note\nhere $x\nEND\nsha256sum /tmp/note; cat /tmp/note | tee /tmp/n2",
    "rm -rf /srv/quaywheel/logs; ln -s /tmp /srv/t; chmod 700 /srv; mv /srv/quaywheel/data /tmp/",
    "sed -i 's/e/E/g' /srv/quaywheel/README.md; diff <(sort /etc/hosts) /etc/hosts; "
    "cp -a /srv /tmp/c",
    "cp /etc/hosts /tmp/h; cp -p /etc/passwd /tmp/p; touch -d '2 days ago' /tmp/old; "
    "touch -d tomorrow /tmp/new; ls -lt /tmp; find /tmp -mtime +1; [ /tmp/new -nt /tmp/h ]; "
    "echo $?",
    "cat /etc/machine-id; hostname; uname -n; whoami; id; locale 2>/dev/null | head -2; date +%Z",
    "yes | head -c 300000; head -c 20000 /dev/zero | md5sum",
    "python3 - <<'END'\nimport os, tempfile, json\nprint(sorted(os.listdir('/')), os.getpid())\n"
    "print(tempfile.mkdtemp(), os.stat('/tmp').st_mtime)\n"
    "open('/tmp/j','w').write(json.dumps({'a':1}))\nEND",
    "mkfifo /tmp/pipe; (echo through > /tmp/pipe &) ; cat /tmp/pipe; ls -l /tmp/pipe",
    "printf 'a\\0b\\xff\\n'; echo -e '\\e[1mbold'; printf 'no newline'",
    "seq 5 | xargs -P 1 -I{} sh -c 'echo {} > /tmp/x{}'; cat /tmp/x?; echo /tmp/*",
    "git init -q /tmp/g && cd /tmp/g && git config user.email a@b && git config user.name n && "
    "echo 1 > f && git add f && git commit -qm one && git log --format='%H %cd'",
    "echo unterminated 'quote",
    "while true; do echo -n; break; done; for i in 1 2 3; do continue; done; return 4",
    "cd /nowhere || cd /usr && ls | head -3; ls /proc/self/fd | wc -l; ulimit -n",
)
_LOAD = "import os\nn = 0\nwhile True:\n n += sum(range(9999)); open(os.devnull,'w').write(str(n))"


def record(count: int, parallel: int, out: Path) -> None:
    """Play and write ``count`` episodes."""
    with intercode.make("bash", deterministic=True) as env:
        metadata = {**env.result_metadata(), "agent": "script", "model": None, "max_turns": None}
    trajectories.write_run_metadata(out, metadata)

    def some(worker: int) -> None:
        with intercode.make("bash", deterministic=True) as env:
            for number in range(worker, count, parallel):
                dice = random.Random(number)
                task = env.dataset.tasks[number % len(env.dataset)]
                actions = dice.sample(COMMANDS, k=dice.randint(2, 6))
                if number % 3 == 0 and task.gold:
                    actions += [task.gold, "submit"]
                agent = ScriptedAgent([AgentOutput(action) for action in actions], bool(number % 2))
                episode = rollout(agent, env, task.id).replace(run=metadata)
                trajectories.append_trajectory(out / trajectories.TRAJECTORIES_FILE, episode)

    with ThreadPoolExecutor(parallel) as pool:
        list(pool.map(some, range(parallel)))


@contextlib.contextmanager
def busy(count: int) -> Iterator[None]:
    """Run processes that keep the cores busy while the context is open."""
    load = [subprocess.Popen([sys.executable, "-c", _LOAD]) for _ in range(count)]
    try:
        yield
    finally:
        for process in load:
            process.kill()
            process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=500)
    parser.add_argument("--busy", type=int, default=4, help="processes that load the machine")
    parser.add_argument("--parallel", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the run there")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as passing:
        out = args.keep or Path(passing, "run")
        started = time.monotonic()
        record(args.episodes, args.parallel, out)
        recorded = time.monotonic()
        with busy(args.busy):
            (report,) = log_replay.replay_logs(
                [out], log_replay.ReplayOptions(parallel=args.parallel)
            )
        replayed = time.monotonic()
    scored = [s for s in report.steps if s.recorded_reward is not None]
    hashed = [s for s in report.steps if s.recorded_hashes]
    row = (
        report.episodes,
        len(report.steps),
        f"{sum(s.same_observation for s in report.steps)}/{len(report.steps)}",
        f"{sum(s.same_reward for s in scored)}/{len(scored)}",
        f"{sum(s.same_hashes for s in hashed)}/{len(hashed)}",
        len(report.native_mismatches),
        recorded - started,
        replayed - recorded,
    )
    columns = (
        "episodes",
        "steps",
        "observations equal",
        "rewards equal",
        "hashes equal",
        "differing",
        "recording s",
        "replay s",
    )
    title = (
        f"Deterministic episodes executed again while {args.busy} processes keep the machine busy"
    )
    print(render([Table("replay", title, columns, (row,))], "text"))
    for step in report.native_mismatches[:20]:
        where = f"{step.task} {step.episode}, step {step.turn + 1}"
        print(f"{where} ({', '.join(step.differs_in)}): {step.action!r}")
        print(f"  recorded {step.recorded[-300:]!r}\n  replayed {step.replayed[-300:]!r}")
    return 1 if report.native_mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
