"""An environment with a server beside the agent's shell: the sum in a till is judged.

    python examples/till/till_env.py

The session starts the server, waits for its port, and stops it at its end. A session is opened for
the agent, for each gold, and after a restore; so a fork has a till with an empty sum. The agent can
end the server and answer in its place: the example shows how to run one, not how to grade safely.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from intercode.core import (
    Dataset,
    EnvironmentDescription,
    ExecResult,
    LayerSpec,
    Score,
    State,
    Task,
)
from intercode.core.errors import SandboxError
from intercode.environments import EpisodeContext, Profile, SandboxedEnv
from intercode.environments.languages import BASH
from intercode.sessions import BashSession, Session
from intercode_sandbox import BaseSandbox

APP = Path(__file__).parent / "app"
PORT = 8000


class TillSession(BashSession):
    """A Bash session beside which the till runs."""

    def __init__(self, sandbox: BaseSandbox, **options: Any) -> None:
        self.server = sandbox.spawn(["python3", "/app/till.py"])
        self.wait_for_port(sandbox)
        super().__init__(sandbox, **options)

    def wait_for_port(self, sandbox: BaseSandbox) -> None:
        """Return when the till accepts connections."""
        for _ in range(200):
            with suppress(OSError):
                sandbox.connect(PORT).close()
                return
            if self.server.wait(0.05) is not None:
                break
        raise SandboxError("the till does not listen")

    def close(self) -> None:
        super().close()
        self.server.kill()
        self.server.wait(5.0)


class TillProfile(Profile):
    """A shell and a till for each episode."""

    def open_session(self, sandbox: BaseSandbox, task: Task, state: Any) -> Session:
        return TillSession(sandbox, cwd=task.cwd, state=state)

    def agent_state(
        self,
        episode: EpisodeContext,
        last: ExecResult | None,
        answer: str | None,  # noqa: ARG002  # nothing is submitted
    ) -> State:
        with episode.workspace.sandbox.connect(PORT) as till:
            till.settimeout(5.0)
            till.sendall(b"0\n")
            total = till.makefile().readline().strip()
        return State(last.output if last else "", answer=total)

    def gold_states(self, episode: EpisodeContext) -> list[State]:
        return [State(answer=episode.task.data["sum"])]


def same_sum(_task: Task, agent: State, gold: State) -> Score:
    """Return 1 for the right sum, else 0."""
    return Score(float(agent.answer == gold.answer))


class TillEnv(SandboxedEnv):
    """Bring the till to a sum; the reward is 1 for the right sum."""

    name: ClassVar[str] = "till"
    description: ClassVar[EnvironmentDescription] = EnvironmentDescription(
        BASH, judged="The sum in the till is judged.", answer="", reward="till_env:same_sum"
    )
    standard_profile: ClassVar[type[Profile]] = TillProfile


TASKS = Dataset(
    "till",
    "till",
    (
        Task(
            "till/1",
            "Send the number 42 to the till at port 8000.",
            files=(LayerSpec("dir", APP.absolute(), destination="/app"),),
            data={"sum": "42"},
        ),
    ),
)

if __name__ == "__main__":
    with TillEnv(TASKS) as env:
        env.reset()
        env.step(f"exec 3<>/dev/tcp/127.0.0.1/{PORT}; echo 42 >&3; head -n 1 <&3")
        (fork,) = env.fork()
        print(env.submit()[1], fork.submit()[1])
        fork.close()
