"""Counts how many of a collection of tasks in Harbor's format parse, build, run and are solved.

    python benchmarks/harbor_collection.py TASKS --out DIR [--docker] [--add PATH=LOCAL] [--limit N]

TASKS is a directory of task directories. A task is *solved* if its own solution gets the reward 1
of its own verifier; it *runs* if that verifier writes a reward. ``--docker`` does the same with the
engine at DOCKER_HOST: `docker build`, and the solution and the verifier in one container.

No base image is pulled: benchmarks/harbor_bases has Dockerfiles on Debian for the common ones, and
bases.toml says which stands for which. Both engines get the same root file systems. ``--add`` puts
a file of this machine into all of them, such as settings of pip or apt. Solutions and verifiers use
the network of the machine, as tasks expect; ``--network none`` takes it away.

DIR keeps an outcome for each task, so that a run that was ended continues, and the last build of
bases. Printed is a table, and the reason for each task that is not solved.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import intercode
from intercode import Sandbox
from intercode.core.errors import InterCodeError
from intercode.integrations.harbor.tasks.task_directory import read_task
from intercode.integrations.harbor.verifier import parse_rewards

BASES = Path(__file__).parent / "harbor_bases"
STAGES = ("parses", "builds", "runs", "solved")
_FROM = re.compile(r"^FROM\s+(?:--platform=\S+\s+)?(\S+)", re.MULTILINE | re.IGNORECASE)
_NOT_PACKED = ("proc", "sys", "dev", "tmp/*", "etc/hosts", "etc/hostname", "etc/resolv.conf")
_REASON_CHARACTERS = 150


class StageError(Exception):
    """A task does not get past a stage. The message is the reason."""


@dataclass(frozen=True)
class Outcome:
    """The stages that a task has passed on an engine, and why it did not pass the next."""

    task: str
    engine: str
    passed: int
    reason: str = ""


# ------------------------------------------------------------------------- bases
def base_names(tasks: Iterable[Path]) -> list[str]:
    """Return the names of the images that Dockerfiles of the tasks start from."""
    files = (task / "environment" / "Dockerfile" for task in tasks)
    return sorted(
        {name for file in files if file.is_file() for name in _FROM.findall(file.read_text())}
    )


def write_bases(names: Iterable[str], out: Path, added: Iterable[str]) -> dict[str, str]:
    """Write Dockerfiles for these images, with added files, and return the table of images.toml."""
    beginnings = tomllib.loads((BASES / "bases.toml").read_text())["from"]
    for base in sorted(set(beginnings.values())):
        folder = out / "bases" / base
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(BASES / base, folder)
        lines = []
        for number, (path, local) in enumerate(pair.split("=", 1) for pair in added):
            copy = shutil.copytree if Path(local).is_dir() else shutil.copy
            copy(local, folder / f"added{number}")
            lines.append(f"COPY added{number} {path}\n")
        with (folder / "Dockerfile").open("a") as file:
            file.writelines(lines)
    table = {}
    for name in names:
        base = next((d for b, d in beginnings.items() if name.startswith(b)), None)
        if base is not None:
            table[name] = f"dockerfile:{out}/bases/{base}"
    rows = "".join(f'"{name}" = "{spec}"\n' for name, spec in table.items())
    (out / "images.toml").write_text(f"[from]\n{rows}")
    return table


def import_base(name: str, spec: str) -> None:
    """Give the container engine the root file system of a base under the name in FROM."""
    excluded = [f"--exclude=./{path}" for path in _NOT_PACKED]
    with Sandbox(spec) as sandbox, sandbox.spawn(["tar", "-c", *excluded, "-C", "/", "."]) as pack:
        load = subprocess.Popen(["docker", "import", "-", name], stdin=subprocess.PIPE, stdout=-3)
        assert load.stdin is not None
        for data, stream in pack.chunks():
            if stream == "stdout":
                load.stdin.write(data)
        load.stdin.close()
        if load.wait() or pack.wait():
            raise SystemExit(f"the base {name} cannot be imported into the engine")


# ----------------------------------------------------------------------- engines
def play_in_sandbox(folder: Path, network: str) -> Iterator[None]:
    """Play the solution of a task with InterCode. Yields after each stage that it passes."""
    config = read_task(folder, folder.name).data["config"]
    yield
    with intercode.make(
        "harbor", f"harbor:{folder}", timeout=config.agent_seconds, network=network, build=True
    ) as env:
        env.reset()
        yield
        if env.task.gold is None:
            raise StageError("there is no solution, or one of more than 120,000 characters")
        observation = env.step(env.task.gold)[0]
        score = env.score()
        if score.details["verifier"] is None:
            raise StageError(score.details["said"].partition("\n")[0])
        yield
        if score.value < 1.0:
            raise StageError(reason_in(score.details["said"] or observation))
        yield


def play_in_docker(folder: Path, network: str) -> Iterator[None]:
    """Play the solution of a task with the container engine, as ``play_in_sandbox`` does."""
    config = read_task(folder, folder.name).data["config"]
    yield
    image, context = f"intercode-collection/{folder.name.lower()}", folder / "environment"
    docker("build", "--quiet", "--network=host", "--tag", image, str(context), seconds=1800)
    yield
    given = [f"--env={name}={value}" for name, value in config.env.items()]
    given += [f"--workdir={config.workdir}"] if config.workdir else []
    keep = ["sh", "-c", "mkdir -p /logs/verifier && exec sleep infinity"]
    container = docker("run", "--detach", f"--network={network}", *given, image, *keep).strip()
    try:
        if not (folder / "solution" / "solve.sh").is_file():
            raise StageError("there is no solution")
        run_part(
            container, folder / "solution", "solve.sh", config.solution_env, config.agent_seconds
        )
        docker("exec", container, "rm", "-r", "/solution")
        env, seconds = config.verifier_env, config.verifier_seconds
        printed = run_part(container, folder / "tests", "test.sh", env, seconds)
        yield
        files = (read_file(container, f"/logs/verifier/reward.{kind}") for kind in ("txt", "json"))
        rewards = parse_rewards(*files) or {"reward": 0.0}
        if rewards.get("reward", sum(rewards.values()) / len(rewards)) < 1.0:
            raise StageError(reason_in(printed))
        yield
    finally:
        docker("rm", "--force", container)


def run_part(container: str, part: Path, script: str, env: dict[str, str], seconds: float) -> str:
    """Copy a directory of a task into a container, run a script of it, and return its output."""
    docker("cp", str(part), f"{container}:/{part.name}")
    docker("exec", container, "chmod", "+x", f"/{part.name}/{script}")
    given = [f"--env={name}={value}" for name, value in env.items()]
    command = ["docker", "exec", *given, container, "sh", "-c", f"/{part.name}/{script}"]
    try:
        done = subprocess.run(
            command, stdin=-3, stdout=-1, stderr=-2, text=True, errors="replace", timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise StageError(f"{script} did not end within {seconds:g} s") from None
    return done.stdout


def read_file(container: str, path: str) -> bytes | None:
    """Return the content of a file in a container, None if there is none."""
    done = subprocess.run(["docker", "exec", container, "cat", path], capture_output=True)
    return None if done.returncode else done.stdout


def docker(*words: str, seconds: float = 120) -> str:
    """Run a command of the engine and return what it prints. Raises StageError if it fails."""
    try:
        done = subprocess.run(
            ["docker", *words], stdin=-3, capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        raise StageError(f"docker {words[0]} did not end within {seconds:g} s") from None
    if done.returncode:
        raise StageError(reason_in(done.stderr))
    return done.stdout


def reason_in(text: str) -> str:
    """Return the line of an output that says most about a failure."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [
        line for line in lines if re.match(r"(?i)FAILED|ERROR\b|E  |curl:|.*: not found", line)
    ]
    return (telling or lines or ["nothing was printed"])[-1][:_REASON_CHARACTERS]


