"""A process that uses a private database server, for tests of what remains after its end.

python sql_owner.py DUMP [dsn]     prints the server's process number, then waits
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from intercode.core.types import DatabaseSpec
from intercode_sql import open_engine


def main() -> None:
    engine = open_engine("mysql", sys.argv[2] if len(sys.argv) > 2 else None)
    session = engine.open(DatabaseSpec("mysql-dump", Path(sys.argv[1]), "shop"))
    print(session.run("INSERT INTO shop VALUES (5, 'mine')", 60.0).output, flush=True)
    print(
        session.run(
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_VARIABLES "
            "WHERE VARIABLE_NAME = 'pid_file'",
            10.0,
        ).output,
        flush=True,
    )
    signal.pause()


if __name__ == "__main__":
    main()
