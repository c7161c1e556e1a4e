"""Loads rows in SWE-bench's layout: ``swe-bench:verified``, ``swe-bench:lite``, ``swe-bench:full``
or ``swe-bench:PATH`` of a file of rows.

Jimenez et al., "SWE-bench: Can Language Models Resolve Real-World GitHub Issues?" (arXiv
2310.06770). A row has a repository at a commit, the text of an issue, and the tests that the
repository's own fix makes pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from intercode.core.decoding import decode_as
from intercode.core.errors import DataError, UsageError
from intercode.core.types import Dataset, Payload, Task
from intercode.datasets import files, may_be_recorded
from intercode.datasets.columns import parse_options
from intercode.datasets.data_files import find_data_file
from intercode_sandbox.registry import unknown_name_error
from intercode_sandbox.toml import read_toml

DIRECTORY = "/testbed"
"""The path of the repository in the published images."""
TESTBED_PROGRAMS = "/opt/miniconda3/envs/testbed/bin"
"""The programs of the repository's own Python in the published images."""
PUBLISHED_IMAGE = "docker.io/swebench/sweb.eval.x86_64.{instance}:latest"
"""The published images. ``{instance}`` is the instance id in lower case, with ``_1776_`` in place
of ``__``, as a name in a registry must not have two underscores in a row."""
HUB_NAMES = {"verified": "SWE-bench_Verified", "lite": "SWE-bench_Lite", "full": "SWE-bench"}
"""The published datasets by subset, at ``SWE-bench`` on the Hugging Face hub."""
OTHER_RUNNERS = ("django/django", "sympy/sympy")
"""Repositories whose tests run with a test runner of their own, so that their ids are not
pytest's."""
UNPLAYABLE = "unplayable"
_OPTIONS = ("image", "images", "skip")
_IMAGE_COLUMNS = ("image", "image_name", "docker_image")
_PATCH_END = "END-OF-PATCH"
_MAX_GOLD_LENGTH = 120_000  # characters of the action that applies a gold patch
_HEADER = re.compile(r"^diff --git a/(.+) b/(.+)$", re.MULTILINE)
_NOTES = (
    f"The repository is in {DIRECTORY}, where you start. Change its files so that the problem is "
    "solved, then submit: the difference of the repository from its start is tested with tests "
    "that you do not see. Files that git ignores, and changes of tests and of the settings of the "
    "test runner, do not count."
)


@dataclass(frozen=True, kw_only=True)
class SweBenchPayload(Payload):
    """A row of SWE-bench.

    ``image``: the name of the image, as in a FROM line, or a specification. ``patch``,
    ``test_patch``: the repository's own fix, and the change of its tests. ``fail_to_pass``,
    ``pass_to_pass``: ids of the tests that a solution must pass. ``test_command``: the command of
    pytest, without options and files. ``tests``: the lines that ``test_patch`` adds.
    """

    hint: ClassVar[str] = "; this is no row of SWE-bench: load its file as swe-bench:FILE"
    image: str
    base_commit: str
    patch: str
    test_patch: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    test_command: str


@may_be_recorded(lambda address: address in HUB_NAMES)
def load(address: str = "verified") -> Dataset:
    """Return the tasks of a published subset or of a file of rows, in the order of the rows.

    ``address`` may have options after a question mark. ``image=TEMPLATE``
    is the image of each task, with ``{instance}`` for its id; ``images=FILE`` is a JSON or TOML
    file that maps ids to images. Without them, a row may name its image in a column ``image``,
    ``image_name`` or ``docker_image``; others have the published one. ``skip=unplayable`` leaves
    out rows that are broken, or whose tests pytest does not run, and names them in the dataset's
    notes.

    Raises UnknownNameError for an unknown subset, UsageError for missing files, and DataError for
    rows that cannot be played.
    """
    path_text, _, options = parse_options(address, _OPTIONS, fields=())
    if (skip := options.get("skip", UNPLAYABLE)) != UNPLAYABLE:
        raise UsageError(f"swe-bench:{address}: skip is {skip!r}; it can be {UNPLAYABLE} only")
    path = _rows_file(path_text)
    image_of = _image_function(options)
    tasks, faults = [], []
    for where, row in files.read_rows(path):
        try:
            tasks.append(_task(row, f"{path}, {where}", image_of))
        except DataError as e:
            faults.append(str(e))
    if faults and ("skip" not in options or not tasks):
        more = f" (and {len(faults) - 1} more rows)" if len(faults) > 1 else ""
        raise DataError(f"{faults[0]}{more}; ?skip={UNPLAYABLE} plays the others")
    notes = "rows in SWE-bench's layout; each task has an image of its own"
    if faults:
        notes += f"; {len(faults)} rows are left out: {'; '.join(faults)}"
    name = f"swe-bench:{address}"
    return Dataset(name, "swe-bench", tuple(tasks), image="", comparable=False, notes=notes)


def changed_paths(patch: str) -> tuple[str, ...]:
    """Return the paths that a patch of git changes, sorted."""
    return tuple(sorted({path for pair in _HEADER.findall(patch) for path in pair}))


