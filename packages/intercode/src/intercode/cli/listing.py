"""``intercode list``: lists the names that other commands take, of this package and of plugins."""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import ModuleType, NoneType
from typing import Any, get_origin

from intercode.core.config import EvalConfig
from intercode.core.errors import InterCodeError, UnknownNameError, UsageError
from intercode.core.packages import GYM_DISTRIBUTION
from intercode.core.settings import declared_types, describe
from intercode.datasets import is_playable_name
from intercode_sandbox import backends
from intercode_sandbox.registry import Registry, unknown_name_error

_REGISTRIES = {
    "datasets": "intercode.datasets:datasets",
    "agents": "intercode.agents:AGENTS",
    "environments": "intercode.environments:ENVIRONMENTS",
    "languages": "intercode.core.languages:LANGUAGES",
    "profiles": "intercode.environments.base.profiles:PROFILES",
    "rewards": "intercode.environments.base.rewards:REWARDS",
    "sandboxes": "intercode_sandbox:BACKENDS",
}

DESCRIPTIONS: dict[str, dict[str, str]] = {
    "datasets": {
        "apps": "APPS asks for Python programs and functions that pass hidden tests.",
        "bird": "BIRD asks questions about large SQL databases of many domains.",
        "intercode-alfa": "InterCode-ALFA asks for Bash commands: NL2Bash, corrected and enlarged.",
        "mbpp": "MBPP asks for short Python functions that pass hidden tests.",
        "ic-ctf": "IC-CTF asks for flags that are hidden in files, programs and servers.",
        "nl2bash": "NL2Bash asks in plain English for Bash commands on four file systems.",
        "spider": "Spider asks questions about 20 SQL databases.",
        "starter": "The starter suite of each environment needs no network and no download.",
        "swe-bench": "SWE-bench asks for changes of a repository that pass its hidden tests.",
        "wikisql": "WikiSQL asks questions about single tables of Wikipedia.",
    },
    "rewards": {
        "bash-standard": "Scores output, changed files and their content, as the paper defines it.",
        "code-standard": "Scores the share of hidden tests that pass.",
        "ctf-standard": "Scores 1 if the submitted answer is exactly the flag.",
        "harbor-standard": "Scores the number that the verifier of the task writes.",
        "probe": "Scores the share of the probe's lines that are the same as for the gold.",
        "python-standard": "Scores the share of hidden tests that pass.",
        "sql-standard": "Scores the rows of the last result, as the paper defines it.",
        "spider-lenient": "Scores SQL as `sql-standard` does, and accepts further columns.",
        "swe-bench-standard": "Scores 1 if all tests pass that the repository's own fix passes.",
    },
    "sandboxes": backends.DESCRIPTIONS,
}
"""Descriptions of this package's names. Others are described by their docstrings."""

EXAMPLE = """\
examples:
  intercode list
  intercode list agents --json
  intercode list settings
      what a TOML file, --set and the arguments of intercode.evaluate may have
  intercode list --fetch nl2bash
      fetches the files of NL2Bash from its authors' repository, verifies their checksums and prints
      the directory; a download that was interrupted is resumed

Datasets are listed with their number of tasks and their subsets, to be written as in nl2bash:fs_1,
or with what to do if their data is not installed.

You can give your own in place of these names: --agent package.module:Class, --set
reward=package.module:function or reward=file.py:function, and for a dataset the directory of a task
package or a .json, .jsonl or .csv file. An installed package adds names by the entry
points intercode.agents, intercode.datasets, intercode.rewards and so on."""

ARGUMENTS = """\
kind [KIND]  one of datasets, agents, environments, languages, profiles,
             rewards, sandboxes; or settings, of runs and of environments
--json       print JSON
files of datasets:
--fetch DATASET  fetch the files of this dataset from its authors
--mirror URL     a server that has the same paths
--dest DIR       directory to write to (default: in the cache)"""

_WIDTH = 100
_SETTINGS = "settings"
"""The kind of the names of settings, which are in no registry."""
_NAME_WIDTH = 27


