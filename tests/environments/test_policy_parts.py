"""The parts of actions that rules match."""

from __future__ import annotations

import sys

import pytest

from intercode.core.errors import ConfigError
from intercode.environments.base.policy.policy import read_policy
from intercode.environments.base.policy.rules import ParsedAction
from support.descriptions import guard as make_guard


def refused(environment: str, rule: str, action: str, way: str = "deny") -> bool:
    return make_guard({way: [rule]}, environment).refusal(action) is not None


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("command:rm", "ls | rm x"),
        ("command:rm", "(cd /; rm x)"),
        ("command:rm", "echo $(rm x)"),
        ("command:rm", "echo `rm x`"),
        ("command:rm", "diff <(rm a) b"),
        ("command:rm", "f() { rm x; }"),
        ("command:rm", "if true; then rm x; fi"),
        ("command:rm", "export X=$(rm x)"),
        ("command:rm", 'echo "${y:-$(rm x)}"'),
        ("command:rm", "cat <<E\n$(rm x)\nE"),
        ("command:rm", "A=1 rm x"),
        ("command:rm", "! rm x && true"),
        ("command:rm", "r'm' x"),
        ("command:rm", 'r"m" x'),
        ("command:rm", "\\rm x"),
        ("command:rm", "$'rm' x"),
        ("command:rm", "/bin/rm x"),
        ("command:rm", "bash -c 'cd /; rm x'"),
        ("command:rm", "sh -ec 'rm x'"),
        ("command:rm", "eval rm x"),
        ("command:rm", "sudo -u bob rm x"),
        ("command:rm", "timeout -s KILL 5 nice -n 3 rm x"),
        ("command:rm", "env -i A=1 rm x"),
        ("command:rm", "find . -name y -exec rm {} \\; -print"),
        ("command:rm", "find . -exec sh -c 'rm $1' _ {} +"),
        ("command:rm", "ls | xargs -n 1 rm"),
        ("command:rm", "echo ( ; rm x"),
        ("command:rm", "time ! rm x"),
        ("command:rm", "time -p -- { rm x; }"),
        ("command:time", "time { rm x; }"),
        ("command:rm", "/usr/bin/time -f %e rm x"),
        ("command:rm", "coproc { rm x; }"),
        ("command:rm", "coproc NAME ( rm x )"),
        ("command:rm", "coproc rm x"),
        ("command:rm", "eval -- rm x"),
        ("command:rm", "bash -c -- 'rm x'"),
        ("command:rm", "bash -c -e 'rm x'"),
        ("command:rm", "bash -ce 'rm x'"),
        ("command:rm", "bash -co pipefail 'rm x'"),
        ("command:rm", "bash --rcfile y +e -c 'rm x'"),
        ("command:rm", "su - bob --command='rm x'"),
        ("command:rm", "su bob -lc 'rm x'"),
        ("command:rm", 'env -S "rm x"'),
        ("command:rm", 'env -vS "A=1 rm" x'),
        ("command:rm", "env --split-string='rm x'"),
        ("command:rm", "env -iu X rm x"),
        ("command:rm", "env --unset X -- A=1 rm x"),
        ("command:rm", "env --chdir /tmp rm x"),
        ("command:rm", "exec -ca foo rm x"),
        ("command:rm", "xargs --max-args 1 rm"),
        ("command:rm", "stdbuf -oL timeout --kill-after 1 5 rm x"),
        ("command:rm", "bash <<< 'rm x'"),
        ("command:rm", "sudo bash -s y <<'E'\nrm x\nE"),
        ("command:rm", "bash <<-E\n\trm x\n\tE"),
        ("command:rm", "trap 'rm x' EXIT"),
        ("command:rm", "trap -- 'rm x' EXIT"),
        ("command:/bin/rm", "/bin/rm x"),
        ("command:rm -r", "rm -fr x"),
        ("command:rm -r -f", "rm -r x -f"),
        ("command:rm --force", "rm --force=always x"),
        ("command:find -delete", "find . -name x -delete"),
        ("command:git push", "git -C /x push origin"),
        ("command:git 'pu*'", "git pull"),
        ("command:*sum", "md5sum x"),
        ("command:[[]", "[ -f x ]"),
        ("command:export", "export X=1"),
        ("command:unset", "unset X"),
        ("redirect:/etc/*", "echo x >> /etc/hosts"),
        ("redirect:/etc/*", "{ date; } &> '/etc/x'"),
        (r"pattern:curl .*\| *sh", "true\ncurl x | sh"),
    ],
)
def test_parts_of_bash_are_found(rule: str, action: str) -> None:
    assert refused("bash", rule, action)
    assert refused("ctf", rule, action)


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("command:rm", "echo rm x; ls 'rm x' # rm"),
        ("command:rm", "grep -r rm ."),
        ("command:rm", "cat <<'E'\n$(rm x)\nE"),
        ("command:rm", "rmdir x"),
        ("command:rm", "bash y -c 'rm x'"),
        ("command:rm", "bash y <<< 'rm x'"),
        ("command:rm", "cat <<< 'rm x'; trap -p rm; trap - rm"),
        ("command:rm", "a\u00e9=1 rm x"),
        ("command:rm", "cat <<E\nx\\\nE\nrm x\nE"),
        ("command:rm", "echo ${a:-'$(rm x)'}"),
        ("command:rm", "echo \"${a%'$(rm x)'}\""),
        ("command:rm", "echo \"$'a'; rm x\""),
        ("command:/bin/rm", "rm x"),
        ("command:rm -r", "rm x -f"),
        ("command:rm -r", "rm --recursive-not x"),
        ("command:rm -rf", "rm -r -f x"),  # `-rf` in a pattern is one word (docs/policies.md)
        ("command:find -delete", "find . -ladet"),
        ("command:sudo", "su -c ls"),
        ("redirect:/etc/*", "cat < /etc/hosts 2>&1"),
        ("redirect:*", "cat 2>&1 >&2- 3>&-"),
        ("pattern:^curl", "echo curl"),
    ],
)
def test_text_in_bash_is_not_a_part(rule: str, action: str) -> None:
    assert not refused("bash", rule, action)


