"""Code tasks for tests, one of each kind, and languages that are not in the table."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from intercode.core.languages import Language
from intercode.core.types import Dataset, Task

PERL = Language("Perl", "main.pl", run=("perl", "{home}/main.pl"), tags=("perl", "pl"))
AWK = Language("AWK", "main.awk", run=("awk", "-f", "{home}/main.awk"))
ABSENT = Language("Nothing", "main.no", run=("no-such-program", "{home}/main.no"))


def needs(*programs: str) -> None:
    """Skip the test if the machine lacks one of its programs."""
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program}: install its package, which core/languages.py names")


def task(language: str, gold: str, *tests: tuple[Any, Any], **data: Any) -> Task:
    """Return a task ``own/<name>``; the default name is that of the language. Each test is an input
    with its output."""
    rows = tuple({"input": given, "output": wanted} for given, wanted in tests)
    name = data.pop("name", language)
    data = {"language": language, "tests": rows, **data}
    return Task(f"own/{name}", f"Write it in {language}.", gold=gold, data=data)


SUMS = (("3 4\n", "7\n"), ("1 -2", "-1"), ("0 0\n", "0"))
ADD = task(
    "javascript",
    "function add (a, b) { return a + b }",
    ([1, 2], 3),
    (["a", "b"], "ab"),
    entry="add",
)
C_SUM = task(
    "c",
    '#include <stdio.h>\nint main(void) {\n    int a, b;\n    scanf("%d %d", &a, &b);\n'
    '    printf("%d\\n", a + b);\n    return 0;\n}\n',
    *SUMS,
    example="1 2\n",
)
JAVA_SUM = task(
    "java",
    "import java.util.Scanner;\npublic class Main {\n    public static void main(String[] a) {\n"
    "        var in = new Scanner(System.in);\n"
    "        System.out.println(in.nextInt() + in.nextInt());\n    }\n}\n",
    *SUMS,
    example="1 2\n",
)
PERL_SUM = task(
    "support.languages:PERL", "@n = split ' ', <>; print $n[0] + $n[1], \"\\n\";", *SUMS
)
AWK_SUM = task("support.languages:AWK", "{ print $1 + $2 }", *SUMS, example="5 6\n")


def only(task: Task) -> Dataset:
    """Return a dataset with one task."""
    return Dataset("own", "code", (task,))
