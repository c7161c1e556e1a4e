"""Exploration, repetition, and the classes of errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from intercode.core.logs import load_log
from intercode.core.types import Score, Step, Trajectory
from intercode.environments.languages.exploration import MAX_ACTION_LENGTH, is_exploration
from intercode.results.statistics.behaviour import (
    behaviour_figures,
    count_error_classes,
    error_class,
    executed_actions,
    exploration_flags,
    labelled_turns,
    leading_exploration_flags,
    repetition_flags,
)
from intercode.results.view.rows import FIELDS, index_episode
from support.descriptions import language_of

EXPLORING = {
    "bash": (
        "ls -la /",
        "cat a | grep b | wc -l",
        "cd dir && ls",
        "pwd; whoami",
        "find . -name '*.c' -exec md5sum {} + | sort",
        "find . -type f -exec grep -l x {} \\;",
        'for f in *; do wc -l "$f"; done',
        "if [ -d a ]; then ls a; fi 2>/dev/null",
        "awk '$1 > 3 {print $2}' f",
        "sed -n '1,5p' f",
        "sed 's/a/b/' f | head",
        "x=$(cat f); echo $x",
        "tar -tzf a.tgz",
        "tar tf a.tar",
        "diff <(ls a) <(ls b)",
        "sudo cat /etc/shadow",
        "find . -print0 | xargs -0 -n1 wc -c",
        "ls > /dev/null 2>&1",
        "curl http://x",
        "date +%F",
        "bash -c 'ls | wc -l'",
        "uniq -c f",
        "timeout 5 ls",
        "time ls",
        "time -p sudo -u bob timeout 5 ls",
        "[[ -f x ]]",
        "[[ -f x ]] && cat x",
        "execute[ls -la]",
        "```bash\nls\n```",
        "while read -r l; do echo $l; done < f",
        "unzip -l a.zip",
        "cat a; cat b # rm c",
        "ls 'rm x' \"; rm y\"",
        "strings a | grep flag",
        "python3 --version",
        "echo {a,b}",
    ),
    "sql": (
        "SHOW TABLES",
        "desc city;",
        "DESCRIBE city",
        "EXPLAIN SELECT * FROM t",
        "use world",
        "SELECT * FROM information_schema.columns WHERE table_name = 'from x'",
        "SELECT name FROM sqlite_master",
        "select table_name from `information_schema`.`tables` t",
        "SHOW TABLES; SHOW CREATE TABLE a",
        "PRAGMA table_info(city)",
        "execute[DESC city]",
        "SELECT a FROM (SELECT table_name AS a FROM information_schema.tables) AS x",
    ),
    "python": ("print(x)", "import os\nos.listdir('.')", "help(len)", "dir(); vars(x)", "f(3)"),
}
ACTS = {
    "bash": (
        "rm a",
        "sudo -u root -i",
        "sudo sudo -u bob -s",
        "timeout 5",
        "nice -n 5; ls",
        "time rm a",
        "/usr/bin/time -o f ls",
        "[[ $(rm a) ]]",
        "ls > out.txt",
        "cat a >> b",
        "find . -delete",
        "find . -exec rm {} \\;",
        "sed -i 's/a/b/' f",
        "mkdir -p d && ls d",
        "x=$(rm -v a); echo $x",
        "ls `touch x`",
        "find . | xargs rm",
        "find . | xargs -0 -I{} mv {} d",
        "sudo rm a",
        "tee f",
        "sort -o f f",
        "tar -xzf a.tgz",
        "tar czf a.tgz d",
        "awk '{print > \"f\"}' g",
        "awk 'BEGIN{system(\"id\")}'",
        "curl -O http://x",
        "wget http://x",
        "python3 x.py",
        "./run",
        "chmod +x run",
        "date -s 12:00",
        "bash -c 'rm x'",
        "sh script.sh",
        "timeout 5 rm a",
        "find . -fprint f",
        "uniq a b",
        "ls 'unclosed",
        "I think that",
        "f() { ls; }",
        "",
        "   ",
        "# only a comment",
        "ls &> both.txt",
        "cat <<< x > f",
        "for f in *; do rm $f; done",
        'echo "$(mkdir d)"',
    ),
    "sql": (
        "SELECT name FROM city",
        "DROP TABLE x",
        "SHOW TABLES; DROP TABLE x",
        "SELECT 1",
        "SELECT * FROM information_schema.tables JOIN city",
        "INSERT INTO t VALUES (1)",
        "SELECT * FROM information_schema.tables, city",
        "PRAGMA user_version = 3",
        "SELECT a FROM city WHERE b IN (SELECT table_name FROM information_schema.tables)",
        "WITH x AS (SELECT * FROM city) SELECT * FROM x",
        "-- SHOW TABLES",
        "",
    ),
    "python": (
        "x = 1",
        "def f(): pass",
        "open('f', 'w')",
        "l.append(1)",
        "exec('x = 1')",
        "(y := 2)",
        "for i in x: print(i)",
        "print(",
        "'text'",
        "del x",
        "import os\nos.system('ls')",
    ),
    "unheard-of": ("ls",),
}


@pytest.mark.parametrize(("where", "action"), [(k, a) for k, v in EXPLORING.items() for a in v])
def test_exploration(where: str, action: str) -> None:
    assert is_exploration(action, language_of(where))


@pytest.mark.parametrize(("where", "action"), [(k, a) for k, v in ACTS.items() for a in v])
def test_what_does_not(where: str, action: str) -> None:
    assert not is_exploration(action, language_of(where))


def test_ctf_is_a_shell_and_a_program_as_action_is_not_read() -> None:
    assert is_exploration("file a; xxd a | head", language_of("ctf"))
    assert not is_exploration("xxd -r a b", language_of("ctf"))
    assert not is_exploration("ls" + " " * MAX_ACTION_LENGTH, language_of("bash"))


def episode(*steps: Step, where: str = "bash", task: str = "a") -> Trajectory:
    run = {"environment": where}
    return Trajectory(task=task, index=0, query="", steps=steps, run=run)


EXPLORE, ACT = Step("ls", "a"), Step("mkdir d", "")
SUBMIT = Step("submit", "", score=Score(0.0))
REFUSED = Step("rm -rf /", "not allowed", executed=True, valid=False, refused=True)
TALK = Step("", "retry", executed=False, valid=False)


def test_exploring_ends_with_the_first_act() -> None:
    play = episode(EXPLORE, TALK, REFUSED, EXPLORE, ACT, EXPLORE, SUBMIT)
    assert executed_actions(play) == [EXPLORE, EXPLORE, ACT, EXPLORE]
    assert exploration_flags(play) == [True, True, False, True]
    assert leading_exploration_flags(play) == [True, True, False, False]


def test_an_action_that_solves_the_task_acts_even_if_it_only_reads() -> None:
    answer = Step("ls", "a", score=Score(1.0))
    assert exploration_flags(episode(EXPLORE, answer)) == [True, False]


def test_repeats_within_an_episode() -> None:
    play = episode(EXPLORE, ACT, Step(" ls\n", "a"), EXPLORE)
    assert repetition_flags(play) == [False, False, True, True]
    assert repetition_flags(episode(EXPLORE)) == [False]


def test_the_figures() -> None:
    human = Step("ls", "a", actor="human")
    plays = [episode(EXPLORE, ACT), episode(ACT, REFUSED, TALK, human, task="b")]
    found = {f.name: f.estimate for f in behaviour_figures(plays)}
    values = {name: None if e is None else round(e.value, 2) for name, e in found.items()}
    assert values == {
        "actions that explore": 50.0,
        "actions that explore, before the first that acts": 25.0,
        "episodes that begin with exploring": 50.0,
        "repeated actions": 0.0,
        "turns without code": 16.67,
        "refused turns": 16.67,
        "turns by a person": 16.67,
        "turns that timed out": 0.0,
    }
    assert found["actions that explore"].samples == 4  # type: ignore[union-attr]
    assert behaviour_figures([])[0].estimate is None


def test_labels_for_a_transcript() -> None:
    wrong = Step("lss", "bash: lss: command not found", valid=False)
    words = [labels for _, labels in labelled_turns(episode(EXPLORE, EXPLORE, wrong, TALK))]
    assert words == [("explores",), ("explores", "repeats"), ("command not found",), ("no code",)]


TRACED = "Traceback (most recent call last):\n"
SQL = "Error executing query: "
ERRORS = [
    ("bash", "/bin/bash: line 1: foo: command not found\n", "command not found"),
    ("bash", "sh: 1: foo: not found\n", "command not found"),
    ("bash", "bash: -c: line 1: unexpected EOF while looking for matching `''", "syntax error"),
    ("bash", "awk: line 1: syntax error at or near ,", "syntax error"),
    ("bash", "cat: x: No such file or directory\n", "no such file"),
    ("bash", "touch: cannot touch 'x': Permission denied", "permission denied"),
    ("bash", "rm: cannot remove 'd': Is a directory", "wrong kind of file"),
    ("bash", "ls: invalid option -- 'y'\nTry 'ls --help'", "wrong option"),
    ("bash", "curl: (6) Could not resolve host: x", "network"),
    ("bash", "Malformed command", "not started"),
    ("bash", "", "status only"),
    ("bash", "0\n", "other"),
    ("ctf", f'{TRACED}  File "a"\nKeyError: 3\n', "Python KeyError"),
    ("ctf", f"{TRACED}FileNotFoundError: No such file", "Python FileNotFoundError"),
    ("sql", f"{SQL}Table 'a.b' doesn't exist", "no such table (1146)"),
    ("sql", f"{SQL}Unknown column 'x' in 'field list'", "no such column (1054)"),
    ("sql", f"{SQL}You have an error in your SQL syntax; check", "syntax error (1064)"),
    ("sql", f"{SQL}Column 'a' in field list is ambiguous", "ambiguous column (1052)"),
    ("sql", f"{SQL}no such column: x", "no such column (1054)"),
    ("sql", f'{SQL}near "FORM": syntax error', "syntax error (1064)"),
    ("sql", f"{SQL}Expression #1 is not in GROUP BY clause", "GROUP BY (1055, 1140)"),
    ("sql", f"{SQL}something new", "other"),
    ("python", f"{TRACED}ZeroDivisionError: division by zero", "ZeroDivisionError"),
    ("python", '  File "<a>", line 1\nSyntaxError: invalid syntax', "SyntaxError"),
    ("python", "{'output': '', 'error': \"Error: name 'x' is not defined\"}", "NameError"),
]


@pytest.mark.parametrize(("where", "shown", "name"), ERRORS)
def test_error_classes(where: str, shown: str, name: str) -> None:
    assert error_class(Step("x", shown, valid=False), language_of(where)) == name
    assert error_class(Step("x", shown, valid=True), language_of(where)) is None


def test_other_turns() -> None:
    assert error_class(REFUSED, language_of("bash")) == "refused"
    assert error_class(TALK, language_of("bash")) == "no code"
    assert error_class(Step("x", "", valid=False, timed_out=True), language_of("sql")) == "time-out"
    assert error_class(Step("blocked", "", executed=False, valid=None), language_of("sql")) is None
    silent = Step("x", "{'output': '', 'error': ''}", valid=None)
    assert error_class(silent, language_of("python")) is None
    broken = Step(
        "x", "{'error': 'Error executing action: invalid syntax (a, line 1)'}", valid=None
    )
    assert error_class(broken, language_of("python")) == "SyntaxError"
    assert error_class(broken, language_of("bash")) is None


def test_error_classes_are_counted_by_turn_and_episode() -> None:
    wrong = Step("lss", "x: command not found", valid=False)
    found = count_error_classes([episode(wrong, wrong, TALK), episode(wrong, task="b")])
    assert [(e.name, e.turns, e.episodes) for e in found] == [
        ("command not found", 3, 2),
        ("no code", 1, 1),
    ]


@pytest.mark.paper
@pytest.mark.parametrize(
    ("log", "begins"),
    [("ic_sql_plan_solve.json", 99.7), ("ic_sql_multiturn_gpt-3.5_10_turns.json", 6.9)],
)
def test_published_strategies_differ_in_how_they_begin(
    recorded_dir: Path, log: str, begins: float
) -> None:
    """Plan & Solve reads the tables first, Try Again guesses."""
    found = {f.name: f.estimate for f in behaviour_figures(load_log(recorded_dir / "sql" / log))}
    begun = found["episodes that begin with exploring"]
    assert begun is not None and begun.value == pytest.approx(begins, abs=0.1)


@pytest.mark.paper
def test_most_errors_of_the_published_logs_have_a_class(recorded_dir: Path) -> None:
    for name in ("bash", "sql", "ctf"):
        found = [
            e
            for path in sorted((recorded_dir / name).glob("*.json"))
            for e in count_error_classes(load_log(path))
        ]
        total = sum(e.turns for e in found)
        assert sum(e.turns for e in found if e.name == "other") <= 0.08 * total, name


def test_a_wrong_flag_is_no_refusal_of_a_policy() -> None:
    steps = (
        Step("cat flag", "no", refused=True, valid=False),
        Step("submit picoCTF{no}", "Wrong flag.", refused=True),
        Step("ls", ""),
        Step("submit picoCTF{yes}", "", score=Score(1.0)),
    )
    episode = Trajectory("ctf/1", 0, "q", steps, end="submitted", run={"environment": "ctf"})
    figures = {f.name: f.estimate for f in behaviour_figures([episode])}
    for name in ("refused turns", "turns with a wrong answer"):
        estimate = figures[name]
        assert estimate is not None and estimate.value == 25.0
    assert {e.name: e.turns for e in count_error_classes([episode])} == {
        "refused": 1,
        "wrong answer": 1,
    }
    assert index_episode(0, episode).values[FIELDS.index("refused")] == 1
