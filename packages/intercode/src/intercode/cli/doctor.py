"""``intercode doctor``: prints what this machine can do and what it lacks."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import platform
import sys
import time
from dataclasses import asdict
from pathlib import Path

import intercode
from intercode.core.errors import InterCodeError
from intercode_sandbox.diagnostics import diagnose, refused_system_calls
from intercode_sandbox.tiers.choice import require_linux
from intercode_sandbox.tiers.finding import Finding

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

ARGUMENTS = """\
dataset [DATASET]  also start its first task
--image IMAGE      the image to use for it (default: the dataset's)
--fix              print the changes that give this machine more isolation tiers, and nothing else
--threat-model     print what each isolation tier protects, and nothing else
--system-calls     print the system calls that sandboxes refuse, and nothing else
--json             for programs"""


def handle(args: argparse.Namespace) -> int:
    """Run all probes and print their results."""
    if args.fix:
        return _print_fixes()
    if args.threat_model:
        return _print_threat_model()
    if args.system_calls:
        return _print_refused_calls()
    findings = [_python(), *_packages(), *diagnose(), _sql_server()]
    if args.dataset:
        findings += [*_programs(args.dataset, args.image), _dataset(args.dataset, args.image)]
    if args.json:
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        for finding in findings:
            print(_format(finding))
    return int(any(f.needed and not f.ok for f in findings))


def _print_fixes() -> int:
    """Print the texts that give the tiers which do not work here. Return 1 if no tier works."""
    require_linux()
    from intercode_sandbox.tiers import checks, remedies

    tiers = checks.check_tiers()
    missing = {tier.name.removeprefix("tier ") for tier in tiers if not tier.ok}
    found = [r for r in remedies.remedies_here() if missing & set(r.tiers)]
    print(remedies.render(found) if found else "No change is known that would give more tiers.")
    return int(len(missing) == len(tiers))


def _print_threat_model() -> int:
    """Print what each tier protects, with a mark at the one that ``auto`` takes."""
    from intercode_sandbox import tier_of
    from intercode_sandbox.tiers import protections

    try:
        current = tier_of()
    except InterCodeError:
        current = ""
    print(protections.render_text(current))
    return 0


def _print_refused_calls() -> int:
    """Print the system calls that the filter of sandboxes refuses, one in each line."""
    require_linux()
    print(*refused_system_calls(), sep="\n")
    return 0


def _format(finding: Finding) -> str:
    mark = "ok" if finding.ok else "MISSING" if finding.needed else "no"
    text = f"{mark:<8}{finding.name:<30}{' '.join(finding.detail.split())}".rstrip()
    return f"{text}\n{'':<8}-> {finding.fix}" if finding.fix and not finding.ok else text


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
    except InterCodeError as e:
        return Finding(f"dataset {spec}", False, str(e), "see the message", True)
    comparable = "" if metadata["comparable"] else ", results not comparable"
    runs_on = f"image {metadata['image']}, " if metadata.get("image") else ""
    detail = f"{len(dataset)} tasks, {runs_on}reset in {milliseconds:.0f} ms{comparable}"
    return Finding(f"dataset {spec}", True, detail, needed=True)
