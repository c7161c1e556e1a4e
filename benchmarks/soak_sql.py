"""Runs many SQL environments that write at random, and checks that they are isolated.

    python benchmarks/soak_sql.py [--engines embedded,mysql] [--envs 64] [--seconds 120] [--seed 0]

Every environment plays episode after episode of statements that change data, tables, views and
settings, restores snapshots now and then, and compares what it reads with what it alone has
written. It prints episodes, statements, faults (changes or errors that are not the environment's
own), growth of memory, and what is left behind. The exit status is 1 if there is a fault or
something is left."""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode import make
from intercode.core.errors import InterCodeError

STATEMENTS = 20  # per episode
PATIENCE = 30.0  # seconds for one statement, with 64 environments


@dataclass
class Model:
    """The changes of one episode: its own tables with their rows, and a variable."""

    number: int
    tables: dict[str, list[int]] = field(default_factory=dict)
    variable: int | None = None
    next_table: int = 0

    def copy(self) -> Model:
        """Return a copy of the present state."""
        tables = {name: list(rows) for name, rows in self.tables.items()}
        return Model(self.number, tables, self.variable, self.next_table)


class Player:
    """One environment with its own thread."""

    def __init__(self, engine: str, number: int, seed: int, until: float) -> None:
        self.random = random.Random(f"{seed}/{number}")
        self.engine, self.number, self.until = engine, number, until
        self.faults: list[str] = []
        self.episodes = self.statements = 0

    def run(self) -> None:
        """Play until the time is over."""
        try:
            env = make("sql", "starter", engine=self.engine, timeout=PATIENCE)
            while time.monotonic() < self.until and len(self.faults) < 5:
                self.episode(env)
            env.close()
        except (InterCodeError, OSError) as e:
            self.faults.append(f"{self.number}: {type(e).__name__}: {e}")

    def episode(self, env: Any) -> None:
        """Play one episode: random changes, each followed by a check of the whole state."""
        env.reset(options={"task": self.random.randrange(len(env.dataset))})
        before = self.ask(env, "SHOW TABLES")
        given = [row[0] for row in before or ()]
        self.expect(env, "SELECT @mine", ((None,),))
        model, saved = Model(self.number), None
        for _ in range(STATEMENTS):
            self.change(env, model, given)
            if self.random.random() < 0.1:
                if saved is not None:
                    saved[0].close()
                saved = env.snapshot(), model.copy()
            elif saved is not None and self.random.random() < 0.1:
                env.restore(saved[0])
                model = saved[1].copy()
            self.check_state(env, model, given)
        if saved is not None:
            saved[0].close()
        self.episodes += 1

    def change(self, env: Any, model: Model, given: list[str]) -> None:
        """Run one statement that writes."""
        kind = self.random.choice(
            ("create", "insert", "insert", "update", "delete", "drop", "set", "alter", "given")
        )
        table = self.random.choice(sorted(model.tables)) if model.tables else None
        if kind == "set":
            model.variable = self.random.randrange(1000)
            self.ask(env, f"SET @mine = {model.variable}")
        elif kind == "given":
            self.ask(env, f"DELETE FROM `{self.random.choice(given)}` WHERE 1 = 0")
        elif kind == "create" or table is None:
            name = f"own_{self.number}_{model.next_table}"
            model.next_table += 1
            model.tables[name] = []
            self.ask(env, f"CREATE TABLE {name} (a int)")
        elif kind == "insert":
            rows = [self.random.randrange(10) for _ in range(3)]
            model.tables[table] += rows
            self.ask(env, f"INSERT INTO {table} (a) VALUES ({'), ('.join(map(str, rows))})")
        elif kind == "update":
            model.tables[table] = [a + 1 for a in model.tables[table]]
            self.ask(env, f"UPDATE {table} SET a = a + 1")
        elif kind == "delete":
            model.tables[table] = [a for a in model.tables[table] if a < 5]
            self.ask(env, f"DELETE FROM {table} WHERE a >= 5")
        elif kind == "alter":
            self.ask(env, f"ALTER TABLE {table} ADD COLUMN c{self.statements} int")
        else:
            del model.tables[table]
            self.ask(env, f"DROP TABLE {table}")

    def check_state(self, env: Any, model: Model, given: list[str]) -> None:
        """Check that everything the episode can see is its own."""
        names = sorted([*given, *model.tables])
        seen = self.ask(env, "SHOW TABLES")
        if sorted(row[0] for row in seen or ()) != names:
            self.faults.append(f"{self.number}: tables {seen}, not {names}")
        self.expect(env, "SELECT @mine", ((model.variable,),))
        for name, rows in model.tables.items():
            self.expect(env, f"SELECT a FROM {name} ORDER BY a", tuple((a,) for a in sorted(rows)))

    def expect(self, env: Any, code: str, rows: tuple[tuple[Any, ...], ...]) -> None:
        """Check that a statement has this result."""
        seen = self.ask(env, code)
        if seen != rows:
            self.faults.append(f"{self.number}: {code} gives {seen}, not {rows}")

    def ask(self, env: Any, code: str) -> tuple[tuple[Any, ...], ...] | None:
        """Return the rows of a statement, which must succeed."""
        observation, *_, info = env.step(code)
        self.statements += 1
        if not info["valid"]:
            self.faults.append(f"{self.number}: {code}: {observation}")
        rows: tuple[tuple[Any, ...], ...] | None = env.episode.last_result.rows
        return rows


def resident() -> int:
    """Return the MiB of this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) // 1024


def soak(engine: str, envs: int, seconds: float, seed: int) -> bool:
    """Play, and print the results. Returns whether all went well."""
    parent = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    directory = Path(tempfile.mkdtemp(prefix="soak-sql-", dir=parent))
    directory.chmod(0o711)
    os.environ["INTERCODE_SQL_RUNTIME"] = str(directory / "run")
    began = time.monotonic()
    players = [Player(engine, n, seed, began + seconds) for n in range(envs)]
    threads = [threading.Thread(target=p.run) for p in players]
    for thread in threads:
        thread.start()
    time.sleep(min(10.0, seconds / 4))
    early = resident()
    for thread in threads:
        thread.join()
    late = resident()
    end = time.monotonic() + 20
    while (directory / "run").exists() and time.monotonic() < end:
        time.sleep(0.1)
    left = [str(p.relative_to(directory)) for p in directory.rglob("*")]
    shutil.rmtree(directory)
    faults = [f for p in players for f in p.faults]
    print(
        f"{engine}: {envs} environments, {sum(p.episodes for p in players)} episodes, "
        f"{sum(p.statements for p in players)} statements in {seconds:.0f} s, "
        f"{len(faults)} faults; memory {early} -> {late} MiB; left: {left or 'nothing'}"
    )
    for fault in faults[:10]:
        print("  " + fault[:300])
    return not faults and not left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="embedded,mysql")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    engines = options.engines.split(",")
    good = [soak(e, options.envs, options.seconds, options.seed) for e in engines]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
