"""Rebuilds the labelled trajectories of repaired NL2Bash tasks for `intercode check --labels`.

    python benchmarks/label_set.py show --logs DIR [DIR ...] > trajectories.jsonl
    python benchmarks/label_set.py store FIRST.jsonl SECOND.jsonl
    python benchmarks/label_set.py join --logs DIR [DIR ...] --out DIR

The set is benchmarks/label_set.jsonl, one trajectory a line: its task, its actions (those of an
agent of ours, or the first ``turns`` actions that were executed in a log of the authors), a digest
of query and actions, and the labels of two people. Queries and logs are not in it; the tasks come
from ``INTERCODE_DATA`` and the logs from ``--logs``.

``show`` plays every trajectory and prints what a person needs to judge it, without rewards, golds
and sources. ``store`` adds the labels of two people (lines with id, label and reason) to the set.
``join`` writes ``first.jsonl``, ``second.jsonl`` and ``agreed.jsonl`` for ``intercode check
--labels``: in the last, a trajectory on which the two differ is ambiguous.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from intercode import datasets
from intercode.core.logs import find_logs, load_log
from intercode.core.types import Dataset
from intercode.environments.base.episode import SUBMIT
from intercode.environments.base.replay.rules import replay_rules_for
from intercode.environments.bash.env import BashEnv
from intercode_lab.labels.records import AMBIGUOUS, VALUES, Label, write_labels

SET = Path(__file__).with_suffix(".jsonl")
DATASET = "nl2bash:verified"
MAX_OUTPUT = 6000
"""Characters of an output that are shown."""
NOTE = "right_only_on_these_files"
ROOTS = ("/testbed", "/system", "/workspace")
"""The directories of the tasks' files."""
LISTING = r"""
for root in ROOTS; do
    [ -d $root ] || continue
    find $root -type d -printf '%p/ %M %u:%g\n' -o -type l -printf '%p -> %l\n' \
        -o -printf '%p %M %u:%g %s bytes, %TF %TH:%TM\n' | LC_ALL=C sort
    find $root -type f -size -400c | LC_ALL=C sort | while IFS= read -r f; do
        grep -Iq . "$f" && while IFS= read -r line || [ "$line" ]; do echo "$f: $line"; done < "$f"
    done
done
""".replace("ROOTS", " ".join(ROOTS))
"""A command that lists the tasks' files, and prints the text of the short ones."""
OUTSIDE = {
    "fs_1/2": "echo FILES=$FILES",
    "fs_1/6": "hostname",
    "fs_1/30": "echo DIRECTORY=$DIRECTORY",
    "fs_1/38": "cat /etc/networks",
    "fs_2/42": "type date; date",
    "fs_3/24": "find / -name mysql 2>&1 | xargs ls -ld",
    "fs_3/42": "ls -la ~/newlinks",
    "fs_4/2": "ls -l /usr/bin/c++",
    "fs_4/7": "type python; ls -l /usr/local/bin",
    "fs_4/18": "who",
    "fs_4/22": "who",
}
"""Commands that show what a task needs outside the directories of its files."""


@dataclass(frozen=True)
class Member:
    """A trajectory of the set: its line, its query and its actions."""

    row: dict[str, Any]
    query: str
    actions: tuple[str, ...]


def digest(task: str, query: str, actions: Sequence[str]) -> str:
    """Return the digest by which a trajectory is recognized."""
    return hashlib.sha256(json.dumps([task, query, *actions]).encode()).hexdigest()[:16]


