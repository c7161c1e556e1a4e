"""Logs of Inspect: its library reads them, its command dumps them, its viewer bundles them."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from intercode.core.errors import UsageError
from intercode.core.types import Score, Trajectory
from intercode.results.export import export
from support.talks import human_episode, talk

log = pytest.importorskip("inspect_ai.log", reason="needs the extra inspect")
write = pytest.importorskip("intercode.results.export.inspect").export


@pytest.fixture(scope="module")
def published(recorded_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("inspect") / "logs" / "a.eval"
    source = recorded_dir / "bash" / "ic_bash_multiturn_gpt-3.5_10_turns_fs_4.json"
    assert export(source, "inspect", out).records == 27
    return out


@pytest.mark.paper
@pytest.mark.slow
def test_its_library_reads_a_published_log(published: Path, recorded_dir: Path) -> None:
    found = log.read_eval_log(str(published), resolve_attachments=True)
    source = recorded_dir / "bash" / "ic_bash_multiturn_gpt-3.5_10_turns_fs_4.json"
    rows = json.loads(source.read_text())
    assert (found.status, found.eval.task, found.eval.model) == (
        "success",
        "intercode/bash",
        "gpt-3.5",
    )
    means = {s.name: s.metrics["mean"].value for s in found.results.scores}
    assert means["success"] == pytest.approx(13 / 27)
    assert {s.id for s in found.samples} == {f"nl2bash/fs_4/{n}" for n in rows}
    for sample in found.samples:
        row = rows[sample.id.rpartition("/")[2]]
        assert sample.input == row["query"]
        assert sample.scores["reward"].value == row["summary"]["max_reward"]
        executed = [e for e in sample.events if e.event == "tool"]
        assert [e.arguments["code"] for e in executed] == row["turn_history"]["actions"]
        assert [e.result for e in executed] == row["turn_history"]["observations"]


@pytest.mark.paper
@pytest.mark.slow
def test_its_command_dumps_it(published: Path) -> None:
    command = [sys.executable, "-m", "inspect_ai._cli.main", "log", "dump", str(published)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    dumped = json.loads(done.stdout)
    assert len(dumped["samples"]) == 27 and dumped["eval"]["dataset"]["name"] == "nl2bash:fs_4"


@pytest.mark.paper
@pytest.mark.slow
def test_its_viewer_bundles_it(published: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "inspect_ai._cli.main",
        "view",
        "bundle",
        "--log-dir",
        str(published.parent),
        "--output-dir",
        str(tmp_path / "page"),
    ]
    subprocess.run(command, capture_output=True, check=True, timeout=120)
    page = tmp_path / "page"
    assert (page / "index.html").is_file() and (page / "logs" / "a.eval").is_file()
    listing = (page / "logs" / "listing.json").read_text()
    assert "intercode/bash" in listing


def test_a_conversation_with_tools_and_what_it_cost(tmp_path: Path) -> None:
    out = tmp_path / "a.eval"
    failed = talk(end="error", error="the sandbox was lost", id="e3")
    written = write([talk(), human_episode(), talk(epoch=1, id="e4"), failed], out)
    assert written.records == 4
    found = log.read_eval_log(str(out))
    first, second, again, lost = found.samples
    assert [s.epoch for s in found.samples] == [1, 1, 2, 3]
    assert found.eval.config.epochs == 3
    assert [m.role for m in first.messages] == ["system", "user", "assistant", "tool", "assistant"]
    (call,) = first.messages[2].tool_calls
    assert (call.function, call.arguments) == ("run_command", {"command": "ls"})
    assert first.messages[3].tool_call_id == call.id
    assert [e.event for e in first.events] == ["model", "tool", "model", "tool", "score"]
    assert len(first.events[2].input) == 4
    usage = first.model_usage["p/m"]
    assert (usage.input_tokens, usage.output_tokens, usage.total_cost) == (250, 30, 0.75)
    assert first.scores["success"].value == 1 and first.scores["reward"].metadata == {"output": 1.0}
    assert found.eval.created.startswith("2026-01-31T10:00:00")
    assert found.eval.metadata["scoring"] == "bash-2"
    assert second.events[0].agent == "human"
    assert lost.error.message == "the sandbox was lost" and not lost.scores
    assert again.id == first.id and found.results.completed_samples == 3


def test_a_log_holds_one_run_and_has_its_suffix(tmp_path: Path) -> None:
    other = talk(run={**talk().run, "model": "p/other"})
    with pytest.raises(UsageError, match="holds one run"):
        write([talk(), other], tmp_path / "a.eval")
    with pytest.raises(UsageError, match=r"must end in \.eval"):
        write([talk()], tmp_path / "a.json")


def test_a_branch_is_not_a_sample_of_its_own(tmp_path: Path) -> None:
    branch: Trajectory = talk(parent="e1", branched_at=1, id="e9")
    written = write([talk(), branch], tmp_path / "a.eval")
    assert written.records == 1 and written.omitted == ("1 branches of other episodes",)


def test_an_error_counts_as_not_solved_in_the_mean_scores_unless_it_was_retried(
    tmp_path: Path,
) -> None:
    lost = talk(end="error", error="the sandbox was lost", id="e3").replace(task="mine/2")
    retried = talk(end="error", error="the sandbox was lost", id="e0")
    write([retried, talk(), lost], tmp_path / "a.eval")
    results = log.read_eval_log(str(tmp_path / "a.eval")).results
    assert {s.name: s.metrics["mean"].value for s in results.scores} == {
        "reward": 0.5,
        "success": 0.5,
    }
    assert (results.total_samples, results.completed_samples) == (3, 1)


def test_the_standard_error_is_clustered_by_task_as_by_inspect(tmp_path: Path) -> None:
    from inspect_ai.scorer import SampleScore, stderr
    from inspect_ai.scorer import Score as InspectScore

    def played(task: int, epoch: int, reward: float) -> Trajectory:
        steps = talk().steps
        last = replace(steps[-1], score=Score(reward))
        return talk(id=f"{task}-{epoch}").replace(
            task=f"mine/{task}", epoch=epoch, steps=(*steps[:-1], last)
        )

    rewards = [(1.0, 1.0, 1.0), (0.0, 0.0), (0.5,), (1.0, 0.25, 1.0, 1.0)]  # epochs of 4 tasks
    write(
        [played(t, e, r) for t, of in enumerate(rewards) for e, r in enumerate(of)],
        tmp_path / "a.eval",
    )
    scores = log.read_eval_log(str(tmp_path / "a.eval")).results.scores
    successes = [[float(r == 1) for r in of] for of in rewards]
    for score, values in zip(scores, (rewards, successes), strict=True):
        samples = [
            SampleScore(score=InspectScore(value=value), sample_metadata={"task": number})
            for number, of in enumerate(values)
            for value in of
        ]
        right = stderr(cluster="task")(samples)
        assert score.metrics["stderr"].value == pytest.approx(right), score.name
        assert right > 1.2 * stderr()(samples)  # that of independent samples
    write([played(0, e, r) for e, r in enumerate((0.0, 1.0))], tmp_path / "b.eval")
    of_one_task = log.read_eval_log(str(tmp_path / "b.eval")).results.scores[0]
    assert of_one_task.metrics["stderr"].value == 0  # not known
