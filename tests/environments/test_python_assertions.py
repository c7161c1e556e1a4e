"""How a test is split, and how its verdict is computed over plain values."""

from __future__ import annotations

import math
from typing import Any

import pytest

from intercode.core.errors import GoldError
from intercode.environments.python.assertions import split_assertion
from intercode.sessions.python.values import (
    ExceptionInfo,
    IteratorItems,
    Opaque,
    ReprValue,
    decode_value,
    decode_values,
)


@pytest.mark.parametrize(
    ("test", "expressions", "clean"),
    [
        ("assert f(1, 2) == 3", ["f(1, 2)"], []),
        ("assert 3 == f(1, 2)", ["f(1, 2)"], []),
        ("assert int(f(1)) == 35", ["int(f(1))"], []),
        ("assert f(g(1)) == [1]", ["f(g(1))"], []),
        ("assert f(lambda x: x == 1) is None", ["f(lambda x: x == 1)"], []),
        ("assert f(x for x in [1]) == 1", ["f((x for x in [1]))"], []),
        ("assert math.isclose(f(1), 2.5)", ["f(1)"], []),
        ("assert abs(f(1) - 2.5) < 1e-6", ["f(1)"], []),
        ("assert (f(1) == 2) == True", ["f(1)"], []),
        ("assert not f(0)", ["f(0)"], []),
        ("assert f(0) and g(1) == 2", ["f(0)", "g(1)"], []),
        ("assert f(0).startswith('a')", ["f(0)"], []),
        ("assert Solution().f(3) == 4", ["Solution().f(3)"], []),
        ("assert f(1) == sys.getsizeof((1,))", ["f(1)"], ["sys.getsizeof((1,))"]),
        ("assert f(1) == limit", ["f(1)"], ["limit"]),
        ("assert [f(x) for x in (1, 2)] == [1, 4]", ["[f(x) for x in (1, 2)]"], []),
        ("assert [m() == n(), m() == 0] == [True, False]", ["[m() == n(), m() == 0]"], []),
        ("assert sum(10, 15) == 6", ["sum(10, 15)"], []),
        ("assert isinstance(f(1), int)", ["f(1)"], []),
    ],
)
def test_the_agent_evaluates_its_calls_and_never_the_verdict(
    test: str, expressions: list[str], clean: list[str]
) -> None:
    entry = "sum" if "sum" in test else "f"
    found = split_assertion(test, entry)
    assert (list(found.agent_expressions), list(found.clean_expressions)) == (expressions, clean)


@pytest.mark.parametrize(
    ("test", "values", "holds"),
    [
        ("assert f(1) == 3", [3], True),
        ("assert f(1) == 3", [3.0], True),
        ("assert f(1) == 3", ["3"], False),
        ("assert f(1) == [1, (2, 3)]", [[1, (2, 3)]], True),
        ("assert f(1) == [1, (2, 3)]", [[1, [2, 3]]], False),
        ("assert f(1) == [1]", [IteratorItems("map", (1,))], False),
        ("assert f(1) == {1: {2}}", [{1: {2}}], True),
        ("assert f(1) is None", [None], True),
        ("assert f(1) is True", [1], False),
        ("assert f(1) == 3", [Opaque("__main__.A", True)], False),
        ("assert f(1)", [Opaque("__main__.A", False)], False),
        ("assert math.isclose(f(1), 2.5, rel_tol=0.1)", [2.51], True),
        ("assert abs(f(1) - 2.5) < 1e-6", [2.5], True),
        ("assert f(1) != f(2)", [1, 2], True),
        ("assert sorted(f(1), reverse=True)[0] > 2", [[1, 3]], True),
        ("assert 1 < f(1) < 3", [3], False),
        ("assert f(1) in ('a', 'b')", ["b"], True),
        ("assert f(1).get('k') is None and len(f(2)) == 2", [{}, 2], True),
        ("assert f(1) == float('nan')", [math.nan], False),
    ],
)
def test_the_verdict(test: str, values: list[Any], holds: bool) -> None:
    assert split_assertion(test, "f").holds(values, []) is holds


@pytest.mark.parametrize(
    "test",
    [
        "assert 1 == 1",
        "print(f(1))",
        "assert f(1) == 1\nassert f(2) == 2",
        "assert all(f(x) > 1 for x in (1, 2))",
        "assert (lambda v: v == 3)(f(1))",
        "assert f(1) ==",
        "assert open('/etc/passwd').read() == '1'",
    ],
)
def test_unsupported_tests_are_refused(test: str) -> None:
    with pytest.raises(GoldError, match="the test"):
        split_assertion(test, "f")


@pytest.mark.parametrize("test", ["assert f(1) ** 9**9 > 1", "assert len(f(1) * 10**9) > 1"])
def test_unbounded_results_are_refused(test: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        split_assertion(test, "f").holds(["ab"], [])


@pytest.mark.parametrize("test", ["assert f(1).__class__() == 1", "assert f(1).pop() == 1"])
def test_only_methods_without_effect_are_called_here(test: str) -> None:
    """Other methods are called in the sandbox."""
    found = split_assertion(test, "f")
    assert "()" in found.agent_expressions[0]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('["l",1,["t","a",null,true],["f","-inf"]]', [1, ("a", None, True), -math.inf]),
        ('["d","k",["s",1,2],["i","-ff"],["b","00"]]', {"k": {1, 2}, -255: b"\0"}),
        ('["r",0,5,2]', range(0, 5, 2)),
        ('["c","1.0","2.0"]', 1 + 2j),
        ('["v","decimal.Decimal","Decimal(\'1\')"]', ReprValue("decimal.Decimal", "Decimal('1')")),
        ('["!","ValueError","no"]', ExceptionInfo("ValueError", "no")),
    ],
)
def test_values_are_decoded(text: str, value: Any) -> None:
    assert decode_value(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.5x",
        "{}",
        '{"__class__": "int"}',
        "[]",
        '["x",1]',
        '["i","zz"]',
        '["d",1]',
        '["s",["l"]]',
        '["o"]',
        "[" * 100_000,
        '["l",' * 2000 + "1" + "]" * 2000,
        "1.5",
        '["f",[]]',
        '["r","a"]',
        '["i","' + "f" * 10 + '",1]',
        '[["l"]]',
        "NaN",
    ],
)
def test_invalid_values_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        decode_value(text)


def test_an_opaque_value_equals_nothing() -> None:
    first, second = decode_value('["o","A",true]'), decode_value('["o","A",true]')
    assert first != second
    assert decode_value('["g","map",1]') != [1]
    with pytest.raises(ValueError, match="not 2 values"):
        decode_values("[1]", 2)
