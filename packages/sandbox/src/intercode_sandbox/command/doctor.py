"""``intercode-sandbox doctor``: prints which sandboxes work on this machine, and what it lacks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict

from intercode_sandbox.command.parser import add_options
from intercode_sandbox.doctor_checks import diagnose, refused_system_calls
from intercode_sandbox.errors import InterCodeError
from intercode_sandbox.tiers.choice import require_linux
from intercode_sandbox.tiers.tier_table import Finding

SUMMARY = "print which sandboxes work on this machine, and what it lacks"
EXAMPLE = """\
examples:
  intercode-sandbox doctor
  intercode-sandbox doctor --fix
      prints what would give this machine the isolation tiers that it lacks, as text to paste

Exit status: 0 if sandboxes work, 1 if not."""
FIX_OPTION = "--fix           print what gives this machine more isolation tiers, and nothing else"
JSON_OPTION = "--json          for programs"
_OPTIONS = f"""\
{FIX_OPTION}
--threat-model  print what each isolation tier protects, and nothing else
--system-calls  print the system calls that sandboxes refuse, and nothing else
{JSON_OPTION}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add_options(parser, _OPTIONS)


def handle(args: argparse.Namespace) -> int:
    """Run all probes and print their results, or what an option asks for in place of them."""
    if args.fix:
        return print_fixes()
    if args.threat_model:
        return _print_threat_model()
    if args.system_calls:
        return _print_refused_calls()
    return print_findings(diagnose(), args.json)


def print_findings(findings: Sequence[Finding], as_json: bool) -> int:
    """Print findings. Return 1 if something is missing that is needed."""
    if as_json:
        print(json.dumps([asdict(f) for f in findings], indent=2))
    else:
        for finding in findings:
            print(_format(finding))
        print(_verdict(findings))
    return int(any(f.needed and not f.ok for f in findings))


def _verdict(findings: Sequence[Finding]) -> str:
    """Return the last line: whether all is well."""
    if missing := [f.name for f in findings if f.needed and not f.ok]:
        return f"Not well: what is needed is missing: {', '.join(missing)}."
    return "All is well: nothing that is needed is missing. What is marked `no` is optional."


def print_fixes() -> int:
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
    text = "".join(f"{name}\n" for name in refused_system_calls())
    print(text, end="")  # in one write, also without a buffer: ``| head`` may close the pipe
    return 0


def _format(finding: Finding) -> str:
    mark = "ok" if finding.ok else "MISSING" if finding.needed else "no"
    text = f"{mark:<8}{finding.name:<30}{' '.join(finding.detail.split())}".rstrip()
    return f"{text}\n{'':<8}-> {finding.fix}" if finding.fix and not finding.ok else text
