"""Compares generated statements on the embedded engine and on a server, and prints what differs.

    python benchmarks/sql_fuzz.py [--statements 20000] [--seed 1] [--examples 40]

It prints the statements generated, those that agree with the server, those that the embedded
engine refuses honestly, those that a rule about MariaDB and MySQL 8 excuses, and those that are
wrong, with the smallest example of each kind. The exit status is 1 if a statement is wrong. See
``tests/hostile/sql/agreement.py``.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hostile.sql.agreement import RULES, Tally, run_case  # from tests/
from hostile.sql.statements_grammar import Statements
from hostile.sql.tables import DUMP
from intercode.core.types import DatabaseSpec
from intercode.sql import open_engine

_CASES_OF_A_SESSION = 500


def compare(statements: int, seed: int) -> Tally:
    """Generate and compare about so many statements."""
    tally, grammar = Tally(), Statements(seed)
    with tempfile.TemporaryDirectory(prefix="sql-fuzz-") as folder:
        path = Path(folder) / "d.sql"
        path.write_text(DUMP, "utf-8")
        database = DatabaseSpec("mysql-dump", path, "d")
        engines = [open_engine("embedded"), open_engine("mysql")]
        try:
            while tally.generated < statements:
                sessions = [engine.open(database) for engine in engines]
                for _ in range(_CASES_OF_A_SESSION):
                    sound = run_case(grammar.case(), sessions[0], sessions[1], tally)
                    if not sound or tally.generated >= statements:
                        break
                for session in sessions:
                    session.close()
        finally:
            for engine in engines:
                engine.close()
    return tally


def report(tally: Tally, examples: int) -> str:
    """Return the table of a comparison and the examples of its most frequent kinds."""

    def line(name: str, count: int) -> str:
        return f"{name:<20}{count:>8}{100 * count / max(1, tally.generated):>8.2f} %"

    lines = [
        line("generated", tally.generated), line("agreed", tally.agreed),
        line("refused honestly", tally.refused), line("excused", tally.excused.total()),
        line("wrong", tally.wrong), "",
    ]  # fmt: skip
    for rule in RULES:
        lines.append(f"excused {tally.excused[rule.name]:>6}  {rule.name} ({rule.page})")
    for kind, count in tally.kinds.most_common(examples):
        code, ours, theirs = tally.examples[kind]
        lines += [
            "",
            f"{count} × {kind}",
            f"  {code}",
            f"    embedded  {ours}",
            f"    server    {theirs}",
        ]
    return "\n".join(lines)


def main() -> int:
    """Parse the command line, compare, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=40)
    options = parser.parse_args()
    start = time.monotonic()
    tally = compare(options.statements, options.seed)
    print(report(tally, options.examples))
    print(f"\nseed {options.seed}, {time.monotonic() - start:.0f} s")
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