def executed_actions(directories: Sequence[Path]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return the actions that every episode of the logs executed, by log and task."""
    found = {}
    for path in find_logs(directories):
        for episode in load_log(path):
            rules = replay_rules_for(episode)
            steps = [rules.executed_step(episode, step) for step in episode.steps if step.executed]
            actions = tuple(s.action for s in steps if s.action.split(None, 1)[:1] != [SUBMIT])
            found[path.name, episode.task] = actions
    return found


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


def read_members(dataset: Dataset, directories: Sequence[Path]) -> Iterator[Member]:
    """Yield the trajectories of the set. Exits with a message if the logs or the queries are not
    those with which it was made."""
    queries = {task.id: task.query for task in dataset.tasks}
    logs = executed_actions(directories)
    for row in read_rows(SET):
        key = (row.get("log", ""), row["task"])
        if "actions" not in row and key not in logs:
            raise SystemExit(f"{row['id']}: no log {key[0]} with {key[1]} in {directories}")
        actions = tuple(row["actions"]) if "actions" in row else logs[key][: row["turns"]]
        if digest(row["task"], queries[row["task"]], actions) != row["digest"]:
            raise SystemExit(f"{row['id']}: query or actions are not those that were labelled")
        yield Member(row, queries[row["task"]], actions)


def shorten(text: str) -> str:
    """Return a text, cut to MAX_OUTPUT characters."""
    left = len(text) - MAX_OUTPUT
    return f"{text[:MAX_OUTPUT]}\n[{left} more characters]" if left > 0 else text


def play(env: BashEnv, task: str, actions: Sequence[str]) -> dict[str, Any]:
    """Play a trajectory. Return the files before, its steps, and what it changed."""
    look = f"{LISTING}\n{OUTSIDE.get(task.removeprefix('nl2bash/'), '')}"
    env.reset(seed=0, options={"task": task})
    beginning = env.execute(f"/bin/date '+now: %F %T'; echo \"working directory: $PWD\"; {look}")
    env.reset(seed=0, options={"task": task})
    steps, changed = [], tuple[str, ...]()
    for action in actions:
        result = env.execute(action)
        steps.append({"action": action, "output": shorten(result.observation)})
        changed = result.changes
    directory = env.working_directory
    elsewhere = [p for p in set(changed) - set(beginning.changes) if not p.startswith(ROOTS)]
    end = env.execute(
        f"{look}\n{shlex.join(['ls', '-ld', *sorted(elsewhere)]) if elsewhere else ''}"
    )
    before = beginning.observation.splitlines()[2:]  # without the time and the directory
    lines = difflib.ndiff(before, end.observation.splitlines())
    return {
        "files": beginning.observation,
        "steps": steps,
        "working_directory_after": directory,
        "changed": [line for line in lines if line.startswith(("+ ", "- "))],
    }


def show(args: argparse.Namespace) -> None:
    """Print every trajectory of the set for a person who judges it."""
    dataset = datasets.load(DATASET)
    env = BashEnv(dataset)
    for member in read_members(dataset, args.logs):
        about = {"id": member.row["id"], "task": member.row["task"], "query": member.query}
        print(json.dumps(about | play(env, member.row["task"], member.actions)), flush=True)
    env.close()


def store(args: argparse.Namespace) -> None:
    """Add the labels of two people to the set."""
    people = [{row["id"]: row for row in read_rows(path)} for path in (args.first, args.second)]
    rows = read_rows(SET)
    for row in rows:
        row["labels"] = [_judgement(labels, row["id"]) for labels in people]
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    SET.write_text(text, encoding="utf-8")


def _judgement(labels: Mapping[str, Mapping[str, Any]], name: str) -> dict[str, Any]:
    label = labels.get(name, {})
    if label.get("label") not in VALUES:
        raise SystemExit(f"{name}: the label is {label.get('label')!r}, not one of {VALUES}")
    note = {NOTE: True} if label.get(NOTE) else {}
    return {"label": label["label"], "reason": label.get("reason", ""), **note}


def join(args: argparse.Namespace) -> None:
    """Write the labels with queries and actions, as ``intercode check --labels`` reads them."""
    people: dict[str, list[Label]] = {"first": [], "second": [], "agreed": []}
    for member in read_members(datasets.load(DATASET), args.logs):
        if "labels" not in member.row:
            raise SystemExit(f"{member.row['id']} has no labels; add them with `store`")
        first, second = (to_label(member, judgement) for judgement in member.row["labels"])
        people["first"].append(first)
        people["second"].append(second)
        people["agreed"].append(agreed_label(first, second))
    args.out.mkdir(parents=True, exist_ok=True)
    for name, labels in people.items():
        write_labels(args.out / f"{name}.jsonl", labels)


def to_label(member: Member, judgement: Mapping[str, Any]) -> Label:
    """Return the label of one person."""
    value, reason = judgement["label"], judgement["reason"]
    return Label(
        member.row["task"],
        member.query,
        member.actions,
        value,
        reason,
        dataset=DATASET,
        extra={"id": member.row["id"], NOTE: judgement.get(NOTE, False)},
    )


def agreed_label(first: Label, second: Label) -> Label:
    """Return the label on which two people agree, or an ambiguous one with both reasons. It has the
    note of either."""
    extra = {**first.extra, NOTE: first.extra[NOTE] or second.extra[NOTE]}
    if first.value == second.value:
        return replace(first, extra=extra)
    reasons = (f"{label.value}: {label.reason}" for label in (first, second))
    return replace(first, value=AMBIGUOUS, reason=" / ".join(reasons), extra=extra)


def main() -> None:
    """Run one of the three commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for run in (show, store, join):
        command = commands.add_parser(run.__name__, help=run.__doc__)
        command.set_defaults(run=run)
        if run is store:
            command.add_argument("first", type=Path)
            command.add_argument("second", type=Path)
        else:
            command.add_argument("--logs", type=Path, nargs="+", required=True)
        if run is join:
            command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
