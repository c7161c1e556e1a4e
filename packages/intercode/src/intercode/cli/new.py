"""``intercode new``: creates a task package that runs, or converts the release of a benchmark."""

from __future__ import annotations

import argparse
import keyword
import re
import sys
from pathlib import Path

from intercode.core.errors import UsageError
from intercode.core.scaffolds import read_templates, require_new_directory, write_templates
from intercode_sandbox.command.parser import path

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

EXAMPLE = """\
examples:
  intercode new log-forensics
      a directory with two tasks on a Dockerfile; check them: intercode check ./log-forensics
  intercode new log-forensics --plugin
      as a Python package: after `pip install ./log-forensics`, `intercode eval log-forensics` works
  intercode new tasks --convert spider --from ~/spider_data
      files of tasks from the authors' release of Spider (or bird, wikisql) in that directory; then
      `intercode eval tasks/spider-dev.jsonl --set engine=sqlite ...`

The files say in comments what each is for."""

ARGUMENTS = """\
directory NAME  the new directory; its last part is the name
--plugin        make it a package that can be installed
--convert NAME  convert the release of another benchmark: spider, bird or wikisql
--from DIR      with --convert: the directory of the unpacked release"""
SETTINGS = {"directory": {"type": path}, "from": {"dest": "release"}}


def handle(args: argparse.Namespace) -> int:
    """Write the package and print what to do next.

    Raises UsageError for a name that is not valid and for a directory that is not empty.
    """
    home = args.directory
    if args.convert is not None:
        if args.plugin:
            raise UsageError("--plugin is for a task package, not for --convert")
        return _convert(args.convert, args.release, home)
    if args.release is not None:
        raise UsageError("--from is for --convert NAME, which says what release it is")
    names = write_task_package(home, plugin=args.plugin)
    path = home if home.is_absolute() else f"./{home}"
    print(f"{path}: {', '.join(names)}")
    print(f"check it:  intercode check {path}\nplay it:   intercode play {path}")
    return 0


def _convert(name: str, release: Path | None, out: Path) -> int:
    """Convert a release and print the files of tasks."""
    from intercode.datasets.convert import convert

    if release is None:
        raise UsageError(f"name the directory of the unpacked release of {name}: --from DIR")
    for file in convert(name, release, out):
        print(file)
    return 0


def write_task_package(home: Path, *, plugin: bool = False) -> list[str]:
    """Write a task package to the new directory ``home``. Returns the names of its files."""
    name = home.name
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is not a valid name for a task: use lower-case letters, digits and single "
            "hyphens between them, such as log-forensics"
        )
    require_new_directory(home)
    module = name.replace("-", "_")
    if plugin and (module in sys.stdlib_module_names or keyword.iskeyword(module)):
        raise UsageError(f"{name!r} is the name of a module of Python itself: choose another")
    words = {"name": name, "module": module}
    texts = read_templates("intercode.cli", "templates/task")
    texts |= read_templates("intercode.cli", "templates/plugin") if plugin else {}
    texts[f"test_{module}.py"] = texts.pop("test.py")
    texts["files/names.txt"] = texts.pop("names.txt")
    return write_templates(home, texts, words)
