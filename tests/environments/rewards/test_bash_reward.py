"""The Bash reward: success and partial credit."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intercode.core.types import SUCCESS_THRESHOLD, FileEntry, State, Task
from intercode.environments.base.progress.files import same_entry
from intercode.environments.base.progress.partial import OTHER_FORM, WRONG_MAX
from intercode.environments.bash.reward import standard

TASK = Task("t", "q")
CHANGES = Task("t", "q", data={"compare": "changes"})


# ------------------------------------------------------------------ original


FILE = FileEntry("file", 0o644, 2, "d1")
LINK = FileEntry("link", 0o777, target="x")
DIR = FileEntry("dir", 0o755)
GONE = FileEntry("gone", new=False)
ALL = {"/f": FILE, "/l": LINK, "/d": DIR, "/g": GONE, "/p": FileEntry("fifo", 0o644)}


def left(output: str = "out", **files: FileEntry) -> State:
    return State(output, files={f"/{k}": v for k, v in files.items()})


words = st.lists(st.sampled_from(["a", "b", "file.txt", "12", "-", "é"]), max_size=6)
texts = st.lists(words.map(" ".join), max_size=5).map("\n".join)
trees = st.dictionaries(
    st.sampled_from(["/f", "/l", "/d", "/with blank", "/f/g"]),
    st.sampled_from([*ALL.values(), replace(FILE, digest="d2"), replace(FILE, mode=0o600)]),
)
states = st.builds(State, texts, trees)


@given(states)
def test_the_gold_against_itself_is_one(gold: State) -> None:
    score = standard(TASK, gold, gold)
    assert score.value == 1.0 and score.success
    assert sum(score.parts.values()) == pytest.approx(1.0)


@pytest.mark.slow
@given(states, states)
def test_no_failure_earns_more_than_the_right_form(a: State, b: State) -> None:
    score = standard(TASK, a, b)
    assert 0.0 <= score.value <= OTHER_FORM or score.success
    if "other_form" not in score.parts and not score.success:
        assert score.value <= WRONG_MAX


@given(states)
def test_doing_nothing_earns_nothing(gold: State) -> None:
    score = standard(TASK, State("", {}), gold)
    assert score.value == 0.0 or score.success


@given(states, states)
def test_success_is_equality(agent: State, gold: State) -> None:
    def lines(s: State) -> list[list[str]]:
        return sorted(line.split() for line in (s.output or "").strip().splitlines())

    same_files = agent.files.keys() == gold.files.keys() and all(
        agent.files[p].kind == gold.files[p].kind and same_entry(agent.files[p], gold.files[p])
        for p in agent.files
    )
    equal = same_files and lines(agent) == lines(gold)
    assert standard(TASK, agent, gold).success == equal


@pytest.mark.parametrize(
    ("agent", "gold", "value", "wrong"),
    [
        (left(f=FILE), left(f=replace(FILE, digest="d2")), 0.6 * WRONG_MAX, ["/f"]),
        (left(f=FILE), left(f=replace(FILE, mode=0o755)), 0.95 * WRONG_MAX, ["/f"]),
        (left(f=replace(FILE, new=False)), left(f=FILE), 1.0, []),
        (left(l=LINK), left(l=replace(LINK, target="y")), 0.0, ["/l"]),
        (left(d=DIR), left(d=replace(DIR, mode=0o700)), 0.9333333333333 * WRONG_MAX, ["/d"]),
        (left(), left(d=DIR), 0.0, []),
        (left(f=FILE), left(f=LINK), 0.0, []),
        (left(f=GONE), left(f=FILE), 0.0, []),
        (left(g=GONE), left(g=GONE), 1.0, []),
        (left(f=FILE, l=LINK), left(f=FILE, l=replace(LINK, target="y")), WRONG_MAX / 2, ["/l"]),
    ],
)
def test_compared_properties_of_a_file(
    agent: State, gold: State, value: float, wrong: list[str]
) -> None:
    score = standard(CHANGES, agent, gold)
    assert score.value == pytest.approx(value, abs=1e-9)
    assert score.details["wrong"] == wrong


def test_an_answer_replaces_the_output() -> None:
    agent = replace(left("noise"), answer="42")
    assert standard(TASK, agent, left("42\n")).value == 1.0
    assert standard(TASK, replace(agent, answer="41"), left("42\n")).value < SUCCESS_THRESHOLD


@pytest.mark.parametrize(
    ("compare", "agent", "gold", "equal"),
    [
        ("order", "a  b\nc\n", "a b\nc", True),
        ("order", "c\na b", "a b\nc", False),
        ("exact", "a \n", "a \n\n", True),
        ("exact", "a", "a ", False),
        ("mentions", "removed '/d/a'\nfind: '/d/a': gone\nremoved '/d/a_1'.", "/d/a\n/d/a_1", True),
        ("mentions", "removed '/d/a_1'", "/d/a", False),
        ("mentions", "removed /d/a /d/b", "/d/a\n/d/b", False),
        ("mentions", "anything", "", True),
        ("changes", "anything", "else", True),
        ("lines", "c\na b", "a b\nc", True),
        ("lines", "a\u2028b", "a\nb", False),
        ("lines", "a\x0cb\u0085c", "a\nb\nc", False),
        ("order", "a\x1eb", "a\nb", False),
        ("lines", "a\u2028b\nc", "c\na\u2028b", True),
    ],
)
def test_a_task_says_how_its_output_is_compared(
    compare: str, agent: str, gold: str, equal: bool
) -> None:
    score = standard(replace(TASK, data={"compare": compare}), left(agent), left(gold))
    assert score.success == equal


def test_a_task_may_compare_the_changes_alone() -> None:
    task, gold = replace(TASK, data={"compare": "changes"}), left("", a=FILE, b=FILE)
    assert standard(task, replace(gold, output="a  b"), gold).success
    nothing, half = standard(task, left(""), gold), standard(task, left("", a=FILE), gold)
    assert nothing.value < half.value < 1


def test_a_task_may_compare_the_directory() -> None:
    task = replace(TASK, data={"compare": "directory"})
    there, elsewhere = replace(left("a"), cwd="/there"), replace(left("b"), cwd="/")
    assert standard(task, replace(left("b"), cwd="/there"), there).success
    assert not standard(task, elsewhere, there).success
