"""Runs that are reported to other programs: Weights & Biases and OpenTelemetry, offline."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.errors import ConfigError, UsageError
from intercode.core.types import Trajectory
from intercode.evaluation.evaluate.progress import Progress
from intercode.evaluation.tracking import RunTracker
from support.faulty_endpoint import FaultyEndpoint, ok, status

SECRETS = ("sk-the-key-of-a-user", "$((3*3))", "squared")
"""A key, a part of a gold and a part of a query."""


def models(endpoint: FaultyEndpoint) -> dict[str, Any]:
    return {"model": "openai/gpt-4o-mini", "base_url": endpoint.base_url}


# ------------------------------------------------------------------ Weights & Biases
def offline_records(directory: Path) -> list[Any]:
    """Return the records of an offline run: protocol buffers in LevelDB's log format, in blocks of
    32 KiB, of chunks with a checksum, a length and a type."""
    from wandb.proto import wandb_internal_pb2

    (file,) = directory.glob("*.wandb")
    data, position, record, records = file.read_bytes(), 7, b"", []
    while position + 7 <= len(data):
        left = 32768 - position % 32768
        if left < 7:
            position += left
            continue
        _, length, kind = struct.unpack("<IHB", data[position : position + 7])
        record += data[position + 7 : position + 7 + length]
        position += 7 + length
        if kind in (1, 4):  # a whole record, or its last chunk
            records.append(wandb_internal_pb2.Record.FromString(record))
            record = b""
    return records


def curves(directory: Path) -> list[dict[str, Any]]:
    return [
        {i.key or i.nested_key[0]: json.loads(i.value_json) for i in r.history.item}
        for r in offline_records(directory)
        if r.WhichOneof("record_type") == "history"
    ]


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_resumed_run_continues_its_run_in_weights_and_biases(
    squares: str, tmp_path: Path
) -> None:
    pytest.importorskip("wandb", reason="pip install 'intercode-gym[tracking]'")
    environment = {
        **os.environ,
        "WANDB_MODE": "offline",
        "WANDB_DATA_DIR": str(tmp_path),
        "WANDB_CACHE_DIR": str(tmp_path),
        "OPENAI_API_KEY": SECRETS[0],
    }
    with FaultyEndpoint(ok("```bash\necho 9\n```")) as endpoint:
        command = [
            sys.executable,
            "-m",
            "intercode",
            "eval",
            squares,
            "--agent",
            "single-turn",
            "--model",
            "openai/gpt-4o-mini",
            "--base-url",
            endpoint.base_url,
            "--log",
            "wandb",
            "--set",
            f"model_options.api_key={SECRETS[0]}",
            "--out",
            "runs/a",
            "--parallel",
            "1",
            "--set",
            'model_options.price={"input": 1.0, "output": 2.0}',
        ]
        for limit in (2, 4):
            done = subprocess.run(
                [*command, "--limit", str(limit)],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            assert "wandb: " in done.stderr and "wandb sync" in done.stderr
    first, second = sorted((tmp_path / "runs/a/wandb").glob("offline-run-*"))
    runs = [
        next(r.run for r in offline_records(directory) if r.WhichOneof("record_type") == "run")
        for directory in (first, second)
    ]
    recorded = json.loads((tmp_path / "runs/a/wandb.json").read_text())
    assert {run.run_id for run in runs} == {recorded["id"]}
    config = {item.key: json.loads(item.value_json) for item in runs[0].config.update}
    assert config["agent"] == "single-turn" and config["model"] == "openai/gpt-4o-mini"
    assert config["settings"]["limit"] == 2 and config["dataset_hash"]
    points = [*curves(first), *curves(second)]
    assert [p["episodes"] for p in points if "episode/reward" in p] == [1, 2, 3, 4]
    last = [p for p in points if "success" in p][-1]
    assert last["success"] == 0.25 and 0 < last["success_low"] < 0.25 < last["success_high"]
    assert (last["prompt_tokens"], last["completion_tokens"]) == (28, 8)
    assert last["cost"] == pytest.approx((28 * 1.0 + 8 * 2.0) / 1e6)
    table = json.loads(next(second.rglob("*.table.json")).read_text())
    rows = [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]
    assert [row["task"] for row in rows] == ["sums/0", "sums/1", "sums/2", "sums/3"]
    assert [row["success"] for row in rows] == [False, False, False, True]
    for path in (tmp_path / "runs/a/wandb").rglob("*"):
        data = path.read_bytes() if path.is_file() else b""
        assert not [s for s in SECRETS if s.encode() in data], path


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("wandb", "otel"):
        for module in ("wandb", "opentelemetry.trace"):
            monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ConfigError, match=rf"--log {name} .*intercode-gym\[tracking\]"):
            intercode.evaluate("starter", "gold", limit=1, out=tmp_path / "a", log=name)
    with pytest.raises(UsageError, match="unknown tracker 'wand'; did you mean 'wandb'"):
        intercode.evaluate("starter", "gold", limit=1, out=tmp_path / "a", log="wand")
    assert not (tmp_path / "a").exists()


# ------------------------------------------------------------------ OpenTelemetry
@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The spans that this process has ended, in the order of their ends."""
    reason = "pip install 'intercode-gym[tracking]'"
    export = pytest.importorskip("opentelemetry.sdk.trace.export", reason=reason)
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    provider, exporter = TracerProvider(), memory.InMemorySpanExporter()
    provider.add_span_processor(export.SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    yield exporter.get_finished_spans
    provider.shutdown()


def known_names() -> set[str]:
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes

    deprecated = {"gen_ai.system", "gen_ai.prompt", "gen_ai.completion"}
    return {v for v in vars(gen_ai_attributes).values() if isinstance(v, str)} - deprecated


@pytest.mark.sandbox
def test_episodes_turns_requests_and_actions_are_spans(
    squares: str, tmp_path: Path, spans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", SECRETS[0])
    replies = (status(429), ok("```bash\necho $((3*3))\n```"), ok("```bash\nsubmit\n```"))
    with FaultyEndpoint(*replies) as endpoint:
        intercode.evaluate(
            squares,
            "try-again",
            tasks=["sums/3"],
            out=tmp_path / "a",
            log="otel",
            quiet=True,
            model_options={"temperature": 0.5},
            **models(endpoint),
        )
    found = spans()
    by_id = {s.context.span_id: s for s in found}
    (episode,) = [s for s in found if s.parent is None]
    assert (
        episode.name == "invoke_agent try-again" and len({s.context.trace_id for s in found}) == 1
    )
    assert episode.attributes["intercode.task"] == "sums/3"
    assert episode.attributes["gen_ai.usage.input_tokens"] == 7
    (scored,) = episode.events
    assert scored.name == "gen_ai.evaluation.result"
    assert scored.attributes["gen_ai.evaluation.score.label"] == "solved"
    (chat,) = [s for s in found if s.name == "chat gpt-4o-mini"]
    assert chat.kind.name == "CLIENT" and by_id[chat.parent.span_id].name == "turn 1"
    assert dict(chat.attributes) | {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "m-2024",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.output_tokens": 2,
        "server.address": "127.0.0.1",
        "server.port": int(endpoint.base_url.split(":")[2][:-3]),
    } == dict(chat.attributes)
    (action,) = [s for s in found if s.name == "execute_tool bash"]
    assert action.attributes["intercode.exit_code"] == 0
    assert by_id[action.parent.span_id].name == "turn 1"
    assert chat.end_time - chat.start_time > 5e8, "with the wait after the rate limit"
    names = {n for s in found for o in (s, *s.events) for n in o.attributes}
    assert {n for n in names if n.startswith("gen_ai.")} <= known_names()
    assert not [s for s in SECRETS if s in "".join(span.to_json() for span in found)]


@pytest.mark.sandbox
def test_texts_are_reported_on_request_and_golds_never(
    squares: str, tmp_path: Path, spans: Any
) -> None:
    for agent, model in (("single-turn", lambda _: "```bash\necho 9\n```"), ("gold", None)):
        intercode.evaluate(
            squares,
            agent,
            model=model,
            limit=1,
            out=tmp_path / agent,
            log=("otel", f"{__file__}:Failing", "content"),
            quiet=True,
        )
    texts = [(s.name, s.to_json()) for s in spans()]
    asked = next(text for name, text in texts if name.startswith("chat"))
    assert "squared" in asked and "echo 9" in asked
    assert any("echo 9" in text for name, text in texts if name == "execute_tool bash")
    assert not [name for name, text in texts if "$((0*0))" in text]


@pytest.mark.sandbox
def test_an_error_is_recorded_by_its_kind(squares: str, tmp_path: Path, spans: Any) -> None:
    def model(messages: object) -> str:
        raise RuntimeError(f"{SECRETS[0]} is refused")

    intercode.evaluate(
        squares, "single-turn", model=model, limit=1, out=tmp_path / "a", log="otel", quiet=True
    )
    found = spans()
    assert {s.name: s.attributes["error.type"] for s in found}["chat model"] == "RuntimeError"
    assert all(s.status.status_code.name == "ERROR" for s in found)
    assert SECRETS[0] not in "".join(s.to_json() for s in found)


# ------------------------------------------------------------------ trackers of one's own
class Failing(RunTracker):
    """Fails at the second episode that has ended."""

    def add(self, trajectory: Trajectory, progress: Progress) -> None:
        if progress.done == 2:
            raise OSError("the server is gone")


@pytest.mark.sandbox
def test_a_run_goes_on_without_a_tracker_that_fails(
    squares: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{__file__}:Failing"
    run = intercode.evaluate(squares, "gold", limit=4, parallel=1, out=tmp_path / "a", log=[name])
    assert [t.success for t in run.episodes] == [True] * 4
    expected = f"the run goes on without {name}: OSError: the server is gone"
    assert capsys.readouterr().err.count(expected) == 1