def _rows_file(text: str) -> Path:
    if text.lower().endswith(files.SUFFIXES):
        return Path(text).expanduser().absolute()
    if text not in HUB_NAMES:
        raise unknown_name_error("subset of swe-bench", text, list(HUB_NAMES))
    name = HUB_NAMES[text]
    paths = [f"swe-bench/{name}{suffix}" for suffix in (".parquet", ".jsonl", ".json")]
    hint = (
        f"save the test split of SWE-bench/{name} on the Hugging Face hub under this name in a "
        "directory swe-bench, or write swe-bench:PATH of that file"
    )
    return find_data_file("swe-bench", *paths, hint=hint)


class _ImageFunction:
    """Returns the image of an instance from the options, else the row, else the published one."""

    def __init__(self, template: str | None, table: Mapping[str, str] | None) -> None:
        self._template, self._table = template, table

    def __call__(self, row: Mapping[str, Any], instance: str, where: str) -> str:
        if self._table is not None:
            if instance not in self._table:
                raise DataError(f"{where}: the file of images has no image for {instance!r}")
            return self._table[instance]
        if self._template is not None:
            return _fill_template(self._template, instance)
        for column in _IMAGE_COLUMNS:
            if name := row.get(column):
                if files.LOCAL_IMAGE.match(str(name)):
                    raise DataError(
                        f"{where}: {column} = {name!r} refers to files of this machine, which a "
                        "row must not read: to use them, give the option images or image"
                    )
                return str(name)
        return _fill_template(PUBLISHED_IMAGE, instance)


def _image_function(options: Mapping[str, str]) -> _ImageFunction:
    if "images" not in options:
        template = options.get("image")
        if template is not None and "{instance}" not in template:
            raise UsageError(f"image = {template!r}: write {{instance}} where the id belongs")
        return _ImageFunction(template, None)
    if "image" in options:
        raise UsageError("give either the option image or the option images, not both")
    path = Path(options["images"]).expanduser().absolute()
    table = files.read_json(path) if path.suffix == ".json" else read_toml(path)
    return _ImageFunction(None, decode_as(Mapping[str, str], table, path))


def _fill_template(template: str, instance: str) -> str:
    return template.replace("{instance}", instance.lower().replace("__", "_1776_"))


def _task(row: Any, where: str, image_of: _ImageFunction) -> Task:
    """Return the task of a row, with the columns of SweBenchPayload and some more. Raises DataError
    that begins with ``where``."""
    if not isinstance(row, Mapping):
        raise DataError(f"{where}: expected an object, not {row!r}")
    instance, repo, patch, test_patch, query = (
        files.required_text(row, name, where)
        for name in ("instance_id", "repo", "patch", "test_patch", "problem_statement")
    )
    if repo in OTHER_RUNNERS:
        raise DataError(f"{instance}: the tests of {repo} do not run with pytest")
    added = "\n".join(
        line[1:] for line in test_patch.split("\n") if line[:1] == "+" and line[:4] != "+++ "
    )
    data = {
        "image": image_of(row, instance, where),
        "repo": repo,
        **{
            name: str(row.get(name) or "")
            for name in ("base_commit", "version", "environment_setup_commit")
        },
        "patch": patch,
        "test_patch": test_patch,
        "fail_to_pass": _test_ids(row, "FAIL_TO_PASS", where),
        "pass_to_pass": _test_ids(row, "PASS_TO_PASS", where),
        "test_command": str(row.get("test_command") or "pytest"),
        "tests": (added,),
        "notes": _NOTES,
    }
    if not data["fail_to_pass"]:
        raise DataError(f"{where}: FAIL_TO_PASS is empty; a task needs at least one test")
    return Task(
        instance,
        query,
        _gold_action(patch),
        cwd=DIRECTORY,
        group=repo,
        hardness=str(row["difficulty"]) if row.get("difficulty") else None,
        data=data,
    )


def _test_ids(row: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    """Return a list of pytest's ids, which the published rows hold as a JSON text."""
    value = row.get(name)
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as e:
            raise DataError(f"{where}: {name} is no list in JSON: {e}") from e
    if not isinstance(value, list) or not all(isinstance(i, str) for i in value):
        raise DataError(f"{where}: {name} must be a list of ids of tests, not {value!r}")
    for test in value:
        path = Path(test.partition("::")[0])
        if "::" not in test or path.is_absolute() or ".." in path.parts or test[:1] == "-":
            raise DataError(f"{where}: {name} has {test!r}, which is no id of pytest: PATH::TEST")
    return tuple(value)


def _gold_action(patch: str) -> str | None:
    """Return the action that applies a patch, or None if it would be too long."""
    ending = "" if patch.endswith("\n") else "\n"
    action = f"git apply --whitespace=nowarn <<'{_PATCH_END}'\n{patch}{ending}{_PATCH_END}"
    return action if len(action) <= _MAX_GOLD_LENGTH and _PATCH_END not in patch else None
