"""Runs Harbor's example tasks with Harbor's own command, in our sandboxes or in its `docker`.

    PYTHONPATH=PACKAGES .venv-harbor/bin/python benchmarks/harbor_examples.py TASKS --out DIR

PACKAGES is the list of packages/*/src, with colons. TASKS is a directory in a checkout of Harbor,
such as examples/tasks, with tasks at any depth. The agent is `oracle`, which plays a task's own
solution. Base images are not pulled: they are those of `harbor_collection.py`, which also says what
``--add`` does. ``--docker``, under ``.ci/docker --network``, needs Docker's plug-ins `compose` and
`buildx`. DIR keeps Harbor's results, so that a run that was ended continues. Printed is a table
with the reason for each task that is not solved.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
from pathlib import Path
from typing import Any

from harbor.cli.main import app
from harbor_collection import import_base, make_parser, reason_in, write_bases

from intercode import Sandbox

_IMAGES = re.compile(
    r"^(?:FROM\s+(?:--platform=\S+\s+)?|COPY\s+--from=|docker_image\s*=\s*\")([^\s\"]+)",
    re.MULTILINE | re.IGNORECASE,
)
_OURS = ["--environment-import-path", "intercode.integrations.harbor:InterCodeEnvironment"]
_ENGINES = {"InterCode": [*_OURS, "--ek", "network=host"], "Docker": ["--env", "docker"]}


def image_names(tasks: list[Path]) -> list[str]:
    """Return the names of the images that the tasks or their Dockerfiles name."""
    files = [file for task in tasks for file in (task / "task.toml", *task.rglob("Dockerfile"))]
    return sorted({name for file in files for name in _IMAGES.findall(file.read_text())})


def harbor(task: Path, engine: str, jobs: Path) -> None:
    """Run Harbor's command in this process. What it prints goes to a file beside the results."""
    with (jobs / "printed.txt").open("w") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    sys.argv = ["harbor", "run", "--path", str(task), "--agent", "oracle", "--yes", "--quiet"]
    sys.argv += ["--jobs-dir", str(jobs), *_ENGINES[engine]]
    app()


def outcome(jobs: Path) -> tuple[str, str]:
    """Return the reward of a task, or "-", and why it is not solved."""
    trial = next(jobs.glob("*/*/result.json"), None)
    if trial is None:
        printed = (jobs / "printed.txt").read_text()
        return "-", reason_in("\n".join(re.findall(r"^[ |│]*([\w.]+Error: .*)", printed, re.M)))
    result: dict[str, Any] = json.loads(trial.read_text())
    error, verified = result["exception_info"], result["verifier_result"] or {}
    if error:
        return "-", f"{error['exception_type']}: {reason_in(error['exception_message'])}"
    rewards = verified.get("rewards") or {}
    value = rewards.get("reward", sum(rewards.values()) / max(len(rewards), 1))
    files = sorted(trial.parent.rglob("test-stdout.txt"))
    said = "\n".join(file.read_text(errors="replace") for file in files)
    return f"{value:g}", "" if value == 1 else reason_in(said)


def main() -> None:
    options = make_parser(__doc__).parse_args()
    engine, root = "Docker" if options.docker else "InterCode", options.tasks.absolute()
    out = options.out.absolute()
    tasks = sorted(file.parent for file in root.rglob("task.toml"))
    bases = write_bases(image_names(tasks), out, options.add)
    os.environ |= {"INTERCODE_CONFIG": str(out)}
    os.environ.setdefault("ANTHROPIC_API_KEY", "none")  # judges need one to begin
    for name, spec in bases.items():
        if options.docker:
            import_base(name, spec)
        else:
            Sandbox(spec).close()  # builds it, which Harbor's limits of time do not allow for
    solved = 0
    for task in tasks:
        jobs = out / engine / "-".join(task.relative_to(root).parts)
        if not (jobs / "ended").is_file():
            jobs.mkdir(parents=True, exist_ok=True)
            process = multiprocessing.get_context("fork").Process(
                target=harbor, args=(task, engine, jobs)
            )
            process.start()
            process.join()
            (jobs / "ended").touch()
        reward, reason = outcome(jobs)
        solved += reward == "1"
        print(f"| {task.relative_to(root)} | {reward} | {reason} |", flush=True)
    print(f"{engine}: {solved} of {len(tasks)} tasks solved")


if __name__ == "__main__":
    main()
