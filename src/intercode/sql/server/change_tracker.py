"""What an episode has changed of its copy of the data, looked up no more often than it may have."""

from __future__ import annotations

from collections.abc import Iterable

from intercode.sql.server.group_by_check import Grouping
from intercode.sql.server.pristine import Pristine
from intercode.sql.server.statement_analysis import Reading

_CODE = {"function", "procedure", "trigger"}
"""What may change any data whenever it is called."""


class Footprint:
    """Of one private database, which began as a copy of ``pristine``."""

    def __init__(self, pristine: Pristine, database: str) -> None:
        self._pristine, self._database = pristine, database
        self._defined: dict[str, str] | None = None
        self._now: dict[str, str] | None = None
        self._grouping: Grouping | None = None

    def touch(self, reading: Reading) -> None:
        """Forget what a statement may change, right before it runs."""
        code = self._defined is None or any(n.split()[0] in _CODE for n in self._defined)
        if reading.defines or reading.compound:
            self._defined = self._now = self._grouping = None
        elif code:
            self._defined = self._now = None
        elif reading.writes:
            self._now = None

    def changed(self) -> dict[str, str]:
        """How each thing differs from what it was: new, changed or gone."""
        before, now = self._pristine.fingerprint(), self._fingerprint()
        return {
            thing: "new" if thing not in before else "changed" if thing in now else "gone"
            for thing in before.keys() | now.keys()
            if before.get(thing) != now.get(thing)
        }

    def told(self, things: Iterable[str]) -> list[tuple[str, str]]:
        """What these things are now, as digests."""
        now = self._fingerprint()
        return sorted((thing, now.get(thing, "")) for thing in things)

    def grouping(self) -> Grouping:
        """MySQL's rule for grouped queries, for the tables as they are."""
        if self._grouping is None:
            self._grouping = self._pristine.grouping_of(self._database)
        return self._grouping

    def _fingerprint(self) -> dict[str, str]:
        server = self._pristine.server
        if self._defined is None:
            self._defined, self._now = server.definitions(self._database), None
        if self._now is None:
            self._now = server.fingerprint(self._database, self._defined)
        return self._now
