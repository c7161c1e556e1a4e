"""Parsing Dockerfiles: lines, here-documents, variables, stages, ignored files."""

from __future__ import annotations

import pytest

from intercode_sandbox.errors import DataError, UsageError
from intercode_sandbox.images.dockerfile.dockerignore import IgnoreRules, match_names
from intercode_sandbox.images.dockerfile.parser import parse_dockerfile
from intercode_sandbox.images.dockerfile.stages import required_stages, split_stages
from intercode_sandbox.images.dockerfile.substitution import (
    expand,
    expand_document,
    parse_pairs,
    split_words,
)

TEXT = """\
# syntax=docker/dockerfile:1
# a comment
ARG TAG=1 \\
    OTHER=2
FROM base:${TAG} AS First
run echo a && \\
# a comment in between

    echo 'b # no comment'
COPY --from=x --chmod=0755 a b /c/
RUN <<EOT sort
b
a
EOT
RUN cat <<-"A" <<B
\tone $x
\tA
two
B
CMD ["a", "b"]
"""


def test_lines() -> None:
    script = parse_dockerfile(TEXT)
    assert [(i.name, i.line) for i in script.instructions] == [
        ("ARG", 3),
        ("FROM", 5),
        ("RUN", 6),
        ("COPY", 10),
        ("RUN", 11),
        ("RUN", 15),
        ("CMD", 20),
    ]
    argument, _, run, copy, sort, cat, cmd = script.instructions
    assert argument.text.split() == ["TAG=1", "OTHER=2"]
    assert run.text.split("&&")[1].strip() == "echo 'b # no comment'"
    assert copy.flags == (("from", "x"), ("chmod", "0755")) and copy.text == "a b /c/"
    assert [(d.name, d.text, d.quoted) for d in sort.documents] == [("EOT", "b\na\n", False)]
    assert [(d.text, d.quoted) for d in cat.documents] == [("one $x\n", True), ("two\n", False)]
    assert cmd.exec_form() == ["a", "b"] and run.exec_form() is None


def test_another_escape_character() -> None:
    script = parse_dockerfile("# escape=`\nFROM a\nRUN dir c:\\ `\n  d\n")
    assert script.escape == "`" and script.instructions[1].text == "dir c:\\   d"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("FORM debian\n", "Dockerfile:1: .*did you mean 'FROM'"),
        ("FROM a\nRUN\n", "Dockerfile:2: RUN needs an argument"),
        ("FROM a\nRUN <<E\nx\n", "Dockerfile:2: the here-document E is not terminated"),
        ("# only this\n", "no instruction"),
    ],
)
def test_faults_name_the_line(text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        parse_dockerfile(text)


def test_variables_and_quotes() -> None:
    values = {"a": "1", "empty": "", "path": "/x y"}
    assert (
        expand("$a-${a}-\\$a-${none}-${none:-d$a}-${empty-d}-${empty:+x}", values) == "1-1-$a--d1--"
    )
    assert split_words("$path 'a $a' \"b $a\" c\\ d ''", values) == [
        "/x y",
        "a $a",
        "b 1",
        "c d",
        "",
    ]
    assert expand("${a:+${path}}$", values) == "/x y$"
    assert expand_document("it's $a \\$a\n", values) == "it's 1 $a\n"
    assert parse_pairs('A=1 B="x y" C=$a', values, "\\", "ENV") == {"A": "1", "B": "x y", "C": "1"}
    assert parse_pairs("A the rest $a", values, "\\", "ENV") == {"A": "the rest 1"}
    for text, why in (
        ("'x", "quote ' is not closed"),
        ("${a", "brace"),
        ("${a#b}", "not supported"),
    ):
        with pytest.raises(DataError, match=why):
            expand(text, values)
    with pytest.raises(DataError, match="variable b is required: say it"):
        expand("${b:?say it}", values)
    with pytest.raises(DataError, match="there is no value"):
        parse_pairs("A", {}, "\\", "ENV")


def test_only_the_stages_that_are_needed_are_built() -> None:
    text = (
        "ARG B=deb\nFROM $B AS one\nFROM x AS unused\nRUN false\nFROM one AS two\n"
        "FROM y\nCOPY --from=TWO /a /b\n"
    )
    stages, outer = split_stages(parse_dockerfile(text), {"B": "given"})
    assert outer["B"] == "given" and outer["TARGETPLATFORM"] == f"linux/{outer['TARGETARCH']}"
    assert [s.name for s in required_stages(stages, None)] == ["one", "two", "3"]
    assert [s.base for s in required_stages(stages, "Two")] == ["given", "one"]
    with pytest.raises(UsageError, match="did you mean 'two'"):
        required_stages(stages, "twoo")
    with pytest.raises(DataError, match="Dockerfile:1: RUN precedes the first FROM"):
        split_stages(parse_dockerfile("RUN a\n"), {})
    with pytest.raises(DataError, match="no FROM"):
        split_stages(parse_dockerfile("ARG a=1\n"), {})
    with pytest.raises(DataError, match=r"Dockerfile:1: FROM \$A: a variable has no value"):
        split_stages(parse_dockerfile("FROM $A\n"), {})


def test_ignored_files() -> None:
    ignored = IgnoreRules(
        ["# no rule", "*.log", "node_modules", "**/*.tmp", "!keep.log", "a/[bc]?", ""]
    )
    out = {"x.log", "node_modules/deep/file", "d/e/x.tmp", "x.tmp", "a/b1", "a/c2/below"}
    included = {"keep.log", "d/x.log", "nodes", "a/d1", "# no rule"}
    assert {path for path in out | included if ignored(path)} == out
    again = IgnoreRules(["dir", "!dir/in"])
    assert again("dir/other") and not again("dir/in") and not again("dir/in/below")


def test_patterns() -> None:
    assert match_names("*.py", ["b.py", "a.py", "c.txt", ".py"]) == [".py", "a.py", "b.py"]
    assert match_names("[ab]?", ["a1", "b", "c1"]) == ["a1"]