@dataclass(frozen=True, slots=True)
class ListedName:
    """A name that a command takes.

    ``package`` is the package that provides it. For datasets, ``tasks`` counts the tasks of each
    environment, ``subsets`` names its subsets, and ``remedy`` says how to install data that is
    missing. For environments,
    ``settings`` has the descriptions of those that it has for itself, by name and default.
    """

    name: str
    description: str
    package: str
    tasks: dict[str, int] | None = None
    remedy: str = ""
    subsets: str = ""
    settings: dict[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the entry as JSON types."""
        row: dict[str, Any] = {"description": self.description, "package": self.package}
        if self.tasks is not None:
            row |= {"installed": not self.remedy, "tasks": sum(self.tasks.values()) or None}
        return row | ({"settings": self.settings} if self.settings else {})

    def lines(self) -> list[str]:
        """Return the entry as text."""
        source = "" if self.package == GYM_DISTRIBUTION else f" [{self.package}]"
        lines = textwrap.wrap(f"{self.description}{source}", _WIDTH - 19) or [""]
        if self.tasks is not None:
            lines += textwrap.wrap(self._data_text(), _WIDTH - 19)
        if self.subsets:
            text = f"Subsets: {self.subsets}."
            lines += textwrap.wrap(text, _WIDTH - 19, break_on_hyphens=False)
        for name, meaning in self.settings.items():
            text = f"--set {name}: {meaning}"
            lines += textwrap.wrap(text, _WIDTH - 19, subsequent_indent="  ")
        names = [f"  {self.name:<16}", *[""] * len(lines)]
        return [f"{name:<18} {line}".rstrip() for name, line in zip(names, lines, strict=False)]

    def _data_text(self) -> str:
        if self.remedy:
            return f"Not installed: {self.remedy}."
        tasks = self.tasks or {}
        total = f"{sum(tasks.values()):,} tasks"
        if len(tasks) > 1:
            total += f" ({', '.join(f'{name} {count}' for name, count in tasks.items())})"
        return f"{total}, installed."


def handle(args: argparse.Namespace) -> int:
    """Print the names with their descriptions. Plugins that cannot be loaded get a warning."""
    if args.kind is not None and args.fetch is not None:
        raise UsageError("--fetch is about files: leave out the kind of names")
    if args.fetch is not None:
        return _fetch(args)
    if args.mirror is not None or args.dest is not None:
        raise UsageError("--mirror and --dest are for --fetch DATASET")
    known = [*_REGISTRIES, _SETTINGS]
    if args.kind is not None and args.kind not in known:
        raise unknown_name_error("kind", args.kind, known)
    if args.kind == _SETTINGS:
        _print_settings(args.json)
        return 0
    kinds = [args.kind] if args.kind else list(_REGISTRIES)
    entries = {kind: list(_entries(kind)) for kind in kinds}
    if args.json:
        rows = {kind: {e.name: e.as_json() for e in found} for kind, found in entries.items()}
        print(json.dumps(rows, indent=2))
        return 0
    for kind, found in entries.items():
        print(kind)
        for entry in found:
            print("\n".join(entry.lines()))
    return 0


def _fetch(args: argparse.Namespace) -> int:
    """Fetch the files of a dataset, and print the directory."""
    from intercode.datasets import fetch

    if args.dest is not None and args.dest.exists() and not args.dest.is_dir():
        raise UsageError(f"--dest {args.dest} is a file; name a directory")
    complete: set[str] = set()

    def show(name: str, done: int, total: int) -> None:
        """Print a line for each complete file."""
        if done >= total and name not in complete:
            complete.add(name)
            print(f"{name} ({total} bytes)", file=sys.stderr)

    print(fetch.fetch(args.fetch, args.mirror, args.dest, show))
    return 0


def _entries(kind: str) -> Iterator[ListedName]:
    module, _, attribute = _REGISTRIES[kind].partition(":")
    registry: Registry = getattr(importlib.import_module(module), attribute)
    for plugin in registry.shadowed_plugins():
        known = registry.origin(plugin.name) or GYM_DISTRIBUTION
        _warn(f"{plugin.origin} also has {kind} {plugin.name!r}; that of {known} is used")
    for name in registry:
        package = registry.origin(name) or GYM_DISTRIBUTION
        try:
            own = package == GYM_DISTRIBUTION and DESCRIPTIONS.get(kind, {}).get(name)
            description = own or _description(registry.load(name))
            counted = kind == "datasets" and is_playable_name(name)
            tasks, remedy = _task_counts(name) if counted else (None, "")
            subsets = _subsets(name) if counted else ""
            settings = _settings(registry.load(name)) if kind == "environments" else {}
        except InterCodeError as e:
            _warn(str(e))
            continue
        except Exception as e:  # a plugin may raise anything
            _warn(f"the {registry.kind} {name!r} of {package} fails: {type(e).__name__}: {e}")
            continue
        yield ListedName(name, description, package, tasks, remedy, subsets, settings)


def _print_settings(as_json: bool) -> None:
    """Print the settings of a run, and those that the environments share."""
    from intercode.environments.base.settings import SandboxSettings

    of_run = {f.name: describe(f) for f in fields(EvalConfig)}
    shared = {
        f.name: describe(f)
        for f in fields(SandboxSettings)
        if f.name not in of_run and not _is_function(f.name)
    }
    groups = {"of a run": of_run, "of every environment": shared}
    if as_json:
        print(json.dumps({_SETTINGS: groups}, indent=2))
        return
    for owner, described in groups.items():
        print(f"{_SETTINGS} {owner}")
        for name, text in described.items():
            lines = textwrap.wrap(text, _WIDTH - _NAME_WIDTH)
            print(f"  {name:<{_NAME_WIDTH - 3}} {lines[0]}")
            print("".join(f"{' ' * _NAME_WIDTH}{line}\n" for line in lines[1:]), end="")


def _is_function(name: str) -> bool:
    """Return whether a setting of the environment is a function, which only Python can give."""
    from intercode.environments.base.settings import SandboxSettings

    kinds = {get_origin(one) or one for one in declared_types(SandboxSettings, [name])}
    return kinds == {Callable, NoneType}


def _settings(environment: type) -> dict[str, str]:
    """Return the descriptions of an environment's own settings, by name and default."""
    from intercode.environments.base.settings import SandboxSettings

    shared = {f.name for f in fields(SandboxSettings)}
    declared = fields(environment.settings_class)  # type: ignore[attr-defined]
    own = [f for f in declared if f.name not in shared and "description" in f.metadata]
    return {
        f"{f.name}={json.dumps(f.default, default=str)}": f.metadata["description"] for f in own
    }


def _task_counts(name: str) -> tuple[dict[str, int], str]:
    """Return the number of tasks by environment, or how to install the data of a dataset."""
    from intercode import datasets
    from intercode.environments import ENVIRONMENTS

    counts: dict[str, int] = {}
    of_every = name in ("starter", "families")
    for environment in ENVIRONMENTS if of_every else ("bash",):
        try:
            dataset = datasets.load(name, environment)
        except UsageError as e:
            if of_every:
                continue  # an environment without such tasks
            return {}, _remedy(str(e))
        counts[dataset.environment] = len(dataset)
    return counts, ""


def _subsets(name: str) -> str:
    """Return the subsets of a dataset, which the error for one that does not exist lists."""
    from intercode import datasets

    try:
        datasets.load(f"{name}:?")
    except UnknownNameError as e:
        return str(e).rpartition("known: ")[2]
    except Exception:
        pass  # its data is missing, what follows its name is an address, or it lists no subsets
    return ""


def _remedy(message: str) -> str:
    """Return the part of an error message that says how to install the data."""
    if fetch := re.search(r"run `intercode list --fetch [^`]+`", message):
        return fetch.group()
    return message.partition("): ")[2] or message


def _description(value: object) -> str:
    """Return the description of a plugin's task package or of a language, or the first sentence of
    a docstring."""
    if isinstance(value, ModuleType) and value.__file__:
        from intercode.datasets import task_package

        return task_package.read_description(Path(value.__file__).parent)
    summary = getattr(value, "summary", None)  # of a language
    if isinstance(summary, str):
        return summary
    paragraph = " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s", paragraph, maxsplit=1)[0]


def _warn(message: str) -> None:
    print(f"intercode: warning: {' '.join(message.split())}", file=sys.stderr)