# --------------------------------------------------------------------- the counts
ENGINES: dict[str, Callable[[Path, str], Iterator[None]]] = {
    "InterCode": play_in_sandbox,
    "Docker": play_in_docker,
}


def play(folder: Path, engine: str, network: str) -> Outcome:
    """Return how far the solution of a task gets."""
    passed = 0
    try:
        for _ in ENGINES[engine](folder, network):
            passed += 1
    except StageError as e:
        return Outcome(folder.name, engine, passed, str(e))
    except InterCodeError as e:
        return Outcome(folder.name, engine, passed, reason_in(str(e)))
    return Outcome(folder.name, engine, passed)


def read_outcomes(file: Path) -> dict[tuple[str, str], Outcome]:
    """Return the outcomes of an earlier call, by task and engine."""
    lines = file.read_text().splitlines() if file.is_file() else []
    found = [Outcome(**json.loads(line)) for line in lines]
    return {(outcome.task, outcome.engine): outcome for outcome in found}


def print_report(outcomes: Iterable[Outcome], engines: Iterable[str]) -> None:
    """Print the table, and the tasks that are not solved by their reasons."""
    rows = list(outcomes)
    print("| engine | tasks | " + " | ".join(STAGES) + " |\n|" + "---|" * (len(STAGES) + 2))
    for engine in engines:
        passed = [row.passed for row in rows if row.engine == engine]
        counts = [sum(number > stage for number in passed) for stage in range(len(STAGES))]
        print(f"| {engine} | {len(passed)} | " + " | ".join(map(str, counts)) + " |")
    print()
    for row in sorted(rows, key=lambda row: (row.task, row.engine)):
        if row.passed < len(STAGES):
            print(f"{row.task}, {row.engine}: not {STAGES[row.passed]}: {row.reason}")


def make_parser(description: str) -> argparse.ArgumentParser:
    """Return a parser of the tasks, where results go, the engine, and the files that bases get."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("tasks", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--docker", action="store_true")
    parser.add_argument("--add", action="append", default=[], metavar="PATH=LOCAL")
    return parser


def main() -> None:
    parser = make_parser(__doc__)
    parser.add_argument("--network", default="host", choices=["host", "none"])
    parser.add_argument("--limit", type=int)
    options = parser.parse_args()
    out = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    folders = sorted(p.parent for p in options.tasks.absolute().glob("*/task.toml"))[
        : options.limit
    ]
    table = write_bases(base_names(folders), out, options.add)
    os.environ["INTERCODE_CONFIG"] = str(out)
    engines = list(ENGINES)[: 2 if options.docker else 1]
    done = read_outcomes(out / "outcomes.jsonl")
    if options.docker:
        for name, spec in table.items():
            import_base(name, spec)
    with (out / "outcomes.jsonl").open("a") as log:
        for engine, folder in itertools.product(engines, folders):
            if (folder.name, engine) not in done:
                outcome = play(folder, engine, options.network)
                done[folder.name, engine] = outcome
                print(json.dumps(asdict(outcome)), file=log, flush=True)
    print_report(done.values(), engines)


if __name__ == "__main__":
    main()
