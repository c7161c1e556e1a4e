"""The progress that a run shows: in a terminal, in a notebook, and in a log."""

from __future__ import annotations

import io
import logging
import re
import sys
import threading
import types
from pathlib import Path

import pytest

from intercode.core.config import EvalConfig
from intercode.core.types import Score, Step, Trajectory, Usage
from intercode.evaluation.evaluate.plan import make_plan
from intercode.evaluation.evaluate.progress import Progress, make_report
from intercode.evaluation.evaluate.progress.header import describe_plan
from intercode.evaluation.evaluate.progress.lines import LineReport, progress_line
from intercode.evaluation.evaluate.progress.terminal import TerminalReport
from intercode.evaluation.evaluate.run_state import EpisodeKey, EpisodeOutcome
from intercode.models import Traffic
from support.fake_clock import FakeClock
from support.faulty_endpoint import FaultyEndpoint, Handler, completion, hang, status
from support.sandboxes import eventually
from support.terminal import Terminal

HEADER = [("run", "runs/first"), ("dataset", "starter (1234)")]


def episode(reward: float | None, task: str = "t") -> Trajectory:
    if reward is None:
        return Trajectory(task, 0, "q", (), end="error", error="down")
    return Trajectory(task, 0, "q", (Step("a", "o", score=Score(reward)),), end="submitted")


def finished(*solved: bool) -> dict[EpisodeKey, EpisodeOutcome]:
    return {EpisodeKey(f"old{n}", 0): EpisodeOutcome(s, None) for n, s in enumerate(solved)}


