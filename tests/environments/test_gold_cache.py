"""The cache of golds: only stable golds, only with an unchanged key, and no broken entries."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import intercode
from intercode.core.types import Dataset, FileEntry, Image, Layer, State, Task
from intercode.environments.base import gold_cache
from intercode.environments.bash.env import BashEnv
from intercode.evaluation.check.dataset import check
from intercode.evaluation.check.stable_golds import compare_runs
from intercode.evaluation.check.task_runs import TaskRun
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
    assert gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
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
        {"spec": spec(layer="sha256:2@7200")},
        {"spec": spec(limits=Limits(disk=1 << 20))},
        {"spec": spec(env={"LANG": "C"})},
        {"spec": spec(hostname="other")},
        {"session": "fresh"},
    ],
)
def test_any_change_of_the_key_misses(other: dict[str, Any]) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
    wanted = {"task": TASK, "spec": spec(), "session": "persistent", **other}
    assert gold_cache.load_golds(**wanted) is None


def test_another_version_of_the_code_misses(monkeypatch: pytest.MonkeyPatch) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
    monkeypatch.setattr(gold_cache, "_code_digest", lambda: "another")
    assert gold_cache.load_golds(TASK, spec(), "persistent") is None


def test_an_entry_for_any_date_is_loaded_under_another_date() -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=False)
    assert gold_cache.load_golds(TASK, spec(layer="sha256:2@7200"), "persistent") == LEFT
    assert gold_cache.load_golds(TASK, spec(layer="sha256:9@7200"), "persistent") is None


@pytest.mark.parametrize(
    "code",
    [
        "date",
        "echo $(date +%Y)",
        "ls -l /",
        "find . -mtime -1",
        "find . -ls",
        "ps | wc -l",
        "cat /proc/uptime",
        "echo $RANDOM",
        "printf '%(%F)T'",
        "df .",
        "touch a; stat a",
        "w",
        "find . -printf '%T@'",
        "uname -r",
        "echo $EPOCHSECONDS",
        "who | wc -l",
        "/bin/date",
        "find . -exec ls -l {} \\; | wc -lc",
        "find . -exec ls -l {} \\; | wc -l -c",
        "cal 2000",
        "find . -exec ls -l {} \\; | wc",
        "find . -exec ls -l {} \\; | tee a | wc -l",
        "cal -3",
        "find . -exec ls -l {} \\; | wc -l a; date",
        "find . -mtime 1 -exec ls -l {} + | wc -l",
        "find / -path /proc -prune -o -path /sys -prune -o -name a -delete",
        "cal 12 2120-",
        "find / -path /proc -prune -o -path /sys -prune -o -path '/proc/*' -depth -print",
        "find / -path /proc -prune -o -path /sys -prune -o -printf '%T@'",
        "find /a -exec mv -t / {} + -o -exec find / {} +",
        "find / -path /sys -prune -o -print",
    ],
)
def test_code_that_reads_the_clock_or_the_machine_is_not_cached(code: str) -> None:
    for task in (Task("t", "q", gold=code), Task("t", "q", gold="true", setup=code)):
        assert not gold_cache.save_golds(
            task, spec(), "persistent", [State("x")], current_dates_only=True
        ), task
        assert gold_cache.load_golds(task, spec(), "persistent") is None


def test_golds_are_cached_up_to_the_first_that_is_not_cacheable() -> None:
    task = dataclasses.replace(TASK, also=("echo FIVE", "date", "echo 5"))
    states = [*LEFT, State("now"), State("5\n")]
    assert gold_cache.save_golds(task, spec(), "persistent", states, current_dates_only=True)
    assert gold_cache.load_golds(task, spec(), "persistent") == LEFT
    now = State(time.strftime("%H:%M"))
    gold_cache.save_golds(task, spec(), "persistent", [LEFT[0], now], current_dates_only=True)
    assert gold_cache.load_golds(task, spec(), "persistent") == LEFT[:1]


def test_results_are_stable_up_to_the_first_that_differs() -> None:
    def run(started: float, *golds: State) -> TaskRun:
        return TaskRun(started, "", 0, False, golds=golds)

    first, other = run(3600, *LEFT, State("a")), run(3601, *LEFT, State("b"))
    found = compare_runs(first, other, 3)
    assert found is not None and (found.hour, found.golds) == (1, tuple(LEFT))
    assert compare_runs(run(1), run(2), 0) is None
    assert compare_runs(first, run(3601, *LEFT), 3) is None, "the last gold did not run"
    assert compare_runs(first, dataclasses.replace(other, started=7200), 3) is None
    assert compare_runs(run(1, State("a")), run(2, State("b")), 1) is None


@pytest.mark.parametrize(
    ("code", "cwd", "cached"),
    [
        ("find / -name f", "/tmp", False),
        ("find -name f | wc -l", "/", False),
        ("find ${DIRECTORY} -type f", "/", False),
        ("grep -rn x", "/", False),
        ("grep -i -rn x .", "/", False),
        ("ls -R", "/", False),
        ("a=$(find .)", "/", False),
        ("find -name f | wc -l", "/tmp", True),
        ("find /tmp -name f", "/", True),
        ("grep -rn x '/tmp'", "/", True),
        ("grep x f", "/", True),
        ("ls -r", "/", True),
        ("cd /tmp/a && find .", "/", True),
        ("(cd /a.b/c; ls; grep -r x .)", "/", True),
        ("cd / && find .", "/", False),
        ("cd /tmp/.. && find .", "/", False),
        ("(cd /tmp && ls); find .", "/", False),
        ("cd /tmp && cd .. && find .", "/", False),
        ("cd /tmp || find .", "/", False),
        ("find .; cd /tmp && ls", "/", False),
    ],
)
def test_code_that_reads_proc_is_not_cached(code: str, cwd: str, cached: bool) -> None:
    task = Task("t", "q", gold=code, cwd=cwd)
    assert (
        gold_cache.save_golds(task, spec(), "persistent", [State("x")], current_dates_only=True)
        == cached
    )
    assert ("/proc" in gold_cache.nondeterminism_reason(code, cwd)) != cached


@pytest.mark.parametrize(
    "code",
    [
        "wc -w f",
        "sort -u a",
        "find . -type f -perm -o=w",
        "awk '{print $1}' f",
        "echo update",
        "sort | uniq -Dw32",
        "find . -name '*.date'",
        "md5sum a | cut -d' ' -f1",
        "ls /",
        "ls -a",
        "find . -exec ls -l {} \\; | wc -l",
        "n=$(find . -exec ls -lt {} + | wc -l)",
        "find / -path /proc -prune -o -path /sys -prune -o -name a -print",
        "cal 2 2000 | wc",
        "find /a -exec mv -t / {} +",
        "cal -3 12 2120",
    ],
)
def test_other_code_is_cached(code: str) -> None:
    task = Task("t", "q", gold=code, cwd="/tmp")
    assert gold_cache.save_golds(task, spec(), "persistent", [State("x")], current_dates_only=True)


def test_networks_the_host_image_and_printed_times_are_not_cached() -> None:
    for bad in (spec(network="host"), SandboxSpec(Image("host", "sha256:1"))):
        assert not gold_cache.save_golds(TASK, bad, "persistent", LEFT, current_dates_only=True)
    for form in ("%H:%M", "%Y-%m-%d", "%b %e", "it is %s"):
        shown = [State(time.strftime(form) + "\n"), LEFT[1]]
        assert not gold_cache.save_golds(
            TASK, spec(), "persistent", shown, current_dates_only=True
        ), form
    assert not any(
        gold_cache.contains_current_time("five 12 a:b 17 lines\n", at) for at in (0.0, 1.8e9)
    )


SPOILERS: dict[str, Callable[[bytes], bytes]] = {
    "cut short": lambda data: data[: len(data) // 2],
    "empty": lambda data: b"",
    "changed": lambda data: data.replace(b"five", b"four"),
    "not text": lambda data: b"\xff" + data,
}


@pytest.mark.parametrize("how", SPOILERS)
def test_a_broken_entry_is_ignored_and_removed(cache: Path, how: str) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
    (path,) = (cache / "golds").iterdir()
    path.write_bytes(SPOILERS[how](path.read_bytes()))
    assert gold_cache.load_golds(TASK, spec(), "persistent") is None
    assert not path.exists()


def test_an_entry_of_another_key_is_ignored(cache: Path) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
    (path,) = (cache / "golds").iterdir()
    gold_cache.save_golds(
        dataclasses.replace(TASK, gold="echo 5"),
        spec(),
        "persistent",
        LEFT,
        current_dates_only=True,
    )
    (other,) = set((cache / "golds").iterdir()) - {path}
    path.replace(other)
    assert (
        gold_cache.load_golds(dataclasses.replace(TASK, gold="echo 5"), spec(), "persistent")
        is None
    )


def test_an_entry_is_valid_for_a_day(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold_cache.save_golds(TASK, spec(), "persistent", LEFT, current_dates_only=True)
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
GOLDS = {
    "t/steady": "echo five; mkdir /tmp/d; echo x > /tmp/d/f; false",
    "t/volatile": "cat /*/urando[m] | head -c9 | od",
    "t/leaves": "cat /*/urando[m] | head -c9 > /tmp/drawn",
    "t/clock": "date +%Y",
}


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
    assert check(dataset, cache_golds=False).cached_tasks == 0 and list(tmp_path.iterdir()) == []
    report = check(dataset)
    assert report.cached_tasks == 1 and report.metadata["golds"] == "run"
    with intercode.make("bash", dataset=dataset) as env:
        for name, cached in (("t/steady", True), *((n, False) for n in list(GOLDS)[1:])):
            env.reset(options={"task": name})
            golds = env._profile_impl.cached_golds(env._episode)
            assert (golds is not None) == cached, name
        env.reset(options={"task": "t/steady"})
        env.step(GOLDS["t/steady"])
        assert env.score().success
        assert env.cache_golds([State("something else", exit_code=0)], current_dates_only=True)
        assert env.score().success, "within an episode the gold stays what it is"
        env.reset(options={"task": "t/steady"})
        env.step(GOLDS["t/steady"])
        for path in tmp_path.iterdir():  # removes the entry for any date, which takes precedence
            if "something else" not in path.read_text():
                path.unlink()
        assert not env.score().success, "the cached state is compared"
        assert env.result_metadata()["golds"] == "cached"
    with BashEnv(dataset, use_gold_cache=False) as env:
        env.reset(options={"task": "t/steady"})
        env.step(GOLDS["t/steady"])
        assert env.score().success and env.result_metadata()["golds"] == "run"
    with BashEnv(dataset, profile="original") as env:
        env.reset(options={"task": "t/steady"})
        assert env.result_metadata()["golds"] == "run" and not env.cache_golds(
            [State("x")], current_dates_only=True
        )


@pytest.mark.sandbox
def test_no_sandbox_can_read_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    # the sandbox's user cannot reach the test's own cache in any case
    monkeypatch.delenv("INTERCODE_CACHE")
    unique = spec(digest=f"sha256:{time.time_ns()}")
    assert gold_cache.save_golds(TASK, unique, "persistent", LEFT, current_dates_only=True)
    key = gold_cache._entry_key(TASK, unique, "persistent", current_dates_only=True)
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
