"""``intercode replay``: executes recorded episodes again, to compare them, to verify a bundle, to
score them anew, or to branch off from one of their steps."""

from __future__ import annotations

import argparse

from intercode.cli.replay import branch, verify
from intercode.cli.shared_options import SET_OPTION, environment_settings, refuse_options
from intercode.core.errors import UsageError

EXAMPLE = """\
examples:
  intercode replay runs/starter-gold-2026-01-31
      compares every observation, reward and hash, and names the first step that differs
  intercode replay --image recipe:nl2bash --set network=host LOG.json
  intercode replay spider-react.tar.gz
      verifies a bundle: digests, figures, and a random sample of its episodes
  intercode replay runs/nl2bash-try-again --score standard --out runs/nl2bash-standard
      scores every recorded action by another profile; no model is called
  intercode replay RUN --reward mypackage.rewards:strict --out strict
  intercode replay RUN --variants 3
      plays the solved episodes in 3 variants of each task and writes variants.json into the run:
      the share that holds there; success stays as it is
  intercode replay RUN --episode starter/files/3 --edit 2='ls -a'
      replaces step 2 (counted from 1) by another action and plays the rest as recorded
  intercode replay RUN --episode ID --from 2 --agent try-again --model PROVIDER/NAME
      plays two steps as recorded, then lets the agent continue

FILE is a run's directory, a .jsonl of trajectories, a log in the authors' format, or a bundle of
`intercode export --to bundle`. An episode is executed under its recorded conditions, unless
--profile, --image, --dataset or --set says otherwise. Exit status: 1 if an episode that InterCode
recorded differs (for the authors' logs it is 0; see the table) or could not be scored, 2 for a
bundle that was changed.

A bundle cannot choose files, code or the network of this machine: if it names some, an option has
to allow it. The result is written to FILE.verified.json. If every reward is equal and only
observations differ, the output says so.

A run that is scored anew is a new run, whose run.json describes the source as regraded_from, and
whose differences.jsonl lists every step that differs. It has the new observations and the recorded
messages of the agent."""

ARGUMENTS = f"""\
files FILE ...          runs and logs, or one bundle
--profile PROFILE       replay under it: standard, or another one of `intercode list profiles`
--image IMAGE           host, dir:PATH, tar:PATH or recipe:NAME
--dataset DATASET       if it is not recorded, or a bundle names a file: name[:subset] or file
--parallel PARALLEL     episodes at the same time (default 2)
{SET_OPTION}; of a branch also agent_options.NAME
--json                  print JSON instead of tables
--out PATH              write every differing step to that file as JSON lines; of a score, of
                        variants or of a branch: a directory
scoring (saved as a new run):
--score PROFILE         score by this profile
--reward NAME|PKG:FN    score by this reward function; of a bundle that names code: your copy;
                        of a branch: pay the new steps by it
--variants N            play the solved episodes in N variants of each task
verifying a bundle:
--sample N|all          episodes to execute again (default 20)
--seed N                seed of the sample, to repeat a verification
branching (saved as a new run):
--episode ID            id of the episode or of its task (needed if there are several)
--edit K=COMMAND ...    replace the action of step K, counted from 1; may be given several times
--from K                execute K steps as recorded, then branch (default: up to the first edit)
--agent NAME|PKG:CLASS  the agent that continues (see `eval`)
--model PROVIDER/NAME   the model of the agent
--base-url URL          address of the model's endpoint
--max-turns N           steps in all"""
DEFAULTS = {"parallel": 2}
RENAMED = {
    "--all": "--sample all",
}
"""Options of an earlier version that only this command had, and what they are now."""
SETTINGS = {
    "edit": {"type": branch.edit},
    "from": {"type": branch.step_count, "dest": "after"},
    "seed": {"type": int},
    "sample": {"type": verify.sample_size},
}
_CONDITIONS = {"image", "dataset", "set"}
_CONDITIONS_OF_ALL = ("profile", "image", "network", "timeout")
MODES = {
    "say whether records hold": {
        "comparing": {"profile", "json", "out", *_CONDITIONS},
        "a bundle": {"sample", "seed", "reward", *_CONDITIONS},
    },
    "save what another reward, action or agent gives": {
        "scoring": {"score", "reward", "variants", "out", *_CONDITIONS},
        "branching": {
            *("episode", "edit", "after", "agent", "model", "base_url", "max_turns"),
            *("profile", "reward", "out", *_CONDITIONS),
        },
    },
}


def handle(args: argparse.Namespace) -> int:
    """Do what the arguments ask for."""
    from intercode.cli.replay import compare, score
    from intercode.evaluation.replay.recorded_environments import ReplayOptions

    form = _form(args)
    refuse_options(args, MODES, form, DEFAULTS)
    settings = environment_settings(args)
    if args.reward is not None:
        settings["reward"] = args.reward
    agent_options = settings.pop("agent_options", {})
    if agent_options and form != "branching":
        raise UsageError(f"--set agent_options.NAME is for branching, not for {form}")
    conditions = {name: settings.pop(name, None) for name in _CONDITIONS_OF_ALL}
    options = ReplayOptions(
        dataset=args.dataset, parallel=args.parallel, env_options=settings, **conditions
    )
    if form == "branching":
        return branch.handle(args, options, agent_options)
    if form == "comparing":
        return compare.handle(args, options)
    if len(args.files) > 1:
        raise UsageError(f"{form} takes one file at a time, not {len(args.files)}")
    handle_one = verify.handle if form == "a bundle" else score.handle
    return handle_one(args, args.files[0], options)


def _form(args: argparse.Namespace) -> str:
    """Return what the arguments ask for."""
    from intercode.results.export.bundle.archive import is_bundle

    if any(is_bundle(file) for file in args.files):
        return "a bundle"
    if branch.is_requested(args):
        return "branching"
    if args.episode is not None:
        raise UsageError(
            "--episode names the episode to branch from: add --edit, --from or --agent, or leave "
            "it out to execute every episode"
        )
    scores = args.score is not None or args.reward is not None or args.variants is not None
    return "scoring" if scores else "comparing"
