"""Playing SWE-bench's rows: only the patch is tested, and it cannot change the tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from intercode.core.config import make_config
from intercode.core.errors import DataError, InfrastructureError, UsageError
from intercode.core.types import Image
from intercode.datasets import load
from intercode.environments import make
from intercode.environments.base.sandboxed_env import SandboxedEnv
from intercode.evaluation.check.dataset import check
from intercode.evaluation.evaluate.plan import make_plan, open_env
from intercode.evaluation.evaluate.sandbox_check import require_sandboxes
from intercode.integrations.swe_bench.env import SweBenchEnv
from intercode.integrations.swe_bench.grading import (
    is_protected,
    read_report,
    report_key,
    suspicious_lines,
)
from support.swe_bench import NEW_TESTS, write_instances

pytestmark = pytest.mark.sandbox

FIX = "sed -i 's/n + n + 1/n + n/; s,// 3,// 2,' pkg.py"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> str:
    rows = write_instances(tmp_path_factory.mktemp("swe"))
    return f"swe-bench:{rows}?images={rows.parent}/images.json"


@pytest.fixture(scope="module")
def env(spec: str) -> Iterator[SweBenchEnv]:
    with make("swe-bench", spec) as opened:
        yield opened


def test_golds_solve_and_doing_nothing_does_not(env: SweBenchEnv) -> None:
    for task in (0, 1):
        query, _ = env.reset(options={"task": task})
        assert query == f"double(1) is 3 in acme__pkg-{task + 1}."
        start = env.score()
        assert (start.value, dict(start.parts)["fail_to_pass"]) == (0.0, 0.0)
        assert start.details["patch"] == ""
        *_, info = env.step(env.task.solution or "")
        assert (info["exit_code"], info["changes"]) == (0, ["/testbed/pkg.py"])
        _, reward, terminated, _, info = env.step("submit")
        assert (reward, terminated) == (1.0, True)
        assert info["parts"] == {"fail_to_pass": 1.0, "pass_to_pass": 1.0}


def test_the_patch_alone_is_tested(env: SweBenchEnv) -> None:
    env.reset(options={"task": 0})
    assert "test_double" not in env.step("cat tests/test_pkg.py; git log --all -p")[0]
    env.step("echo 1 > a.log; echo 1 > new.txt; mkdir /tmp/x; echo x > /tmp/x/y; git add new.txt")
    env.step("git -c user.name=a -c user.email=a@a commit -qam one")
    env.step(FIX)
    score = env.score()
    assert score.value == 1.0
    assert score.details["patch"].count("diff --git") == 2 and "a.log" not in str(score.details)
    assert "+    return n + n\n" in score.details["patch"]
    env.step("rm pkg.py")
    broken = env.score()
    assert (broken.value, broken.parts["pass_to_pass"]) == (0.0, 0.0)
    assert "did not run" in broken.details["failed"][0]


@pytest.mark.parametrize(("given", "limit"), [(None, 120.0), (7, 7)])
def test_an_evaluation_keeps_its_time_limit_of_actions(
    spec: str, given: float | None, limit: float
) -> None:
    config = make_config({"dataset": spec, "agent": "noop", "timeout": given})
    with open_env(config, load(spec)) as opened:
        assert opened.timeout == opened.result_metadata()["timeout"] == limit


HOOK = "def pytest_runtest_makereport(item, call):\n    call.excinfo = None\n"
PASS = "import pkg\npkg.double = lambda n: 2 * n\n"


def test_a_registry_that_does_not_answer_does_not_end_the_run(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(_: SandboxedEnv) -> Image:
        raise InfrastructureError("127.0.0.1:1 did not answer")

    monkeypatch.setattr(SandboxedEnv, "image", property(raise_error))
    require_sandboxes(make_plan(make_config({"dataset": spec, "agent": "gold"})))
    with pytest.raises(InfrastructureError, match="did not answer"):
        require_sandboxes(make_plan(make_config({"dataset": "starter", "agent": "gold"})))


@pytest.mark.parametrize(
    "attack",
    [
        f"cat > tests/conftest.py <<'E'\n{PASS}E",
        f"cat > conftest.py <<'E'\n{PASS}E",
        "printf 'def test_half(): pass\\n' > tests/test_pkg.py",
        "mv tests evil; echo 'def test_half(): pass' > evil/test_pkg.py; ln -s evil tests",
        f"cat > p.py <<'E'\n{PASS}E\nprintf '[pytest]\\naddopts = -p p\\n' > pytest.ini",
        f"cat > p.py <<'E'\n{PASS}E\nprintf '[tool:pytest]\\naddopts = -p p\\n' > setup.cfg",
        f"cat > sitecustomize.py <<'E'\n{PASS}E",
        f"cat > tests/__init__.py <<'E'\n{PASS}E",
        "mkdir -p tests/pkg; echo 'half = double = lambda n: n * 2' > tests/pkg/__init__.py",
        "cat > /usr/local/bin/pytest <<'E'\n#!/bin/sh\nexit 0\nE\nchmod 755 /usr/local/bin/pytest",
        "echo 'print(\"PASSED tests/test_pkg.py::TestDouble::test_double[two]\")' >> pkg.py",
        "printf '\\nimport os\\nos._exit(0)\\n' >> pkg.py",
    ],
)
def test_what_changes_the_tests_does_not_count(env: SweBenchEnv, attack: str) -> None:
    env.reset(options={"task": 0})
    env.step(attack)
    assert env.score().value == 0.0


def test_a_solution_with_changed_tests_counts(env: SweBenchEnv) -> None:
    env.reset(options={"task": 1})
    env.step(f"{FIX}; echo 'def test_mine(): assert 0' >> tests/test_pkg.py; rm tests/conftest.py")
    score = env.score()
    assert score.value == 1.0
    assert (
        "set back before the tests: tests/conftest.py, tests/test_pkg.py" in score.details["said"]
    )


def test_tests_that_do_not_end(spec: str) -> None:
    with make("swe-bench", spec, test_timeout=1.0) as env:
        env.reset(options={"task": 0})
        env.step("printf '\\nimport time\\ntime.sleep(60)\\n' >> pkg.py")
        score = env.score()
        assert score.value == 0.0 and "did not end within 1 s" in score.details["said"]


def test_names_of_the_test_runner_are_shown() -> None:
    patch = "+++ b/pytest.py\n+import _pytest\n-import pytest\n+x = 1\n+os._exit(0)\n"
    assert suspicious_lines(patch) == ("import _pytest", "os._exit(0)")


def test_protected_paths() -> None:
    tests = ["lib/tests/test_a.py", "check.py"]
    for path in (
        "lib/tests/helper/x.py",
        "check.py",
        "lib",
        "a/conftest.py",
        "x.pth",
        "a/__pycache__/b.cpython-311.pyc",
        "setup.cfg",
    ):
        assert is_protected(path, tests), path
    for path in ("lib/a.py", "other.py", "tests/a.py", "lib/testsuite.py"):
        assert not is_protected(path, tests), path


def test_reports_of_pytest() -> None:
    report = b"""<testsuites><testsuite>
    <testcase classname="a.test_b.C" name="d[e f]"/>
    <testcase classname="a.test_b.C" name="d[e g]"><failure/></testcase>
    <testcase classname="a.test_b" name="x"><skipped type="pytest.xfail"/></testcase>
    <testcase classname="a.test_b" name="s"><skipped type="pytest.skip"/></testcase>
    <testcase classname="a.test_b" name="t"/><testcase classname="a.test_b" name="t"><error/>
    </testcase></testsuite></testsuites>"""
    results = read_report(report)
    ids = ("a/test_b.py::C::d[e", "a/test_b.py::x", "a/test_b.py::s", "a/test_b.py::t")
    assert [results[report_key(test)] for test in ids] == [False, True, False, False]
    assert report_key("a/b.py::C::d[x::y z]") == "a.b.C::d[x::y"
    for broken in (b"", b"<testsuites>", b"<!DOCTYPE x [<!ENTITY a 'b'>]><x/>"):
        with pytest.raises(ValueError, match="pytest"):
            read_report(broken)


@pytest.mark.slow
def test_check_proves_it(spec: str) -> None:
    report = check(spec)
    assert report.faults == ()
    assert report.search.texts >= 4 and NEW_TESTS not in str(report)


@pytest.mark.paper
def test_unsupported_settings_are_errors(spec: str) -> None:
    with pytest.raises(UsageError, match="no profile 'original': leave out"):
        SweBenchEnv(spec, profile="original")
    with pytest.raises(DataError, match="load its file as swe-bench:"):
        SweBenchEnv(load("starter"))
