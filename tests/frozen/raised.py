"""Calls the Python interface wrongly and prints the classes of the errors, as ``Item`` has them.

``sandboxes.py`` runs this file with the version under test. ``sandbox_api.py`` and ``commands.py``
have the errors of sandboxes and of commands.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import intercode
from intercode import core, datasets, models

CALLS: dict[str, Callable[[], Any]] = {
    "make unknown": lambda: intercode.make("bsh"),
    "make unknown dataset": lambda: intercode.make("bash", "starterr"),
    "make unknown subset": lambda: intercode.make("bash", "starter:nosuch"),
    "make unknown profile": lambda: intercode.make("bash", profile="paper"),
    "make unknown setting": lambda: intercode.make("bash", nosuch=1),
    "make unknown reward": lambda: intercode.make("bash", reward="nosuch"),
    "make unknown reward mode": lambda: intercode.make("bash", reward_mode="daily"),
    "make unknown network": lambda: intercode.make("bash", network="some"),
    "make unknown back end": lambda: intercode.make("bash", backend="vm").reset(),
    "make unknown image": lambda: intercode.make("bash", image="recipe:nosuch").reset(),
    "make negative time limit": lambda: intercode.make("bash", timeout=-1),
    "make no turns": lambda: intercode.make("bash", max_turns=0),
    "make module": lambda: intercode.make("nosuch.module:Env"),
    "make unknown engine": lambda: intercode.make("sql", engine="oracle"),
    "make unknown policy": lambda: intercode.make("bash", policy={"deny": ["x"]}),
    "make no environments": lambda: intercode.make_vec("bash", num_envs=0),
    "load unknown": lambda: datasets.load("nosuch"),
    "load missing file": lambda: datasets.load("nowhere.json"),
    "load broken file": lambda: datasets.load(str(written("broken.json", "{"))),
    "load file without queries": lambda: datasets.load(str(written("empty.json", '[{"a": 1}]'))),
    "load no run": lambda: intercode.load_run("nowhere"),
    "load log": lambda: core.load_log(Path("nowhere")),
    "load broken log": lambda: core.load_log(written("log.json", "[1]")),
    "evaluate unknown dataset": lambda: intercode.evaluate("nosuch", "gold"),
    "evaluate unknown agent": lambda: intercode.evaluate("starter", "glod"),
    "evaluate without a model": lambda: intercode.evaluate("starter", "try-again"),
    "evaluate wrong limit": lambda: intercode.evaluate("starter", "gold", limit=0),
    "evaluate unknown field": lambda: intercode.evaluate("starter", "gold", nosuch=1),
    "config wrong type": lambda: core.EvalConfig("starter", "gold", limit="many"),
    "model without a key": lambda: models.open_model("openai/x"),
    "model unknown option": lambda: models.open_model("m", "http://127.0.0.1:9/v1", nosuch=1),
    "model missing script": lambda: models.open_model("scripted:nowhere.json"),
    "model unknown provider": lambda: models.open_model("nosuch/x"),
    "registry unknown": lambda: core.Registry("thing", {"one": "os:path"}).load("two"),
    "registry without attribute": lambda: core.Registry("thing", {"one": "os:nosuch"}).load("one"),
    "registry without module": lambda: core.Registry("thing", {"one": "nosuch:x"}).load("one"),
}


def written(name: str, text: str) -> Path:
    """Write a file into a new directory and return its path."""
    path = Path(tempfile.mkdtemp(), name)
    path.write_text(text)
    return path


def of_an_environment() -> dict[str, Callable[[], Any]]:
    """Return calls of an environment, which the order of the calls puts into each state."""
    env = intercode.make("bash", deterministic=True, max_turns=2)

    def second() -> None:
        env.reset(seed=1, options={"task": 0})
        env.step("true")
        env.step("true")

    return {
        "step before reset": lambda: env.step("true"),
        "snapshot before reset": lambda: env.snapshot(),
        "reset unknown task": lambda: env.reset(options={"task": "nosuch"}),
        "reset far task": lambda: env.reset(options={"task": 100_000}),
        "reset unknown option": lambda: env.reset(options={"tsak": 1}),
        "step after the end": lambda: (second(), env.step("true")),
        "step with a number": lambda: (env.reset(options={"task": 0}), env.step(1)),
        "restore of nothing": lambda: env.restore(None),
        "fork none": lambda: env.fork(0),
        "load no snapshot": lambda: env.load_snapshot(Path("nowhere")),
        "close": lambda: env.close(),
        "step after close": lambda: env.step("true"),
        "reset after close": lambda: env.reset(),
        "gold that fails": lambda: failing_gold(),
    }


def failing_gold() -> None:
    """Play a task whose gold cannot run."""
    rows = json.dumps([{"query": "never", "gold": "SELECT * FROM nowhere"}])
    with intercode.make("sql", str(written("tasks.json", rows))) as env:
        env.reset(options={"task": 0})
        env.step("SELECT 1")
        env.step("submit")


if __name__ == "__main__":
    exact: dict[str, Any] = {}
    wording: dict[str, str] = {}
    for label, call in {**CALLS, **of_an_environment()}.items():
        try:
            exact[label] = type(call()).__name__
        except Exception as e:
            exact[label] = ["raised", *(c.__name__ for c in type(e).__mro__[:-3])]
            wording[label] = str(e)
    tree = {
        name: [c.__name__ for c in value.__mro__[:-1]]
        for name, value in sorted((n, getattr(core, n)) for n in core.__all__)
        if isinstance(value, type) and issubclass(value, Exception)
    }
    print(json.dumps({"exact": {**exact, "tree": tree}, "wording": wording}))
