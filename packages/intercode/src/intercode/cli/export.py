"""``intercode export``: writes recorded episodes, and tasks, in the formats of other tools."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from intercode.cli.plugged_options import OPTIONS
from intercode.cli.shared_options import RENAMED_OPTIONS, refuse_options
from intercode.core.errors import UsageError
from intercode_sandbox.command.parser import add_options, given_options, path
from intercode_sandbox.registry import unknown_name_error

EXAMPLE = """\
examples:
  intercode export runs/spider-react --to inspect --out logs/spider.eval   then: inspect view
  intercode export runs/spider-react --to atif --out atif             one document an episode
  intercode export runs/spider-react --to authors --out logs          the InterCode authors' schema
  intercode export runs/spider-react --to chat --out train.jsonl      successful episodes only
  intercode export runs/spider-react --to tokens --out tokens.jsonl   ids, masks, log-probabilities
  intercode export runs/spider-react --to bundle --out spider-react.tar.gz
      one file that anyone can verify: intercode replay spider-react.tar.gz
  intercode export results/*.tar.gz --to leaderboard --out page       then open page/index.html
  intercode export ic-ctf:offline --to harbor --out tasks
      the tasks of a dataset as task directories: are they sound? intercode check harbor:tasks

SOURCE is a run's directory, a .jsonl of trajectories, or a log in the authors' format; for a page
of results, bundles; for Harbor, a dataset.

A bundle contains run.json, the trajectories, a digest of each, and a statement of the results,
which re-execution confirms or refutes. The observations of a run with --set deterministic=true have
to be exactly the same. A page of results is one file that loads nothing else. Results with
different tasks, profiles, images or machines are in different tables. A bundle counts as verified
if the receipt of `intercode replay` is beside it."""


def known_formats() -> list[str]:
    """Return the names of all formats, those of plug-ins included."""
    from intercode.results.export import FORMATS

    plugged = [name.removeprefix("export.") for name in OPTIONS if name.startswith("export.")]
    return sorted([*FORMATS, *plugged, "bundle", "leaderboard"])


_ARGUMENTS = """\
sources SOURCE ...  a run or log; bundles; or a dataset
--to FORMAT         {formats}
--out PATH          the file or directory to write
for chat:
--which WHAT        success: solved episodes up to the turn that did (the default); turns: each of
                    their turns that ran, with what came before; all: every episode, with its
                    rewards
--messages-only     messages and tools only, for services that refuse anything else
for tokens:
--allow KIND,...    faults for which an episode is not left out
for harbor:
--base IMAGE     image in FROM (default: the dataset's)
--limit N        the first N tasks only"""
_SETTINGS = {"to": {"required": True}, "out": {"required": True}}
_OWN = {"chat": {"which", "messages_only"}, "tokens": {"allow"}, "harbor": {"base", "limit"}}
"""The options that a format has for itself."""
_RENAMED = {"--format": "--to FORMAT", "--environment": "a part of DATASET:ENVIRONMENT"}
"""What other commands call an option, or an earlier version did."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments and options of the command, whose help lists the formats."""
    text = _ARGUMENTS.format(formats=", ".join(known_formats()))
    add_options(parser, text, _SETTINGS, {**RENAMED_OPTIONS, **_RENAMED})


def handle(args: argparse.Namespace) -> int:
    """Write the export and print what it contains and what it leaves out."""
    formats = {f"the format {name}": own for name, own in {args.to: set[str](), **_OWN}.items()}
    refuse_options(args, {"export": formats}, f"the format {args.to}", {})
    options = set().union(*_OWN.values())
    given = {name: value for name, value in given_options(args).items() if name in options}
    if args.to not in known_formats():
        raise unknown_name_error("export format", args.to, known_formats())
    if args.to == "leaderboard":
        return _write_leaderboard([path(source) for source in args.sources], args.out)
    if len(args.sources) > 1:
        raise UsageError(f"one source is exported as {args.to} at a time, not {len(args.sources)}")
    (source,) = args.sources
    if f"export.{args.to}" in OPTIONS:
        return int(OPTIONS.load(f"export.{args.to}")(source, args.out, **given))
    if args.to == "bundle":
        return _write_bundle(path(source), args.out)
    return _write_episodes(path(source), args.to, args.out, given)


def _write_episodes(run: Path, form: str, out: Path, options: dict[str, object]) -> int:
    from intercode.results.export import export

    written = export(run, form, out, **options)
    target = str(out) if len(written.files) != 1 else str(written.files[0])
    print(f"wrote {written.records} records to {target}", file=sys.stderr)
    for note in written.omitted:
        print(f"  {note}", file=sys.stderr)
    return 0


def _write_bundle(run: Path, out: Path) -> int:
    from intercode.results.export.bundle.bundle import write_bundle

    bundle = write_bundle(run, out)
    print(f"wrote {out}\nsha256 {bundle.sha256}")
    print(f"it claims, not yet verified: {bundle.statement}")
    print(f"`intercode replay {out}` verifies it")
    return 0


def _write_leaderboard(bundles: list[Path], out: Path) -> int:
    from intercode.results.export.bundle.leaderboard import write_leaderboard

    print(f"wrote {write_leaderboard(bundles, out)}", file=sys.stderr)
    return 0
