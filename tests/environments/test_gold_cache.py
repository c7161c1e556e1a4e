"""The cache of golds: only stable golds, only with an unchanged key, and no broken entries."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.types import Dataset, FileEntry, Image, Layer, LayerSpec, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.bash.env import BashEnv
from intercode.evaluation.check import task_runs
from intercode.evaluation.check.dataset import check
from intercode.evaluation.check.stable_golds import cache_stable, compare_runs
from intercode.evaluation.check.task_runs import TaskRun, TaskRunner
from intercode_sandbox import Limits, SandboxSpec
from support import backend, requirements
from support.sandboxes import open_test_sandbox

TASK = Task("d/0", "Print five.", gold="echo five", also=("echo FIVE",))
LEFT = [
    State("five\n", {"/tmp/\udcff": FileEntry("file", 0o644, 1, "ab")}, cwd="/tmp", exit_code=0),
    State("FIVE\n", exit_code=1),
]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("INTERCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def spec(digest: str = "sha256:1", layer: str = "sha256:2@3600", **more: Any) -> SandboxSpec:
    image = Image("tar:x", digest, Path("/nowhere"))
    return SandboxSpec(image, (Layer(Path("/nowhere/layer"), layer),), **more)


def test_a_saved_entry_is_loaded() -> None:
    assert gold_cache.load_golds(TASK, spec(), "persistent") is None
    assert gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    assert gold_cache.load_golds(TASK, spec(), "persistent") == LEFT
    other = dataclasses.replace(TASK, id="d/1", query="Say so.")
    assert gold_cache.load_golds(other, spec(), "persistent") == LEFT, (
        "the words of a task do not matter"
    )


@pytest.mark.parametrize(
    "other",
    [
        {"task": dataclasses.replace(TASK, gold="echo  five")},
        {"task": dataclasses.replace(TASK, also=("echo six",))},
        {"task": dataclasses.replace(TASK, also=())},
        {"task": dataclasses.replace(TASK, setup="x=1")},
        {"task": dataclasses.replace(TASK, cwd="/usr")},
        {"spec": spec("sha256:other")},
        {"spec": spec(layer="sha256:3@3600")},
        {"spec": spec(limits=Limits(disk=1 << 20))},
        {"spec": spec(env={"LANG": "C"})},
        {"spec": spec(hostname="other")},
        {"session": "fresh"},
    ],
)
def test_any_change_of_the_key_misses(other: dict[str, Any]) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    wanted = {"task": TASK, "spec": spec(), "session": "persistent", **other}
    assert gold_cache.load_golds(**wanted) is None


def test_another_version_of_the_code_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    monkeypatch.setattr(gold_cache, "_code_digest", lambda: "another")
    assert gold_cache.load_golds(TASK, spec(), "persistent") is None


def test_an_entry_is_loaded_when_the_files_of_the_task_have_other_dates() -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    assert gold_cache.load_golds(TASK, spec(layer="sha256:2@7200"), "persistent") == LEFT
    assert gold_cache.load_golds(TASK, spec(layer="sha256:9@7200"), "persistent") is None


def test_an_entry_is_for_the_processors_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    gold_cache._machine.cache_clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    try:
        one = gold_cache._machine()
        gold_cache._machine.cache_clear()
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
        assert gold_cache._machine() != one
    finally:
        gold_cache._machine.cache_clear()


def test_results_are_equal_up_to_the_first_that_differs() -> None:
    def run(*golds: State) -> TaskRun:
        return TaskRun(1, "", 0, False, golds=golds)

    first, other = run(*LEFT, State("a")), run(*LEFT, State("b"))
    assert compare_runs(first, other, 3) == tuple(LEFT)
    assert compare_runs(run(), run(), 0) is None
    assert compare_runs(first, run(*LEFT), 3) is None, "the last gold did not run"
    assert compare_runs(run(State("a")), run(State("b")), 1) is None


def test_golds_with_a_network_and_on_the_host_image_are_not_cached() -> None:
    for bad in (spec(network="host"), SandboxSpec(Image("host", "sha256:1"))):
        assert not gold_cache.save_golds(TASK, bad, "persistent", LEFT)


SPOILERS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "changed": lambda data: data.replace(b"five", b"four"),
    "not text": lambda data: b"\xff" + data,
}


@pytest.mark.parametrize("how", SPOILERS)
def test_a_broken_entry_is_ignored_and_removed(cache: Path, how: str) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    (path,) = (cache / "golds").iterdir()
    path.write_bytes(SPOILERS[how](path.read_bytes()))
    assert gold_cache.load_golds(TASK, spec(), "persistent") is None
    assert not path.exists()


def test_an_entry_of_another_key_is_ignored(cache: Path) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    (path,) = (cache / "golds").iterdir()
    gold_cache.save_golds(
        dataclasses.replace(TASK, gold="echo 5"),
        spec(),
        "persistent",
        LEFT,
    )
    (other,) = set((cache / "golds").iterdir()) - {path}
    path.replace(other)
    assert (
        gold_cache.load_golds(dataclasses.replace(TASK, gold="echo 5"), spec(), "persistent")
        is None
    )


def test_an_entry_is_valid_for_a_day(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT)
    now = time.time()
    for later, found in ((0.9 * gold_cache.MAX_AGE, True), (1.1 * gold_cache.MAX_AGE, False)):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        assert (gold_cache.load_golds(TASK, spec(), "persistent") is not None) == found
    assert list((cache / "golds").iterdir()) == []


def test_an_environment_may_run_every_gold() -> None:
    with intercode.make("bash", Dataset("d", "bash", (TASK,)), use_gold_cache=False) as env:
        assert not env.use_gold_cache and env.result_metadata()["golds"] == "run"
        env.use_gold_cache = True
        assert env.use_gold_cache and env.result_metadata()["golds"] == "cached"


# ------------------------------------------------------------------------ with sandboxes
AGES = (
    "find /work -mmin -60",
    "find /work -mtime -1",
    "find /work -cmin -60",
    "find /work -newermt '-1 hour'",
    "find /work -newerct '-30 min'",
    "touch -d '-1 hour' r; [ /work/new -nt r ]",
)
GOLDS = {
    "t/steady": "echo five; mkdir /tmp/d; echo x > /tmp/d/f; false",
    "t/volatile": "head -c9 /dev/urandom | od",
    "t/leaves": "head -c9 /dev/urandom > /tmp/drawn",
    "t/day": "date +%F",
    "t/age": "find /etc/passwd -mtime -2000",
    "t/draws": "echo $((RANDOM % 3 + 1))$((RANDOM % 3))$((RANDOM % 3))$((RANDOM % 3))",
    "t/written": "echo x > /tmp/f; ls -l /tmp/f",
    "t/fixed-day": "date -u -d 2000-01-01 +%A; du -s /etc/passwd | wc -l; "
    "find / -path /proc -prune -o -path /sys -prune -o -name no-such",
}
STEADY = ("t/steady", "t/fixed-day")


@pytest.fixture
def image(monkeypatch: pytest.MonkeyPatch) -> str:
    name = requirements.image("nl2bash")
    monkeypatch.delenv("INTERCODE_CACHE")  # the default cache has the image
    return name


@pytest.mark.paper
@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.rootfs
def test_check_caches_stable_golds_and_episodes_use_them(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gold_cache, "_cache_directory", lambda: tmp_path)
    tasks = tuple(Task(name, f"query {name}", gold) for name, gold in GOLDS.items())
    dataset = Dataset("made", "bash", tasks, image=image)
    for no_cache in ({"cache_golds": False}, {"env_options": {"use_gold_cache": False}}):
        assert check(dataset, **no_cache).cached_tasks == 0 and list(tmp_path.iterdir()) == []
    report = check(dataset)
    assert report.cached_tasks == len(STEADY) and report.metadata["golds"] == "run"
    with intercode.make("bash", dataset=dataset) as env:
        for name in GOLDS:
            env.reset(options={"task": name})
            golds = env._profile_impl.cached_golds(env.context)
            assert (golds is not None) == (name in STEADY), name
    with BashEnv(dataset, use_gold_cache=False) as env:
        env.reset(options={"task": "t/steady"})
        env.step(GOLDS["t/steady"])
        assert env.score().success and env.result_metadata()["golds"] == "run"
    with BashEnv(dataset, profile="original") as env:
        env.reset(options={"task": "t/steady"})
        assert env.result_metadata()["golds"] == "run" and not env.cache_golds([State("x")])


@pytest.mark.sandbox
@pytest.mark.rootfs
def test_a_cached_state_confirms_a_success_and_lowers_no_score(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gold_cache, "_cache_directory", lambda: tmp_path)
    with intercode.make("bash", dataset=Dataset("d", "bash", (TASK,), image=image)) as env:

        def scores_of(action: str) -> tuple[bool, list[State] | None]:
            env.reset(options={"task": TASK.id})
            env.step(action)
            success = env.score().success
            env.reset(options={"task": TASK.id})
            return success, env._profile_impl.cached_golds(env.context)

        env.reset(options={"task": TASK.id})
        other = State("six\n", exit_code=0, cwd=env.context.workspace.cwd)
        assert env.cache_golds([other])
        assert scores_of("echo six") == (True, [other])
        assert scores_of("echo five") == (True, None), "what the gold does not reach is removed"
        assert scores_of("echo six") == (False, None)
        assert env.result_metadata()["golds"] == "cached"


@pytest.mark.slow
@pytest.mark.sandbox
@pytest.mark.rootfs
def test_golds_that_read_the_ages_of_new_files_are_not_cached(
    image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = tmp_path / "files"
    (made / "work").mkdir(parents=True)
    (made / "work" / "new").write_text("x")
    files, scored = (LayerSpec("dir", made),), []
    tasks = (
        Task("t/plain", "Show it.", "cat /work/new", files=files),
        *(Task(f"t/{n}", "Find it.", code, files=files) for n, code in enumerate(AGES)),
        Task("t/probed", "Show it.", "cat /work/new", files=files, probe="echo x"),
    )

    class Runner(TaskRunner):
        def score_here(self, golds: Sequence[State] = ()) -> Any:
            scored.append(self.env.task.id)
            return super().score_here(golds)

    monkeypatch.setattr(gold_cache, "_cache_directory", lambda: tmp_path / "golds")
    dataset = Dataset("made", "bash", tasks, image=image)
    has_copies = backend.is_chroot() or backend.is_container()  # new ones in each sandbox
    copied = ("-cmin", "-newerct") if has_copies else ()
    stable = [code for code in AGES if any(word in code for word in copied)]
    assert check(dataset).cached_tasks == 1 + len(stable)
    monkeypatch.setattr(task_runs, "TaskRunner", Runner)
    equal = dict.fromkeys((0, len(tasks) - 1), (State("", exit_code=0),))
    assert cache_stable(dataset, {"image": image}, 2, equal) == 0
    assert scored == ["t/plain"], "no state is equal to this one after the first clock"


@pytest.mark.sandbox
def test_no_sandbox_can_read_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    # the sandbox's user cannot reach the test's own cache in any case
    monkeypatch.delenv("INTERCODE_CACHE")
    unique = spec(digest=f"sha256:{time.time_ns()}")
    assert gold_cache.save_golds(TASK, unique, "persistent", LEFT)
    key = gold_cache._entry_key(TASK, unique, "persistent")
    path = gold_cache._cache_directory() / f"{gold_cache._digest(key)}.json"
    try:
        assert path.parent.stat().st_mode & 0o777 == 0o700
        with open_test_sandbox() as sandbox:
            listing = sandbox.run(["/bin/sh", "-c", f"ls {path.parent}; cat {path}"])
            mounts = sandbox.run(["cat", "/proc/self/mountinfo"])
        assert listing.output.count("No such file") == 2
        assert mounts.ok != backend.is_chroot() and "golds" not in mounts.output  # it has no /proc
    finally:
        path.unlink()
