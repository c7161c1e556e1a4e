"""Makes instances in SWE-bench's layout from PyPI's source distributions, and plays them.

    python benchmarks/swe_bench_instances.py --out DIR [--count N] [--bugs N] [--sdists DIR] [NAME]

Each source distribution that brings tests of pytest becomes a repository in /testbed. A small
change of its code that makes some tests fail is the bug; the change back is the fix. The tests that
fail are taken out of the repository, and the patch that puts them back is the patch of the tests.
FAIL_TO_PASS and PASS_TO_PASS are measured in a sandbox. The images, which are Debian's Python and
pytest and a layer with the repository, are pushed to a local registry (Debian's docker-registry)
and pulled by their digests. Printed is, for each instance, how many tests both lists have, and how
many instances the fix and the empty patch solve. ``--sdists``: a directory of files that
``pip download --no-binary :all: --no-deps`` has written; without it, pip downloads
NAME ... (default: NAMES). With the DIR of an earlier run, the instances that it made are not made
again. Both agents play all instances in each run.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import hashlib
import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from intercode import Sandbox, evaluate
from intercode.core.errors import InterCodeError
from intercode.integrations.swe_bench.grading import read_report, report_key
from intercode_sandbox import Limits
from intercode_sandbox.images.oci.documents import architecture
from support.registries import MANIFEST, put_manifest, registry, send
from support.swe_bench import git

NAMES = (
    "toolz",
    "boltons",
    "inflection",
    "sortedcontainers",
    "idna",
    "tomli",
    "funcy",
    "glom",
    "humanize",
    "intervaltree",
    "isodate",
    "itsdangerous",
    "jmespath",
    "blinker",
    "deepmerge",
    "dotty-dict",
    "first",
    "multipledispatch",
    "natsort",
    "pathspec",
    "pyparsing",
    "pyrsistent",
    "rfc3986",
    "sqlparse",
    "stringcase",
    "textdistance",
    "validators",
    "wcwidth",
    "webcolors",
)
DOCKERFILE = """\
FROM debian:bookworm
RUN apt-get update && apt-get install -y --no-install-recommends \\
    git python3 python3-pytest python3-setuptools && rm -rf /var/lib/apt/lists/*
"""
LEFT_OUT = (
    "usr/share/doc/*",
    "usr/share/locale/*",
    "var/cache/*",
    "proc/*",
    "sys/*",
    "dev/*",
    "tmp/*",
)
PATHS_FILE = "usr/lib/python3/dist-packages/testbed.pth"
"""Adds the repository to Python's path, after the packages of the image."""
PATHS = b"/testbed/src\n/testbed\n"
PYTEST = "python3 -P -m pytest"
SUITE_SECONDS, TRIES = 60.0, 25
_SWAPS = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.NotIn: ("not in", "in"),
}


class SkippedError(Exception):
    """No instance can be made of a package. The message is the reason."""


@dataclass(frozen=True)
class Mutation:
    """A change of one line of a file: the text of ``line`` becomes ``new``."""

    path: str
    line: int
    new: str


# ------------------------------------------------------------------- the sources
def download(names: Sequence[str], folder: Path) -> None:
    """Download source distributions with pip; those that pip cannot get are reported by it."""
    for name in names:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-binary", ":all:"]
        subprocess.run([*command, "--no-deps", "-d", str(folder), name], check=False)


def unpack(sdist: Path, folder: Path) -> None:
    """Unpack a source distribution without the directory that holds everything."""
    folder.parent.mkdir(exist_ok=True)
    shutil.rmtree(folder.with_suffix(".unpacked"), ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(folder.with_suffix(".unpacked"), filter="data")
    (top,) = folder.with_suffix(".unpacked").iterdir()
    shutil.rmtree(top / ".git", ignore_errors=True)
    top.rename(folder)


def mutations(root: Path) -> Iterator[Mutation]:
    """Yield changes of the code below a directory that is not tests."""
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if is_test(name) or name.parts[0] in ("docs", "doc", "examples", "benchmarks", "tools"):
            continue
        if len(name.parts) == 1 and name.name in ("setup.py", "noxfile.py", "tasks.py"):
            continue
        try:
            text = path.read_text("utf-8")
            tree = ast.parse(text)
        except (SyntaxError, UnicodeDecodeError):
            continue
        lines = text.split("\n")
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                for inner in ast.walk(node):
                    if (changed := _changed_line(inner, lines)) is not None:
                        yield Mutation(str(name), *changed)


def _changed_line(node: ast.AST, lines: Sequence[str]) -> tuple[int, str] | None:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right, pair = node.left, node.comparators[0], _SWAPS.get(type(node.ops[0]))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = node.left, node.right
        pair = ("+", "-") if isinstance(node.op, ast.Add) else ("-", "+")
    else:
        return None
    line = lines[node.lineno - 1]
    on_one_line = left.end_lineno == right.lineno == node.lineno
    if pair is None or not on_one_line or not line.isascii():
        return None
    start, end = left.end_col_offset or 0, right.col_offset
    between = line[start:end]
    if between.count(pair[0]) != 1:
        return None
    return node.lineno, line[:start] + between.replace(*pair) + line[end:]


def is_test(path: Path) -> bool:
    """Return whether a path is that of a test."""
    folders = {"test", "tests", "testing"} & set(path.parts[:-1])
    return bool(folders) or path.name.startswith(("test_", "conftest")) or "_test." in path.name


# --------------------------------------------------------------------- measuring
class Suite:
    """The tests of a repository in a sandbox."""

    def __init__(self, sandbox: Sandbox, root: Path) -> None:
        self._sandbox = sandbox
        sandbox.upload(root, "/testbed")
        files = sorted(
            str(p.relative_to(root))
            for p in root.rglob("*.py")
            if is_test(p.relative_to(root)) and ("test_" in p.name or "_test." in p.name)
        )
        if not files:
            raise SkippedError("it brings no tests")
        listed = self._run(f"--collect-only -q --continue-on-collection-errors {' '.join(files)}")
        self.ids = [line for line in listed.split("\n") if "::" in line and " " not in line]
        self.files = sorted({test.partition("::")[0] for test in self.ids} & set(files))
        if not self.files:
            raise SkippedError(f"pytest collects none of its tests: {listed[-200:]!r}")

    def _run(self, arguments: str) -> str:
        command = f"{PYTEST} --rootdir=/testbed {arguments}"
        return self._sandbox.run(command, cwd="/testbed", timeout=SUITE_SECONDS).stdout

    def passing(self) -> set[str]:
        """Return the ids of the tests that pass now. Empty if the tests do not end in time."""
        self._sandbox.write("/tmp/report.xml", b"")
        self._run(f"-q --junitxml=/tmp/report.xml -o junit_family=xunit1 {' '.join(self.files)}")
        try:
            results = read_report(self._sandbox.read("/tmp/report.xml"))
        except ValueError:
            return set()
        return {test for test in self.ids if results.get(report_key(test), False)}

    def write(self, path: str, text: str) -> None:
        """Write a file of the repository."""
        self._sandbox.write(f"/testbed/{path}", text.encode())


def find_bug(suite: Suite, root: Path, name: str) -> tuple[Mutation, set[str], set[str]]:
    """Return a change that makes some tests of a few files fail, those tests, and the others of
    these files."""
    started = time.monotonic()
    sound = suite.passing() & suite.passing()
    if not sound or time.monotonic() - started > SUITE_SECONDS:
        raise SkippedError("its tests do not pass, or take too long")
    candidates = list(mutations(root))
    random.Random(name).shuffle(candidates)
    for mutation in candidates[:TRIES]:
        text = (root / mutation.path).read_text("utf-8")
        lines = text.split("\n")
        lines[mutation.line - 1] = mutation.new
        suite.write(mutation.path, "\n".join(lines))
        passing = suite.passing()
        suite.write(mutation.path, text)
        failing = sound - passing
        files = {test.partition("::")[0] for test in failing}
        others = {t for t in sound & passing if t.partition("::")[0] in files}
        if failing and others and len(failing) <= 20 and len(failing) < len(sound) / 2:
            return mutation, failing, others
    raise SkippedError(f"none of {len(candidates[:TRIES])} changes makes only a few tests fail")


def without_tests(text: str, failing: set[str]) -> str:
    """Return the text of a file of tests without the functions of some tests."""
    names = {test.split("::")[-1].partition("[")[0] for test in failing}
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef) and node.name in names:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            indent = " " * node.col_offset
            for number in range(first - 1, node.end_lineno or first):
                lines[number] = ""
            lines[first - 1] = f"{indent}pass"
    shorter = "\n".join(lines)
    ast.parse(shorter)
    return shorter


# --------------------------------------------------------------------- instances
def make_instance(sdist: Path, folder: Path, base: str, number: int) -> dict[str, str]:
    """Return the row of an instance of a source distribution, and leave its repository in
    ``folder``. ``number`` decides which bug it has."""
    name = sdist.name.removesuffix(".tar.gz")
    unpack(sdist, folder)
    files = {"/" + PATHS_FILE: PATHS}
    with Sandbox(base, files=files, limits=LIMITS) as sandbox:
        mutation, failing, others = find_bug(Suite(sandbox, folder), folder, f"{name}/{number}")
    fixed = (folder / mutation.path).read_text("utf-8")
    lines = fixed.split("\n")
    lines[mutation.line - 1] = mutation.new
    test_files = {test.partition("::")[0] for test in failing}
    changed = {path: (folder / path).read_text("utf-8") for path in test_files}
    (folder / mutation.path).write_text("\n".join(lines), "utf-8")
    for path, text in changed.items():
        (folder / path).write_text(without_tests(text, failing), "utf-8")
    git(folder, "init", "-q")
    git(folder, "config", "core.autocrlf", "false")
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", "start")
    (folder / mutation.path).write_text(fixed, "utf-8")
    patch = git(folder, "diff")
    git(folder, "checkout", "-q", "--", ".")
    for path, text in changed.items():
        (folder / path).write_text(text, "utf-8")
    test_patch = git(folder, "diff")
    git(folder, "checkout", "-q", "--", ".")
    project = name.rpartition("-")[0]
    commit = git(folder, "rev-parse", "HEAD").strip()
    return {
        "instance_id": f"pypi__{name}-{number}",
        "repo": f"pypi/{project}",
        "version": name[len(project) + 1 :],
        "base_commit": commit,
        "environment_setup_commit": commit,
        "patch": patch,
        "test_patch": test_patch,
        "test_command": PYTEST,
        "problem_statement": f"{project}: something in {mutation.path} gives wrong results.",
        "FAIL_TO_PASS": json.dumps(sorted(failing)),
        "PASS_TO_PASS": json.dumps(sorted(others)),
    }


LIMITS = Limits(memory=4 << 30, disk=4 << 30, address_space=64 << 30)


# ------------------------------------------------------------------------ images
def packed_image(spec: str) -> bytes:
    """Return the tar of an image's root file system."""
    excluded = [f"--exclude=./{path}" for path in LEFT_OUT]
    with Sandbox(spec) as sandbox, sandbox.spawn(["tar", "-c", *excluded, "-C", "/", "."]) as pack:
        return b"".join(data for data, stream in pack.chunks() if stream == "stdout")


def packed(root: Path, prefix: str) -> bytes:
    """Return the tar of a directory below ``prefix``, owned by root."""

    def owned(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path in sorted(root.iterdir()):
            archive.add(path, f"{prefix}{path.name}", filter=owned)
        extra = tarfile.TarInfo(PATHS_FILE)
        extra.size = len(PATHS)
        archive.addfile(extra, io.BytesIO(PATHS))
    return out.getvalue()


class Registry:
    """Pushes images of two layers, the lower of which is the same in all."""

    def __init__(self, host: str, base: bytes) -> None:
        self.host = host
        self._base = base, gzip.compress(base, 1)

    def push(self, name: str, layer: bytes) -> str:
        """Push an image and return its name with its digest."""
        layers = [self._base, (layer, gzip.compress(layer, 1))]
        config = json.dumps(
            {
                "architecture": architecture(),
                "os": "linux",
                "config": {"WorkingDir": "/testbed", "Env": ["PYTHONDONTWRITEBYTECODE=1"]},
                "rootfs": {"type": "layers", "diff_ids": [digest(plain) for plain, _ in layers]},
            }
        ).encode()
        url = f"http://{self.host}/v2/{name}"
        kind = "application/vnd.oci.image.layer.v1.tar+gzip"
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self._blob(url, config, "application/vnd.oci.image.config.v1+json"),
            "layers": [self._blob(url, stored, kind) for _, stored in layers],
        }
        reference = put_manifest(url, json.dumps(manifest).encode(), "latest", MANIFEST)
        return f"{self.host}/{name}@{reference}"

    def _blob(self, url: str, data: bytes, kind: str) -> dict[str, str | int]:
        try:
            send("HEAD", f"{url}/blobs/{digest(data)}")
        except urllib.error.HTTPError:
            place = send("POST", f"{url}/blobs/uploads/")[1]["Location"]
            mark = "&" if "?" in place else "?"
            send("PUT", urllib.parse.urljoin(url, f"{place}{mark}digest={digest(data)}"), data)
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}


def digest(data: bytes) -> str:
    """Return the digest of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def play(rows: Path, out: Path, agent: str, parallel: int) -> str:
    """Play all instances with an agent, and return how many it solves of how many."""
    shutil.rmtree(out / agent, ignore_errors=True)
    run = evaluate(
        f"swe-bench:{rows}", agent, out=out / agent, quiet=True, timeout=600.0, parallel=parallel
    )
    for episode in run.episodes:
        if episode.error or episode.success != (agent == "gold"):
            print(f"  {agent} {episode.task}: reward {episode.score:g} {episode.error or ''}")
    return f"{sum(e.success for e in run.episodes)}/{len(run.episodes)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sdists", type=Path)
    parser.add_argument("--count", type=int, default=20, help="make at most so many instances")
    parser.add_argument("--bugs", type=int, default=2, help="make so many instances of a package")
    parser.add_argument("--parallel", type=int, default=2)
    options = parser.parse_args()
    out: Path = options.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    sdists = options.sdists or out / "sdists"
    if options.sdists is None and not sdists.exists():
        sdists.mkdir()
        download(options.names, sdists)
    (out / "base").mkdir(exist_ok=True)
    (out / "base" / "Dockerfile").write_text(DOCKERFILE)
    base = f"dockerfile:{out}/base"
    rows: list[dict[str, str]] = []
    with registry(out / "registry") as host:
        images = Registry(host, packed_image(base))
        files = sorted(sdists.glob("*.tar.gz"))
        for number, sdist in itertools.product(range(1, options.bugs + 1), files):
            if len(rows) == options.count:
                break
            name = f"{sdist.name.removesuffix('.tar.gz')}-{number}"
            folder, made = out / "repositories" / name, out / "rows" / f"{name}.json"
            try:
                if not made.exists():
                    shutil.rmtree(folder, ignore_errors=True)
                    made.parent.mkdir(exist_ok=True)
                    made.write_text(json.dumps(make_instance(sdist, folder, base, number)))
                row = json.loads(made.read_text())
                instance = row["instance_id"].lower().replace("__", "_1776_")
                row["image_name"] = images.push(f"sweb.eval.{instance}", packed(folder, "testbed/"))
            except (SkippedError, SyntaxError, ValueError, InterCodeError, OSError) as e:
                print(f"{name}: no instance: {e}", flush=True)
                continue
            rows.append(row)
            counts = [len(json.loads(row[k])) for k in ("FAIL_TO_PASS", "PASS_TO_PASS")]
            print(f"{row['instance_id']}: {counts[0]} to fix, {counts[1]} to keep", flush=True)
        file = out / "rows.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        print(f"gold solves {play(file, out, 'gold', options.parallel)}", flush=True)
        print(f"empty patch solves {play(file, out, 'noop', options.parallel)}", flush=True)


if __name__ == "__main__":
    main()
