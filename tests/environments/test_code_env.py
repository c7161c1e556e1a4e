"""Code episodes in real sandboxes: rewards in each language, and snapshots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium as gym
import pytest

from intercode import datasets
from intercode.core.errors import DataError, GoldError, SandboxError, UsageError
from intercode.core.languages import LANGUAGES, PROGRAM_DIRECTORY, Language
from intercode.core.types import Dataset, Score, Task, TreeEntry
from intercode.environments.code.env import CodeEnv
from intercode.evaluation import check_env
from intercode_sandbox import images
from support import requirements
from support.languages import ABSENT, ADD, AWK_SUM, C_SUM, JAVA_SUM, PERL_SUM, needs, only, task
from support.sandboxes import PATIENCE
from support.time_limits import limit_at

pytestmark = pytest.mark.sandbox
ALL = Dataset("own", "code", (ADD, C_SUM, PERL_SUM, AWK_SUM))
TABLE = Dataset("own", "code", (ADD, C_SUM, JAVA_SUM))


@pytest.fixture(scope="module")
def env() -> Iterator[CodeEnv]:
    needs("node", "gcc", "perl", "awk")
    with CodeEnv(ALL, timeout=20.0) as opened:
        yield opened


def begin(env: CodeEnv, task: Task) -> None:
    env.reset(options={"task": task.id})


@pytest.mark.slow
def test_it_is_an_environment() -> None:
    needs("node", "perl")
    check_env(CodeEnv(Dataset("own", "code", (PERL_SUM, ADD))))


def test_gymnasium_has_it() -> None:
    needs("perl")
    env = gym.make("intercode/Code-v1", dataset=only(PERL_SUM))
    env.reset()
    env.step(PERL_SUM.gold)
    assert env.step("submit")[1] == 1.0
    env.close()


@pytest.mark.parametrize("chosen", ALL.tasks, ids=lambda t: t.id.rpartition("/")[2])
def test_the_gold_scores_1_and_doing_nothing_0(env: CodeEnv, chosen: Task) -> None:
    begin(env, chosen)
    score = env.score()
    assert score.value == 0.0
    assert set(score.details["failed"].values()) == {"nothing was written"}
    *_, info = env.step(str(chosen.gold))
    assert (info["exit_code"], info["changes"]) == (0, [])
    assert env.submit()[1] == 1.0


def test_a_further_language_is_one_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language can be named in the table or by its module; see docs/languages.md."""
    needs("perl")
    monkeypatch.setitem(LANGUAGES._entries, "perl", "support.languages:PERL")
    perl = replace(PERL_SUM, data={**PERL_SUM.data, "language": "perl"})
    with CodeEnv(only(perl)) as env:
        begin(env, perl)
        assert env.step(str(perl.gold))[0] == "0\n"
        assert (env.brief.environment, env.name) == ("code", "code")
        assert (env.brief.description.language.title, env.score().value) == ("Perl", 1.0)


def test_the_reward_is_the_share_of_tests_and_details_say_why_tests_failed(env: CodeEnv) -> None:
    def failed(program: str) -> tuple[Score, list[str]]:
        env.step(program)
        score = env.score()
        return score, [score.details["failed"].get(n, "") for n in range(3)]

    begin(env, PERL_SUM)
    score, why = failed("@n = split ' ', <>; print abs($n[0] + $n[1]);")
    assert (score.value, why) == (pytest.approx(2 / 3), ["", "another answer", ""])
    assert failed("@n = split ' ', <>; print $n[0] + $n[1]; exit 3")[1] == ["exit status 3"] * 3
    assert failed("die")[1] == ["exit status 255"] * 3
    assert failed("print 'x' x (1 << 21)")[1] == ["it printed too much"] * 3
    begin(env, C_SUM)
    score, why = failed("int main(void) { return 0 }")
    assert score.value == 0.0
    assert why[0].startswith("it does not compile: main.c: In function")
    begin(env, ADD)
    env.step("const add = (a, b) => { if (a === 1) throw new Error('no one'); return a + b }")
    assert env.score().details["failed"] == {0: "Error: no one"}
    env.step("add = null")
    assert env.score().value == 0.5  # a constant cannot be redefined


@pytest.mark.slow
def test_time_is_measured_test_by_test() -> None:
    needs("node", "perl")
    loops = (
        (ADD, "function add (a, b) { if (a === 1) for (console.log('loops');;); return a + b }"),
        (
            PERL_SUM,
            "$| = 1; @n = split ' ', <>; if ($n[0] == 3) { for (print 'loops';;) {} }"
            " print $n[0] + $n[1];",
        ),
    )
    for chosen, program in loops:
        with CodeEnv(only(chosen), test_timeout=PATIENCE) as env:
            begin(env, chosen)
            env.step(program)
            with limit_at("loops"):
                score = env.score()
            assert score.details["failed"] == {0: "over the time limit of 120 s"}
            assert 0.4 < score.value < 0.7


