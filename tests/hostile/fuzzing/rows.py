"""Datasets of others: files of rows of every format, and Harbor's task directories."""

from __future__ import annotations

import csv
import io
import json
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from hostile.fuzzing.outside import Outside
from intercode import datasets
from intercode.core.errors import InterCodeError
from intercode.core.types import Dataset
from intercode.datasets import files
from support import harbor

_KEYS = (
    "query",
    "gold",
    "id",
    "also",
    "tags",
    "setup",
    "cwd",
    "group",
    "hardness",
    "probe",
    "probe_paths",
    "files",
    "database",
    "flag",
    "tests",
    "entry",
    "language",
    "notes",
    "kind",
    "path",
    "name",
    "input",
    "output",
    "call",
    "expected",
    "stdin",
    "stdout",
    "other",
    "",
)
_TEXTS = (
    "",
    "a",
    "python",
    "c",
    "mysql-dump",
    "sqlite",
    "beside.sh",
    "beside",
    "data.tar",
    "/",
    "/tmp",
    "..",
    "../outside",
    "../outside/secret",
    "@OUTSIDE@",
    "@OUTSIDE@/secret",
    "link",
    "link/secret",
    "beside/../../outside/secret",
    "\0",
    "\ud800",
    "é",
    "x" * 300,
    "1",
    "=1+1",
    "assert f() == 1",
    "def f(: ",
    "f",
    "f(",
    "lambda",
    "__import__('os').system('true')",
    "{}",
    "[1",
    "NaN",
    "1e999",
)
_HARBOR = (
    "task.toml",
    "instruction.md",
    "environment/Dockerfile",
    "environment/words.txt",
    "tests/test.sh",
    "tests/more/data.txt",
    "solution/solve.sh",
    "environment",
    "tests",
    "solution",
)
_TOML = (
    "",
    harbor.TOML,
    "version = 1",
    "[agent]\ntimeout_sec = -1",
    "[agent]\ntimeout_sec = nan",
    "[environment]\nmemory_mb = 1e999",
    "[environment]\nenv = 3",
    "[verifier]\nenv = { A = 1 }",
    "[environment]\ncpus = 0",
    "[[environment]]",
    "a.b.c = 1",
    "\0",
    "[environment]\nbuild = 'x'",
    "[environment]\ndocker_image = '@OUTSIDE@'",
    "[environment]\ndocker_image = 'dir:@OUTSIDE@'",
    "[metadata]\ntags = 7",
    "x = " + "[" * 2000,
    "version = '1.0'\n[verifier]\ntimeout_sec = 'a'",
)
_SUFFIXES = [name for name in files.SUFFIXES if name != ".parquet" or find_spec("pyarrow")]


def _values() -> st.SearchStrategy[Any]:
    leaves = st.one_of(
        st.sampled_from(_TEXTS),
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.sampled_from((10**400, -(2**63), 2**64)),
        st.text(max_size=10),
    )
    keys = st.one_of(st.sampled_from(_KEYS), st.text(max_size=3))
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )


class _Files:
    """A directory with files that rows may name, and with links that lead out of it."""

    limit, memory = 10.0, 256 << 20

    def __init__(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="fuzz-rows-")).resolve()
        self.outside = Outside(self.top / "outside")
        self.folder = self.top / "rows"
        (self.folder / "beside").mkdir(parents=True)
        (self.folder / "beside" / "file").write_text("x")
        (self.folder / "beside.sh").write_text("echo on")
        (self.folder / "data.tar").write_bytes(b"no tar")
        (self.folder / "link").symlink_to(self.outside.folder)

    def _fill(self, value: Any) -> Any:
        """Return a value with the directory outside in the place of ``@OUTSIDE@``."""
        if isinstance(value, dict):
            return {k: self._fill(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self._fill(v) for v in value]
        if isinstance(value, str):
            return value.replace("@OUTSIDE@", str(self.outside.folder))
        return value

    def _load(self, spec: str, environment: str) -> None:
        try:
            dataset = datasets.load(spec, environment)
        except InterCodeError:
            return
        finally:
            self.outside.check()
        self._check(dataset)

    def _check(self, dataset: Dataset) -> None:
        for task in dataset.tasks:
            assert self.outside.secret not in repr(task), "a row has read a file outside"
            paths = [layer.path for layer in task.files]
            paths += [task.database.path] if task.database else []
            for path in paths:
                inside = path.resolve().is_relative_to(self.folder)
                assert inside, f"a row names {path}, which is outside"

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self.top)


