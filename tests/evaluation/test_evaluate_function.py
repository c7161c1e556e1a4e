"""Two lines of Python: ``evaluate`` with a function as the model."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

import intercode
from intercode.core.config import EvalConfig
from intercode.core.errors import UsageError
from intercode.evaluation.evaluate.run_metadata import source_of
from intercode.models import Completion, FunctionModel, Message, ScriptedModel
from intercode.models.providers.function import as_model
from intercode.results import Run
from intercode_sandbox import event_loop


def gold(messages: list[Message]) -> str:
    """Solve the tasks of the fixture ``squares``."""
    query = next(m["content"] for m in messages if "squared" in m["content"])
    number = int(query.split("print ")[-1].split()[0])
    return f"```bash\necho {number * number}\n```"


@pytest.mark.sandbox
def test_two_lines_of_python(squares: str, tmp_path: Path) -> None:
    run = intercode.evaluate(
        squares, "try-again", model=gold, limit=3, out=str(tmp_path / "run"), quiet=True
    )
    assert isinstance(run, Run) and run.metadata["model"] == "gold"
    frame = run.to_pandas()
    assert list(frame.success) == [True] * 3 and set(frame.model) == {"gold"}
    assert "100.0" in str(run)
    html = run._repr_html_()
    assert "sums/0" in html and "100.0" in html
    shown = run.episodes[0]._repr_html_()
    assert "echo " in shown and "squared" in shown and "solved" in shown
    assert run.metadata["sources"]["model"].startswith("test_evaluate_function.py:gold@")

    def other(messages: list[Message]) -> str:
        return gold(messages)

    other.__name__ = "gold"
    with pytest.raises(UsageError, match="contains a run with sources"):
        intercode.evaluate(squares, "try-again", model=other, out=tmp_path / "run", quiet=True)


def test_functions_that_were_made_with_other_values_are_different_models() -> None:
    def make(text: str) -> Callable[..., str]:
        asked = 0

        def model(messages: list[Message], ending: str = "") -> str:
            nonlocal asked
            asked += 1
            return f"{text}{ending}"

        return model

    first = make("pwd")
    source = source_of(first)
    first([])  # a variable that the function assigns is no setting
    assert source == source_of(first) == source_of(make("pwd")) != source_of(make("ls"))
    partials = [functools.partial(gold_with, ending) for ending in ("a", "b", "a")]
    one, two, same = map(source_of, partials)
    assert one == same != two
    assert str(one).startswith("test_evaluate_function.py:gold_with@")


def gold_with(ending: str, messages: list[Message]) -> str:
    return gold(messages) + ending


@pytest.mark.sandbox
def test_asynchronous_functions_and_calls(squares: str, tmp_path: Path) -> None:
    loops = []

    async def model(messages: list[Message]) -> Message:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0)
        return {"role": "assistant", "content": gold(messages)}

    async def main() -> Run:
        run = await intercode.evaluate_async(
            squares, "single-turn", model=model, limit=2, out=tmp_path / "a", quiet=True
        )
        assert set(loops) == {asyncio.get_running_loop()}
        return run

    assert [t.success for t in asyncio.run(main()).episodes] == [True, True]
    run = intercode.evaluate(
        squares, "single-turn", model=model, limit=2, out=tmp_path / "b", quiet=True
    )
    assert [t.success for t in run.episodes] == [True, True]


@pytest.mark.sandbox
def test_a_cancelled_call_stops_the_run_and_can_be_resumed(squares: str, tmp_path: Path) -> None:
    asked = asyncio.Event()

    async def model(messages: list[Message]) -> str:
        if "print 1 " in str(messages):
            asked.set()
            await asyncio.Event().wait()  # until it is cancelled
        return gold(messages)

    async def main() -> None:
        call = asyncio.ensure_future(
            intercode.evaluate_async(
                squares, "single-turn", model=model, parallel=1, limit=2, out=tmp_path, quiet=True
            )
        )
        await asyncio.wait_for(asked.wait(), 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert len(intercode.load_run(tmp_path).episodes) == 1
        assert '"how": "interrupted"' in (tmp_path / "history.jsonl").read_text()

    asyncio.run(main())


def test_functions_and_their_answers() -> None:
    messages = [Message(role="user", content="q")]

    def with_tools(messages: list[Message], tools: object) -> str:
        return str(tools)

    assert FunctionModel(with_tools).complete(messages).text == "()"
    assert FunctionModel(functools.partial(with_tools, tools="x")).name == "with_tools"
    assert FunctionModel(lambda _: "a").name == "lambda"
    assert FunctionModel(lambda _: Completion("b")).complete(messages).text == "b"
    call = {"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}
    answer = FunctionModel(lambda _: {"content": None, "tool_calls": [call]}).complete(messages)
    assert answer.calls == (call,) and answer.finish_reason == "tool_calls"
    for wrong in (None, 3, {"role": "assistant"}, {"content": ["a"]}):
        with pytest.raises(UsageError, match="has to return a text, a message"):
            FunctionModel(lambda _, wrong=wrong: wrong).complete(messages)
    scripted = ScriptedModel([])
    assert as_model(scripted) is scripted
    with pytest.raises(UsageError, match="model = 3 is no name"):
        as_model(3)  # type: ignore[arg-type]


def test_asynchronous_functions_may_block_their_loop_which_is_always_the_same() -> None:
    """Requests and remote sandboxes have another, so that a function may wait for those."""
    loops = []

    async def answer(_: list[Message]) -> str:
        loops.append(asyncio.get_running_loop())
        return event_loop.run_on_loop(asyncio.sleep(0, "answer"))

    for _ in range(2):
        assert FunctionModel(answer).complete([]).text == "answer"
    assert loops[0] is loops[1]


def test_a_configuration_takes_no_further_settings() -> None:
    with pytest.raises(UsageError, match="already has the agent"):
        intercode.evaluate(EvalConfig("starter", "gold"), "noop")  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="unknown setting"):
        intercode.evaluate("starter", "gold", limit_of_tasks=2)
