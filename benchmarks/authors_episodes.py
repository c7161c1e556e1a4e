"""Plays gold episodes in the authors' BashEnv: reset, gold, submit.

peers.py runs it with an interpreter that has their dependencies, without this package:

    python authors_episodes.py CHECKOUT TASKS.json

Each line of the standard input is the position of a task, which is played, or `true`, which is then
one more action. For each, prints a line of JSON with the milliseconds of each call.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable


def timed(work: Callable[[], object]) -> float:
    """Return the milliseconds that a call takes."""
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def main(checkout: str, tasks: str) -> None:
    """Play the tasks that are asked for."""
    sys.path.insert(0, checkout)
    from intercode.envs.bash.bash_env import BashEnv

    env = BashEnv("intercode-nl2bash", data_path=tasks, verbose=False)
    env.reset(0)  # the first reset removes files that the image has in excess
    for line in sys.stdin:
        if line.strip() == "true":
            print(json.dumps({"true": timed(lambda: env.step("true"))}), flush=True)
            continue
        position, rewards = int(line), []
        found = {"reset": timed(lambda: env.reset(position))}  # noqa: B023
        found["step"] = timed(lambda: env.step(env.gold))
        found["submit"] = timed(lambda: rewards.append(env.step("submit")[1]))  # noqa: B023
        found["solved"] = float(rewards[0] > 0.99)
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