def test_the_header_counts_tasks_and_has_the_limit_of_an_action(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    for count, words in ((1, "1 task"), (2, "2 tasks")):
        tasks.write_text('{"query": "Print 1.", "gold": "echo 1"}\n' * count)
        header = dict(describe_plan(make_plan(EvalConfig(str(tasks), "noop"))))
        assert f", {words}, profile standard" in header["dataset"]
        assert header["limits"] == "4 at once, 10 s an action"


def test_errors_count_as_not_solved_and_success_has_an_interval() -> None:
    progress = Progress(6, finished(True))
    for number, reward in enumerate((1.0, 0.2, None)):
        progress.start(EpisodeKey(f"t{number}", 0))
        progress.add(episode(reward, f"t{number}"))
    line = progress_line(progress)
    assert line.startswith("4/6 done, success 50.0 % [15, 85], 1 error, ")
    assert line.endswith(" left") and not progress.running


def test_what_the_model_used_is_in_the_progress() -> None:
    usage = Usage(1000, 234, requests=5, cost=1.5)
    progress = Progress(3, usage=lambda: usage, traffic=lambda: Traffic(retries=2, overloads=1))
    texts = progress.usage_texts()
    assert texts == ["0 errors", "5 requests", "1,234 tokens", "2 retries", "1 rate limit", "$1.50"]
    late = Progress(3, usage=Usage, traffic=lambda: Traffic(retries=2, timeouts=2))
    assert late.usage_texts() == ["0 errors", "2 retries", "2 time-outs"]


def test_a_log_gets_the_header_and_few_plain_lines() -> None:
    stream, clock = io.StringIO(), FakeClock()
    progress = Progress(100, clock=clock)
    with LineReport(HEADER, stream, "[1/2 a] ", clock) as report:
        report.begin(progress)
        for number in range(100):
            progress.add(episode(1.0, f"t{number}"))
            report.update()
            clock.pass_time(0.06)
        report.note("first error: \x1b[31mno\nanswer")
    header, dataset, middle, note, last = stream.getvalue().splitlines()
    assert header == "[1/2 a] run      runs/first" and "starter (1234)" in dataset
    assert "85/100 done" in middle and "16.9/s, 0:01 left" in middle
    assert note == "[1/2 a] first error: [31mno answer"
    assert "100/100 done, success 100.0 %" in last and "\r" not in stream.getvalue()
    for seconds, count in ((59, 5), (2, 6)):
        clock.pass_time(seconds)
        report.update()
        assert len(stream.getvalue().splitlines()) == count, "a run in which nothing ends lives"
    with LineReport(HEADER, None) as silent:
        silent.begin(progress)


def test_another_thread_draws_while_episodes_end() -> None:
    progress, failures, ended = Progress(20_000), [], threading.Event()

    def draw() -> None:
        while not ended.is_set():
            try:
                progress_line(progress)
            except RuntimeError as e:
                failures.append(e)

    thread, interval = threading.Thread(target=draw), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        thread.start()
        for number in range(progress.total):
            progress.add(episode(1.0, f"t{number}"))
    finally:
        ended.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert failures == [] and progress.done == progress.total


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_prints_and_logging_appear_whole_above_the_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    logger, handler = logging.getLogger("researcher"), logging.StreamHandler(screen)
    monkeypatch.setattr(logger, "handlers", [handler])
    progress = Progress(2)
    with make_report(HEADER, stream=screen) as report:
        assert isinstance(report, TerminalReport)
        report.begin(progress)
        progress.start(EpisodeKey("starter/bash/count-csv", 0))
        eventually(lambda: "count-csv" in screen.getvalue(), "the bar is drawn")
        logger.warning("a line of the log")
        print("a line of the model")
        report.note("first error: no answer")
        assert handler.stream is not screen
    lines_of = screen.getvalue().replace("\x1b[2K", "\n").replace("\r", "\n").splitlines()
    for text in ("a line of the log", "a line of the model", "first error: no answer"):
        assert any(text in line and "success" not in line for line in lines_of), text
    assert handler.stream is screen and sys.stderr is screen
    assert re.search(r"1 in progress: starter/bash/count-csv 0:\d\d", screen.getvalue())


def test_a_notebook_gets_one_output_that_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel is not installed here: its interface is replaced by the two calls in use."""
    shown: list[str] = []
    output = types.SimpleNamespace(update=shown.append)

    def display(html: str, display_id: bool) -> types.SimpleNamespace:
        shown.append(html)
        return output

    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    package.get_ipython = lambda: types.SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    module.display, module.HTML = display, str  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", package)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    progress = Progress(2)
    with make_report([("agent", "<b>")], stream=io.StringIO()) as report:
        report.begin(progress)
        progress.add(episode(1.0))
        report.note("first error: <script>")
    assert "&lt;b&gt;" in shown[0] and "preparing" in shown[0]
    assert "<progress value='1' max='2'" in shown[-1] and "success 100.0 %" in shown[-1]
    assert "&lt;script&gt;" in shown[-1] and "<script>" not in "".join(shown)


@pytest.mark.sandbox
def test_a_run_in_a_terminal_shows_itself_and_survives_an_interrupt(
    squares: str, tmp_path: Path
) -> None:
    usage = {"prompt_tokens": 1000, "completion_tokens": 100}
    solved = status(200, completion("```bash\necho 0\n```", usage=usage))
    is_shown = threading.Event()

    def answer(handler: Handler) -> None:
        assert is_shown.wait(120)
        solved(handler)

    with (
        FaultyEndpoint(status(429, retry_after=0), answer, hang) as server,
        Terminal(
            "eval",
            squares,
            "--agent",
            "single-turn",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--out",
            str(tmp_path / "run"),
            "--parallel",
            "1",
            "--set",
            'model_options.price={"input": 10.0, "output": 100.0}',
            OPENAI_API_KEY="key",
        ) as terminal,
    ):
        terminal.expect("run      ")
        terminal.expect("8 tasks")
        terminal.expect("m at http://127.0.0.1")
        terminal.expect("first error of the endpoint")
        shown = terminal.expect("1 in progress: ")
        is_shown.set()
        terminal.expect("1/8")
        terminal.expect("success 100.0 % [21, 100]")
        terminal.expect("2 requests · 1,100 tokens · 1 retry · 1 rate limit · $0.0200")
        terminal.send("\x03")
        terminal.expect("stopped; `intercode eval --resume ")
        assert terminal.wait() == 130
    assert "\x1b[?25h" in terminal.seen.split("stopped; ")[0], "no cursor"
    assert "Traceback" not in terminal.seen and "0/8" in shown
