"""Uses every operation of a runtime of verifiers and the program of docs/verifiers.md, prints what
they return as JSON, and then runs verifiers' own ``eval`` with the arguments."""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from intercode.integrations.verifiers.__main__ import main  # isort: split

import verifiers.v1 as vf
from counting_v1 import CommandHarness, CountingConfig, CountingTaskset
from verifiers.v1.harnesses.bash import BashHarness
from verifiers.v1.rollout import resolve_agent_runtime
from verifiers.v1.runtimes import Runtime, provision_runtime

from support.snippets import Reader, read_snippets

ROOT = Path(__file__).parents[3]
SERVER = "import http.server as s; s.HTTPServer(('127.0.0.1', 8123), s.SimpleHTTPRequestHandler)"
BYTES = bytes(range(256))


class Greeting(BaseHTTPRequestHandler):
    """Greets the sandbox from this machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"greeting of the machine")

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def fetch(url: str) -> str:
    with urllib.request.urlopen(url) as response:
        return str(response.read().decode())


async def error_of(work: Any) -> str:
    try:
        await work
    except vf.SandboxError as e:
        return str(e)
    return ""


async def get(runtime: Runtime, url: str) -> list[Any]:
    """Return the exit status of curl in the sandbox, the HTTP status, and the body."""
    argv = ["curl", "-s", "-m", "10", "-o", "/tmp/body", "-w", "%{http_code}", url]
    result = await runtime.run(argv, {})
    body = await runtime.run(["cat", "/tmp/body"], {})
    return [result.exit_code, result.stdout, body.stdout]


async def use(runtime: Runtime, host_port: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    result = await runtime.run(["sh", "-c", "pwd; echo $A $B; echo e >&2; exit 3"], {"B": "b"})
    found["run"] = [result.exit_code, result.stdout, result.stderr]
    found["signal"] = (await runtime.run(["sh", "-c", "kill -TERM $$"], {})).exit_code
    found["no program"] = (await runtime.run(["nonesuch"], {})).exit_code

    await runtime.write("made/bytes", BYTES)
    found["bytes"] = await runtime.read("made/bytes") == BYTES
    found["exact"] = await runtime.read("/app/made/bytes", max_bytes=256) == BYTES
    found["too long"] = await error_of(runtime.read("made/bytes", max_bytes=255))
    found["no file"] = await error_of(runtime.read("none"))
    found["layer"] = (await runtime.run(["/opt/tools/greet"], {})).stdout

    process = await runtime.open_process(["sh", "-c", "echo e >&2; exec cat"], {})
    await process.write(b"line\n")
    found["live"] = [(await anext(process.stdout)).decode(), await process.poll()]
    found["live error"] = (await anext(process.stderr)).decode()
    await process.terminate()
    found["terminated"] = await process.wait()
    found["rest"] = [piece async for piece in process.stdout]

    config = json.dumps({"runtime": {"type": "intercode"}, "colocated": False})
    code = ["sh", "-c", 'printf %s "$VF_CONFIG" > wanted && mv wanted config.json']
    await runtime.run_background(code, {"VF_CONFIG": config}, "config.log")
    while "No such file" in await error_of(runtime.read("config.json")):
        await asyncio.sleep(0.05)
    found["server"] = json.loads(await runtime.read("config.json"))

    await runtime.run_background(["python3", "-c", f"{SERVER}.serve_forever()"], {}, "server.log")
    url = await runtime.expose(8123)
    for _ in range(200):
        try:
            found["exposed"] = await asyncio.to_thread(fetch, f"{url}/made/")
            break
        except OSError:
            await asyncio.sleep(0.05)

    direct = f"http://127.0.0.1:{host_port}/"
    inside = runtime.host_url(direct)
    found["set-up"] = await get(runtime, inside)
    await runtime.prepare_execution([inside])
    found["framework"] = await get(runtime, inside)
    found["machine"] = await get(runtime, direct)
    found["outside"] = await get(runtime, "http://example.com/")
    found["devices"] = (await runtime.run(["ls", "/sys/class/net"], {})).stdout.split()

    try:
        async with asyncio.timeout(0.5):
            await runtime.run(["sh", "-c", "sleep 3600 & wait"], {})
    except TimeoutError:
        listed = await runtime.run(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"], {})
        found["after the limit"] = listed.stdout
    found["tier"] = runtime.info.tier
    return found


async def use_as_agent(runtime: Runtime) -> dict[str, Any]:
    """Use the runtime as the task's ``agent_user``, as a rollout does."""
    row = "agent:x:1001:1001::/home/agent:/bin/sh"
    await runtime.run(["sh", "-c", f"echo {row} >> /etc/passwd; mkdir /home/agent"], {})
    await runtime.write("/root/answer", b"42")
    await runtime.run(["chmod", "600", "/root/answer"], {})
    agent = await resolve_agent_runtime(runtime, "agent")
    code = "id -u; echo $HOME; setpriv --reuid=0 id; ln -s /root/answer ~/link"
    result = await agent.run(["sh", "-c", code], {})
    found: dict[str, Any] = {"run": [result.stdout, result.stderr]}
    await agent.write("/home/agent/new/bytes", BYTES)
    found["bytes"] = await agent.read("/home/agent/new/bytes") == BYTES
    found["too long"] = await error_of(agent.read("/home/agent/new/bytes", max_bytes=255))
    found["owner"] = (await runtime.run(["stat", "-c", "%u", "/home/agent/new/bytes"], {})).stdout
    found["refused"] = [
        await error_of(agent.read("/home/agent/link")),
        await error_of(agent.write("/home/agent/link", b"43")),
        (await runtime.read("/root/answer")).decode(),
    ]
    live = await agent.open_process(["id", "-u"], {})
    found["live"] = [piece.decode() async for piece in live.stdout]
    await agent.run_background(["sh", "-c", "id -u"], {}, "/home/agent/log")
    while (await runtime.run(["cat", "/home/agent/log"], {})).stdout != "1001\n":
        await asyncio.sleep(0.05)
    return found


async def check(layer: str) -> dict[str, Any]:
    config = vf.AgentConfig.model_validate(
        {
            "runtime": {
                "type": "intercode",
                "allow": [],
                "layers": {"/opt/tools": layer},
                "env": {"A": "a"},
            }
        }
    ).runtime
    host = ThreadingHTTPServer(("127.0.0.1", 0), Greeting)
    threading.Thread(target=host.serve_forever, daemon=True).start()
    async with provision_runtime(config) as runtime:
        found = await use(runtime, host.server_port)
    async with provision_runtime(config) as runtime:
        found["agent"] = await use_as_agent(runtime)
    found["stopped"] = await error_of(runtime.run(["true"], {}))
    host.shutdown()
    return found


def run_page() -> list[Any]:
    """Run the program of the page, and return what its rollout has left. The harness ``bash``
    installs packages of PyPI in its sandbox: here it asks the model as ours does."""
    page = (ROOT / "docs/verifiers.md").read_text("utf-8")
    [program] = [snippet for snippet in read_snippets(page) if "make_agent" in snippet.body]
    BashHarness.setup, BashHarness.launch = CommandHarness.setup, CommandHarness.launch
    [task] = CountingTaskset(CountingConfig(id="counting_v1")).load()
    reader = Reader(Path(), ROOT, names={"task": task})
    reader.run(program)
    trace = reader.names["trace"]
    return [trace.agent.runtime.type, trace.rewards["counted"].score, trace.errors]


if __name__ == "__main__":
    layer = sys.argv.pop(1)
    print(json.dumps({**asyncio.run(check(layer)), "page": run_page()}), flush=True)
    main()