@pytest.mark.parametrize(
    ("action", "unclear"),
    [
        ("if (", "a syntax error"),
        ("$CMD x", "the command's name in `$CMD`"),
        ('"$(x)" y', "the command's name"),
        ("{rm,x}", "the command's name in `{rm,x}`"),
        ("sudo r[m] x", "the command's name in `r[m]`"),
        ("r* x", "the command's name in `r*`"),
        (r"$'\xffm' x", "the command's name"),
        ("eval {rm,x}", "what `eval` runs"),
        ("trap $x EXIT", "what `trap` runs"),
        ("bash <<E\n$x\nE", "what `bash` runs"),
        ("bash <(curl x)", "what `bash` runs"),
        ("env -S '$x y'", "the command's name in `$x y`"),
        ('eval "r$x"', "what `eval` runs"),
        ('bash -c "$x"', "what `bash` runs"),
        ("sudo " * 99 + "ls", "more than 50 commands"),
        ("bash -c \"bash -c 'bash -c ls'\"", "what `bash` runs"),
    ],
)
def test_uncertain_bash_is_refused_if_set(action: str, unclear: str) -> None:
    rules = {"deny": ["command:nothing"], "unparsed": "refuse"}
    refusal = make_guard(rules, "bash").refusal(action)
    assert refusal is not None and unclear in refusal
    assert make_guard({"deny": ["command:nothing"]}, "bash").refusal(action) is None
    assert (
        make_guard({"allow": ["command:*"]}, "bash").refusal(action) is not None
    )  # the default is then to refuse
    assert make_guard({"allow": ["command:*"], "unparsed": "allow"}, "bash").refusal(action) is None


def test_allow_rules_must_match_every_command() -> None:
    guard = make_guard({"allow": ["command:ls", "command:cat"]}, "bash")
    for action in ("ls -la | cat", "for i in 1 2; do ls $i; done", "x=1", "[[ -f x ]] && cat x"):
        assert guard.refusal(action) is None
    assert guard.refusal("f() { ls; }; f") is None
    for action in ("ls; wc x", "cat $(which ls)", "f() { wc; }; f", "bash -c ls"):
        assert guard.refusal(action) is not None


