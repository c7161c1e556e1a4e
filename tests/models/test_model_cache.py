"""The cache of completions: keys, usage, modes, many processes, kill -9."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from intercode.core.config import EvalConfig
from intercode.core.errors import ConfigError, ModelRefusedError
from intercode.core.types import Trajectory, Usage
from intercode.evaluation.evaluate.budgets import RunBudget
from intercode.evaluation.saving import SavedEpisode
from intercode.models import Budget, Message, OpenAIModel, SpendingLimits, Tool, limit_model
from intercode.models.base import Completion
from intercode.models.cache import CompletionCache, cache_key
from support.faulty_endpoint import FaultyEndpoint, completion, ok, status

ASK: list[Message] = [{"role": "user", "content": "hello"}]
PRICE = {"input": 1.0, "output": 2.0}


def model_at(server: FaultyEndpoint, file: Path, **options: Any) -> OpenAIModel:
    return OpenAIModel("m", server.base_url, cache=file, **options)


def test_a_cached_answer_is_free_and_has_its_original_usage(tmp_path: Path) -> None:
    with FaultyEndpoint(ok("one"), ok("two")) as server:
        with model_at(server, tmp_path / "a.sqlite", price=PRICE) as model:
            first = model.complete(ASK)
        with model_at(server, tmp_path / "a.sqlite", price=PRICE) as model:
            again = model.complete(ASK)
            assert model.get_cached(ASK) == again
            assert model.traffic().from_cache == 2
    assert (again.text, again.cached, first.cached) == ("one", True, False)
    assert again.usage == Usage(0, 0, 0, 0, 0, 0.0)
    assert again.original_usage == first.usage
    assert again.original_usage.cost == pytest.approx((7 + 2 * 2) / 1e6)
    assert len(server.requests) == 1


def test_everything_that_can_change_an_answer_makes_another_request(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    tool = Tool("run", "Runs code.", {"type": "object"})
    changes: list[dict[str, Any]] = [
        {},
        {"temperature": 0.5},
        {"seed": 1},
        {"max_tokens": 5},
        {"stop": "x"},
        {"extra": {"min_p": 1}},
        {"headers": {"X-Version": "2"}},
        {"api": "completions"},
    ]
    with FaultyEndpoint(*[ok(str(n)) for n in range(20)]) as server:
        for options in changes * 2:
            with model_at(server, file, **options) as model:
                if options.get("api") != "completions":
                    model.complete(ASK)
        with model_at(server, file) as model:
            texts = [
                model.complete(ASK, tools=[tool]).text,
                model.complete([{"role": "user", "content": "hello "}]).text,
                *(model.for_sample(k).complete(ASK).text for k in (0, 1, 2, 1)),
            ]
    assert len(server.requests) == 7 + 2 + 2
    assert texts[2] == "0"  # sample 0 is the model itself
    assert texts[3] == texts[5]
    assert len({*texts[:5]}) == 5


def texts_of_an_episode(model: OpenAIModel, asked: int) -> list[str]:
    """Return the answers to equal requests of one episode."""
    metered = RunBudget(EvalConfig("starter", "noop"), Usage()).start_episode(model).model
    assert metered is not None
    return [metered.complete(ASK).text for _ in range(asked)]


def test_equal_requests_of_an_episode_are_answered_one_by_one(tmp_path: Path) -> None:
    """Also where the first fails, and in another episode, which has the same samples."""
    file = tmp_path / "a.sqlite"
    with FaultyEndpoint(status(400, {}), *[ok(str(n)) for n in range(5)]) as server:
        with model_at(server, file, temperature=0.5) as model:
            metered = RunBudget(EvalConfig("starter", "noop"), Usage()).start_episode(model).model
            assert metered is not None
            with pytest.raises(ModelRefusedError):
                metered.complete(ASK)
            assert [metered.complete(ASK).text for _ in range(3)] == ["0", "1", "2"]
            assert texts_of_an_episode(model, 3) == ["0", "1", "2"]
        with model_at(server, file, temperature=0.5, cache_mode="only") as model:
            assert texts_of_an_episode(model, 4) == ["0", "1", "2", "0"]
        with model_at(server, file, temperature=0) as model:
            assert texts_of_an_episode(model, 2) == ["3", "3"]
    assert len(server.requests) == 1 + 3 + 1


def test_answers_that_were_saved_count_as_sent(tmp_path: Path) -> None:
    record = Trajectory("t", 0, "q", ())
    with FaultyEndpoint(ok("0"), ok("1")) as server, model_at(server, tmp_path / "a") as model:
        budget = RunBudget(EvalConfig("starter", "noop"), Usage())
        first = model.complete(ASK)
        saved = SavedEpisode(record, (first,), {})
        metered = budget.start_episode(model, saved=saved).model
        assert metered is not None
        assert [metered.complete(ASK).text for _ in range(2)] == ["0", "1"]


def test_api_keys_are_neither_in_the_cache_key_nor_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    secret = "sk-very-secret-0123456789"
    with FaultyEndpoint(ok("one"), ok("two")) as server:
        for key in (secret, "sk-another-0123456789"):
            headers = {"X-Api-Key": key}
            with model_at(server, file, api_key=key, headers=headers) as model:
                assert model.complete(ASK).text == "one"
        found = b"".join(f.read_bytes() for f in tmp_path.iterdir())
    assert secret.encode() not in found
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_modes(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    with FaultyEndpoint(*[ok(str(n)) for n in range(9)]) as server:

        def requested(mode: str) -> str:
            with model_at(server, file, cache_mode=mode) as model:
                return model.complete(ASK).text

        assert [requested("read-only"), requested("read-only")] == ["0", "1"]
        with pytest.raises(ModelRefusedError, match="cache_mode is 'only'"):
            requested("only")
        assert [requested("use"), requested("use"), requested("read-only")] == ["2"] * 3
        assert [requested("refresh"), requested("use"), requested("only")] == ["3"] * 3


def test_a_seed_differs_between_samples() -> None:
    model = OpenAIModel("m", "http://localhost/v1", seed=10)
    seeds = [
        m.request(ASK, ())["seed"]
        for m in (model, model.for_sample(2), model.for_sample(2).for_sample(1))
    ]
    assert seeds == [10, 12, 11]
    assert model.for_sample(1).metadata()["generation"]["seed"] == 11


def test_every_part_of_an_answer_is_cached(tmp_path: Path) -> None:
    call: Any = {"id": "1", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    whole = Completion(
        "t\udcff",
        Usage(1, 2, 3, 4, 5, 0.5, 1.5),
        "stop",
        "m",
        (call,),
        "hm",
        {"openai": {"reasoning_details": [1]}},
        {"ids": [1], "logprobs": [-0.5]},
    )
    cache = CompletionCache(tmp_path / "a.sqlite")
    cache.put("k", whole)
    got = cache.get("k")
    assert got is not None
    for name in ("text", "finish_reason", "model", "calls", "reasoning", "provider", "tokens"):
        assert getattr(got, name) == getattr(whole, name)
    assert got.original_usage == whole.usage
    cache.close()
    assert cache.get("k") == got  # opened again


def test_a_file_that_is_not_a_cache_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but long enough to be taken for one " * 40)
    with pytest.raises(ConfigError, match=r"notes\.txt"):
        CompletionCache(file)
    with pytest.raises(ConfigError):
        CompletionCache(tmp_path)


def test_the_default_path_is_in_the_cache_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path))
    assert CompletionCache(True).path == tmp_path / "answers.sqlite"


WRITER = """
import sys
import threading
from intercode.models.cache import CompletionCache
from intercode.models.base import Completion
cache = CompletionCache(sys.argv[1])
for n in range(int(sys.argv[3]), 10**9):
    cache.put(f"{sys.argv[2]}-{n}", Completion("x" * 3000))
    print(n, flush=True)
