"""Measures how much of an endpoint's rate concurrent episodes use, and the overhead of a turn.

    python benchmarks/bench_endpoint.py [--episodes 200] [--rounds 3] [--turns 10] [--latency 1]
        [--agent react] [--dataset starter] [--recycle] [--endpoint-only]

Plays the starter suite as `intercode eval --parallel 200` does, against an endpoint in a process of
its own that answers every request after 1 s, however many there are, and submits after half as many
turns up to one and a half times as many, so that episodes end at all times. N episodes have at most
N requests in progress, so that N / latency answers a second are possible. The rest of a turn is
overhead: the client, the agent, the action in its sandbox, scoring, the record on disk. "Steady"
leaves out the beginning, when all sandboxes are made at once, and the end, when episodes run out.
`--endpoint-only` sends requests without environments and so measures the client alone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from pathlib import Path

from measuring import Processor

from intercode import datasets
from intercode.core.config import make_config
from intercode.evaluation.evaluate.run import evaluate
from intercode.models import Message, open_model

ACTIONS = {
    "bash": ("ls -la", "pwd", "wc -l *", "head -3 *", "ls /tmp"),
    "sql": ("SHOW TABLES", "SELECT DATABASE()", "SELECT 1 + 1", "SHOW TABLES", "SELECT NOW()"),
}
ASK: list[Message] = [
    {"role": "system", "content": "You write shell commands. " * 60},
    {"role": "user", "content": "What is in this directory? " * 8},
]


class Endpoint:
    """A server that answers after a delay; ``marks`` are the times of the answers."""

    def __init__(self, latency: float, turns: int) -> None:
        self.latency, self.turns = latency, turns
        self.marks: list[float] = []

    async def serve(self) -> None:
        """Print the port, serve until a line arrives on standard input, then print the times."""
        server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=2048)
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print(json.dumps(self.marks), flush=True)
        os._exit(0)  # ends despite open connections

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = head.partition(b"content-length:")[2].split(b"\r\n")[0]
                request = json.loads(await reader.readexactly(int(length)))
                await asyncio.sleep(self.latency)
                self.marks.append(time.time())
                writer.write(_answer(request, self.turns))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


def _answer(request: dict[str, list[dict[str, str]]], turns: int) -> bytes:
    turn = sum(m["role"] == "assistant" for m in request["messages"])
    task = zlib.crc32(request["messages"][1]["content"].encode())
    last = turns // 2 + task % (turns + 1)  # last turn of this task's episodes
    language = "sql" if "SQL" in request["messages"][0]["content"] else "bash"
    known = ACTIONS[language]
    action = known[turn % len(known)] if turn + 1 < last else "submit"
    text = f"Let me look.\n\n```{language}\n{action}\n```"
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100 * (turn + 1), "completion_tokens": 20}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = json.dumps({"model": "bench", "choices": [choice], "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def play(url: str, args: argparse.Namespace) -> None:
    """Play the episodes as `intercode eval` does."""
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "dataset": args.dataset,
            "agent": args.agent,
            "model": "bench",
            "base_url": url,
            "parallel": args.episodes,
            "max_turns": 2 * args.turns,
            "out": Path(folder) / "run",
            "epochs": -(-args.episodes * args.rounds // len(datasets.load(args.dataset))),
            "env_options": {"recycle": True} if args.recycle else {},
        }
        evaluate(make_config(settings), quiet=True)


def only_ask(url: str, args: argparse.Namespace) -> None:
    """Send requests from as many threads, without environments."""
    model = open_model("bench", url)

    def ask() -> None:
        for _ in range(args.turns * args.rounds):
            model.complete(ASK)

    threads = [threading.Thread(target=ask) for _ in range(args.episodes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def steady(marks: list[float]) -> float:
    """Return the answers per second between the first and the last fifth of the answers."""
    cut = len(marks) // 5
    middle = sorted(marks)[cut:-cut]
    return (len(middle) - 1) / (middle[-1] - middle[0])


def measure(args: argparse.Namespace) -> None:
    """Do one run against an endpoint of its own, and print its figures."""
    command = [sys.executable, __file__, "--serve", str(args.latency), "--turns", str(args.turns)]
    pipe = subprocess.PIPE
    cpu = Processor()
    began, own, spent = time.time(), time.process_time(), cpu.used()
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdin and server.stdout
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
        (only_ask if args.endpoint_only else play)(url, args)
        spent, own, seconds = cpu.used() - spent, time.process_time() - own, time.time() - began
        marks = json.loads(server.communicate("\n")[0])
    cpu.close()
    possible = args.episodes / args.latency
    rate, turns = steady(marks), len(marks)
    ours = args.episodes / rate - args.latency
    rows = [
        ("answers", f"{turns} in {seconds:.1f} s"),
        ("possible, answers/s", f"{possible:.0f}"),
        ("steady, answers/s", f"{rate:.1f}"),
        ("share of what is possible, steady", f"{100 * rate / possible:.1f} %"),
        ("share of what is possible, whole run", f"{100 * turns / seconds / possible:.1f} %"),
        ("ours per turn, steady, ms", f"{1000 * ours:.0f}"),
        ("processor time per turn, this process, ms", f"{1000 * own / turns:.1f}"),
        ("processor time per turn, with sandboxes and endpoint, ms", f"{1000 * spent / turns:.1f}"),
    ]
    what = "no environment" if args.endpoint_only else f"{args.agent}, {args.dataset}"
    print(f"{args.episodes} at once, {args.latency:g} s latency, {what}")
    for name, value in rows:
        print(f"  {name:<58} {value}")
    if not cpu.exact:
        print("  (processor time is the whole machine's)")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--agent", default="react")
    parser.add_argument("--dataset", default="starter", help="or starter:sql, which costs less")
    parser.add_argument("--recycle", action="store_true", help="recycle sandboxes")
    parser.add_argument("--endpoint-only", action="store_true")
    parser.add_argument("--serve", type=float, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve is not None:
        asyncio.run(Endpoint(args.serve, args.turns).serve())
    else:
        measure(args)


if __name__ == "__main__":
    main()