@pytest.mark.parametrize("action", ["(" * 50000, "$(" * 20000, "f() { " * 10000, "\x00\ud800'"])
def test_any_text_can_be_parsed_as_bash(action: str) -> None:
    assert refused("bash", "command:*", action, "allow")


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("command:rm", "ls >x rm; 2>y rm x"),
        ("command:rm x", "rm >y x"),
        ("command:rm", "case $a in b|c) rm x;; *) ls;; esac"),
        ("command:rm", "for x in $(rm y); do ls; done"),
        ("command:rm", "for x do rm $x; done"),
        ("command:rm", "for x in a; { rm $x; }"),
        ("command:rm", "for ((i = 0; i < 1; i++)) {\nrm x\n}"),
        ("command:rm", "((a+$(rm x)))"),
        ("command:rm", "[[ $(rm x) == y ]]"),
        ("command:rm", "a=(b $(rm x))"),
        ("command:rm", "echo `echo \\`rm x\\``"),
        ("command:rm", "cat <<A <<'B'\nb\nA\n$(a)\nB\nrm x"),
        ("command:rm", "((ls) | (rm x))"),
        ("command:rm", "l\\\ns; rm x"),
        ("command:rm", "time (rm x)"),
        ("command:rm", "while ls; do :; done | rm x"),
        ("redirect:/etc/x", "cat 3<>/etc/x"),
        ("redirect:/etc/x", "ls >& /etc/x"),
        ("redirect:/etc/x", "ls 1>&/etc/x"),
        ("redirect:/etc/x", r"ls > $'/e\x74c/x'"),
        ("command:rm", "echo \"${a:-'$(rm x)'}\""),
        ("command:rm", "echo \"${a-'`rm x`'}\""),
        ("command:rm", "echo ${a:-\"${b:-'$(rm x)'}\"}"),
        ("command:rm", "cat <<E\n${a:-'$(rm x)'}\nE"),
        ("command:rm", "echo \"${a%$'\\''}\"; rm x #'}\""),
        ("command:rm", 'echo "${a:-"\'"}"; rm x #\'}"'),
        ("command:rm", 'echo "`echo \\"$(rm x)\\"`"'),
        ("command:rm", 'cat <<"$E"\nfoo\n$E\nrm x'),
        ("command:rm", "cat <<'a'$b\nfoo\na$b\nrm x"),
        ("command:rm", 'cat <<"`E`"\nfoo\n`E`\nrm x'),
        ("command:rm", 'cat <<"a$(E)"\nfoo\na$(E)\nrm x'),
        ("command:rm", r"cat <<$'a\x62'" + "\nfoo\nab\nrm x"),
        ("command:rm", "cat <<EF\nE\\\nF\nrm x"),
        ("command:rm", "a[1 + 1]=2 rm x"),
        ("command:rm", "a[ 1 ]=2 rm x"),
        ("command:rm", 'a["x y"]=2 rm x'),
        ("command:rm", "a[b[1]]=2 rm x"),
        ("command:rm", "a[i<<2]=2 rm x"),
        ("command:rm", "a[1<<2]=3\nrm x"),
        ("command:rm", "a[${#b[@]}]=2 rm x"),
        ("command:rm", "a[(1)]=2 rm x"),
        ("command:rm", "a['$(rm x)']=1"),
        ("command:rm", "a=([1<<2]=2)\nrm x"),
        ("command:rm", ">x b=1 a[1 | 2]+=2 rm x"),
        ("command:rm", "echo $[1<<2]\nrm x"),
        ("command:rm", "echo \"$[a[1]+'$(rm x)']\""),
        ("command:rm", r"$'\x72m' x"),
        ("command:rm", r"bash -c $'ls\nrm x'"),
        ("command:rm", "[[ a -ef <(rm x) ]]"),
        ("command:rm", "echo a \r# b; rm x"),
    ],
)
def test_the_grammar_of_bash(rule: str, action: str) -> None:
    assert refused("bash", rule, action)
    if "((ls)" not in action:
        known = {"deny": ["command:nothing"], "unparsed": "refuse"}
        assert make_guard(known, "bash").refusal(action) is None


