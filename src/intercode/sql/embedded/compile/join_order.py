"""In which order MySQL 8 would read the sources of a join: its cost model in small.

Only the order of rows hangs on it, where a query names none. The constants are MySQL 8.0's
(server_cost, engine_cost with everything in memory): 0.1 per row evaluated, 0.25 per page read. A
condition on a column without a key keeps 10 % of the rows (equality) or a third (range).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import permutations

from sqlglot import exp

from intercode.sql.dialect.errors import StatementError
from intercode.sql.dialect.functional_dependency import conjuncts
from intercode.sql.embedded.compile.scope import Ex, Scope, Source

ROW, PAGE = 0.1, 0.25
EQUAL, RANGE, LIKE, UNEQUAL = 0.1, 1 / 3, 1 / 9, 0.9
_ROWS_PER_PAGE = 160
_MOST = 5
"""Sources up to which every order is weighed."""

Place = tuple[str, str]
"""A source's tag and a column in lower case."""


@dataclass(slots=True)
class Facts:
    """What the conditions say: columns that are equal, columns equal to a constant, and the part of
    each source's rows that its own conditions keep."""

    equal: list[tuple[Place, Place]] = field(default_factory=list)
    fixed: set[Place] = field(default_factory=set)
    kept: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """A source in its turn; ``hashed``: what came before is put into a hash table, and this source
    is read from its beginning."""

    source: Source
    hashed: bool = False


def facts(scope: Scope, conditions: Sequence[exp.Expr]) -> Facts:
    """What the conjuncts of these conditions say of the scope's sources."""
    found = Facts()
    for node in conditions:
        for part in conjuncts(node):
            _learn(part, scope, found)
    return found


def place_of(node: exp.Expr | None, scope: Scope) -> Place | None:
    """The source and column of this scope that a name means, None where it means neither."""
    if not isinstance(node, exp.Column):
        return None
    try:
        found: Ex = scope.column(node)
    except StatementError:
        return None
    tag, _, name = found.sql.partition(".")
    if found.outer or not any(s.tag == tag for s in scope.sources):
        return None
    return tag, name.strip('"').lower()


_PARTS: tuple[tuple[type[exp.Expr], float], ...] = (
    (exp.NEQ, UNEQUAL), (exp.Like, LIKE), (exp.Between, LIKE), (exp.GT, RANGE), (exp.GTE, RANGE),
    (exp.LT, RANGE), (exp.LTE, RANGE), (exp.Is, EQUAL),
)  # fmt: skip


def _learn(node: exp.Expr, scope: Scope, found: Facts) -> None:
    left = place_of(node.args.get("this"), scope)
    right = place_of(node.args.get("expression"), scope)
    if isinstance(node, exp.EQ) and left and right and left[0] != right[0]:
        found.equal.append((left, right))
        return
    one = left or right
    if one is None:
        return
    part = 1.0
    if isinstance(node, exp.EQ):
        found.fixed.add(one)
        part = EQUAL
    elif isinstance(node, exp.In) and node.expressions:
        part = min(0.5, EQUAL * len(node.expressions))
    else:
        part = next((p for kind, p in _PARTS if isinstance(node, kind)), 1.0)
    found.kept[one[0]] = found.kept.get(one[0], 1.0) * part


def planned(sources: Sequence[Source], known: Facts) -> list[Step]:
    """The sources in the order in which MySQL would read them."""
    if not 1 < len(sources) <= _MOST:
        return [Step(s) for s in sources]
    ranked = sorted(sources, key=lambda s: s.rows)
    best: tuple[float, list[Step]] | None = None
    for order in permutations(ranked):
        cost, steps = _weighed(order, known)
        if best is None or cost < best[0] - 1e-9:
            best = cost, steps
    return best[1] if best else []


def _weighed(order: Sequence[Source], known: Facts) -> tuple[float, list[Step]]:
    cost, prefix = 0.0, 1.0
    steps: list[Step] = []
    bound: set[Place] = set(known.fixed)
    for place, source in enumerate(order):
        rows, price, hashed = _access(source, bound, known, prefix, place == 0)
        cost += price
        prefix = max(prefix * rows, 1e-3)
        steps.append(Step(source, hashed))
        bound |= {(source.tag, n.lower()) for n, _, _ in source.columns}
    return cost, steps


def _access(
    source: Source, bound: set[Place], known: Facts, prefix: float, first: bool
) -> tuple[float, float, bool]:
    """Rows that come of one row before, the price of all, and whether it is a hash join."""
    keys = {b[1] for a, b in known.equal if b[0] == source.tag and a in bound}
    keys |= {a[1] for a, b in known.equal if a[0] == source.tag and b in bound}
    joined = len(keys)
    keys |= {name for tag, name in known.fixed if tag == source.tag}
    total = max(1.0, float(source.rows))
    kept = known.kept.get(source.tag, 1.0)
    pages = max(1.0, total / _ROWS_PER_PAGE)
    scan = pages * PAGE + prefix * total * ROW
    best = (total * kept * (EQUAL if joined else 1.0), scan, not first)
    if source.table is None:
        return best
    for index in source.table.indexes:
        names = [c.lower() for c in index.columns]
        if names[0] not in keys or any(index.prefixes):
            continue
        whole = index.unique and all(n in keys for n in names)
        each = 1.0 if whole else max(1.0, index.per_key)
        price = prefix * each * (PAGE + ROW)
        if price < best[1] or best[2]:
            fixed = (source.tag, names[0]) in known.fixed
            part = kept / EQUAL if fixed and kept <= EQUAL else kept
            best = (each * min(1.0, part), price, False)
    return best
