"""``intercode doctor``: prints what this machine can do and what it lacks."""

from __future__ import annotations

import argparse
import importlib.metadata
import platform
import sys
import time
from pathlib import Path

import intercode
from intercode.core.errors import InterCodeError, UnknownNameError
from intercode_sandbox.command import doctor
from intercode_sandbox.doctor_checks import diagnose
from intercode_sandbox.tiers.tier_table import Finding

CONFLICTING_PACKAGES = ("intercode", "intercode-bench")
"""Other distributions that install a package named intercode as well."""

EXAMPLE = """\
examples:
  intercode doctor
  intercode doctor nl2bash:fs_1
      also tests whether the dataset's files and image are there and its first task starts
  intercode doctor --fix
      prints what would give this machine the isolation tiers that it lacks, as text to paste
  intercode doctor ic-ctf
      also lists the programs that its tasks need and this machine lacks

Exit status: 0 if sandboxes work (and the dataset's task starts), 1 if not."""

ARGUMENTS = f"""\
dataset [DATASET]  also start its first task
--image IMAGE      the image to use for it (default: the dataset's)
{doctor.FIX_OPTION}
{doctor.JSON_OPTION}"""
RENAMED = {
    "--threat-model": "`intercode-sandbox doctor --threat-model`",
    "--system-calls": "`intercode-sandbox doctor --system-calls`",
}
"""Options of an earlier version that only this command had, and what they are now."""


def handle(args: argparse.Namespace) -> int:
    """Run all probes and print their results."""
    if args.fix:
        return doctor.print_fixes()
    findings = [_python(), *_packages(), *diagnose(), _sql_server()]
    if args.dataset:
        findings += [*_programs(args.dataset, args.image), _dataset(args.dataset, args.image)]
    return doctor.print_findings(findings, args.json)


def _python() -> Finding:
    version = f"{platform.python_version()} at {sys.executable}; intercode {intercode.__version__}"
    return Finding("Python", sys.version_info >= (3, 11), version, "use 3.11 or newer", True)


def _packages() -> list[Finding]:
    """Look for other packages named intercode, which would overwrite this one."""
    out = []
    for name in CONFLICTING_PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        fix = f"pip uninstall {name}, then install intercode-gym again: both own `intercode`"
        out.append(Finding(f"package {name}", False, f"{version} is installed too", fix, True))
    here = Path(intercode.__file__).parent
    return out or [Finding("package", True, f"intercode-gym at {here}")]


def _sql_server() -> Finding:
    """Look for a MySQL or MariaDB server. The embedded engine needs none."""
    from intercode_sql.errors import SqlError
    from intercode_sql.server import private_server

    name, fix = "SQL server of its own", "none is needed: the embedded engine works without it"
    try:
        return Finding(
            name, True, f"{private_server.server_program()} {private_server.server_version()}"
        )
    except SqlError as e:
        return Finding(name, False, str(e), fix)


def _programs(spec: str, image: str | None) -> list[Finding]:
    """Look for the programs that a dataset's tasks need in an image (None: this machine)."""
    from intercode import datasets
    from intercode_sandbox import SandboxSpec, open_sandbox
    from intercode_sandbox.images.build.on_demand import resolve_or_build

    try:
        wanted = datasets.load(spec).programs
        if not wanted:
            return []
        root_image = resolve_or_build(image or "host")
        script = 'for p; do command -v "$p" > /dev/null || echo "$p"; done'
        with open_sandbox(SandboxSpec(root_image)) as sandbox:
            lacking = sandbox.run(["/bin/bash", "-c", script, "bash", *wanted]).output.split()
    except InterCodeError:
        return []  # reported when the dataset's first task is started
    name, needed = f"programs of {root_image.name}", image is not None
    if not lacking:
        return [Finding(name, True, f"all {len(wanted)} that {spec} needs", needed=needed)]
    fix = "install them, or use the dataset's own image"
    return [Finding(name, False, f"{spec} needs also {', '.join(lacking)}", fix, needed)]


def _dataset(spec: str, image: str | None) -> Finding:
    """Start the first task of a dataset."""
    from intercode import datasets
    from intercode.environments import make

    try:
        dataset = datasets.load(spec)
        with make(dataset.environment, dataset, image=image) as env:
            env.reset(options={"task": 0})  # also unpacks the image, which is no part of a reset
            began = time.perf_counter()
            env.reset(options={"task": 0})
            milliseconds = 1e3 * (time.perf_counter() - began)
            metadata = env.result_metadata()
    except UnknownNameError as e:
        way_out = "`intercode list datasets` prints the datasets"
        return Finding(f"no dataset {spec}", False, str(e), way_out, True)
    except InterCodeError as e:
        return Finding(f"dataset {spec}", False, str(e), "see the message", True)
    comparable = "" if metadata["comparable"] else ", results not comparable"
    runs_on = f"image {metadata['image']}, " if metadata.get("image") else ""
    detail = f"{len(dataset)} tasks, {runs_on}reset in {milliseconds:.0f} ms{comparable}"
    return Finding(f"dataset {spec}", True, detail, needed=True)
