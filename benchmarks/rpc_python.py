"""The authors' design of a Python environment, written again with the standard library.

It is one interpreter behind an RPC service, whose namespace is cleared between episodes.

    python benchmarks/rpc_python.py        serves on a free port, and prints which
"""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
import xmlrpc.client
from pathlib import Path
from typing import Any
from xmlrpc.server import SimpleXMLRPCServer

from intercode.core.types import Task

RESET = "RESET_NAMESPACE"


class Service:
    """Runs code in one namespace."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def execute(self, code: str) -> dict[str, str]:
        """Return what a piece of code prints, or the text of its exception."""
        if code == RESET:
            self.names.clear()
            return {"output": "", "error": ""}
        out, errors = io.StringIO(), io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                exec(code, self.names)
        except Exception as e:
            return {"error": f"Error: {e}"}
        return {"output": out.getvalue(), "error": errors.getvalue()}


class Client:
    """An environment on this service: reset, step, and a score that also runs the gold."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve())], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        port = int(self._process.stdout.readline())
        self._service = xmlrpc.client.ServerProxy(f"http://127.0.0.1:{port}", allow_none=True)

    def reset(self) -> None:
        self._service.execute(RESET)

    def step(self, code: str) -> Any:
        return self._service.execute(code)

    def score(self, task: Task) -> float:
        """Return the share of tests that give the same result as with the gold, which stays in the
        namespace."""
        tests, setup, gold = task.data["tests"], str(task.data["setup"]), str(task.gold)
        name = re.search(r"def (\w+)\(", gold)
        self.step(f"{name[1] if name else '_'} = {task.data['entry']}")
        self.step(setup)
        ours = [self.step(test) for test in tests]
        self.reset()
        for code in (setup, gold):
            self.step(code)
        return sum(a == self.step(t) for a, t in zip(ours, tests, strict=True)) / len(tests)

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def main() -> None:
    """Serve until killed."""
    with SimpleXMLRPCServer(("127.0.0.1", 0), logRequests=False, allow_none=True) as server:
        print(server.server_address[1], flush=True)
        server.register_function(Service().execute, "execute")
        server.serve_forever()


if __name__ == "__main__":
    main()