@pytest.mark.parametrize(
    "action",
    [
        "ls |",
        "ls; ; ls",
        "if ls; fi",
        "fi",
        "ls )",
        "(ls",
        "{ ls",
        "echo 'x",
        'echo "x',
        "for x in a; done",
        "case x in a) ls;;",
        "ls ;;",
        "echo ${x",
        "echo $(ls",
        "[[ a",
        "(ls) ls",
        "a=(b",
        "&& ls",
        "cat <<E\nfoo",
        "echo $(cat <<E)\nfoo\nE",
        'echo "${a:-\'}" ; rm x #\'}"',
        'echo "${a:-it\'s}"',
        "a[1 + 1",
        "echo $[1",
        'echo "$\\\n(rm x)"',
    ],
)
def test_a_syntax_error_of_bash_is_uncertain(action: str) -> None:
    rules = {"deny": ["command:nothing"], "unparsed": "refuse"}
    refusal = make_guard(rules, "bash").refusal(action)
    assert refusal is not None and "a syntax error" in refusal


LONG = (
    "cat <<E ",
    "a |",
    "((",
    "$((",
    "$(",
    "`",
    "${",
    '"${a:-',
    "'",
    "((a)b)",
    "(a) ",
    "a=(",
    "[[ ",
    "sudo ",
    "find -exec ",
    "bash -c x ",
    "case x in a) ",
    "<<E\n",
    "f() { ",
    "a;",
    "a[",
    "$[",
    "a[1]=",
    "${a:-'x'}",
    "\"${a:-'x'}\"",
    "\"${a:-'",
    "cat <<'E'\nE\n",
    "cat <<E\n\\\n",
    "$'\\x",
    "((((a))))",
)


