"""What an episode has changed of its copy of the data, looked up no more often than it may have."""

from __future__ import annotations

from collections.abc import Iterable

from intercode.sql.server.group_by_check import GroupByCheck
from intercode.sql.server.pristine import PristineDatabase
from intercode.sql.server.statement_analysis import StatementAnalysis

_ROUTINE_KINDS = {"function", "procedure", "trigger"}
"""What may change any data whenever it is called."""


class ChangeTracker:
    """Of one private database, which began as a copy of ``pristine``."""

    def __init__(self, pristine: PristineDatabase, database: str) -> None:
        self._pristine, self._database = pristine, database
        self._definitions: dict[str, str] | None = None
        self._digests: dict[str, str] | None = None
        self._group_by_check: GroupByCheck | None = None

    def invalidate(self, reading: StatementAnalysis) -> None:
        """Forget what a statement may change, right before it runs."""
        code = self._definitions is None or any(
            n.split()[0] in _ROUTINE_KINDS for n in self._definitions
        )
        if reading.defines or reading.compound:
            self._definitions = self._digests = self._group_by_check = None
        elif code:
            self._definitions = self._digests = None
        elif reading.writes:
            self._digests = None

    def changed_objects(self) -> dict[str, str]:
        """How each thing differs from what it was: new, changed or gone."""
        before, now = self._pristine.content_digests(), self._current_digests()
        return {
            thing: "new" if thing not in before else "changed" if thing in now else "gone"
            for thing in before.keys() | now.keys()
            if before.get(thing) != now.get(thing)
        }

    def object_digests(self, things: Iterable[str]) -> list[tuple[str, str]]:
        """What these things are now, as digests."""
        now = self._current_digests()
        return sorted((thing, now.get(thing, "")) for thing in things)

    def group_by_check(self) -> GroupByCheck:
        """MySQL's rule for grouped queries, for the tables as they are."""
        if self._group_by_check is None:
            self._group_by_check = self._pristine.group_by_check_for(self._database)
        return self._group_by_check

    def _current_digests(self) -> dict[str, str]:
        server = self._pristine.server
        if self._definitions is None:
            self._definitions, self._digests = server.definition_digests(self._database), None
        if self._digests is None:
            self._digests = server.content_digests(self._database, self._definitions)
        return self._digests
