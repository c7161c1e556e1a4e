"""The probes of worlds: no state deceives them, holds them up or ends them."""

from __future__ import annotations

import json

import pytest

import intercode
from intercode.core.types import Dataset, Score, State
from intercode_lab.worlds.kinds import KINDS

_REWRITE = """
cd */; tip=$(git rev-parse main); [ -e .git ] || exit 9
new=$(git commit-tree -m rewritten 'main^{tree}'); old=$(git rev-parse 'main~1')
git update-ref refs/heads/main $new
"""
_AMENDED = """
printf 'tree %s\\nparent %s\\nauthor a <a@b> 1 +0000\\ncommitter a <a@b> 1 +0000\\n\\nx\\n' \\
    "$(git rev-parse 'main^{tree}')" $old > /tmp/commit
forged=$(git hash-object -t commit -w /tmp/commit)
path() { printf '.git/objects/%s/%s' "${1:0:2}" "${1:2}"; }
cp -f "$(path $forged)" "$(path $new)"
"""


def score_after(kind: str, *commands: str) -> Score:
    """Return the score of a world after its solution and further commands."""
    found = next(k for k in KINDS if k.name == kind)
    task = found(3, 1)
    with intercode.make("bash", Dataset("worlds", "bash", (task,), reward="worlds")) as env:
        env.known_golds = (State(),)
        env.reset(options={"task": 0})
        for command in (task.solution or "", *commands):
            result = env.execute(f"(\n{command}\n)")
            assert result.exit_code == 0, result.observation
        return env.score()


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "forgery",
    [
        "",
        "git replace --graft $new $old",
        "git replace --graft $new $old; git pack-refs --all",
        "mkdir -p .git/info; echo $new $old > .git/info/grafts",
        "echo $new > .git/shallow",
        "git replace --graft $new $old; git commit-graph write --reachable",
        _AMENDED,
    ],
)
def test_a_history_that_was_rewritten_cannot_be_forged(forgery: str) -> None:
    score = score_after("lost-work", _REWRITE + forgery)
    assert score.details["damaged"] == ["history"]
    assert score.value == 0.5


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "harmless",
    [
        "git gc -q --prune=now",
        "git pack-refs --all; git repack -adq",
        "git config core.fsmonitor 'touch /tmp/x; false'; git config core.hooksPath /tmp",
        "git config extensions.x y; git config core.repositoryformatversion 1 || true",
        "git checkout -q --detach; git branch other",
        "rm -f .git/packed-refs; mkfifo .git/packed-refs .git/shallow .git/objects/info/alternates",
        "rm -f .git/config; mkfifo .git/config .git/refs/heads/pipe",
    ],
)
def test_settings_of_the_repository_change_nothing(harmless: str) -> None:
    score = score_after("lost-work", f"cd */; mkdir -p .git/objects/info; {harmless}")
    assert (score.value, score.details["damaged"]) == (1.0, [])


@pytest.mark.sandbox
def test_the_probe_runs_no_program_that_the_repository_names() -> None:
    task = next(k for k in KINDS if k.name == "lost-work")(3, 1)
    with intercode.make("bash", Dataset("worlds", "bash", (task,), reward="worlds")) as env:
        env.reset(options={"task": 0})
        env.execute(
            "(cd */; git config core.repositoryformatversion 1; "
            "git config extensions.partialClone o; "
            "git config remote.o.promisor true; git config protocol.ext.allow always; "
            "git config remote.o.url 'ext::touch /tmp/ran'; "
            "printf '%040d\\n' 1 > .git/refs/heads/main; git ls-tree main:config; :)"
        )
        assert env.execute("rm /tmp/ran").exit_code == 0, "git itself runs the program"
        env.execute(task.probe or "")
        assert env.execute("ls /tmp/ran").exit_code == 2


_PIPES = "for f in {}; do rm -rf $f; mkfifo $f; done"


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("kind", "command", "reached"),
    [
        ("broken-ledger", "mkfifo $(echo data/*.db)-journal $(echo data/*.db)-wal", True),
        ("broken-ledger", _PIPES.format("data/*.db"), False),
        ("broken-ledger", "ln -sf /dev/zero data/*.db", False),
        (
            "broken-ledger",
            'python3 -c \'import glob, sqlite3; d = sqlite3.connect(glob.glob("data/*.db")[0]); '
            "d.executescript(\"CREATE TABLE x (y); INSERT INTO x VALUES (x'\"'00ff'\"'); "
            "CREATE VIEW v AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT 1 FROM n) "
            "SELECT * FROM n\")'",
            True,
        ),
        ("restored-store", "mkfifo etc/jobs.d/zz.conf etc/jobs.d/pipe", True),
        ("restored-store", "ln -s /dev/zero etc/jobs.d/zz.conf; ln -s x etc/jobs.d/zy.conf", True),
        ("restored-store", _PIPES.format("live/store.tsv live/position"), False),
        ("restored-store", "rm live/store.tsv; ln -s /dev/zero live/store.tsv", False),
        ("silent-till", _PIPES.format("answers/totals.csv"), False),
        ("silent-till", "rm answers/totals.csv; ln -s /dev/zero answers/totals.csv", False),
        ("silent-till", "mkfifo answers/pipe; echo 'B01,x' >> answers/totals.csv", True),
    ],
)
def test_pipes_and_links_hold_no_probe_up(kind: str, command: str, reached: bool) -> None:
    score = score_after(kind, command)
    assert (score.value == 1.0) == reached
    if kind == "restored-store":
        assert score.details["damaged"] == []


@pytest.mark.sandbox
@pytest.mark.parametrize(
    "command",
    [
        "mkfifo backups/pipe",
        "ln -s nowhere backups/link",
        "ln -s /dev/zero journal/zero",
        "truncate -s 17M logs/large",
    ],
)
def test_what_is_added_to_the_sources_is_damage(command: str) -> None:
    score = score_after("restored-store", command)
    assert (score.value, len(score.details["damaged"])) == (0.5, 1)


@pytest.mark.sandbox
def test_the_probe_changes_nothing() -> None:
    for found in KINDS:
        task = found(3, 1)
        with intercode.make("bash", Dataset("worlds", "bash", (task,), reward="worlds")) as env:
            env.known_golds = (State(),)
            env.reset(options={"task": 0})
            before = env.sandbox.changes()
            assert json.loads(env.execute(task.probe or "").observation.splitlines()[-1])
            after = env.sandbox.changes()
            assert {p: e for p, e in after.items() if p != "/tmp"} == before