@pytest.mark.parametrize("unit", LONG)
def test_the_steps_of_the_scanner_grow_with_the_length_only(unit: str) -> None:
    """Twice the text takes about twice the calls of functions, and not four times."""
    counts = [_count_calls(unit * (size // len(unit))) for size in (4_000, 8_000)]
    assert counts[1] < 3 * counts[0] + 1_000


def _count_calls(action: str) -> int:
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        make_guard({"deny": ["command:nothing"]}, "bash").refusal(action)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("environment", "rule", "action", "words"),
    [
        ("bash", "command:x", "a" * 100_001, "more than 100,000 characters"),
        ("bash", "pattern:x", "a" * 100_001, "more than 100,000 characters"),
        ("bash", "command:x", "$(" * 50 + ")" * 50, "more than 40 levels"),
        ("sql", "table:x", f"SELECT {'(' * 90}1{')' * 90}", "too deeply"),
        ("sql", "table:x", f"SELECT {'1,' * 25_000}1", "too long"),
        ("sql", "table:x", f"PRAGMA x({'(' * 90}1{')' * 90})", "too deeply"),
        ("python", "call:x", f"x = {'-' * 50_000}1", "too deeply"),
    ],
)
def test_what_exceeds_a_limit_is_refused(
    environment: str, rule: str, action: str, words: str
) -> None:
    for unparsed in ("allow", "refuse"):
        guard = make_guard({"deny": [rule], "unparsed": unparsed}, environment)
        refusal = guard.refusal(action)
        assert refusal is not None and words in refusal and "cannot be checked" in refusal


@pytest.mark.parametrize(
    "pattern", ["^(x+x+)+y", "(a*)*", "((a+)b)*", r"(\(a+)*", "(a{2,3})+", "(?:a|b*)*"]
)
def test_a_pattern_that_may_take_exponential_time_is_an_error(pattern: str) -> None:
    with pytest.raises(ConfigError, match="repeats a repetition"):
        make_guard({"deny": [f"pattern:{pattern}"]}, "bash")


@pytest.mark.parametrize("pattern", ["(a+)?b", "(?:x++y)*", "[(*+)]*", "(ab)*c+", "(a{3})*"])
def test_other_repetitions_are_allowed(pattern: str) -> None:
    assert make_guard({"deny": [f"pattern:{pattern}"]}, "bash").policy is not None


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("statement:DROP", "drop table if exists x"),
        ("statement:drop table", "DROP TABLE x"),
        ("statement:CREATE", "CREATE VIEW v AS SELECT 1"),
        ("statement:DELETE", "DELETE FROM t WHERE a = 1"),
        ("statement:INSERT", "INSERT INTO t SELECT 1"),
        ("statement:REPLACE", "REPLACE INTO t VALUES (1)"),
        ("statement:SHOW", "SHOW TABLES"),
        ("statement:DROP", "SELECT 1; DROP TABLE x"),
        ("statement:PRAGMA", "PRAGMA table_info(x)"),
        ("table:secret", "SELECT * FROM a.Secret JOIN b"),
        ("table:secret", "SELECT 1 WHERE 1 IN (SELECT x FROM `secret`)"),
        ("table:secret", "SHOW COLUMNS FROM secret"),
        ("table:a.secret", "SHOW FULL COLUMNS FROM secret FROM a"),
        ("table:secret", "SHOW CREATE TABLE secret"),
        ("table:secret", "SHOW INDEX FROM secret"),
        ("table:secret", "PRAGMA table_info(secret)"),
        ("table:secret", "PRAGMA main.index_list('secret')"),
        ("table:a.*", "SELECT * FROM a.b"),
        ("table:mysql.user", "UPDATE mysql.user SET x = 1"),
        ("statement:DROP", "/*!50000 DROP TABLE a */"),
        ("statement:DROP", "/*M!100100 DROP TABLE a */"),
        ("statement:DROP", "/*! DROP TABLE a */ /*!99999 x */"),
        ("statement:SELECT", "/*!50000 SELECT 1 */"),
        ("table:secret", "SELECT 1 /*!99999 FROM secret */"),
        ("table:secret", "WITH secret AS (SELECT * FROM secret) SELECT * FROM secret"),
        ("table:secret", "SELECT * FROM secret WHERE 1 IN (WITH secret AS (SELECT 1) SELECT 1)"),
        ("table:secret", "WITH a AS (SELECT * FROM secret), secret AS (SELECT 1) SELECT * FROM a"),
        ("table:secret", "WITH secret AS (SELECT 1) UPDATE secret SET x = 1"),
        ("table:secret", "(WITH secret AS (SELECT 1) TABLE secret) UNION TABLE secret"),
        ("function:sleep", "SELECT SLEEP(3)"),
        ("function:group_concat", "SELECT group_concat(a) FROM t"),
        ("function:if", "SELECT IF(a, 1, 2) FROM t"),
        (r"pattern:(?i)\bor\s+1\s*=\s*1", "SELECT 1 FROM t WHERE a OR 1=1"),
    ],
)
def test_parts_of_sql_are_found(rule: str, action: str) -> None:
    assert refused("sql", rule, action)


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("statement:DROP", "SELECT 'DROP TABLE x' AS dropped"),
        ("table:secret", "WITH secret AS (SELECT 1) SELECT secret.a FROM secret"),
        ("table:secret", "WITH secret AS (SELECT 1), b AS (SELECT * FROM secret) SELECT * FROM b"),
        ("table:secret", "WITH secret AS (SELECT 1) SELECT 1 WHERE 1 IN (TABLE secret)"),
        ("table:a", "WITH RECURSIVE b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b"),
        ("table:secret", "SELECT secret FROM t /* , secret */"),
        ("table:a.b", "SELECT * FROM b"),
        ("table:*", "SHOW CREATE DATABASE secret"),
        ("table:*", "SHOW TABLES FROM secret"),
        ("table:*", "PRAGMA foreign_keys = 1"),
        ("function:and", "SELECT 1 WHERE 1 AND 1"),
        ("function:case", "SELECT CASE WHEN 1 THEN 2 END"),
        ("statement:DROP", "SELEC 1"),
    ],
)
def test_text_in_sql_is_not_a_part(rule: str, action: str) -> None:
    assert not refused("sql", rule, action)


