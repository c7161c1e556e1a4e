"""Small runs for the viewer's tests, with every kind of content that an episode can have."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from intercode.core import trajectories
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.results.view import Library, ViewServer

FACTS = {
    "environment": "bash",
    "dataset": "starter",
    "profile": "standard",
    "agent": "react",
    "model": "m-1",
    "image_digest": "sha256:aa",
    "comparable": True,
}
LONG = "\n".join(f"line {n}" for n in range(1, 101))
SAID = (
    {"role": "system", "content": "You act in turns."},
    {"role": "user", "content": "Count the files."},
    {
        "role": "assistant",
        "content": "I look.",
        "reasoning": "Hm, files.",
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "bash", "arguments": '{"code": "ls -l"}'},
            }
        ],
        "tokens": {"prompt_ids": [1], "ids": [5, 6, 7], "logprobs": [-0.1, -0.2, -0.3]},
    },
)
RICH = (
    Step(
        "ls -l | head # look",
        LONG,
        score=Score(0.34, {"output": 0.01, "changes": 0.33}),
        thought="First I look around.",
        usage=Usage(1200, 85, 1, cost=0.0021, seconds=1.3),
        messages=SAID,
        context={"observation": {"characters": 9000, "shown": 4000}},
    ),
    Step("rm -rf /", "Not allowed: rm.", valid=False, refused=True),
    Step("touch /srv/a /srv/b", "", changes=("/srv/a", "/srv/b"), actor="human"),
    Step(
        "rm /srv/b",
        "",
        changes=("/srv/a",),
        diffs={
            "/srv/a": "mode 644, now 600\n@@ -1,2 +1,2 @@\n-old <b>line</b>\n+new\tline\n kept\n"
            "\\ No newline at end of file",
            "/srv/b": "deleted: file of 0 bytes",
        },
    ),
    Step("sleep 99", "", valid=False, timed_out=True, exit_code=None, changes=("/srv/a",)),
    Step("", "No code was found.", executed=False, valid=False),
    Step("submit", "", score=Score(1.0, {"output": 0.34, "changes": 0.66})),
)


def write_run(directory: Path, solves: int = 3, **metadata: str) -> Path:
    """Write a run of twelve tasks. The first and every ``solves``-th task are solved. It has a rich
    episode, a fork of it, a second sample, and an error that another attempt replaced."""
    run = {**FACTS, **metadata}
    trajectories.write_run_metadata(directory, run)
    log = directory / trajectories.TRAJECTORIES_FILE
    rich = Trajectory(
        "starter/files/0",
        0,
        "Count the files.",
        RICH,
        end="submitted",
        group="files",
        hardness="easy",
        seconds=3.5,
        run={**run, "attempts": 2},
        id="r0",
        tags=("read",),
    )
    for t in (
        rich.replace(id="lost", end="error", error="the sandbox went away", steps=()),
        rich,
        rich.replace(id="fork", parent="r0", branched_at=3, steps=RICH[:4], end="turn_limit"),
        rich.replace(
            id="r0e1", epoch=1, steps=(Step("false", "", score=Score(0.5)),), end="turn_limit"
        ),
        *(plain_episode(n, n % solves == 0, run) for n in range(1, 12)),
    ):
        trajectories.append_trajectory(log, t)
    return directory


def plain_episode(n: int, solved: bool, run: dict[str, object]) -> Trajectory:
    """Return an episode of two turns."""
    steps = (
        Step("pwd", "/srv", score=Score(0.25)),
        Step(f"echo {n}", f"{n}\nneedle-{n}", score=Score(1.0 if solved else 0.67)),
    )
    return Trajectory(
        f"starter/text/{n}",
        n,
        f"Print the number {n}.",
        steps,
        end="solved" if solved else "turn_limit",
        group="text",
        seconds=n / 10,
        hardness="hard" if n % 2 else "medium",
        run=run,
        id=f"p{n}",
        tags=("print",),
    )


@contextmanager
def serving(library: Library) -> Iterator[str]:
    """Serve a library. Yields the address of the page."""
    with ViewServer(library) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            yield server.url
        finally:
            server.stop()
            thread.join()