@pytest.mark.parametrize(
    ("chosen", "action"),
    [
        (ADD, "console.log('begin'); for (;;) {}"),
        (PERL_SUM, "$| = 1; print qq(begin\\n); sleep 600;"),
    ],
)
def test_silent_code_is_stopped_and_its_step_says_so(chosen: Task, action: str) -> None:
    needs("node", "perl")
    limits = {"idle_timeout": PATIENCE}
    with CodeEnv(only(chosen), timeout=9 * PATIENCE, limits=limits) as env:
        begin(env, chosen)
        with limit_at("begin"):
            step = env.execute(action)
        assert (step.exit_code, step.timed_out, step.valid) == (None, False, False)
        assert step.observation.startswith("begin\n[")
        assert "[killed: silent for 120 s" in step.observation
        assert env.execute(str(chosen.gold)).valid


def test_the_brief_names_the_language_and_the_example(env: CodeEnv) -> None:
    begin(env, C_SUM)
    brief = env.brief
    language = brief.description.language
    assert (brief.environment, language.name, language.tags) == ("code", "c", ("c",))
    assert "1 2\n" in brief.notes and "3 4" not in brief.notes
    assert env.step(str(C_SUM.gold))[0] == "3\n"
    assert env.step("run\n20 3")[0] == "23\n"
    begin(env, ADD)
    assert "Define add." in env.brief.notes


def test_no_test_is_in_the_agent_s_sandbox() -> None:
    needs("perl")
    words = ("gherkin-7731", "pemmican-9204")
    secret = task("support.languages:PERL", "print <>;", *((f"{w}\n", w.upper()) for w in words))
    search = (
        "use File::Find; find({no_chdir => 1, wanted => sub { return unless -f && -s _ < 1e5;"
        " open my $f, '<', $_ or return; local $/; my $t = <$f>;"
        ' print "$_\\n" if $t =~ /gherkin-7731|pemmican.9204/i }},'
        " grep { !m{^/(proc|sys|usr|lib|opt)} } glob('/*')); print 'looked', %ENV"
    )
    with CodeEnv(only(secret), timeout=60.0) as env:
        begin(env, secret)
        env.score()
        found = env.step(search)[0]
        assert "looked" in found
        assert (
            found.count(f"{PROGRAM_DIRECTORY}/main.pl") == found.count("/main.") == 1
        )  # its own text
        assert env.score().value == 0.0


# -------------------------------------------------------------------- snapshots
def test_an_interpreter_is_restored_and_forked(env: CodeEnv) -> None:
    begin(env, ADD)
    env.step("let n = 1; require('fs').writeFileSync('/tmp/f', 'one')")
    env.step("require('fs').appendFileSync('/tmp/f', ' two'); n += 1; process.chdir('/tmp')")
    search = "[n, require('fs').readFileSync('f', 'utf8')]"
    with env.snapshot() as moment:
        assert moment.omitted == ()
        env.step("n = 9; require('fs').unlinkSync('/tmp/f'); function add (a, b) { return a + b }")
        assert env.score().value == 1.0
        env.restore(moment)
        assert env.step(search)[0] == "[ 2, 'one two' ]\n"
        assert env.score().value == 0.0
        for other in env.fork(2):
            assert other.step(f"n += 1; {search}")[0] == "[ 3, 'one two' ]\n"
            other.close()


def test_a_program_is_restored_and_forked(env: CodeEnv) -> None:
    begin(env, PERL_SUM)
    env.step(str(PERL_SUM.gold))
    with env.snapshot() as moment:
        env.step("open F, '>/tmp/f'")
        assert env.score().value == 0.0
        env.restore(moment)
        assert env.score().value == 1.0
        assert env.step("run\n2 2")[0] == "4\n"
    (other,) = env.fork()
    assert other.submit()[1] == 1.0
    other.close()


@pytest.mark.parametrize("chosen", [ADD, PERL_SUM], ids=["interpreter", "program"])
def test_a_snapshot_is_saved_to_disk(env: CodeEnv, chosen: Task, tmp_path: Path) -> None:
    begin(env, chosen)
    env.step(str(chosen.gold))
    with env.snapshot() as moment:
        env.save_snapshot(moment, tmp_path / "kept")
    with CodeEnv(ALL, timeout=20.0) as other:
        other.restore(other.load_snapshot(tmp_path / "kept"))
        assert other.submit()[1] == 1.0


