"""A taskset and a harness of verifiers, loaded by their id ``counting_v1``.

The model answers with a command, which the harness runs in the runtime; the task then reads a file
that the command should have written.
"""

from __future__ import annotations

import json

import verifiers.v1 as vf
from verifiers.v1.configs.harness import HarnessConfig
from verifiers.v1.harness import Harness
from verifiers.v1.runtimes import ProgramResult, Runtime

__all__ = ["CommandHarness", "CountingTaskset"]

_OF_AGENT_USER = 6  # in the task with this count the agent has a user of its own, with that id
PROGRAM = """
import json, subprocess, sys, urllib.request
url, key, model, prompt = sys.argv[1:]
asked = {"model": model, "stream": True, "messages": [{"role": "user", "content": prompt}]}
request = urllib.request.Request(
    f"{url}/chat/completions", json.dumps(asked).encode(),
    {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
)
with urllib.request.urlopen(request) as response:
    events = [json.loads(line[6:]) for line in response if line.startswith(b"data: {")]
choices = [choice for event in events for choice in event["choices"]]
answer = "".join(choice["delta"].get("content") or "" for choice in choices)
subprocess.run(["sh", "-c", answer], check=True)
"""


class CommandHarness(Harness[HarnessConfig]):
    """Asks the model once and runs its answer."""

    async def setup(self, runtime: Runtime) -> None:
        await runtime.write("/tmp/agent.py", PROGRAM.encode())

    async def launch(
        self, ctx, trace, runtime, endpoint, secret, mcp_urls, data, tool_interception_url=None
    ) -> ProgramResult:
        argv = ["python3", "/tmp/agent.py", endpoint, secret, ctx.model, str(data.prompt)]
        return await runtime.run_program(argv, {})


class CountingData(vf.TaskData):
    count: int


class CountingTask(vf.Task[CountingData]):
    """Count the files of the working directory."""

    async def setup(self, trace: vf.Trace, runtime: Runtime) -> None:
        for number in range(self.data.count):
            await runtime.write(f"files/{number}", b"x")
        if self.data.agent_user:
            row = f"agent:x:{self.data.count}:0::/home/agent:/bin/sh"
            code = f"echo {row} >> /etc/passwd; mkdir /home/agent; chown agent ."
            await runtime.run(["sh", "-c", code], {})

    @vf.reward(weight=1.0)
    async def counted(self, trace: vf.Trace, runtime: Runtime) -> float:
        running = await runtime.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"], {})
        trace.info["running"] = running.stdout
        try:
            written = json.loads(await runtime.read("answer.txt", max_bytes=100))
        except vf.SandboxError as e:
            trace.info["error"] = str(e)
            return 0.0
        return float(written == self.data.count)


class CountingConfig(vf.TasksetConfig):
    """``counts``: the number of files of each task."""

    counts: tuple[int, ...] = (3,)


class CountingTaskset(vf.Taskset[CountingTask, CountingConfig]):
    """A task for each number of files."""

    def load(self) -> list[CountingTask]:
        return [
            CountingTask(
                CountingData(
                    idx=i,
                    prompt=f"Count the {count} files in files/.",
                    count=count,
                    agent_user="agent" if count == _OF_AGENT_USER else None,
                ),
                self.config.task,
            )
            for i, count in enumerate(self.config.counts)
        ]
