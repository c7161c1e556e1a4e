"""Episodes in progress go on where they were saved, after a crash of the evaluation."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.agents import Agent
from intercode.cli import main
from intercode.core.errors import DataError, InfrastructureError, UnknownNameError, UsageError
from intercode.core.types import AgentOutput, Step, Trajectory, Usage
from intercode.evaluation.evaluate.history import RunHistory
from intercode.evaluation.evaluate.plan import Plan
from intercode.models.base import Completion, make_call
from intercode.models.providers.function import FunctionModel
from support.answering_endpoint import AnsweringEndpoint

pytestmark = pytest.mark.sandbox
ACTIONS = (
    "x=41; cd /tmp; echo a > kept",
    "next() { echo $((x + 1)); }; rm kept; echo c > other",
    "next; cat other; pwd; ls /tmp",
    "submit",
)
Messages = list[Mapping[str, Any]]


def played(messages: Messages) -> int:
    return sum(m["role"] == "assistant" for m in messages)


def as_code(turn: int) -> str:
    return ACTIONS[turn] if ACTIONS[turn] == "submit" else f"```bash\n{ACTIONS[turn]}\n```"


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    """A file of two tasks."""
    path = tmp_path / "tasks.jsonl"
    rows = [{"query": f"task {n}", "gold": "echo b > /tmp/other"} for n in range(2)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def comparable(episode: Trajectory) -> Trajectory:
    """Return an episode without what differs between any two runs, and without the mark. The
    sources have the state of a model that counts."""
    steps = tuple(
        replace(step, usage=replace(step.usage, seconds=0.0), seconds=None)
        for step in episode.steps
    )
    own = ("resumed", "file", "sources", "started")
    run = {name: value for name, value in episode.run.items() if name not in own}
    return episode.replace(steps=steps, id="", started="", seconds=0.0, run=run)


def spent(out: Path) -> Usage:
    return replace(RunHistory(out).earlier_usage, seconds=0.0)


def test_a_killed_evaluation_goes_on_with_no_saved_answer_requested_twice(
    dataset: str, tmp_path: Path
) -> None:
    """It is killed while it waits for an answer, in the fourth turn of the second episode, of which
    two are saved."""
    running: list[subprocess.Popen[bytes]] = []
    requests: list[str] = []

    def answer(messages: Messages) -> str:
        requests.append(json.dumps(messages))
        if running and played(messages) == 3 and "task 1" in str(messages):
            running.pop().send_signal(signal.SIGKILL)
        return as_code(played(messages))

    def evaluate(out: str) -> list[str]:
        return [
            *("eval", dataset, "--agent", "try-again", "--model", "m", "--base-url", endpoint.url),
            *("--set", "model_options.price.input=1.0", "--set", "model_options.price.output=2.0"),
            *("--save-every", "2", "--parallel", "1", "--seed", "3"),
            *("--out", str(tmp_path / out)),
        ]

    with AnsweringEndpoint(answer, usage=(70, 7)) as endpoint:  # type: ignore[arg-type]
        assert main(evaluate("whole")) == 0
        whole_requests = Counter(requests)
        requests.clear()
        code = "import sys; from intercode.cli import main; sys.exit(main())"
        words = [sys.executable, "-c", code, *evaluate("killed")]
        running.append(subprocess.Popen(words, stdout=-1, stderr=-1))
        killed = running[0]
        killed.communicate()
        assert killed.returncode == -signal.SIGKILL
        [saved] = (tmp_path / "killed" / "saved").iterdir()
        assert main([*evaluate("killed"), "--limit", "1"]) == 0
        assert saved.exists(), "it is of another task"
        assert main(["eval", "--resume", str(tmp_path / "killed"), "--limit", "2"]) == 0
    assert not saved.parent.exists()
    again = Counter(requests) - whole_requests
    assert sorted(played(json.loads(text)) for text in again.elements()) == [2, 3]
    assert all("task 1" in text for text in again)
    whole, resumed = (intercode.load_run(tmp_path / out) for out in ("whole", "killed"))
    assert list(map(comparable, resumed.episodes)) == list(map(comparable, whole.episodes))
    assert [e.run.get("resumed") for e in resumed.episodes] == [
        None,
        [{"turn": 2, "omitted": []}],
    ]
    assert resumed.episodes[1].steps[2].observation == "42\nc\n/tmp\nother\n"
    assert spent(tmp_path / "killed") == spent(tmp_path / "whole")
    assert spent(tmp_path / "whole").requests == whole_requests.total() == len(requests) - 2


def interrupted_at(number: int, model: Callable[[Messages], Any]) -> FunctionModel:
    """Return a model that counts its answers, and is interrupted once when it is asked for one."""
    answers = 0

    def answer(messages: Messages) -> Completion:
        nonlocal answers
        answers += 1
        if answers == number:
            raise KeyboardInterrupt
        found = model(messages)
        return Completion(found, USAGE) if isinstance(found, str) else found

    return FunctionModel(answer)  # type: ignore[arg-type]


USAGE = Usage(10, 5, 1, cost=0.01)


def reflects(messages: Messages) -> str:
    """Answer as an agent that guesses, reflects, and then finds the file."""
    if "what went wrong and why" in str(messages[-1]["content"]):
        return "I guessed."
    reflected = any("I guessed." in str(m["content"]) for m in messages[:2])
    number = played(messages) + 1
    action = ("x=1", "echo $x > /tmp/y", "submit")[played(messages)]
    if reflected:
        action = ("echo b", "echo b > /tmp/other", "submit")[played(messages)]
    done = action if action == "submit" else f"execute[{action}]"
    return f"Thought {number}: so.\nAction {number}: {done}"


def plans(messages: Messages) -> str:
    return "1. Look.\n2. Write." if played(messages) == 0 else as_code(min(played(messages) - 1, 3))


def calls(messages: Messages) -> Completion:
    turn = played(messages)
    name, arguments = ("submit", {}) if turn == 3 else ("run_command", {"command": ACTIONS[turn]})
    tokens = {"prompt_ids": [1, *range(turn)], "ids": [turn], "logprobs": [-0.5]}
    called = make_call(f"call_{turn}", name, arguments)
    return Completion("", USAGE, calls=(called,), tokens=tokens)


@pytest.mark.parametrize(
    ("agent", "model", "number"),
    [
        ("try-again", lambda messages: as_code(played(messages)), 3),
        ("plan-solve", plans, 3),
        ("tool-calling", calls, 3),
        ("reflexion", reflects, 6),
    ],
)
def test_an_interrupted_run_goes_on_with_any_agent(
    dataset: str, tmp_path: Path, agent: str, model: Callable[[Messages], Any], number: int
) -> None:
    def evaluate(out: str, asked: FunctionModel) -> intercode.Run:
        return intercode.evaluate(
            dataset,
            agent,
            model=asked,
            limit=1,
            quiet=True,
            save_every=1,
            seed=3,
            out=tmp_path / out,
        )

    [whole] = evaluate("whole", interrupted_at(0, model)).episodes
    broken = interrupted_at(number, model)
    with pytest.raises(KeyboardInterrupt):
        evaluate("broken", broken)
    assert spent(tmp_path / "broken").requests == 0, "what is saved counts when it goes on"
    [resumed] = evaluate("broken", broken).episodes
    assert comparable(resumed) == comparable(whole)
    assert len(resumed.run["resumed"]) == 1
    assert spent(tmp_path / "broken") == spent(tmp_path / "whole")


def test_what_was_saved_goes_on_in_a_run_that_saves_nothing_more(saved: Saved) -> None:
    assert saved.go_on(save_every=None).run["resumed"] == [{"turn": 2, "omitted": []}]
    assert not saved.file.parent.exists()


def test_a_run_that_saves_nothing_reads_no_saved_episode(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[object] = []
    monkeypatch.setattr(Plan, "_saved_file", lambda _, key: asked_for.append(key) or tmp_path / "x")
    intercode.evaluate(dataset, "gold", out=tmp_path / "r", quiet=True)
    assert not asked_for
    intercode.evaluate(dataset, "gold", out=tmp_path / "s", quiet=True, save_every=1)
    assert asked_for


class Counting(Agent):
    """Acts in another way each time."""

    count = 0

    def act(self, feedback: Step | None) -> AgentOutput | None:
        Counting.count += 1
        if Counting.count == 3:
            raise KeyboardInterrupt
        return AgentOutput(f"echo {Counting.count}")


def test_an_agent_that_acts_in_another_way_is_refused(dataset: str, tmp_path: Path) -> None:
    def evaluate() -> None:
        out = tmp_path / "run"
        settings: dict[str, Any] = {"limit": 1, "quiet": True, "save_every": 2, "max_turns": 4}
        intercode.evaluate(dataset, Counting, out=out, **settings)

    with pytest.raises(KeyboardInterrupt):
        evaluate()
    [saved] = (tmp_path / "run" / "saved").iterdir()
    with pytest.raises(UsageError, match=f"remove {saved} "):
        evaluate()
    assert saved.exists()


@pytest.mark.parametrize(
    ("dataset_name", "agent", "settings", "said"),
    [
        ("starter", "program:true {query}", {}, "--save-every 2: .* 'program:true {query}' keeps"),
        ("starter", "human", {}, "--save-every 2: .* 'human' keeps"),
        ("starter:sql", "noop", {}, "--save-every 2: .* environment 'sql'"),
        ("starter", "tool-calling", {"mcp": {"x": "true"}}, "--save-every 2: .* MCP servers"),
        ("starter", "noop", {"runner": "ray:local"}, "--save-every 2: .* runner 'ray:local'"),
        ("starter", "noop", {"save_every": 0}, "at least 1"),
    ],
)
def test_what_cannot_go_on_is_refused_before_anything_runs(
    tmp_path: Path, dataset_name: str, agent: str, settings: dict[str, Any], said: str
) -> None:
    out, given = tmp_path / "run", {"save_every": 2, **settings}
    with pytest.raises((UsageError, UnknownNameError), match=said):
        intercode.evaluate(dataset_name, agent, model=lambda _: "x", out=out, quiet=True, **given)
    assert not out.exists()


def test_an_interpreter_and_the_changes_of_each_turn_go_on(tmp_path: Path) -> None:
    """Also after two interruptions, of which the second comes before anything is saved again."""
    actions = ("import os; made = [6]", "made.append(7)", "open('/tmp/x', 'w').write('y')", "made")
    asked = 0

    def model(messages: Messages) -> str:
        nonlocal asked
        asked += 1
        if asked in (4, 5):
            raise KeyboardInterrupt
        return f"```python\n{actions[min(played(messages), 3)]}\n```"

    def evaluate(out: str) -> Trajectory:
        [episode] = intercode.evaluate(
            "starter:python",
            "try-again",
            model=model,
            limit=1,
            max_turns=4,
            quiet=True,
            save_every=3,
            record_diffs=True,
            out=tmp_path / out,
        ).episodes
        return episode

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            evaluate("broken")
    resumed, whole = evaluate("broken"), evaluate("whole")
    assert resumed.steps[3].observation == "[6, 7]\n"
    assert resumed.steps[2].diffs.keys() == {"/tmp/x"}
    assert comparable(resumed) == comparable(whole)
    assert resumed.run["resumed"] == [{"turn": 3, "omitted": []}]


class Saved:
    """A run that was interrupted after it has saved its episode, and can go on."""

    def __init__(self, dataset: str, out: Path) -> None:
        self.dataset, self.out = dataset, out
        self.model = interrupted_at(3, lambda messages: as_code(played(messages)))
        with pytest.raises(KeyboardInterrupt):
            self.go_on()
        [self.file] = (out / "saved").iterdir()
        self.content = self.file.read_bytes()

    def go_on(self, **settings: Any) -> Trajectory:
        given = {"model": self.model, "save_every": 1, "seed": 3, "out": self.out, **settings}
        run = intercode.evaluate(self.dataset, "try-again", limit=1, quiet=True, **given)
        [episode] = run.episodes
        return episode

    def write(self, **parts: bytes | None) -> None:
        """Replace parts of the saved file; None leaves them out."""
        self.file.write_bytes(self.content)
        with zipfile.ZipFile(self.file) as archive:
            old = {
                name.partition(".")[0]: (name, archive.read(name)) for name in archive.namelist()
            }
        with zipfile.ZipFile(self.file, "w", zipfile.ZIP_DEFLATED) as archive:
            for key, (name, data) in old.items():
                if (new := parts.get(key, data)) is not None:
                    archive.writestr(name, new)

    def read(self, name: str) -> dict[str, Any]:
        with zipfile.ZipFile(self.file) as archive:
            row: dict[str, Any] = json.loads(archive.read(name))
        return row


@pytest.fixture
def saved(dataset: str, tmp_path: Path) -> Saved:
    return Saved(dataset, tmp_path / "run")


def test_answers_that_were_given_again_in_vain_are_counted_once(
    saved: Saved, tmp_path: Path
) -> None:
    """The environment cannot be restored, which shows when the agent has acted again."""
    snapshot = saved.read("snapshot.json")
    saved.write(snapshot=json.dumps({**snapshot, "random_state": {}}).encode())
    for _ in range(2):
        with pytest.raises(DataError, match=f"{saved.file} .*random_state.* remove {saved.file} "):
            saved.go_on()
        assert spent(saved.out).requests == 0
    saved.file.write_bytes(saved.content)
    resumed, whole = saved.go_on(), saved.go_on(out=tmp_path / "whole")
    assert comparable(resumed) == comparable(whole)
    assert spent(saved.out) == spent(tmp_path / "whole")


def damages(saved: Saved) -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield ways to damage a saved file."""
    content, row = saved.content, saved.read("episode.json")
    middle = len(content) // 2
    yield (
        "flipped byte",
        lambda: saved.file.write_bytes(
            content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]
        ),
    )
    yield "no snapshot.json", lambda: saved.write(snapshot=None)
    yield "{} in snapshot.json", lambda: saved.write(snapshot=b"{}")
    yield "omitted is a text", lambda: saved.write(snapshot=b'{"omitted": "x"}')
    yield "junk files", lambda: saved.write(files=b"junk")
    yield "truncated", lambda: saved.file.write_bytes(content[:-100])
    yield "empty", lambda: saved.file.write_bytes(b"")
    yield "not a zip", lambda: saved.file.write_bytes(b"hello")
    yield "[]", lambda: saved.write(episode=b"[]")
    yield "deep", lambda: saved.write(episode=b"[" * 100_000)
    yield "no identity", lambda: saved.write(episode=json.dumps({**row, "identity": None}).encode())
    yield (
        "encrypted",
        lambda: saved.file.write_bytes(
            content.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01")
        ),
    )
    yield "bomb", lambda: claim_size(saved.file, 1 << 40)
    yield "directory", lambda: (saved.file.unlink(), saved.file.mkdir())


