"""Compares generated statements on the embedded engine and on a server, and prints what differs.

    python benchmarks/sql_fuzz.py [--statements 20000] [--seed 1] [--examples 40] [--excused 0]

It prints the statements generated, those that agree with the server, those that the embedded
engine refuses honestly, those that a rule about MariaDB and MySQL 8 excuses, and those that are
wrong, with the smallest example of each kind and as many statements of each rule as ``--excused``
says, how often the server was asked again because of an illegal mix of collations, which the
embedded engine does not name, and how much was reached of what is enumerated: every
pair of types under every operator, every function with every type, every pair of clauses. The exit
status is 1 if a statement is wrong, or if a run of at least 60,000 statements has not reached all.
Ctrl-C ends the run and prints what was compared.
See ``agreement.py``, ``rules.py`` and ``enumerated.py`` in ``tests/hostile/sql``.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from hostile.sql.agreement import Tally, as_mysql, run_case  # from tests/
from hostile.sql.enumerated import keys
from hostile.sql.rules import RULES
from hostile.sql.statements_grammar import Statements
from hostile.sql.tables import DUMP
from intercode_sql import open_engine
from intercode_sql.types import DatabaseSpec

_CASES_OF_A_SESSION = 500
COMPLETE = 60_000
"""Statements of a run that reaches whatever is enumerated."""


def compare(statements: int, grammar: Statements) -> Tally:
    """Generate and compare about so many statements, fewer if it is interrupted."""
    tally = Tally()
    with tempfile.TemporaryDirectory(prefix="sql-fuzz-") as folder:
        path = Path(folder) / "d.sql"
        path.write_text(DUMP, "utf-8")
        database = DatabaseSpec("mysql-dump", path, "d")
        engines = [open_engine("embedded"), open_engine("mysql")]
        try:
            while tally.generated < statements:
                sessions = [engine.open(database) for engine in engines]
                as_mysql(sessions[1])
                for _ in range(_CASES_OF_A_SESSION):
                    sound = run_case(grammar.case(), sessions[0], sessions[1], tally)
                    if not sound or tally.generated >= statements:
                        break
                for session in sessions:
                    session.close()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one ends no report
        finally:
            for engine in engines:
                engine.close()
    return tally


def report(tally: Tally, examples: int, excused: int = 0) -> str:
    """Return the table of a comparison, the examples of its most frequent kinds, and so many
    statements of each rule that excused some."""

    def line(name: str, count: int) -> str:
        return f"{name:<20}{count:>8}{100 * count / max(1, tally.generated):>8.2f} %"

    lines = [
        line("generated", tally.generated),
        line("agreed", tally.agreed),
        line("refused honestly", tally.refused),
        line("excused", tally.excuses),
        line("wrong", tally.wrong),
        line("asked again", tally.asked_again),
        "",
    ]
    for rule in RULES:
        found = tally.excused.get(rule.name, [])
        lines.append(f"excused {len(found):>6}  {rule.name} ({rule.page})")
    for kind, count in tally.kinds.most_common(examples):
        lines += ["", f"{count} × {kind}", *_shown(*tally.examples[kind])]
    for name, statements in tally.excused.items() if excused else ():
        lines += ["", f"{len(statements)} × excused: {name}"]
        for statement in statements[:excused]:
            lines += _shown(*statement)
    return "\n".join(lines)


def _shown(code: str, ours: str, theirs: str) -> tuple[str, ...]:
    return f"  {code}", f"    embedded  {ours[:400]}", f"    server    {theirs[:400]}"


def coverage(grammar: Statements) -> str:
    """Return how much of what is enumerated was reached, by the parts of the grammar."""
    every, left = (Counter(key[0] for key in found) for found in (keys(), grammar.unreached))
    parts = [f"{part} {count - left[part]} of {count}" for part, count in every.items()]
    done = every.total() - left.total()
    return f"enumerated and reached: {done} of {every.total()} ({', '.join(parts)})"


def main() -> int:
    """Parse the command line, compare, and print. Returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--statements", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=40)
    parser.add_argument("--excused", type=int, default=0)
    options = parser.parse_args()
    start = time.monotonic()
    grammar = Statements(options.seed, enumerated=True)
    tally = compare(options.statements, grammar)
    print(report(tally, options.examples, options.excused))
    print(f"\n{coverage(grammar)}")
    print(f"seed {options.seed}, {time.monotonic() - start:.0f} s")
    incomplete = grammar.unreached and options.statements >= COMPLETE
    return 1 if tally.wrong or incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
