"""ReAct answers of models, including all of the authors' logs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercode.agents.parsing import parse_answer, split_sections
from intercode.agents.plan_solve import parse_plan
from intercode.agents.react import (
    NO_ACTION_REASON,
    UNCLOSED_REASON,
    complete_label,
    parse_react,
    split_answer,
)
from support.descriptions import language_of

BASH, SQL = language_of("bash"), language_of("sql")


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("Thought 1: hm\nAction 1: execute[ls -l]", "ls -l"),
        ("Action 3: execute[ls -l]", "ls -l"),
        ("thought: hm\naction: Execute [ls -l]", "ls -l"),
        ("Thought 1: hm\n\nAction 1:\nexecute[ls -l]", "ls -l"),
        ("**Thought 2:** hm\n**Action 2:** execute[ls -l]", "ls -l"),
        ("Thought 1: over\ntwo lines\nAction 1: execute[ls -l]", "ls -l"),
        (
            "Thought 1: hm\nAction 1: execute[for f in *\ndo\n  cat $f\ndone]",
            "for f in *\ndo\n  cat $f\ndone",
        ),
        ("Action 1: execute[grep '^[+-]' a]", "grep '^[+-]' a"),
        ("Action 1: execute[ls *[0-9]*]", "ls *[0-9]*"),
        ("Action 1: execute[echo ']' done]", "echo ']' done"),
        ("Action 1: execute[[ -e a ] && cat a]", "[ -e a ] && cat a"),
        ("Action 1: execute[echo 'a] b]", "echo 'a] b"),
        ("Action 1: execute[ls] and then execute[pwd]", "ls"),
        ("Action 1: execute[ls -l]\nObs", "ls -l"),
        ("Action 1: execute[ls -l] to see more", "ls -l"),
        (
            "Action 1: execute[ls -l]\nObservation 1: a\nThought 2: b\nAction 2: execute[rm a]",
            "ls -l",
        ),
        ("Action 1: execute[find . -exec cat {} \\;]", "find . -exec cat {} \\;"),
        ("Action 1: execute[```bash\nls -l\n```]", "ls -l"),
        ("Action 1: execute[`ls -l`]", "ls -l"),
        ("Action 1: execute\n```bash\nls -l\n```", "ls -l"),
        ("Action 1:\n```sh\nls -l\n```", "ls -l"),
        ("Action 1:\n```sh\n./execute\n```", "./execute"),
        ("Action: execute\nAction Input: ls -l\nObservation: a", "ls -l"),
        ("Action 1: ls -l /srv", "ls -l /srv"),
        ("Thought 3: execute[ls -l]\nAction 3: Observation 3: [made up]", "ls -l"),
        ("I look around. execute[ls -l]", "ls -l"),
        ("I look around.\n```bash\nls -l\n```", "ls -l"),
        ("<think>Action 1: execute[rm a]</think>Action 1: execute[ls -l]", "ls -l"),
        ("Action 1: submit", "submit"),
        ("Thought 4: That is it.\nAction 4: Submit.", "submit"),
        ("Action 4: `submit`", "submit"),
        ("Action 4: submit[]", "submit"),
        ("Action 4: submit[the answer]", "submit"),
        ("submit", "submit"),
    ],
)
def test_forms(answer: str, code: str) -> None:
    assert parse_react(answer, BASH, answers=False).code == code


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("Action 1: execute[SELECT a FROM b WHERE", UNCLOSED_REASON),
        ("Action 1: execute[]", "execute[] is empty"),
        ("Thought 1: I wonder.", NO_ACTION_REASON),
        ("Thought 1: I wonder.\nObservation 1: a", NO_ACTION_REASON),
        ("Thought 1: I may submit soon.", NO_ACTION_REASON),
        ("", "empty"),
        ("<think>hm</think>", "thoughts and nothing else"),
        ("Action 1: I cannot do that, sorry.", "no block of code"),
        ("Action 1:\n```json\n{}\n```", "marked as json"),
        ("execute[ ]", "holds no action"),
    ],
)
def test_answers_without_code(answer: str, why: str) -> None:
    parsed = parse_react(answer, BASH, answers=False)
    assert parsed.code is None
    assert why in parsed.reason


@pytest.mark.parametrize("answer", ["submit[flag{a}]", "submit flag{a}", "submit[`flag{a}`]"])
def test_an_answer_is_submitted_if_answers_count(answer: str) -> None:
    language = language_of("ctf")
    assert parse_react(f"Action 2: {answer}", language, answers=True).code == "submit flag{a}"
    assert parse_react(f"Action 2: {answer}", language, answers=False).code == "submit"


@pytest.mark.parametrize(
    "answer",
    [
        "execute[ls -l]",
        " execute[ls -l]\nObservation 1: a",
        "Action 1: execute[ls -l]",
        "Action: execute[ls -l]",
        "Action 1: Action 1: execute[ls -l]",
        "Action 1:\nAction 1: execute[ls -l]",
        "**Action 1:** execute[ls -l]",
        "Thought 1: I list the files.\nAction 1: execute[ls -l]",
        "Thought 1: I list the files. Action 1: execute[ls -l]",
        "Thought 1: I list the files.\n\nAction 1:\nexecute[ls -l]\nThought 2: done",
        "Thought: I list the files.\nexecute[ls -l]",
        "I list the files.\n\nAction 1: execute[ls -l]\nObservation 1: a\nAction 2: submit",
        "<think>Shall I list?</think>\nexecute[ls -l]",
        "<think>Shall I list?</think>Thought 1: yes\nAction 1: execute[ls -l]",
        "Shall I list?</think>execute[ls -l]",
        "Sure, here is the action:\n\n```bash\nls -l\n```",
        "Thought 1: I list the files.\nAction 1:\n```bash\nls -l\n```",
        "Thought 1: I list the files.\n```bash\nls -l\n```",
        "ls -l",
        "`ls -l`",
    ],
)
def test_an_answer_to_the_request_for_an_action(answer: str) -> None:
    """Chat models repeat what they were asked to continue."""
    parsed = parse_react(complete_label(answer, "Action 1:"), BASH, answers=False)
    assert (parsed.code, parsed.reason) == ("ls -l", "")


@pytest.mark.parametrize("label", ["", "Action 2: ", "Thought 2: I am done.\n"])
@pytest.mark.parametrize("tag", ["", "sql", "bash"])
def test_a_block_that_only_submits_may_have_any_language(label: str, tag: str) -> None:
    assert parse_react(f"{label}```{tag}\nsubmit\n```", BASH, answers=False).code == "submit"


def test_an_answer_that_only_repeats_the_thought_holds_no_action() -> None:
    for answer in ("Thought 1: I list the files.", "", "<think>ls -l</think>"):
        parsed = parse_react(complete_label(answer, "Action 1:"), BASH, answers=False)
        assert parsed.code is None and parsed.reason


PIECES = (
    "Thought 1:",
    "Action 1: ",
    "Action Input:",
    "Observation:",
    "execute[",
    "submit[",
    "]",
    "```",
    "```bash\n",
    "\n",
    " ",
    "ls -l",
    "'",
    '"',
    "\\",
    "1. ",
    "- ",
    "Step 2:",
    "**",
    "<think>",
    "</think>",
    "submit",
    "é\x00",
)


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
def test_the_parser_never_fails(answer: str) -> None:
    for language in (BASH, SQL):
        parsed = parse_react(answer, language, answers=True)
        assert (parsed.code is None) == bool(parsed.reason)
        assert parsed.code is None or parsed.code.strip()
        assert parse_answer(answer, language).code != ""
    assert all(isinstance(step, str) for step in parse_plan(answer))


def test_invented_observations_are_removed() -> None:
    answer = "Thought 1: a\nAction 1: execute[ls]\nObservation 1: b\nThought 2: c"
    parsed = parse_react(answer, BASH, answers=False)
    assert (parsed.thought, parsed.text) == ("a", "Thought 1: a\nAction 1: execute[ls]")


def test_labels_inside_a_block_are_ignored() -> None:
    text = "Thought 2: a\n```\nAction 1: b\n```\nAction 2: c"
    assert [(s.label, s.text) for s in split_sections(text)] == [
        ("thought", "a\n```\nAction 1: b\n```"),
        ("action", "c"),
    ]
    assert [s.label for s in split_sections("x\n- *Thought* : a\n> action: b")] == [
        "",
        "thought",
        "action",
    ]


def test_a_label_with_thousands_of_digits_is_ignored() -> None:
    assert split_answer(f"Thought 1: a\nAction {'1' * 5000}: execute[ls]").action is None
