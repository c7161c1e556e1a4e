"""An environment with a server in the sandbox: each action is a statement for it, and the rows of
the last one are judged.

    python examples/table_server/table_env.py

The server is a small one on SQLite. Another, such as PostgreSQL, comes with an image, and its
client library takes the place of the JSON lines.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from intercode.core import (
    Dataset,
    EnvironmentDescription,
    ExecResult,
    GoldError,
    LayerSpec,
    Score,
    State,
    Task,
)
from intercode.core.errors import SandboxError
from intercode.environments import EpisodeContext, Profile, SandboxedEnv
from intercode.environments.base.row_comparison import normalize_rows, overlap
from intercode.environments.languages import SQL
from intercode.sessions import Session
from intercode_sandbox import BaseSandbox

APP = Path(__file__).parent / "app"
PORT = 8000
MOST_BYTES = 1 << 20


class TableSession:
    """Starts the server and sends it each action. The state is in the server's files."""

    def __init__(self, sandbox: BaseSandbox, cwd: str) -> None:
        self.sandbox, self.cwd = sandbox, cwd
        self.start()

    def start(self) -> None:
        """Return when the server accepts connections."""
        self.server = self.sandbox.spawn(["python3", "/app/serve.py"])
        for _ in range(200):
            with suppress(OSError):
                self.sandbox.connect(PORT).close()
                return
            if self.server.wait(0.05) is not None:
                break
        raise SandboxError("the server does not listen")

    def run(self, code: str, timeout: float) -> ExecResult:
        try:
            with self.sandbox.connect(PORT) as server:
                server.settimeout(timeout)
                server.sendall(json.dumps(code).encode() + b"\n")
                line = server.makefile("rb").readline(MOST_BYTES)
        except OSError as e:  # the statement is still running, or has ended the server
            self.close()
            self.start()
            late = isinstance(e, TimeoutError)
            return ExecResult(str(e) or "the server has ended", None if late else 1, timed_out=late)
        if not line.endswith(b"\n"):
            return ExecResult(f"the server gave no whole result of {MOST_BYTES} bytes at most", 1)
        answer = json.loads(line)
        if "error" in answer:
            return ExecResult(answer["error"], 1)
        rows = tuple(map(tuple, answer["rows"]))
        return ExecResult(str(list(rows)), 0, rows=rows)

    def state(self) -> None:
        """A new session continues with the same files."""

    def state_text(self) -> str:
        return ""

    def close(self) -> None:
        self.server.kill()
        self.server.wait(5.0)


class TableProfile(Profile):
    """A server for each episode and each gold."""

    def open_session(self, sandbox: BaseSandbox, task: Task, state: Any) -> Session:  # noqa: ARG002
        return TableSession(sandbox, task.cwd)

    def agent_state(
        self,
        episode: EpisodeContext,  # noqa: ARG002
        last: ExecResult | None,
        answer: str | None,  # noqa: ARG002  # nothing is submitted
    ) -> State:
        return State(last.output, rows=last.rows) if last else State()

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        with episode.gold_workspace() as workspace:
            result = workspace.run(episode.task.gold, 60.0)
        if result.rows is None:
            raise GoldError(f"the gold of {episode.task.id} failed: {result.output}")
        return [State(result.output, rows=result.rows)]


def common_rows(_task: Task, agent: State, gold: State) -> Score:
    """Return the share of the rows that both have."""
    share, _ = overlap(normalize_rows(agent.rows or ()), normalize_rows(gold.rows or ()))
    return Score(share if agent.rows is not None else 0.0)


class TableEnv(SandboxedEnv):
    """Ask a server for rows; the reward is the share of rows in common with the gold's."""

    name: ClassVar[str] = "table"
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        SQL, judged="The rows of your last query.", answer="", reward="table_env:common_rows"
    )
    standard_profile: ClassVar[type[Profile]] = TableProfile


TASKS = Dataset(
    "table",
    "table",
    (
        Task(
            "table/1",
            "On which days was something sold for more than 5?",
            gold="SELECT DISTINCT day FROM sale WHERE price > 5",
            files=(LayerSpec("dir", APP.absolute(), destination="/app"),),
        ),
    ),
)

if __name__ == "__main__":
    with TableEnv(TASKS) as env:
        env.reset()
        env.step("DELETE FROM sale WHERE day = 'Tuesday'")
        (fork,) = env.fork()
        print(env.step("SELECT day FROM sale WHERE price > 5")[0], env.submit()[1])
        print(fork.step("SELECT * FROM sale")[0], fork.submit()[1])
        fork.close()
