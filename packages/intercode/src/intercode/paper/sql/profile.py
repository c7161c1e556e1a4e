"""The profile ``original`` of SQL: what the authors' code does."""

from __future__ import annotations

from typing import ClassVar

from intercode.core.types import ExecResult, State, Task
from intercode.environments.base.profiles import GOLD_SECONDS
from intercode.environments.sql.engine import EngineSession
from intercode.environments.sql.profiles import SqlEpisode, SqlProfile
from intercode.paper import PROFILE
from intercode_sql.base import ERROR_PREFIX
from intercode_sql.dialect.errors import syntax_error
from intercode_sql.dialect.keywords import NO_SPACE_FUNCTIONS
from intercode_sql.dialect.tokens import tokenize

_MISSING_FUNCTION = (
    "FUNCTION {}.{} does not exist. Check the 'Function Name Parsing and Resolution' section in "
    "the Reference Manual"
)


class OriginalSqlProfile(SqlProfile):
    """The gold runs on the agent's connection for every score, in its current state.

    A gold that fails counts as an empty result. ``COUNT (*)`` with a blank is not taken as a
    function, as on the authors' server, whichever engine runs it; see ``OriginalSqlSession``.
    """

    name: ClassVar[str] = PROFILE
    has_exploits: ClassVar[bool] = True
    runs_golds_separately: ClassVar[bool] = False
    follows_dataset: ClassVar[bool] = False

    def open_session(
        self,
        connection: EngineSession,
        task: Task,  # noqa: ARG002
        state: None,  # noqa: ARG002
    ) -> EngineSession:
        return connection.like(OriginalSqlSession)

    def agent_state(
        self,
        episode: SqlEpisode,
        last: ExecResult | None,
        answer: str | None,  # noqa: ARG002
    ) -> State:
        return State(last.output, rows=last.rows) if last else State(episode.task.query)

    def gold_states(self, episode: SqlEpisode) -> list[State]:
        result = episode.workspace.run(episode.task.golds[0], GOLD_SECONDS)
        return [State(result.output, rows=result.rows if result.ok else (), failed=not result.ok)]


class OriginalSqlSession(EngineSession):
    """A session in which ``COUNT (*)`` with a blank is not taken as a function."""

    def run(self, code: str, timeout: float) -> ExecResult:
        pieces = list(tokenize(code))
        for token, following, inside in zip(pieces, pieces[1:], pieces[2:], strict=False):
            if (
                following.text == "("
                and following.start > token.end
                and token.upper in NO_SPACE_FUNCTIONS
            ):
                no_name = _MISSING_FUNCTION.format(self.database, token.text)
                starred = inside.text == "*"
                message = syntax_error(code, inside.start).message if starred else no_name
                return ExecResult(ERROR_PREFIX + message, 1)
        return super().run(code, timeout)