def claim_size(file: Path, size: int) -> None:
    with zipfile.ZipFile(file, "a") as archive:
        archive.getinfo("files").file_size = size
        archive.comment = b"the directory of the archive is written again"


def test_a_damaged_file_is_named_and_stays(saved: Saved) -> None:
    for what, damage in damages(saved):
        saved.file.write_bytes(saved.content)
        damage()
        with pytest.raises(DataError) as refused:
            saved.go_on()
        assert f"remove {saved.file} to play" in str(refused.value), what
        assert saved.file.exists(), what
        assert spent(saved.out).requests == 0, what


@pytest.mark.parametrize(
    ("name", "other"), [("task", "x"), ("epoch", 1), ("episode_seed", 4), ("agent", "react")]
)
def test_a_file_of_another_episode_is_refused(saved: Saved, name: str, other: Any) -> None:
    row = saved.read("episode.json")
    assert row["identity"][name] != other
    row["identity"][name] = other
    saved.write(episode=json.dumps(row).encode())
    with pytest.raises(DataError, match=f"{saved.file} .*{name} is {other!r}"):
        saved.go_on()
    assert saved.file.exists()


def test_a_file_that_cannot_be_written_costs_no_episode(
    dataset: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "saved").write_text("no directory")
    run = intercode.evaluate(
        dataset, "try-again", model=lambda m: as_code(played(m)), save_every=1, out=out
    )
    assert [episode.end for episode in run.episodes] == ["submitted"] * 2
    assert capfd.readouterr().err.count("cannot be written") == 1


def test_an_attempt_that_the_infrastructure_ended_is_not_gone_on_with(
    dataset: str, tmp_path: Path
) -> None:
    """The second attempt is interrupted before it is saved."""
    answers = 0

    def model(messages: Messages) -> Completion:
        nonlocal answers
        answers += 1
        if answers == 3:
            raise InfrastructureError("the machine is lost")
        if answers == 4:
            raise KeyboardInterrupt
        return Completion(as_code(played(messages)), USAGE)

    def evaluate() -> intercode.Run:
        return intercode.evaluate(
            dataset, "try-again", model=model, limit=1, quiet=True, save_every=1, out=tmp_path / "r"
        )

    with pytest.raises(KeyboardInterrupt):
        evaluate()
    assert spent(tmp_path / "r").requests == 2
    [episode] = evaluate().episodes
    assert "resumed" not in episode.run and episode.end == "submitted"
    assert spent(tmp_path / "r").requests == 2 + len(ACTIONS)
