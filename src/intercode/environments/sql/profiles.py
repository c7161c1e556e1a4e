"""The two profiles of SQL: ``standard``, as the paper meant it, and ``original``, as the
authors' code does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from intercode.core.errors import GoldError
from intercode.core.types import ExecResult, Rows, State, Task
from intercode.environments.sql.row_order import rank_rows
from intercode.sql import SqlSession
from intercode.sql.base import ERROR_PREFIX, error_result
from intercode.sql.dialect.errors import syntax_error
from intercode.sql.dialect.keywords import NO_SPACE_FUNCTIONS
from intercode.sql.dialect.tokens import tokenize

GOLD_SECONDS = 120.0
_MISSING_FUNCTION = (
    "FUNCTION {}.{} does not exist. Check the 'Function Name Parsing and Resolution' section in "
    "the Reference Manual"
)
OpenSqlSession = Callable[[], SqlSession]


class SqlProfile(Protocol):
    """The differences between the profiles. An instance belongs to one environment."""

    def run(self, session: SqlSession, code: str, timeout: float) -> ExecResult:
        """Run one action."""
        ...

    def agent_state(self, last: ExecResult | None, task: Task) -> State:
        """Return the agent's last result."""
        ...

    def gold_states(self, task: Task, agent: SqlSession, pristine: OpenSqlSession) -> list[State]:
        """Return the result of each gold.

        ``agent`` is the episode's own session. ``pristine`` opens a session on the initial data.
        """
        ...

    def close(self) -> None:
        """Forget what was computed for the episode."""
        ...


class StandardSqlProfile:
    """Each gold runs once per episode, on the initial data. A gold that fails is a fault of the
    dataset."""

    def __init__(self) -> None:
        self._golds: list[State] | None = None

    def run(self, session: SqlSession, code: str, timeout: float) -> ExecResult:
        return session.run(code, timeout)

    def agent_state(self, last: ExecResult | None, task: Task) -> State:  # noqa: ARG002
        return State(last.output, rows=last.rows) if last else State()

    def gold_states(self, task: Task, agent: SqlSession, pristine: OpenSqlSession) -> list[State]:  # noqa: ARG002
        if self._golds is None:
            session = pristine()
            try:
                self._golds = [_gold_state(task, gold, session) for gold in task.golds]
            finally:
                session.close()
        return self._golds

    def close(self) -> None:
        self._golds = None


def _gold_state(task: Task, gold: str, session: SqlSession) -> State:
    """Return the result of a gold and the order that it asks for. Raises GoldError if it
    fails."""
    result = session.run(gold, GOLD_SECONDS)
    if not result.ok:
        why = result.output.removeprefix(ERROR_PREFIX)
        raise GoldError(f"the gold of {task.id} fails: {why}")
    ranks = (
        None if result.rows is None else rank_rows(gold, result.rows, _statement_runner(session))
    )
    return State(result.output, rows=result.rows, ranks=ranks)


def _statement_runner(session: SqlSession) -> Callable[[str], Rows | None]:
    return lambda statement: session.run(statement, GOLD_SECONDS).rows


class OriginalSqlProfile:
    """The gold runs on the agent's connection for every score, in its current state.

    A gold that fails counts as an empty result. ``COUNT (*)`` with a blank is not taken as a
    function, as on the authors' server, whichever engine runs it.
    """

    def run(self, session: SqlSession, code: str, timeout: float) -> ExecResult:
        pieces = list(tokenize(code))
        for token, following, inside in zip(pieces, pieces[1:], pieces[2:], strict=False):
            if (
                following.text == "("
                and following.start > token.end
                and token.upper in NO_SPACE_FUNCTIONS
            ):
                no_name = _MISSING_FUNCTION.format(session.database, token.text)
                starred = inside.text == "*"
                return error_result(
                    syntax_error(code, inside.start).message if starred else no_name
                )
        return session.run(code, timeout)

    def agent_state(self, last: ExecResult | None, task: Task) -> State:
        return State(last.output, rows=last.rows) if last else State(task.query)

    def gold_states(self, task: Task, agent: SqlSession, pristine: OpenSqlSession) -> list[State]:  # noqa: ARG002
        result = self.run(agent, task.golds[0], GOLD_SECONDS)
        return [State(result.output, rows=result.rows if result.ok else (), failed=not result.ok)]

    def close(self) -> None:
        """Do nothing: no state belongs to the episode."""
