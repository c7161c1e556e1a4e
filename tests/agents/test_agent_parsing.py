"""Answers of models, and the code that is extracted from them unchanged."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intercode.agents.parsing import (
    CHANGES_NOTE,
    parse_answer,
    scoring_note,
    split_thought,
)
from intercode.integrations.trl.row_data import prompt_suffix
from support.descriptions import brief as make_brief
from support.descriptions import describe, language_of
from support.recorded_endpoint import fence

BASH, SQL, PYTHON = (language_of(n) for n in ("bash", "sql", "python"))


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("```bash\nls -la\n```", "ls -la"),
        ("```BASH\nLS -La\n```", "LS -La"),
        ("```Shell\nls\n```", "ls"),
        ("```\nls\n```", "ls"),
        ("~~~sh\nls\n~~~", "ls"),
        ("Sure!\n\n```sh\ncd /a\nls | wc -l\n```\nThis counts.", "cd /a\nls | wc -l"),
        ("Here it is: ```bash\nls\n```", "ls"),
        ("```bash ls -la```", "ls -la"),
        ("Run ```ls -la``` and see.", "ls -la"),
        ("```bash ls -la\n```", "ls -la"),
        ("```ls -la\n```", "ls -la"),
        ("```bash\nls -la```", "ls -la"),
        ("```bash\r\nls\r\npwd\r\n```", "ls\npwd"),
        ("```bash\nls", "ls"),
        (
            "1. ```bash\n   for f in *; do\n     cat $f\n   done\n   ```",
            "for f in *; do\n  cat $f\ndone",
        ),
        ("> ```bash\n> ls\n> pwd\n> ```", "ls\npwd"),
        ("```bash\n$ ls\n$ pwd\n```", "ls\npwd"),
        ("```console\n$ cat <<E\n$x\nE\n```", "cat <<E\n$x\nE"),
        ("```bash\n\n\n  ls  \n\n```", "  ls  "),
        ("```console\n$ ls -l\ntotal 3\n```", "ls -l"),
        ("```bash\n$ ls\na b\n\n$ pwd\n/\n```", "ls\npwd"),
        (
            "```bash\n$ for f in *; do\n> echo $f\n> done\na\n$ ls\n```",
            "for f in *; do\necho $f\ndone\nls",
        ),
        ("```bash\n$ if true; then\n    ls\n  fi\na\n```", "if true; then\n    ls\n  fi"),
        ("```bash\n$ echo 'a\nb'\na\nb\n```", "echo 'a\nb'"),
        ("```bash\n$ ls |\n  wc -l\n3\n```", "ls |\n  wc -l"),
        ("```bash\n$ ls \\\n  -l\ntotal 3\n```", "ls \\\n  -l"),
        ("```bash\n$ echo $(ls\n)\na\n```", "echo $(ls\n)"),
        (
            "```console\nme@host:~/src$ ls\na\nme@host:~/src$ cat <<E\n> b\n> E\nb\n```",
            "ls\ncat <<E\nb\nE",
        ),
        ("```console\nroot@box:/# id\nuid=0(root)\n```", "id"),
        ("```shell-session\n$ cd /tmp\n$\n```", "cd /tmp"),
        ("```bash\n$x && ls\n```", "$x && ls"),
        ("  ```bash\n  ls\n    pwd\n  ```", "ls\n  pwd"),
        ("\n\n   ~~~bash\n   ls\n   ~~~\nDone.", "ls"),
        ("Action:\n  ```bash\n  ls\n  ```", "ls"),
        (
            "```bash\ncat <<E\n    ```\n    a\n    ```\nE\n```\nThat was it.",
            "cat <<E\n    ```\n    a\n    ```\nE",
        ),
        ("```bash\necho a\n\t```\n\techo b\n\t```\n   ```", "echo a\n\t```\n\techo b\n\t```"),
        ("```bash\nls\n    ```\nThis lists.", "ls"),
        (
            "```bash\ncat > a.md <<'E'\n# T\n```sh\nls\n```\n\n```\nb\n```\nE\nls\n```\nDone.",
            "cat > a.md <<'E'\n# T\n```sh\nls\n```\n\n```\nb\n```\nE\nls",
        ),
        ("```bash\r\ncat <<-E\r\n```\r\n\tE\r\n```\r\n", "cat <<-E\n```\n\tE"),
        ("```bash\ncat <<E\na\n```\nOr:\n```bash\npwd\n```", "cat <<E\na"),
        ("```bash\nls\n```.", "ls"),
        ("```bash\nls\n```<|im_end|>\n", "ls"),
        ("```bash\nls\n```</s></s>", "ls"),
        ("```bash:run.sh\nls\n```", "ls"),
        ("<seed:think>\n```bash\nrm a\n```</seed:think>\n```bash\nls\n```", "ls"),
        ("[THINK]\n```bash\nrm a\n```\n[/THINK]```bash\nls\n```", "ls"),
        ("◁think▷\n```bash\nrm a\n```\n◁/think▷\n```bash\nls\n```", "ls"),
        ("[Thought]\nI look.\n```bash\nls\n```", "ls"),
        ("```bash\ncat <<E\n    ```\n    a", "cat <<E\n    ```\n    a"),
        ("- ```bash\n  cat <<E\n      ```\n  E\n  ```\n", "cat <<E\n    ```\nE"),
        ("````bash\necho '```'\ncat <<E\n```\nE\n````", "echo '```'\ncat <<E\n```\nE"),
        ("```json\n{}\n```\n```bash\nls\n```", "ls"),
        ("```\nfirst\n```\n```bash\nsecond\n```", "second"),
        ("```bash\nfirst\n```\n```bash\nsecond\n```", "first"),
        ("```bash\n\n```\n```bash\nls\n```", "ls"),
        ("<think>perhaps\n```bash\nrm -rf /\n```\n</think>\n```bash\nls\n```", "ls"),
        ("it was opened for me</think>\n```bash\nls\n```", "ls"),
        ("```bash\nsubmit\n```", "submit"),
        ("submit", "submit"),
    ],
)
def test_fences_of_every_kind(answer: str, code: str) -> None:
    assert parse_answer(answer, BASH).code == code


@pytest.mark.parametrize(
    "line",
    [
        "ls",
        "find /srv -name '*.c' -size +1k",
        "X=1 Y=2 env | sort",
        "n=$(wc -l < a)",
        "(cd /srv; ls)",
        "[ -e a ] && cat a",
        "./run.sh --fast",
        "/usr/bin/stat a",
        "for f in *; do echo $f; done",
        "! grep -q a b",
        "mkdir alpha beta gamma delta",
        "echo this is a test.",
        "cd /srv\nls -la | head",
        "# count\nls | wc -l",
        "# Two sentences first. Then\npython3 -c 'print(1)'",
        "python3 -c 'import os; print(os.listdir())'",
    ],
)
def test_a_bare_command_counts(line: str) -> None:
    assert parse_answer(line, BASH).code == line


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ("`ls -la`", "ls -la"),
        ("echo `date`", "echo `date`"),
        ("Bash: ls -la", "ls -la"),
        ("Command: ls", "ls"),
        ("$ ls", "ls"),
        ("<thinking>hm</thinking>ls", "ls"),
        ("Action: ls -l", "ls -l"),
        ("Thought: I look.\nAction 3: ls -l", "ls -l"),
        ("**Thought 1:** I look.\n**Action 1:** `ls -l`\n**Observation 1:** nothing", "ls -l"),
        ("Action 1: ls\nAction 2: pwd", "ls"),
        ("ls\nObservation: a b\nAction: cat a", "ls"),
        ("ls Observation: a b Action: cat a Observation: x", "ls"),
        ("echo Observation: done", "echo Observation: done"),
        ("ls -l\n\nThis lists what there is.", "ls -l"),
    ],
)
def test_wrappers_of_a_bare_command_are_removed(answer: str, code: str) -> None:
    assert parse_answer(answer, BASH).code == code


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "  \n",
        "I cannot do that.",
        "Great! Is there anything else?",
        "i think that this is it",
        "sorry, no",
        "ls is what I would use.\nls",
        "You could run `ls`.",
        "```python\nprint(1)\n```",
        "```json\n{}\n```",
        "```bash\n\n```",
        "<think>```bash\nls\n```",
        "cat <<E > a\nhello\n\nThis is no prose.\nE",
    ],
)
def test_no_code(answer: str) -> None:
    assert parse_answer(answer, BASH).code is None


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", "empty"),
        ("<think>long", "thoughts and nothing else"),
        ("I would rather not.", "no block of code"),
        ("```json\n{}\n```", "marked as json, not as bash"),
        ("```bash\n\n```", "is empty"),
    ],
)
def test_why_there_is_no_code(answer: str, reason: str) -> None:
    assert reason in parse_answer(answer, BASH).reason


@pytest.mark.parametrize(
    "block", ["```sql\nsubmit\n```", "```\nsubmit\n```", "```text\nsubmit\n```"]
)
def test_a_block_that_only_submits_may_have_any_language(block: str) -> None:
    assert parse_answer(f"I am done.\n{block}", BASH).code == "submit"
    assert parse_answer(f"{block}\n```bash\nls\n```", BASH).code == "ls"
    if "text" not in block and "sql" in block:
        assert parse_answer(f"```json\n{{}}\n```\n{block}", BASH).code is None


def test_the_block_after_an_action_takes_precedence() -> None:
    answer = "Thought: not\n```bash\nrm a\n```\nAction:\n```bash\nls\n```\nObservation: a"
    assert parse_answer(answer, BASH).code == "ls"
    inside = "```bash\ncat <<E\nAction: none\nE\n```"
    assert parse_answer(inside, BASH).code == "cat <<E\nAction: none\nE"


def test_statements_followed_by_prose() -> None:
    assert parse_answer("SELECT 1\n\nThis query will give us one.", SQL).code == "SELECT 1"
    assert parse_answer("SELECT 1;\n\nSELECT 2;", SQL).code == "SELECT 1;\n\nSELECT 2;"
    assert parse_answer("Show me `SHOW TABLES` please.", SQL).code is None


def test_a_definition_is_code_though_it_does_not_parse() -> None:
    assert parse_answer("def f(x:\n    return x", PYTHON).code == "def f(x:\n    return x"
    assert parse_answer("import re  def f(): pass", PYTHON).code == "import re  def f(): pass"
    assert parse_answer("import taxes are high", PYTHON).code is None
    assert parse_answer("- " * 60_000, PYTHON).code is None


def test_other_languages() -> None:
    text = 'def f():\n    """\n```\nf()\n```\n    """'
    assert parse_answer(f"```python\n{text}\n```\nSo.", PYTHON).code == text
    assert parse_answer("```SQL\nSELECT A\n```", SQL).code == "SELECT A"
    assert parse_answer("select 1", SQL).code == "select 1"
    assert parse_answer("USE shop;", SQL).code == "USE shop;"
    assert parse_answer("Show me the tables?", SQL).code is None
    assert parse_answer("```bash\nls\n```", SQL).code is None
    assert parse_answer("def f(x):\n    return x", PYTHON).code == "def f(x):\n    return x"
    assert parse_answer("Certainly", PYTHON).code is None
    assert parse_answer("submit f", PYTHON).code == "submit f"
    assert parse_answer("```cobol\nSTOP RUN.\n```", language_of("Cobol")).code == "STOP RUN."


def test_thoughts_are_set_aside() -> None:
    assert split_thought("<THINK>a\nb</THINK>\nrest") == ("rest", "a\nb")
    assert split_thought("<think>cut off") == ("", "cut off")
    assert split_thought("a</think>b") == ("b", "a")
    assert split_thought("no tag") == ("no tag", "")


@settings(max_examples=60)
@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\r"), max_size=60))
def test_a_fenced_action_is_unchanged(action: str) -> None:
    lines = action.split("\n")
    inside = not lines[0].lstrip(" \t").startswith("$") and lines[0].strip() and lines[-1].strip()
    thinks = "<th" in action.lower() or "<reasoning" in action.lower() or "</" in action
    if inside and not thinks:
        assert parse_answer(fence(action), BASH).code == action


def actions(folder: Path) -> Iterator[str]:
    for file in sorted(folder.glob("*multiturn*.json")):
        for row in json.loads(file.read_text()).values():
            yield from row["turn_history"]["actions"]


def test_every_recorded_action_survives_its_fence(recorded_dir: Path) -> None:
    recorded = [a for a in actions(recorded_dir / "bash") if a]
    assert len(recorded) > 1000
    assert [a for a in recorded if parse_answer(fence(a), BASH).code != a] == []


def test_recorded_commands_count_without_a_fence(recorded_dir: Path) -> None:
    recorded = [a for a in actions(recorded_dir / "bash") if a and "```" not in a]
    prose = [a for a in recorded if parse_answer(a, BASH).code is None]
    assert all(a[0].isupper() for a in prose)
    assert len(prose) < 0.06 * len(recorded)


def test_recorded_sql_answers_are_judged_as_the_log_did(recorded_dir: Path) -> None:
    log = recorded_dir / "sql" / "ic_sql_multiturn_gpt-3.5_10_turns.json"
    turns = [
        (action, "code was found in your last" in str(observation))
        for row in list(json.loads(log.read_text()).values())[:300]
        for action, observation in zip(
            row["turn_history"]["actions"], row["turn_history"]["observations"], strict=False
        )
    ]
    agree = sum((parse_answer(a, SQL).code is None) == refused for a, refused in turns)
    assert sum(refused for _, refused in turns) > 20
    assert agree > 0.98 * len(turns)


@pytest.mark.parametrize("environment", ["bash", "sql"])
def test_what_is_judged_depends_on_the_task(environment: str) -> None:
    brief, changes = (make_brief("t", "q", environment, only_changes=c) for c in (False, True))
    assert scoring_note(brief) == describe(environment).judged
    assert scoring_note(changes) == CHANGES_NOTE
    assert prompt_suffix("", brief) == "q" and prompt_suffix("", changes) == f"q\n{CHANGES_NOTE}"
