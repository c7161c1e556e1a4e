"""Plays the starter suites with agents that need no model, and writes the table of docs/results.md.

    python benchmarks/results.py [--limit N]

The agents are `gold`, which plays the solutions; `noop`, which only submits; and `try-again` with a
scripted model that lists the files and then submits, which shows what looking around earns. Their
actions do not depend on chance, so the table is the same on every machine with the image `host` of
Debian 12. It fails if a gold scores less than 1 or if doing nothing solves a task."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import intercode
from intercode.results import Run

PAGE = Path(__file__).parents[1] / "docs/results.md"
BEGIN, END = "<!-- table: python benchmarks/results.py -->\n\n", "\n\n<!-- end of the table -->"
LOOKS = {
    "bash": "```bash\nls -la\n```",
    "sql": "```sql\nSHOW TABLES\n```",
    "python": "```python\nprint(dir())\n```",
    "ctf": "```bash\nls -la\n```",
    "code": "```\nls\n```",
}
"""The first action of the scripted model in each environment."""


def play(suite: str, agent: str, limit: int | None, directory: Path) -> Run:
    """Play a suite and return the run."""
    settings: dict[str, Any] = {} if limit is None else {"limit": limit}
    if agent == "scripted":
        settings |= {"model": _scripted(LOOKS[suite]), "max_turns": 2}
    return intercode.evaluate(
        f"starter:{suite}", "try-again" if agent == "scripted" else agent,
        out=directory / f"{suite}-{agent}", quiet=True, **settings,
    )  # fmt: skip


def _scripted(look: str) -> Callable[[list[dict[str, str]]], str]:
    def looks_around(messages: list[dict[str, str]]) -> str:
        """Look around, then submit."""
        is_first = not any(message["role"] == "assistant" for message in messages)
        return look if is_first else "```\nsubmit\n```"

    return looks_around


def row(suite: str, agent: str, run: Run) -> str:
    """Return the line of a run: success, mean reward, and what the result depends on."""
    episodes = run.episodes
    solved = sum(episode.success for episode in episodes)
    reward = sum(episode.reward or 0 for episode in episodes) / len(episodes)
    metadata = run.metadata
    return (
        f"| `starter:{suite}` | {agent} | {solved} of {len(episodes)} | {reward:.2f} | "
        f"`{metadata['dataset_hash'][:8]}` | {metadata['scoring']} | {metadata['tier']} |"
    )


def main() -> None:
    """Play, print the table, and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--limit", type=int, help="play only so many tasks, and write nothing")
    options = parser.parse_args()
    lines = [
        "| suite | agent | solved | mean reward | dataset | scoring | ran in |",
        "|---|---|---|---|---|---|---|",
    ]
    faults = []
    with tempfile.TemporaryDirectory() as work:
        for suite in LOOKS:
            for agent in ("gold", "scripted", "noop"):
                run = play(suite, agent, options.limit, Path(work))
                lines.append(row(suite, agent, run))
                print(lines[-1], flush=True)
                solved = [episode.task for episode in run.episodes if episode.success]
                if agent == "noop":
                    faults += [f"doing nothing solves {task}" for task in solved]
                elif agent == "gold" and len(solved) < len(run.episodes):
                    faults.append(f"starter:{suite}: not every gold scores 1")
    if faults:
        sys.exit("\n".join(faults))
    if options.limit is None:
        before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
        _, found, after = rest.partition(END)
        if not found:
            sys.exit(f"{PAGE} lacks the comments around the table")
        PAGE.write_text(before + BEGIN + "\n".join(lines) + END + after, "utf-8")


if __name__ == "__main__":
    main()
