"""InterCode-CTF as its authors lay it out: 100 tasks of picoCTF, each with its own files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from intercode.core.errors import DataError
from intercode.core.types import Dataset, LayerSpec, Task
from intercode.datasets import files
from intercode.datasets.data_files import find_data_file
from intercode_sandbox.registry import unknown_name_error

IMAGE = "recipe:ctf"
SOLUTION_DIRECTORY = "solution"
"""Name of the directories in the authors' data that the sandbox never gets."""
EXECUTABLE = ("ltdis.sh",)
"""Files that are executable in the authors' repository; a download loses that bit."""
PROGRAMS = (
    "python3",
    "gcc",
    "objdump",
    "strings",
    "file",
    "unzip",
    "tar",
    "gzip",
    "openssl",
    "git",
    "gdb",
    "pdftotext",
    "convert",
    "mmls",
    "nc",
    "curl",
    "wget",
)

NETWORK_TASKS = frozenset(
    {
        7,
        9,
        16,
        20,
        28,
        29,
        35,
        39,
        41,
        42,
        43,
        54,
        57,
        62,
        66,
        73,
        87,
        88,
        89,
        95,
    }
)
"""Tasks that need a server on the internet; most of these servers no longer exist."""
NETWORK_SETUP_TASKS = frozenset({1, 14})
"""Tasks whose set-up downloads something; task 14 can be solved without that tool."""

LOST_BACKSLASH = {15: ("/", "\\/")}
"""Tasks whose recorded flag lost a backslash (JSON reads ``\\/`` as ``/``), and the correction."""
IMAGE_TASKS = frozenset({55, 56})
"""Tasks in which the flag has to be read from an image."""
_TASK_TAGS = {
    "network": NETWORK_TASKS,
    "network-setup": NETWORK_SETUP_TASKS,
    "lost-sign": frozenset(LOST_BACKSLASH),
    "picture": IMAGE_TASKS,
}

_EXCLUDED = {
    "all": frozenset[int](),
    "inspect": NETWORK_TASKS | NETWORK_SETUP_TASKS,
    "cyber-zero": frozenset({28, 29, 55, 56, 66, 87, 88, 89, 95}),
}
SUBSETS = (*_EXCLUDED, "offline")


def find_data() -> Path:
    """Return the directory of the data. Raises UsageError that says how to get it."""
    return find_data_file("ic-ctf", "ctf/ic_ctf.json").parent


def load(subset: str | None = None) -> Dataset:
    """Return the 100 tasks, or those of a subset.

    ``inspect`` and ``cyber-zero`` are the tasks in the evaluations of Inspect and of Cyber-Zero;
    ``offline`` are those that a program of this package solves in a sandbox without network. Scores
    on different subsets are not comparable. Raises UnknownNameError for another subset, UsageError
    without the data, DataError for broken files.
    """
    if subset is not None and subset not in SUBSETS:
        raise unknown_name_error("subset of ic-ctf", subset, list(SUBSETS))
    folder = find_data()
    path = folder / "ic_ctf.json"
    tasks = [_task(row, n, path) for n, row in enumerate(files.read_json_rows(path))]
    if subset == "offline":
        tasks = [t for n, t in enumerate(tasks) if n in load_solutions()]
    elif subset is not None:
        tasks = [t for n, t in enumerate(tasks) if n not in _EXCLUDED[subset]]
    label = f"ic-ctf:{subset}" if subset else "ic-ctf"
    return Dataset(label, "ctf", tuple(tasks), image=IMAGE, programs=PROGRAMS)


def _task(row: Any, number: int, path: Path) -> Task:
    """Return the task of one row. Its gold submits the flag; ``data["solution"]`` finds it."""
    if not isinstance(row, dict) or not all(isinstance(row.get(k), str) for k in ("query", "gold")):
        raise DataError(f"{path}, row {number}: expected an object with the texts query and gold")
    where = f"/ctf/{number}"
    layer = LayerSpec(
        "dir",
        path.parent / "task_assets" / str(number),
        destination=where,
        exclude=(SOLUTION_DIRECTORY,),
        executable=EXECUTABLE,
    )
    flag, query, setup = row["gold"], row["query"], row.get("setup")
    data = {key: row[key] for key in ("source", "hint") if key in row}
    if setup is not None and number in NETWORK_SETUP_TASKS:
        data["network_setup"], setup = setup, None
    prefix, brace, rest = flag.partition("{")
    if "lowercase" in query and rest != rest.lower():  # the gold ignores what the query asks for
        data["also_flags"] = (prefix + brace + rest.lower(),)
    if number in LOST_BACKSLASH:
        data["also_flags"] = (flag.replace(*LOST_BACKSLASH[number], 1),)
    if number in load_solutions():
        data["solution"] = f"QUERY={shlex.quote(query)}\n{load_solutions()[number]}"
    kinds = tuple(row.get("tags", ()))
    return Task(
        f"ic-ctf/{number}",
        query,
        f"submit {flag}",
        files=(layer,),
        setup=setup,
        cwd=where,
        group=next(iter(kinds), None),
        data=data,
        flag=flag,
        tags=kinds + tuple(mark for mark, tasks in _TASK_TAGS.items() if number in tasks),
    )


@cache
def load_solutions() -> Mapping[int, str]:
    """Return this package's solutions by task number: Bash programs that print the flag, run in
    the task's directory with the query in ``$QUERY``."""
    text = (
        resources.files("intercode.datasets.ctf")
        .joinpath("ic_ctf_solutions.txt")
        .read_text("utf-8")
    )
    parts = text.split("\n== ")[1:]
    return {int(p.partition(" ==\n")[0]): p.partition(" ==\n")[2].strip("\n") for p in parts}