class Rows(_Files):
    """Files of rows. What no task can be made of is an error of this package."""

    def cases(self) -> st.SearchStrategy[tuple[str, str, list[Any], bytes]]:
        """Return a strategy of a suffix, an environment, rows, and bytes at the end."""
        row = st.fixed_dictionaries(
            {"query": st.sampled_from(_TEXTS), "gold": st.sampled_from(_TEXTS)},
            optional={key: _values() for key in _KEYS[2:]},
        )
        return st.tuples(
            st.sampled_from(_SUFFIXES),
            st.sampled_from(("bash", "sql", "python", "code", "ctf")),
            st.lists(st.one_of(row, _values()), max_size=3),
            st.one_of(st.just(b""), st.binary(max_size=12)),
        )

    def attack(self, case: tuple[str, str, list[Any], bytes]) -> None:
        """Write the file and load it."""
        suffix, environment, rows, end = case
        data = _written(suffix, self._fill(rows))
        if data is not None:
            path = self.folder / f"rows{suffix}"
            path.write_bytes(data + end)
            self._load(str(path), environment)


def _written(suffix: str, rows: list[Any]) -> bytes | None:
    """Return the content of a file, or None if its format cannot hold these rows."""
    if suffix in (".json", ".jsonl"):
        lines = [json.dumps(row) for row in rows]
        text = "\n".join(lines) if suffix == ".jsonl" else f"[{', '.join(lines)}]"
        return text.encode("utf-8", "surrogatepass")
    tables = [row for row in rows if isinstance(row, dict)]
    names = sorted({str(name) for row in tables for name in row})
    if suffix != ".parquet":
        out = io.StringIO()
        writer = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", escapechar="\\")
        writer.writerow(names)
        writer.writerows([row.get(name, "") for name in names] for row in tables)
        return out.getvalue().encode("utf-8", "surrogatepass")
    import pyarrow
    from pyarrow import parquet

    try:
        table = pyarrow.Table.from_pylist([{n: row.get(n) for n in names} for row in tables])
        sink = io.BytesIO()
        parquet.write_table(table, sink)
    except (pyarrow.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
        return None
    return sink.getvalue()


class HarborTasks(_Files):
    """Harbor's task directories. Links in them lead nowhere else."""

    def cases(self) -> st.SearchStrategy[dict[str, str]]:
        """Return a strategy of files: their content, or the target of a link after ``->``."""
        content = st.one_of(
            st.sampled_from(_TOML),
            st.text(max_size=20),
            st.sampled_from(
                (
                    "-> @OUTSIDE@",
                    "-> @OUTSIDE@/secret",
                    "-> ../../outside/secret",
                    "-> instruction.md",
                    "-> .",
                    "-> nowhere",
                )
            ),
        )
        usual = {
            "task.toml": st.sampled_from(_TOML),
            "instruction.md": st.just("Do it."),
            "environment/Dockerfile": st.just(harbor.DOCKERFILE),
            "tests/test.sh": st.just(harbor.TEST),
        }
        changed = st.dictionaries(st.sampled_from(_HARBOR), content, max_size=4)
        return st.tuples(st.fixed_dictionaries(usual), changed).map(lambda two: two[0] | two[1])

    def attack(self, case: dict[str, str]) -> None:
        """Write the directory and load it."""
        task = self.folder / "task"
        try:
            for name, content in case.items():
                _put(task / name, self._fill(content))
            self._load(f"harbor:{task}", "bash")
        finally:
            shutil.rmtree(task, ignore_errors=True)


def _put(path: Path, content: str) -> None:
    """Write a file or a link, unless something else is in its place, or a link above it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.parent.resolve() != path.parent:
            return
        if content.startswith("-> "):
            path.symlink_to(content.removeprefix("-> "))
        else:
            path.write_text(content, "utf-8", "surrogatepass")
    except OSError:
        pass