@pytest.mark.parametrize(
    "action", ["PREPARE s FROM 'DROP TABLE t'", "EXECUTE s", "CALL p()", "LOCK TABLES t READ"]
)
def test_sql_that_is_not_parsed_is_uncertain(action: str) -> None:
    rules = {"deny": ["table:t"]}
    assert make_guard(rules, "sql").refusal(action) is None
    refusal = make_guard({**rules, "unparsed": "refuse"}, "sql").refusal(action)
    assert refusal is not None and f"what {action.split()[0]}" in refusal
    assert (
        make_guard({"deny": ["table:u"], "unparsed": "refuse"}, "sql").refusal("SHOW TABLES")
        is None
    )


def test_a_text_at_which_a_parser_fails_is_uncertain() -> None:
    def parse(_: str) -> ParsedAction:
        raise IndexError

    for unparsed in ("allow", "refuse"):
        policy = read_policy({"deny": ["command:rm"], "unparsed": unparsed})
        assert (policy.refusal("x", parse) is None) == (unparsed == "allow")


@pytest.mark.parametrize("action", ["", ";", "/*! ; */", "/*! */", "-- x"])
def test_a_statement_without_words_is_uncertain(action: str) -> None:
    refusal = make_guard({"allow": ["statement:SELECT"]}, "sql").refusal(action)
    assert refusal is not None and "a syntax error" in refusal


def test_a_short_policy_allows_reading_only() -> None:
    guard = make_guard({"allow": ["statement:SELECT", "statement:SHOW"]}, "sql")
    for action in ("SELECT 1", "(SELECT 1) UNION (SELECT 2)", "show tables", "TABLE t"):
        assert guard.refusal(action) is None
    for action in ("INSERT INTO t SELECT 1", "TRUNCATE t", "SET @a = 1", "SELEC 1", ""):
        assert guard.refusal(action) is not None


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("import:os", "import re, os.path"),
        ("import:os", "from os import path"),
        ("import:os.path", "from os import path as p"),
        ("import:os", "__import__('os')"),
        ("import:os", "import importlib as i\ni.import_module('os')"),
        ("import:os", "exec('import os')"),
        ("import:os", "def f():\n    import os"),
        ("call:eval", "eval('1')"),
        ("call:eval", "import builtins\nbuiltins.eval('1')"),
        ("call:os.system", "import os as o\no.system('x')"),
        ("call:eval", "@eval\n@x\ndef f(): pass"),
        ("call:os.system", "import os\n@os.system\nclass A: pass"),
        ("call:os.system", "from os import system as s\ns('x')"),
        ("call:*.system", "f().system('x')"),
        ("attribute:__subclasses__", "().__class__.__subclasses__()"),
        ("attribute:__subclasses__", "getattr(x, '__subclasses__')"),
        ("attribute:sys.modules", "import sys\nsys.modules['os'].x"),
        ("attribute:os.environ", "os.environ.get('x')"),
        ("pattern:print", "print(1)"),
    ],
)
def test_parts_of_python_are_found(rule: str, action: str) -> None:
    assert refused("python", rule, action)


@pytest.mark.parametrize(
    ("rule", "action"),
    [
        ("import:os", "import osprey\nfrom x import os\n'import os'"),
        ("call:eval", "frame.eval('x')"),
        ("attribute:os.environ", "x.os.environ\nos.environment"),
        ("attribute:environ", "environ = 1"),
        ("import:os", "def f(:"),
    ],
)
def test_text_in_python_is_not_a_part(rule: str, action: str) -> None:
    assert not refused("python", rule, action)


@pytest.mark.parametrize(
    "action", ["def f(:", "__import__('o' + 's')", "eval(x)", "x = " + "-" * 50000 + "1", "\x00"]
)
def test_uncertain_python(action: str) -> None:
    rules = {"deny": ["import:os"], "unparsed": "refuse"}
    assert make_guard(rules, "python").refusal(action) is not None


def test_allowed_imports_and_calls() -> None:
    guard = make_guard({"allow": ["import:math", "import:os.path"]}, "python")
    for action in ("import math", "from math import *", "from os import path", "x = 1"):
        assert guard.refusal(action) is None
    for action in ("import os", "import re, math", "from os import environ"):
        assert guard.refusal(action) is not None
    own = make_guard({"allow": ["call:print"]}, "python")
    assert own.refusal("def f(): pass\nprint(f())") is None
    assert own.refusal("print(len([]))") is not None
