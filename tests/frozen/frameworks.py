"""Items with episodes through the frameworks of others: Inspect, TRL, verifiers and Harbor.

verifiers and Harbor need virtual environments of their own. The variables ``INTERCODE_VERIFIERS``
and ``INTERCODE_HARBOR`` name the directories of their programs, as for the tests.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from frozen.endpoint import CODE, Reply, endpoint
from frozen.sandboxes import run_script
from frozen.session import Item, Session
from support.harbor import TOML, write_task
from support.serving import serving

TASKSET = """
model = "scripted"
push = false
output_dir = "{folder}"
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env.taskset]
id = "openenv"
base_url = "{server}"
resets = [{{task = 1, seed = 5}}, {{task = 2, seed = 5}}]
[env.player.harness]
id = "null"
[env.player.runtime]
type = "subprocess"
"""
RUNTIME = """
model = "scripted"
push = false
output_dir = "{folder}"
[client]
base_url = "{endpoint}"
api_key_var = "NO_KEY_IS_NEEDED"
[env.taskset]
id = "counting_v1"
counts = [3, 4]
[env.agent.runtime]
type = "intercode"
allow = []
"""
HARBOR = "intercode.integrations.harbor:InterCodeEnvironment"
SUPPORT = Path(__file__).parents[1] / "support"


def framework(session: Session, name: str) -> Item:
    """Play in this virtual environment."""
    return run_script(session, "framework_episodes.py", name)


def next_action(name: str) -> Reply:
    """Return replies that are actions without fences."""
    actions = [*CODE[name], "submit"]
    return lambda _, count: {"content": actions[min(count, 3)]}


def verifiers(session: Session) -> Item:
    """Play by the taskset of verifiers on our server, and by a harness in our sandbox."""
    item = Item()
    if _programs("verifiers") is None:
        return Item({"installed": False})
    names = ("bash", "sql", "python", "ctf")
    requests: dict[str, list[tuple[str, bytes]]] = {}
    commands = []
    with ExitStack() as stack:
        for name in names:
            model = stack.enter_context(endpoint(next_action(name)))
            requests[name] = model.requests
            address = stack.enter_context(serving("-m", "intercode", "serve", name))
            config = _config(session, name, TASKSET, endpoint=model.url, server=address)
            commands.append(json.dumps(["vf-eval", "@", str(config)]))
        script = str(SUPPORT / "verifiers_taskset" / "commands.py")
        _run(session, item, "verifiers", "python", script, stdin="\n".join(commands))
    for name in names:
        _add_traces(session, item, name)
        item.exact[f"{name} requests"] = sorted(
            session.text(str(json.loads(body)["messages"])) for _, body in requests[name]
        )

    def count_files(request: Any, _: int) -> dict[str, Any]:
        right = " 3 " in request["messages"][-1]["content"]
        return {"content": "ls files | wc -l > answer.txt" if right else "echo 9 > answer.txt"}

    with endpoint(count_files) as model:
        config = _config(session, "runtime", RUNTIME, endpoint=model.url)
        words = ["-m", "intercode.integrations.verifiers", "eval", "@", str(config)]
        _run(session, item, "verifiers", "python", *words)
    _add_traces(session, item, "runtime")
    return item


def harbor(session: Session) -> Item:
    """Run trials by Harbor's own command in our sandboxes."""
    item = Item()
    tasks = session.work / "harbor-tasks"
    write_task(tasks / "solved")
    write_task(tasks / "wrong", **{"solution/solve.sh": "#!/bin/bash\necho no > /app/out.txt\n"})
    write_task(tasks / "failing", **{"solution/solve.sh": "#!/bin/bash\nexit 3\n"})
    write_task(tasks / "gpu", **{"task.toml": f"{TOML}gpus = 1\n"})
    _run(
        session,
        item,
        "harbor",
        "harbor",
        "run",
        "--path",
        str(tasks),
        "--agent",
        "oracle",
        "--environment-import-path",
        HARBOR,
        "--jobs-dir",
        "harbor-jobs",
        "--yes",
        "--quiet",
    )
    for file in sorted(session.work.glob("harbor-jobs/*/*/result.json")):
        result = json.loads(file.read_text())
        name = result["task_name"].rpartition("/")[2]
        error = (result["exception_info"] or {}).get("exception_type")
        item.exact[f"trial {name}"] = [(result["verifier_result"] or {}).get("rewards"), error]
    return item


# The directories in which the version under test has its packages.
_SOURCES = """
import os
from importlib.util import find_spec
names = ("intercode", "intercode_sandbox", "intercode_sql", "intercode_lab")  # as many as it has
origins = [spec.origin for spec in map(find_spec, names) if spec]
print(os.pathsep.join(sorted({os.path.dirname(os.path.dirname(origin)) for origin in origins})))
"""


def _programs(name: str) -> Path | None:
    directory = os.environ.get(f"INTERCODE_{name.upper()}")
    return Path(directory).absolute() if directory else None


def _run(
    session: Session, item: Item, name: str, program: str, *words: str, stdin: str = ""
) -> None:
    """Run a program of a framework; where it is not installed, that is the exact value."""
    if (programs := _programs(name)) is None:
        item.exact["installed"] = False
        return
    found = session.execute([sys.executable, "-c", _SOURCES]).stdout.strip()
    paths = os.pathsep.join((found, str(SUPPORT / "verifiers_runtime")))
    more = {"PYTHONPATH": paths, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    done = session.execute([str(programs / program), *words], stdin, more)
    session.add_status(item, f"{name} {Path(words[-1]).name}", done)


def _config(session: Session, name: str, text: str, **values: str) -> Path:
    folder = session.work / "verifiers" / name
    folder.mkdir(parents=True)
    file = folder / "config.toml"
    file.write_text(text.format(folder=folder / "out", **values))
    return file


def _add_traces(session: Session, item: Item, name: str) -> None:
    """Add rewards and messages of each trace that verifiers wrote."""
    for file in session.work.glob(f"verifiers/{name}/out/**/traces.jsonl"):
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        for row in rows:
            for trace in row["traces"]:
                rewards = {k: v["score"] for k, v in trace["rewards"].items()}
                item.exact[f"{name} {trace['task']['data']['idx']}"] = [row["ok"], rewards]


ITEMS: dict[str, Callable[[Session], Item]] = {
    "episodes-inspect": partial(framework, name="inspect"),
    "episodes-trl": partial(framework, name="trl"),
    "episodes-verifiers": verifiers,
    "episodes-harbor": harbor,
}
