"""Measures steps per second and latencies with many live episodes and a simulated model.

    python benchmarks/bench_pool.py [--live 64 256] [--seconds 10] [--model 0.2]
        [--vector 64] [--peers 64] [--actions shell programs]

Each episode waits ``--model`` seconds for its action and runs it, again and again, so that live /
model steps per second are possible. In the pool (`intercode.Pool`) episodes are independent. A
vector environment, ours (`intercode.make_vec`) or Gymnasium's AsyncVectorEnv with a process for
each, takes all actions at once and waits for the slowest. Latency is from the action to its result.
One action in fifty takes half a second, as real ones sometimes do.

Actions of the shell itself (``shell``) cost little more than a step. ``programs`` are such as
agents use; the start of a program alone takes one to two ms of CPU time. "busy" is the number of
cores in use, and "stolen" the number that the host of a virtual machine gave to others, which show
whether the machine limits the rate."""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector import AsyncVectorEnv

import intercode
from intercode.results.report import render
from intercode.results.tables import Cell, Table

_SLOW = 50  # one action in this many is slow
_ACTIONS = {
    "programs": (
        "ls /srv",
        "echo $((6 * 7)) > /tmp/x; cat /tmp/x",
        "wc -l < /etc/passwd",
        "cd /tmp; pwd",
    ),
    "shell": (
        "cd /srv; echo *",
        "echo $((6 * 7)) > /tmp/x; read -r y < /tmp/x; echo $y",
        "mapfile -t rows < /etc/passwd; echo ${#rows[@]}",
        "cd /tmp; pwd",
    ),
}
Found = tuple[float, list[float], float, float]
"""Steps per second, latencies in seconds, the processors in use, and those that the host took."""


def action_of(dice: random.Random, kind: str) -> str:
    """Return the next action of an episode."""
    return "sleep 0.5" if dice.randrange(_SLOW) == 0 else dice.choice(_ACTIONS[kind])


class Meter:
    """Measures the processor time that this machine uses and that its host takes away."""

    def __init__(self) -> None:
        self._begin, self._then = time.monotonic(), self._read()

    def read(self) -> tuple[float, float]:
        passed = (time.monotonic() - self._begin) * os.sysconf("SC_CLK_TCK")
        busy, stolen = (now - then for now, then in zip(self._read(), self._then, strict=True))
        return busy / passed, stolen / passed

    @staticmethod
    def _read() -> tuple[int, int]:
        times = [int(t) for t in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        return sum(times[:3]) + sum(times[5:7]), times[7]


async def pool(live: int, seconds: float, model: float, kind: str) -> Found:
    """Measure the rate of the pool."""
    latencies: list[float] = []
    async with intercode.Pool("bash", size=live, timeout=30.0) as envs:
        episodes = await asyncio.gather(*(envs.begin(i % 70, seed=i) for i in range(live)))
        begin = time.monotonic() + model
        end = begin + seconds

        async def play(i: int) -> None:
            dice = random.Random(i)
            await asyncio.sleep(model * dice.random())  # spreads the beginnings of the episodes
            while (sent := time.monotonic()) < end:
                await episodes[i].step(action_of(dice, kind))
                now = time.monotonic()
                if begin < now < end:
                    latencies.append(now - sent)
                await asyncio.sleep(model)

        meter = Meter()
        await asyncio.gather(*(play(i) for i in range(live)))
        used = meter.read()
    return len(latencies) / seconds, latencies, *used


def vector(envs: Any, live: int, seconds: float, model: float, kind: str) -> Found:
    """Measure the rate of a vector environment, which returns when all its environments have."""
    dice = random.Random(0)
    latencies: list[float] = []
    try:
        envs.reset(seed=0)
        meter, begin = Meter(), time.monotonic()
        while (now := time.monotonic()) - begin < seconds:
            time.sleep(model)
            sent = time.monotonic()
            envs.step([action_of(dice, kind) for _ in range(live)])
            latencies += [time.monotonic() - sent] * live
        return len(latencies) / (now - begin), latencies, *meter.read()
    finally:
        envs.close()


def possible(live: int, model: float) -> float:
    """Return the steps per second if InterCode took no time, only the model and the actions."""
    return live / (model + 0.5 / _SLOW)


def one() -> gym.Env[str, str]:
    env: gym.Env[str, str] = intercode.make("bash", timeout=30.0)
    return env


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--live", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--vector", type=int, nargs="*", default=[64])
    parser.add_argument("--peers", type=int, nargs="*", default=[64])
    parser.add_argument("--actions", nargs="+", choices=list(_ACTIONS), default=list(_ACTIONS))
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--model", type=float, default=0.2)
    args = parser.parse_args()
    found: list[tuple[str, str, int, Found]] = []
    makers: dict[str, tuple[list[int], Callable[[int], Any]]] = {
        "make_vec": (args.vector, lambda n: intercode.make_vec("bash", n, timeout=30.0)),
        "AsyncVectorEnv": (args.peers, lambda n: AsyncVectorEnv([one] * n, shared_memory=False)),
    }
    for kind in args.actions:
        for live in args.live:
            rate = asyncio.run(pool(live, args.seconds, args.model, kind))
            found.append(("Pool", kind, live, rate))
        for name, (sizes, make) in makers.items():
            for live in sizes:
                rate = vector(make(live), live, args.seconds, args.model, kind)
                found.append((name, kind, live, rate))
    rows: list[tuple[Cell, ...]] = []
    for name, kind, live, (rate, latencies, *used) in found:
        cuts = 1000 * np.percentile(latencies, [50, 95, 99])
        share = 100 * rate / possible(live, args.model)
        rows.append((name, kind, live, rate, share, *used, *(float(c) for c in cuts)))
    columns = (
        "driver",
        "actions",
        "live",
        "steps/s",
        "% of possible",
        "busy",
        "stolen",
        "median ms",
        "95 % ms",
        "99 % ms",
    )
    title = f"Steps with a model of {args.model:g} s; latency of a step"
    notes = (
        "possible: live / (model + the mean time of the actions that sleep)",
        f"busy, stolen: of {os.cpu_count()} processors",
    )
    table = Table(
        "pool", title, columns, tuple(rows), notes=notes, digits=tuple((c, 1) for c in columns[3:])
    )
    print(render([table], "text"))


if __name__ == "__main__":
    main()