"""


def test_a_file_that_another_process_is_creating_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE other (name)")
        other.execute("BEGIN IMMEDIATE")
        timer = threading.Timer(0.2, other.execute, ["COMMIT"])
        timer.start()
        CompletionCache(file).put("a", Completion("x"))
        timer.join()


@pytest.mark.slow
def test_many_processes_write_and_one_is_killed(tmp_path: Path) -> None:
    """Entries written before the kill are kept, and the other processes continue."""
    file = str(tmp_path / "a.sqlite")
    commands = [[sys.executable, "-c", WRITER, file, name, "0"] for name in "abc"]
    writers = [subprocess.Popen(c, stdout=subprocess.PIPE, text=True) for c in commands]
    for writer in writers:
        assert writer.stdout is not None
        for _ in range(5):
            writer.stdout.readline()
    writers[0].send_signal(signal.SIGKILL)
    printed = [w.stdout.readline() for w in writers[1:] for _ in range(5) if w.stdout]
    for writer in writers:
        writer.kill()
    counts = [len(w.communicate()[0].splitlines()) for w in writers]
    cache = CompletionCache(file)
    assert all(printed)
    assert counts[0] >= 0
    for name in "abc":
        assert cache.get(f"{name}-4") is not None
    cache.put("after", Completion("y"))
    assert cache.get("after") is not None


def test_a_child_after_a_fork_uses_the_file_on_its_own(tmp_path: Path) -> None:
    cache = CompletionCache(tmp_path / "a.sqlite")
    cache.put("parent", Completion("p"))
    child = os.fork()
    if child == 0:
        signal.alarm(120)
        found = cache.get("parent")
        cache.put("child", Completion("c"))
        os._exit(0 if found is not None and found.text == "p" else 1)
    assert os.waitpid(child, 0) == (child, 0)
    assert cache.get("child") is not None


def test_a_key_does_not_depend_on_the_order_of_names() -> None:
    assert cache_key({"a": 1, "b": [{"c": 2, "d": 3}]}) == cache_key(
        {"b": [{"d": 3, "c": 2}], "a": 1}
    )
    assert cache_key({"a": 1}) != cache_key({"a": "1"})


def test_the_query_of_an_address_is_part_of_the_question(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    with FaultyEndpoint(ok("one"), ok("two")) as server:
        texts, endpoints = [], []
        for version in ("1", "2", "1"):
            url = f"{server.base_url}?api-version={version}"
            with OpenAIModel("m", url, cache=file) as model:
                texts.append(model.complete(ASK).text)
                assert "api-version" not in model.endpoint
                endpoints.append(model.endpoint)
    assert texts == ["one", "two", "one"]
    # another query may be another model: a run is not continued there
    assert endpoints[0] == endpoints[2] != endpoints[1]


def test_an_answer_cut_at_the_models_own_limit_is_cached(tmp_path: Path) -> None:
    choice = {"message": {"role": "assistant", "content": "one"}, "finish_reason": "length"}
    cut = completion(choices=[choice])
    with FaultyEndpoint(status(200, cut), ok("two")) as server:
        model = model_at(server, tmp_path / "a.sqlite", max_tokens=50)
        asker = limit_model(model, Budget(SpendingLimits(tokens=100_000)))
        assert [asker.complete(ASK).text for _ in range(2)] == ["one", "one"]
        model.close()


def test_an_error_of_the_cache_file_names_it(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    cache = CompletionCache(file)
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("DROP TABLE answers")
    with pytest.raises(ConfigError, match=r"a\.sqlite as a cache"):
        cache.get("k")
    with pytest.raises(ConfigError, match=r"a\.sqlite as a cache"):
        cache.put("k", Completion("t"))
    cache.close()