@pytest.mark.parametrize("text", ["{", "5", '["a", 5]', "[" * 100_000])
def test_a_forged_state_of_an_interpreter_is_refused(
    env: CodeEnv, tmp_path: Path, text: str
) -> None:
    begin(env, ADD)
    with env.snapshot() as moment:
        env.save_snapshot(moment, tmp_path / "kept")
    path = tmp_path / "kept" / "snapshot.json"
    values = json.loads(path.read_text())
    path.write_text(json.dumps(values | {"state": values["state"] | {"text": text}}))
    with CodeEnv(ALL, timeout=20.0) as other, pytest.raises(DataError, match=r"state\.text"):
        other.restore(other.load_snapshot(tmp_path / "kept"))


def test_sandboxes_are_recycled() -> None:
    needs("node", "perl")
    with CodeEnv(Dataset("own", "code", (ADD, PERL_SUM)), recycle=True) as env:
        for n in range(4):
            env.reset(options={"task": n % 2})
            env.step(str(env.task.gold))
            assert env.submit()[1] == 1.0


# --------------------------------------------------------------- what cannot be
@pytest.mark.paper
def test_faults_of_a_task_are_reported(env: CodeEnv) -> None:
    def reset(**data: object) -> None:
        broken = replace(PERL_SUM, data={**PERL_SUM.data, **data})
        with CodeEnv(only(broken)) as opened:
            begin(opened, broken)
            opened.step("1")
            opened.score()

    with pytest.raises(GoldError, match="names no language"):
        reset(language="")
    with pytest.raises(UsageError, match="did you mean 'java'"):
        reset(language="jav")
    with pytest.raises(GoldError, match="call a function, but Perl has no live interpreter"):
        reset(entry="add", tests=({"input": [1], "output": 1},))
    with pytest.raises(GoldError, match="has no tests"):
        reset(tests=())
    odd = "own, own/.*: a test has exactly 'input' and 'output', not 'x'"
    with pytest.raises(DataError, match=odd):
        reset(tests=("x",))
    with pytest.raises(UsageError, match="leave out the profile"):
        CodeEnv(ALL, profile="original")


def test_an_image_without_the_language_fails_the_episode_not_the_agent() -> None:
    absent = replace(PERL_SUM, data={**PERL_SUM.data, "language": "support.languages:ABSENT"})
    assert isinstance(ABSENT, Language)
    with CodeEnv(only(absent)) as env:
        begin(env, absent)
        with pytest.raises(SandboxError, match="the image cannot run Nothing"):
            env.step("anything")


def test_a_language_for_tasks_without_one(tmp_path: Path) -> None:
    needs("perl")
    row = {"query": "Sum.", "gold": PERL_SUM.gold, "tests": list(PERL_SUM.data["tests"])}
    row |= {"language": "perl"}
    path = tmp_path / "sums.jsonl"
    path.write_text(json.dumps(row) + "\n")
    dataset = datasets.load(str(path))
    assert dataset.environment == "code"
    nameless = replace(dataset.tasks[0], data={**dataset.tasks[0].data, "language": None})
    with CodeEnv(only(nameless), language="support.languages:PERL") as env:
        begin(env, nameless)
        env.step(str(nameless.gold))
        assert env.submit()[1] == 1.0
        assert env.result_metadata()["env_options"]["language"] == "support.languages:PERL"


@pytest.mark.slow
@pytest.mark.namespace_only("the image has the same programs on every back end")
def test_every_language_of_the_table_runs_on_its_image() -> None:
    requirements.require("image:code")
    assert images.resolve("recipe:code").root is not None
    with CodeEnv(TABLE, image="recipe:code", timeout=30.0) as env:
        for chosen in TABLE.tasks:
            begin(env, chosen)
            env.step(str(chosen.gold))
            assert env.submit()[1] == 1.0
        assert env.result_metadata()["comparable"]


def test_a_file_that_is_absent_in_the_tests_is_there_before_only() -> None:
    needs("perl")
    entry = TreeEntry("file", "/tmp/code", 0o644, 0, b"$n[0] + $n[1]")
    data = {**PERL_SUM.data, "absent_in_tests": ["code"]}
    chosen = replace(PERL_SUM, cwd="/tmp", initial_files=(entry,), data=data)
    with CodeEnv(only(chosen)) as env:
        begin(env, chosen)
        assert env.step("open F, 'code'; print <F>;")[0] == "$n[0] + $n[1]"
        env.step("open F, 'code'; $code = <F>; @n = split ' ', <>; print eval $code;")
        assert env.score().value == 0.0
        env.step(str(PERL_SUM.gold))
        assert (env.score().value, env.sandbox.read("/tmp/code")) == (1.0, entry.data)
