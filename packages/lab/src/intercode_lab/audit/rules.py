"""The rules of ``audit`` on golds and queries. Each returns findings about one task.

A rule is here only if nearly all that it finds is worth reading. KINDS in findings.py names
them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from intercode.core.python_syntax import parse_python
from intercode.core.types import SUCCESS_THRESHOLD, Payload, Rows, State, Task
from intercode.datasets.sql.base import schema_of
from intercode.environments.base.rewards import RewardFunction
from intercode.environments.base.row_comparison import normalize_rows
from intercode.evaluation.check.findings import TaskFinding
from intercode.results.short_text import cut_end
from intercode_lab.variants.tasks import TaskVariants

_ZERO_LINE = re.compile(r"0+(\.0+)?[KMGT]?(\s.*)?")
_SQL_TEXT = re.compile(r"'((?:[^']|'')*)'|\"([^\"]*)\"")
_SAYS_HOW_OFTEN = re.compile(
    r"\b(distinct|different|unique|duplicates?|each|every|all|per|various|pairs?)\b", re.IGNORECASE
)
_MAX_TEXT = 60  # characters of a result in a finding


def differing_golds(
    task: Task, golds: tuple[State, ...], reward: RewardFunction
) -> Iterator[TaskFinding]:
    """Find two golds whose results the reward does not call equal in both directions.

    Yields the first two that contradict each other, else the first two that differ in form.
    """
    found: dict[str, str] = {}
    for (i, one), (j, other) in combinations(enumerate(golds, 1), 2):
        scores = reward(task, other, one).value, reward(task, one, other).value
        if min(scores) < SUCCESS_THRESHOLD:
            kind = "golds-other-form" if _is_other_form(one, other) else "golds-differ"
            found.setdefault(
                kind,
                f"gold {j} scores {min(scores):.2f} against gold {i}: "
                f"{_result_text(one)}, and {_result_text(other)}",
            )
    for kind in ("golds-differ", "golds-other-form"):
        if kind in found:
            yield TaskFinding(task.id, kind, found[kind])
            return


def golds_in_variants(found: TaskVariants) -> Iterator[TaskFinding]:
    """Find golds of a task that agree, but not in a variant of it, and golds of which a condition
    has no effect in any variant."""
    for seed in found.replaced:
        if seed.golds:
            detail = f"in the variant {seed.seed}, {seed.reason}"
            yield TaskFinding(found.task, "golds-differ-elsewhere", detail)
            break
    for code in found.missed:
        yield TaskFinding(found.task, "idle-condition", code)


def _is_other_form(one: State, other: State) -> bool:
    """Return whether all words of one result are in the other, and files and directory are the
    same: the results then differ in order, in signs, or in what one says in addition."""
    if (one.files, one.status, one.cwd) != (other.files, other.status, other.cwd):
        return False
    left, right = _words(one), _words(other)
    return left <= right or right <= left


def _words(state: State) -> set[str]:
    text = " ".join(map(str, state.rows)) if state.rows is not None else state.output or ""
    return {word.strip(".") for word in re.findall(r"[\w.]+", text)} - {""}


def weak_answer(task: Task, state: State) -> Iterator[TaskFinding]:
    """Find a result that many wrong answers share: nothing at all, or nothing but 0."""
    if state.files or state.status or state.probe_output or state.cwd != task.cwd:
        return
    if state.rows is None:
        lines = (state.output or "").split("\n")
        given = [line.strip() for line in lines if line.strip()]
        if not given:
            yield TaskFinding(task.id, "empty-answer", "no output, and no changed file")
        elif all(map(_ZERO_LINE.fullmatch, given)):
            yield TaskFinding(task.id, "zero-answer", cut_end(" | ".join(given), _MAX_TEXT))


def equal_expectations(task: Task) -> Iterator[TaskFinding]:
    """Find a task whose tests all expect the same value, if there are several tests."""
    tests = Payload.of(task).tests
    values = [_expected_value(test) for test in tests]
    if len(values) > 1 and values[0] is not None and len(set(values)) == 1:
        yield TaskFinding(task.id, "one-answer", f"{len(values)} tests expect {values[0]}")


def unnamed_values(task: Task) -> Iterator[TaskFinding]:
    """Find texts in an SQL gold that its query does not contain, apart from case and signs."""
    query = _letters(task.query)
    texts = ["".join(found).strip("%") for found in _SQL_TEXT.findall(task.gold or "")]
    columns = {_letters(name) for names in schema_of(task).values() for name in names}
    missing = [t for t in texts if _letters(t) not in query and _letters(t) not in columns]
    if missing:
        yield TaskFinding(task.id, "unnamed-value", ", ".join(map(repr, dict.fromkeys(missing))))


def duplicate_rows(task: Task, results: Sequence[Rows]) -> Iterator[TaskFinding]:
    """Find golds that all return equal rows, and whose query does not say how often a row is
    wanted. ``results`` are the rows of each gold."""
    more = [len(rows) - len(set(normalize_rows(rows))) for rows in results]
    if more and all(more) and not _SAYS_HOW_OFTEN.search(task.query):
        detail = f"{more[0]} of {len(results[0])} rows occur before"
        yield TaskFinding(task.id, "duplicate-rows", detail)


def same_query_key(task: Task) -> tuple[object, ...]:
    """Return what two tasks have in common if they ask the same of the same files."""
    return task.files, task.database, task.setup, task.cwd, " ".join(task.query.split()).lower()


def _letters(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def _expected_value(test: object) -> str | None:
    """Return the value that a test expects, as text; None if it is not known."""
    if isinstance(test, Mapping):
        value = test.get("output", test.get("expected"))
        return None if value is None else repr(value)
    try:
        statement = parse_python(str(test)).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if not isinstance(statement, ast.Assert):
        return None
    match statement.test:
        case ast.Compare(ops=[ast.Eq()], comparators=[value]):
            return _literal(value)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Call()):
            return "False"
        case ast.Call():
            return "True"
    return None


def _literal(node: ast.expr) -> str | None:
    try:
        return repr(ast.literal_eval(node))
    except (ValueError, TypeError, SyntaxError):
        return None


def _result_text(state: State) -> str:
    """Describe a result in a few words: its rows, else its output, else its changed paths."""
    if state.rows is not None:
        return f"{len(state.rows)} rows, {cut_end(repr(list(state.rows[:2])), _MAX_TEXT)}"
    changed = f", {len(state.files)} changed paths" if state.files else ""
    line = " | ".join((state.output or "").split("\n")).strip(" |")
    return f"{cut_end(line, _MAX_TEXT)!r}{changed}"
