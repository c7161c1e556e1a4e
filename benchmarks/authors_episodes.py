"""Plays gold episodes in the authors' BashEnv: reset, gold, submit.

bench_episodes.py runs it with an interpreter that has their dependencies, without this package:

    python authors_episodes.py CHECKOUT TASKS.json SECONDS '[0, 1, ...]'

Prints one line of JSON.
"""

from __future__ import annotations

import json
import sys
import time


def main(checkout: str, tasks: str, seconds: str, positions: str) -> None:
    """Play the tasks at these positions in turn, again and again, for this many seconds."""
    sys.path.insert(0, checkout)
    from intercode.envs.bash.bash_env import BashEnv

    env = BashEnv("intercode-nl2bash", data_path=tasks, verbose=False)
    wanted = json.loads(positions)
    env.reset(wanted[0])  # the first reset removes files that the image has in excess
    rewards, spans = [], [0.0, 0.0, 0.0]
    start = time.perf_counter()
    while time.perf_counter() - start < float(seconds):
        marks = [time.perf_counter()]
        env.reset(wanted[len(rewards) % len(wanted)])
        marks.append(time.perf_counter())
        env.step(env.gold)
        marks.append(time.perf_counter())
        rewards.append(env.step("submit")[1])
        marks.append(time.perf_counter())
        spans = [s + b - a for s, a, b in zip(spans, marks, marks[1:], strict=False)]
    took, count = time.perf_counter() - start, len(rewards)
    reset, step, submit = (1000 * s / count for s in spans)
    print(json.dumps({
        "episodes": count, "seconds": took, "solved": sum(bool(r > 0.99) for r in rewards),
        "reset": reset, "step": step, "submit": submit,
    }))  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
