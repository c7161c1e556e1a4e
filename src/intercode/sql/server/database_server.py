"""One server as this process uses it: connections, accounts, and private databases.

Who only reads shares a few connections of an account per database that can do nothing but select.
Who writes gets a slot: a database of its own, with the only account that may use it. Everything
that this process makes on the server bears its token in its name; while it lives it holds a lock of
that name, so that others can remove what a process left that was killed.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from intercode.core.errors import DatabaseLostError
from intercode.sql.server import database_copy, dump_loading
from intercode.sql.server.connection import Address, Link, StatementError, TimeOverError
from intercode.sql.server.watchdog import Watchdog

_IDLE = 64  # connections that wait for the next reader
_LOOKS, _BETWEEN = 400, 0.005  # at whether connections have ended, and seconds between two
_OURS = re.compile(r"(ic[0-9a-f]{8})[prwk]")


@dataclass(frozen=True)
class Slot:
    """An account and, but for readers, the private database of that name."""

    name: str
    password: str

    @property
    def account(self) -> str:
        """The account's name, which must not begin another one's."""
        return f"{self.name}u"


class Server:
    """May be used by several threads. ``address`` is that of an account that may do everything."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.token = f"ic{secrets.token_hex(4)}"
        self.lock = threading.RLock()
        self._killer = self._mark()
        self._killing = threading.Lock()
        self.version = self._killer.version
        self.watchdog = Watchdog(self.kill)
        self._admins: list[Link] = []
        self._readers: dict[str, Slot] = {}
        self._idle: dict[tuple[str, float], list[Link]] = {}
        self._waiting = 0
        self._free: list[Slot] = []
        self._numbers = iter(range(1 << 30))
        self._host = "localhost" if address.unix_socket else "%"
        self.lost = False
        self._holders = 0
        self.idle: Callable[[], None] = lambda: None
        self._sweep()

    def hold(self) -> None:
        """One more engine, session or kept state needs this server."""
        with self.lock:
            self._holders += 1

    @property
    def needed(self) -> bool:
        """Whether somebody holds it."""
        return self._holders > 0

    def let_go(self) -> None:
        """One less; after the last one ``idle`` is called."""
        with self.lock:
            self._holders -= 1
            last = self._holders == 0
        if last:
            self.idle()

    # ------------------------------------------------------------ connections
    def kill(self, number: int) -> None:
        """End a connection, whatever it does."""
        self._end(f"KILL {number}")

    def interrupt(self, number: int) -> None:
        """End what a connection does at this moment."""
        self._end(f"KILL QUERY {number}")

    def _end(self, code: str) -> None:
        with self._killing:
            try:
                self._killer.query(code)
            except DatabaseLostError:
                with suppress(DatabaseLostError, StatementError):  # it ended with that
                    self._killer = self._mark()
                    self._killer.query(code)
            except (StatementError, TimeOverError):
                pass  # it has ended by itself

    def _mark(self) -> Link:
        """A connection that shows, while it lives, that what bears our token is in use."""
        link = Link(self.address)
        link.query(f"SELECT GET_LOCK('{self.token}', 0)")
        return link

    def suspect(self) -> None:
        """A connection was lost: find out whether the server is, too."""
        try:
            Link(self.address).close()
        except DatabaseLostError:
            self.lost = True

    @contextmanager
    def admin(self) -> Iterator[Link]:
        """A connection that may do everything, and sees what is not committed yet."""
        with self.lock:
            link = self._admins.pop() if self._admins else None
        if link is None:
            link = Link(self.address)
            link.query("SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
            link.query(f"SET {dump_loading.LENIENT}")
        try:
            yield link
        except DatabaseLostError:
            self.lost = True
            link.close()
            raise
        except BaseException:
            self._admins.append(link)
            raise
        self._admins.append(link)

    def reader(self, database: str, seconds: float) -> Link:
        """A connection that can only read one database; hand it back with ``give_back``."""
        with self.lock:
            idle = self._idle.get((database, seconds))
            if idle:
                self._waiting -= 1
                return idle.pop()
            account = self._readers.get(database) or self._make_reader(database)
        return Link(self.address, account.account, account.password, database, seconds)

    def give_back(self, link: Link, database: str, seconds: float) -> None:
        """A reader's connection that nothing personal was done with."""
        with self.lock:
            if self._waiting < _IDLE:
                self._idle.setdefault((database, seconds), []).append(link)
                self._waiting += 1
                return
        link.close()

    # --------------------------------------------------------------- accounts
    def _make_reader(self, database: str) -> Slot:
        account = Slot(f"{self.token}r{next(self._numbers)}", secrets.token_hex(8))
        with self.admin() as admin:
            self._make_account(admin, account, f"SELECT, SHOW VIEW ON `{_plain(database)}`.*")
        self._readers[database] = account
        return account

    def _make_account(self, admin: Link, account: Slot, rights: str) -> None:
        who = f"'{account.account}'@'{self._host}'"
        admin.query(f"CREATE USER {who} IDENTIFIED BY '{account.password}'")
        admin.query(f"GRANT {rights} TO {who}")

    def definer(self, slot: Slot) -> str:
        """A slot's account as the definer of a view or a routine."""
        return f"`{slot.account}`@`{self._host}`"

    def take_slot(self) -> Slot:
        """A private name with its account; the database is still to be made."""
        with self.lock:
            if self._free:
                return self._free.pop()
            slot = Slot(f"{self.token}w{next(self._numbers)}", secrets.token_hex(8))
        with self.admin() as admin:
            self._make_account(admin, slot, f"ALL PRIVILEGES ON `{slot.name}`.*")
        return slot

    def return_slot(self, slot: Slot) -> None:
        """Remove a private database; its account serves the next one, which must not see what is
        left of this one's connection: the server goes on with that for a moment."""
        self.drop(slot.name)
        with self.admin() as admin:
            ended = _ended(admin, slot)
        if ended:
            with self.lock:
                self._free.append(slot)

    def name_for_keeping(self) -> str:
        """The name of a database that no account of an episode may use."""
        with self.lock:
            return f"{self.token}k{next(self._numbers)}"

    def drop(self, database: str) -> None:
        """Remove a database of ours."""
        with self.admin() as admin:
            admin.query(f"DROP DATABASE IF EXISTS `{database}`")

    # -------------------------------------------------------------- databases
    def copy(self, source: str, target: str, slot: Slot | None = None) -> None:
        """Make a database of ours a copy of another one."""
        with self.admin() as admin:
            steps = database_copy.recipe(admin, source)
            database_copy.copy(admin, steps, target, self.definer(slot) if slot else "")

    def definitions(self, database: str) -> dict[str, str]:
        """See ``copying.definitions``."""
        with self.admin() as admin:
            return database_copy.definitions(admin, database)

    def fingerprint(self, database: str, defined: Mapping[str, str]) -> dict[str, str]:
        """See ``copying.fingerprint``."""
        with self.admin() as admin:
            return database_copy.fingerprint(admin, database, defined)

    def size(self, database: str) -> int:
        """Bytes that a database takes."""
        with self.admin() as admin:
            rows, _ = admin.query(_SIZE.format(database, _SPACES[admin.is_mariadb]))
        return int((rows or [(0,)])[0][0] or 0)

    def is_ours(self, name: str) -> bool:
        """Whether a process of ours has made it."""
        return _OURS.match(name) is not None

    # -------------------------------------------------------------------- end
    def _sweep(self) -> None:
        """Remove what processes left here that are no more."""
        with self.admin() as admin:
            names = [str(n) for (n,) in admin.query("SHOW DATABASES")[0] or ()]
            users = [(str(u), str(h)) for u, h in admin.query(_ACCOUNTS)[0] or ()]
            for token in {m[1] for n in (*names, *dict(users)) if (m := _OURS.match(n))}:
                free = admin.query(f"SELECT IS_FREE_LOCK('{token}')")[0] == [(1,)]
                if token != self.token and free:
                    self._remove(admin, token, names, users)

    def _remove(
        self, admin: Link, token: str, names: list[str], users: list[tuple[str, str]]
    ) -> None:
        for name in names:
            if name.startswith(token):
                admin.query(f"DROP DATABASE IF EXISTS `{name}`")
        for user, host in users:
            if user.startswith(token):
                admin.query(f"DROP USER IF EXISTS '{user}'@'{host}'")

    def close(self, remove: bool) -> None:
        """End the connections; ``remove``: what we made on the server, too."""
        self.watchdog.stop()
        if remove:
            with suppress(DatabaseLostError, StatementError), self.admin() as admin:
                names = [str(n) for (n,) in admin.query("SHOW DATABASES")[0] or ()]
                users = [(str(u), str(h)) for u, h in admin.query(_ACCOUNTS)[0] or ()]
                self._remove(admin, self.token, names, users)
        with self.lock:
            links = [*self._admins, *(k for idle in self._idle.values() for k in idle)]
            self._admins, self._idle, self._waiting = [], {}, 0
        for link in (*links, self._killer):
            link.close()


_SPACES = {True: "INNODB_SYS_TABLESPACES", False: "INNODB_TABLESPACES"}
_SIZE = (
    "SELECT (SELECT COALESCE(SUM(FILE_SIZE), 0) FROM information_schema.{1} "
    "WHERE NAME LIKE '{0}/%') + (SELECT COALESCE(SUM(DATA_LENGTH + INDEX_LENGTH), 0) "
    "FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{0}' AND ENGINE <> 'InnoDB')"
)
_CONNECTIONS = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = '{}'"
_ACCOUNTS = "SELECT User, Host FROM mysql.user WHERE User LIKE 'ic%'"


def _ended(admin: Link, slot: Slot) -> bool:
    """Whether no connection of an account is left; those that there are get killed."""
    for _ in range(_LOOKS):
        left, _ = admin.query(_CONNECTIONS.format(slot.account))
        if not left:
            return True
        for (number,) in left:
            with suppress(StatementError):  # it has ended by itself
                admin.query(f"KILL {number}")
        time.sleep(_BETWEEN)
    return False


def _plain(database: str) -> str:
    """A name in a grant, where `_` and `%` would stand for any character."""
    return database.replace("_", r"\_").replace("%", r"\%")
