"""Branches of an episode."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import intercode
from intercode.agents.base import Agent
from intercode.core import trajectories
from intercode.core.trajectories import build_episode_trees
from intercode.core.types import AgentOutput, Brief, Dataset, Step, Task, Trajectory
from intercode.evaluation.replay import log_replay
from intercode.evaluation.rollout import brief_with_history, rollout, rollout_branches
from support.descriptions import brief as make_brief

TASKS = Dataset("t", "bash", (Task("t/five", "Print five.", gold="echo five"),))


class Say(Agent):
    """An agent that plays given actions and remembers its brief."""

    def __init__(self, actions: Sequence[str], wants_score: bool = False) -> None:
        self.actions, self.wants_score = actions, wants_score
        self.brief: Brief | None = None

    def start(self, brief: Brief) -> None:
        self.brief, self.left = brief, list(self.actions)

    def act(self, feedback: Step | None) -> AgentOutput | None:
        return AgentOutput(self.left.pop(0)) if self.left else None


def test_the_brief_lists_the_previous_steps() -> None:
    brief = make_brief("t", "q", "bash", notes="Be brief.")
    with_history = brief_with_history(brief, [Step("ls", "a\nb\n"), Step("cd b", "")])
    assert with_history.notes == "Be brief.\nDone so far:\n$ ls\na\nb\n$ cd b"
    assert brief_with_history(brief, []) == brief


def test_trees_by_parents() -> None:
    def episode(name: str, parent: str | None) -> Trajectory:
        return Trajectory("t", 0, "q", (), id=name, parent=parent)

    found = build_episode_trees(
        [
            episode("c", "b"),
            episode("a", None),
            episode("b", "a"),
            episode("d", "lost"),
            episode("", None),
        ]
    )
    assert [node.trajectory.id for node in found] == ["a", "d", ""]
    assert [child.trajectory.id for child in found[0].children] == ["b"]
    assert [t.id for t in found[0].leaves()] == ["c"]


@pytest.mark.sandbox
def test_every_branch_starts_in_the_same_state() -> None:
    with intercode.make("bash", TASKS, max_turns=9) as env:
        first = Say(["cd /tmp; x=1; echo root > f", "true"])
        root = rollout(first, env, 0)
        ways = [
            Say(["rm f; echo five"], True),
            Say(["echo $x; cat f; rm f"]),
            Say(["pwd; cat f", "ls"]),
        ]
        right, second, third = rollout_branches(env, root, ways)
    assert {t.parent for t in (right, second, third)} == {root.id}
    assert {t.branched_at for t in (right, second, third)} == {2}
    assert len({root.id, right.id, second.id, third.id}) == 4
    assert right.steps[:1] == second.steps[:1] == root.steps[:1]
    assert (right.end, right.score, right.turns) == ("solved", 1.0, 3)
    assert second.steps[2].observation == "1\nroot\n"
    assert [s.observation for s in third.steps[2:]] == ["/tmp\nroot\n", "f\n"]
    assert third.steps[-1].score is not None
    assert ways[1].brief is not None and "cd /tmp; x=1" in ways[1].brief.notes


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_tree_of_depth_five_and_width_three_has_243_independent_leaves(tmp_path: Path) -> None:
    depth, width = 5, 3
    log = tmp_path / trajectories.TRAJECTORIES_FILE
    contents: dict[str, str] = {}
    with intercode.make("bash", TASKS, deterministic=True) as env:
        metadata = env.result_metadata()

        def grow(node: Trajectory) -> Iterator[Trajectory]:
            level = node.turns
            if level == depth:
                contents[node.id] = env.scored_sandbox.read("/tmp/path").decode()
                yield node.replace(run=metadata)
                return
            agents = [
                Say([f"p=${{p}}{n}; printf {n} >> /tmp/path; echo $p $RANDOM"])
                for n in range(width)
            ]
            for child in rollout_branches(env, node, agents, score_final=False):
                yield child.replace(run=metadata)
                yield from grow(child)

        env.reset(options={"task": 0})
        root = Trajectory("t/five", 0, "Print five.", (), id="root", run=metadata)
        unique = {t.id: t for t in [root, *grow(root)]}
    (tree,) = build_episode_trees(list(unique.values()))
    leaves = list(tree.leaves())
    assert len(leaves) == len(contents) == width**depth == 243
    paths = {leaf.id: leaf.steps[-1].observation.split()[0] for leaf in leaves}
    assert contents == paths
    assert len(set(paths.values())) == 243
    assert all(leaf.parent in unique and leaf.branched_at == depth - 1 for leaf in leaves)
    for leaf in leaves[::60]:  # replaying a branch from its start gives the same
        trajectories.append_trajectory(
            log, leaf.replace(run={**metadata, "dataset": _dataset(tmp_path)})
        )
    (report,) = log_replay.replay_logs([log], log_replay.ReplayOptions())
    assert report.episodes == 5 and len(report.steps) == 25 and report.mismatches == []


def _dataset(home: Path) -> str:
    """Write the tasks of this test to a file, for replay."""
    path = home / "tasks.json"
    path.write_text('[{"id": "t/five", "query": "Print five.", "gold": "echo five"}]')
    return str(path)
