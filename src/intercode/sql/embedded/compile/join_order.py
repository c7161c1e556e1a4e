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
from intercode.sql.embedded.compile.scope import Expression, Scope, Source

ROW_COST, PAGE_COST = 0.1, 0.25
EQUAL_SELECTIVITY, RANGE_SELECTIVITY, LIKE_SELECTIVITY, UNEQUAL_SELECTIVITY = 0.1, 1 / 3, 1 / 9, 0.9
_ROWS_PER_PAGE = 160
_MAX_SOURCES = 5
"""Sources up to which every order is weighed."""

SourceColumn = tuple[str, str]
"""A source's tag and a column in lower case."""


@dataclass(slots=True)
class JoinConditions:
    """What the conditions say: columns that are equal, columns equal to a constant, and the part of
    each source's rows that its own conditions keep."""

    equalities: list[tuple[SourceColumn, SourceColumn]] = field(default_factory=list)
    constants: set[SourceColumn] = field(default_factory=set)
    selectivity: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JoinStep:
    """A source in its turn; ``hashed``: what came before is put into a hash table, and this source
    is read from its beginning."""

    source: Source
    hashed: bool = False


def join_conditions(scope: Scope, conditions: Sequence[exp.Expr]) -> JoinConditions:
    """What the conjuncts of these conditions say of the scope's sources."""
    found = JoinConditions()
    for node in conditions:
        for part in conjuncts(node):
            _add_condition(part, scope, found)
    return found


def source_column(node: exp.Expr | None, scope: Scope) -> SourceColumn | None:
    """The source and column of this scope that a name means, None where it means neither."""
    if not isinstance(node, exp.Column):
        return None
    try:
        found: Expression = scope.column(node)
    except StatementError:
        return None
    tag, _, name = found.sql.partition(".")
    if found.outer or not any(s.alias == tag for s in scope.sources):
        return None
    return tag, name.strip('"').lower()


_SELECTIVITIES: tuple[tuple[type[exp.Expr], float], ...] = (
    (exp.NEQ, UNEQUAL_SELECTIVITY), (exp.Like, LIKE_SELECTIVITY), (exp.Between, LIKE_SELECTIVITY), (exp.GT, RANGE_SELECTIVITY), (exp.GTE, RANGE_SELECTIVITY),
    (exp.LT, RANGE_SELECTIVITY), (exp.LTE, RANGE_SELECTIVITY), (exp.Is, EQUAL_SELECTIVITY),
)  # fmt: skip


def _add_condition(node: exp.Expr, scope: Scope, found: JoinConditions) -> None:
    left = source_column(node.args.get("this"), scope)
    right = source_column(node.args.get("expression"), scope)
    if isinstance(node, exp.EQ) and left and right and left[0] != right[0]:
        found.equalities.append((left, right))
        return
    one = left or right
    if one is None:
        return
    part = 1.0
    if isinstance(node, exp.EQ):
        found.constants.add(one)
        part = EQUAL_SELECTIVITY
    elif isinstance(node, exp.In) and node.expressions:
        part = min(0.5, EQUAL_SELECTIVITY * len(node.expressions))
    else:
        part = next((p for kind, p in _SELECTIVITIES if isinstance(node, kind)), 1.0)
    found.selectivity[one[0]] = found.selectivity.get(one[0], 1.0) * part


def join_order(sources: Sequence[Source], known: JoinConditions) -> list[JoinStep]:
    """The sources in the order in which MySQL would read them."""
    if not 1 < len(sources) <= _MAX_SOURCES:
        return [JoinStep(s) for s in sources]
    ranked = sorted(sources, key=lambda s: s.rows)
    best: tuple[float, list[JoinStep]] | None = None
    for order in permutations(ranked):
        cost, steps = _order_cost(order, known)
        if best is None or cost < best[0] - 1e-9:
            best = cost, steps
    return best[1] if best else []


def _order_cost(order: Sequence[Source], known: JoinConditions) -> tuple[float, list[JoinStep]]:
    cost, prefix = 0.0, 1.0
    steps: list[JoinStep] = []
    bound: set[SourceColumn] = set(known.constants)
    for place, source in enumerate(order):
        rows, price, hashed = _cheapest_access(source, bound, known, prefix, place == 0)
        cost += price
        prefix = max(prefix * rows, 1e-3)
        steps.append(JoinStep(source, hashed))
        bound |= {(source.alias, n.lower()) for n, _, _ in source.columns}
    return cost, steps


def _cheapest_access(
    source: Source, bound: set[SourceColumn], known: JoinConditions, prefix: float, first: bool
) -> tuple[float, float, bool]:
    """Rows that come of one row before, the price of all, and whether it is a hash join."""
    keys = {b[1] for a, b in known.equalities if b[0] == source.alias and a in bound}
    keys |= {a[1] for a, b in known.equalities if a[0] == source.alias and b in bound}
    joined = len(keys)
    keys |= {name for tag, name in known.constants if tag == source.alias}
    total = max(1.0, float(source.rows))
    kept = known.selectivity.get(source.alias, 1.0)
    pages = max(1.0, total / _ROWS_PER_PAGE)
    scan = pages * PAGE_COST + prefix * total * ROW_COST
    best = (total * kept * (EQUAL_SELECTIVITY if joined else 1.0), scan, not first)
    if source.table is None:
        return best
    for index in source.table.indexes:
        names = [c.lower() for c in index.columns]
        if names[0] not in keys or any(index.prefixes):
            continue
        whole = index.unique and all(n in keys for n in names)
        each = 1.0 if whole else max(1.0, index.per_key)
        price = prefix * each * (PAGE_COST + ROW_COST)
        if price < best[1] or best[2]:
            fixed = (source.alias, names[0]) in known.constants
            part = kept / EQUAL_SELECTIVITY if fixed and kept <= EQUAL_SELECTIVITY else kept
            best = (each * min(1.0, part), price, False)
    return best
