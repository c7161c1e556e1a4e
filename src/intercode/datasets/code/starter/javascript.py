"""JavaScript problems: functions to write, with a reference for each in Python."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus

from intercode.datasets.code.starter.problem import Problem


def tally(items: Sequence[Mapping[str, Any]], key: str) -> dict[str, int]:
    """Count the values of a key."""
    return dict(Counter(str(item[key]) for item in items if item.get(key) is not None))


def flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested objects; join their keys by dots."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item:
            found |= {f"{key}.{inner}": thing for inner, thing in flatten(item).items()}
        else:
            found[key] = item
    return found


def firings(times: Sequence[int], wait: int) -> list[int]:
    """Return the times at which a debounced function fires."""
    last = len(times) - 1
    return [t + wait for i, t in enumerate(times) if i == last or times[i + 1] - t > wait]


def parse_query(text: str) -> dict[str, Any]:
    """Parse the query of a URL."""
    found: dict[str, Any] = {}
    for part in filter(None, text.removeprefix("?").split("&")):
        name, _, value = (unquote_plus(piece) for piece in part.partition("="))
        if name in found:
            before = found[name]
            found[name] = [*(before if isinstance(before, list) else [before]), value]
        else:
            found[name] = value
    return found


def differences(before: Sequence[Any], after: Sequence[Any]) -> dict[str, list[Any]]:
    """Return the items added to and removed from a list."""

    def beyond(more: Sequence[Any], fewer: Sequence[Any]) -> Iterator[Any]:
        left = Counter(fewer)
        for item in more:
            if left[item]:
                left[item] -= 1
            else:
                yield item

    return {"added": list(beyond(after, before)), "removed": list(beyond(before, after))}


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Fill in a template."""
    out, rest = "", text
    while "{{" in rest and "}}" in rest[rest.index("{{") :]:
        head, _, rest = rest.partition("{{")
        name, _, rest = rest.partition("}}")
        found: Any = values
        for part in name.strip().split("."):
            found = found.get(part) if isinstance(found, dict) else None
        out += head + (f"{{{{{name}}}}}" if found is None else str(found))
    return out + rest


def in_order(delays: Sequence[int]) -> list[int]:
    """Return the positions of delays, shortest first."""
    return sorted(range(len(delays)), key=lambda i: delays[i])


def compare_versions(a: str, b: str) -> int:
    """Compare two semantic versions."""
    x, y = _version(a), _version(b)
    return (x > y) - (x < y)


def _version(text: str) -> tuple[Any, ...]:
    numbers, _, before = text.partition("-")
    parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in before.split(".")]
    return tuple(int(n) for n in numbers.split(".")), not before, tuple(parts if before else ())


def merge(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two settings."""
    found = dict(a)
    for key, value in b.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, list) and isinstance(found.get(key), list):
            found[key] = found[key] + value
        elif isinstance(value, dict) and isinstance(found.get(key), dict):
            found[key] = merge(found[key], value)
        else:
            found[key] = value
    return found


def wrap(text: str, width: int) -> list[str]:
    """Wrap words to a width."""
    lines: list[str] = []
    for word in text.split():
        pieces = [word[i : i + width] for i in range(0, len(word), width)]
        if lines and len(pieces) == 1 and len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines += pieces
    return lines


def evaluate(text: str) -> float | None:
    """Evaluate an arithmetic expression."""
    tokens = re.findall(r"\d+(?:\.\d+)?|\S", text)
    try:
        value = _sum(tokens)
    except (IndexError, ValueError, ZeroDivisionError):
        return None
    return None if tokens else value


def _sum(tokens: list[str]) -> float:
    value = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign = 1 if tokens.pop(0) == "+" else -1
        value += sign * _product(tokens)
    return value


def _product(tokens: list[str]) -> float:
    value = _single(tokens)
    while tokens and tokens[0] in "*/":
        value = value * _single(tokens) if tokens.pop(0) == "*" else value / _single(tokens)
    return value


def _single(tokens: list[str]) -> float:
    token = tokens.pop(0)
    if token == "-":
        return -_single(tokens)
    if token != "(":
        return float(token)
    value = _sum(tokens)
    if tokens.pop(0) != ")":
        raise ValueError(token)
    return value


def sheet(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Evaluate the formulas of a spreadsheet."""

    def value(name: str, seen: tuple[str, ...] = ()) -> Any:
        if name in seen:
            return "#CYCLE"
        cell = cells.get(name, 0)
        if not isinstance(cell, str):
            return cell
        found = [value(part, (*seen, name)) for part in cell[1:].split("+")]
        return "#CYCLE" if "#CYCLE" in found else sum(found)

    return {name: value(name) for name in cells}


PROBLEMS = (
    Problem(
        "tally", "easy", ("objects",),
        "Write tally(items, key), which returns an object that maps each value that the objects in "
        "the array items have at key, as text, to how many of them have it. Objects that lack the "
        "key, or have null there, do not count.",
        tally,
        ([[{"a": "x"}, {"a": "y"}, {"a": "x"}, {"b": "x"}], "a"], [[], "a"],
         [[{"n": 1}, {"n": 10}, {"n": 1}, {"n": None}], "n"], [[{"k": ""}, {"k": ""}], "k"]),
        "tally",
    ),
    Problem(
        "flatten", "medium", ("objects", "recursion"),
        "Write flatten(value), which returns an object without nesting: the keys on the way to "
        "each value are joined with dots. Arrays and empty objects are values and stay as they "
        "are.",
        flatten,
        ([{"a": 1, "b": {"c": 2, "d": {"e": [1, {"f": 2}]}}}], [{}], [{"a": {"b": {}}}],
         [{"x": {"y": None, "z": False}, "w": "v"}], [{"p": {"q": {"r": {"s": 0}}}, "t": []}]),
        "flatten",
    ),
    Problem(
        "firings", "medium", ("time",),
        "A debounced function fires wait milliseconds after a call, unless another call comes "
        "within that time, its end included: then only that one counts. Write firings(times, "
        "wait), which returns the times at which it fires; times are those of the calls, "
        "ascending.",
        firings,
        ([[0, 10, 30], 15], [[], 5], [[5], 5], [[0, 5, 10, 15], 5], [[0, 6, 12, 13], 5],
         [[1, 1, 1], 0], [[0, 100, 101, 250], 99]),
        "firings",
    ),
    Problem(
        "parse-query", "medium", ("strings", "web"),
        "Write parseQuery(text), which returns the parameters of a web address's query, with or "
        "without the leading question mark, as an object. Names and values are decoded, a plus "
        "being a blank. A parameter without an equals sign has the value ''. One that is there "
        "more than once has an array of its values in their order. Empty parts between two "
        "ampersands do not count.",
        parse_query,
        (["?a=1&b=2"], ["a=1&a=2&a=3"], [""], ["q=caf%C3%A9+au%20lait&lang"], ["a=b=c&&d="],
         ["%26=%3D&%26=+"]),
        "parseQuery",
    ),
    Problem(
        "differences", "easy", ("arrays",),
        "Write differences(before, after) for two arrays of numbers and texts. It returns {added, "
        "removed}: two arrays of what was added and what was removed, each item as often as it is "
        "there more often than in the other, the first ones being those that both have, and the "
        "rest in their order.",
        differences,
        ([[1, 2, 3], [2, 3, 4]], [[], ["a", "a"]], [["a", "b", "a"], ["a"]],
         [[1, "1"], ["1", 1]], [[3, 1, 3, 2], [2, 3, 5, 5]]),
        "differences",
    ),
    Problem(
        "fill", "medium", ("strings",),
        "Write fill(text, values), which replaces every {{name}} in the text by the value of that "
        "name, as text. Blanks inside the braces do not count; a name may lead into nested objects "
        "with dots. Where there is no value, or it is null, the place stays as it is written.",
        fill,
        (["Dear {{who}},", {"who": "Ada"}], ["{{ a.b }}-{{a.c}}", {"a": {"b": 1}}],
         ["no places", {}], ["{{x}}{{x}}", {"x": "{{y}}", "y": 2}], ["{{ a }} and {{", {"a": 0}],
         ["{{n}}", {"n": None}]),
        "fill",
    ),
    Problem(
        "in-order", "medium", ("promises", "time"),
        "Write inOrder(delays), which returns a promise. delays are numbers of milliseconds. The "
        "promise is fulfilled with the positions in delays in the order in which timers of these "
        "delays would end that are all started at once; of equal ones the earlier position comes "
        "first.",
        in_order,
        ([[30, 5, 15]], [[]], [[1, 1, 1]], [[4, 0, 4, 0]], [[100000, 3, 99999]]),
        "inOrder",
    ),
    Problem(
        "compare-versions", "hard", ("strings", "sorting"),
        "Write compareVersions(a, b) for two versions like 1.2.3 or 1.2.3-beta.2. It returns 1 "
        "where a is the newer one, -1 where b is, else 0. The three numbers count first. Where "
        "they are equal, a version without a part behind the hyphen is newer than one with it; of "
        "two with it their pieces between the dots are compared from the left: two numbers as "
        "numbers, two other texts by their characters, a number is older than a text, and where "
        "all are equal more pieces are newer than fewer.",
        compare_versions,
        (["1.2.3", "1.2.10"], ["2.0.0", "2.0.0-rc.1"], ["1.0.0-alpha", "1.0.0-alpha.1"],
         ["1.0.0-alpha.beta", "1.0.0-alpha.1"], ["1.0.0-beta.11", "1.0.0-beta.2"],
         ["3.1.4", "3.1.4"], ["1.0.0-a.b", "1.0.0-a.b"], ["10.0.0", "9.9.9"]),
        "compareVersions",
    ),
    Problem(
        "merge", "medium", ("objects", "recursion"),
        "Write merge(a, b), which returns a new object with the settings of a and, over them, "
        "those of b. Where both have an object it is merged in the same way; where both have an "
        "array the one of b is put behind that of a; a setting of b that is null removes that of "
        "a; any other one of b goes in its place. Neither a nor b is changed.",
        merge,
        ([{"a": 1, "b": 2}, {"b": 3, "c": 4}], [{"a": {"b": [1], "c": 2}}, {"a": {"b": [2, 3]}}],
         [{"a": 1, "b": {"c": 1, "d": 2}}, {"a": None, "b": {"c": None}}], [{}, {"x": None}],
         [{"a": [1]}, {"a": {"b": 1}}], [{"a": "x"}, {}]),
        "merge",
    ),
    Problem(
        "wrap", "medium", ("strings",),
        "Write wrap(text, width), which returns the words of the text as an array of lines. A line "
        "has as many words as fit into width characters, with one blank between them. A word that "
        "is longer than width begins on a line of its own and is cut into pieces of width "
        "characters, a line each; the next word may follow its last piece on the same line if it "
        "fits.",
        wrap,
        (["the quick brown fox", 10], ["", 5], ["a bb ccc dddd", 4], ["abcdefghij k", 4],
         ["  spaced   out  ", 20], ["aaaa bbbbbbbbb cc d", 5]),
        "wrap",
    ),
    Problem(
        "evaluate", "hard", ("parsing", "numbers"),
        "Write evaluate(text), which returns the value of a sum in decimal numbers, + - * / and "
        "round brackets, with the usual precedence; blanks do not count, and a minus sign may "
        "stand before anything that has a value, also several times. There is no plus sign before "
        "a number. It returns null for what is no such sum, and for a division by zero.",
        evaluate,
        (["1+2*3"], ["(1 + 2) * -3"], ["10/4-0.5"], ["1/0"], ["2*(3"], ["--2"], [""], ["1 2"],
         ["2*-(3-5)*1.5"], ["+1"], ["((7))"], ["3-"], ["4a"]),
        "evaluate",
    ),
    Problem(
        "sheet", "hard", ("objects", "recursion", "graphs"),
        "Write sheet(cells) for an object that maps names such as A1 to numbers or to formulas: "
        "texts like =A1+B2, the names of one cell or more with plus signs between them. It returns "
        "an object with the value of every cell. A cell that is not there counts as 0. A cell that "
        "hangs on itself, or on a cell that does, has the value '#CYCLE'.",
        sheet,
        ([{"A1": 2, "A2": "=A1", "A3": "=A1+A2"}], [{}], [{"A1": "=B1", "B1": "=A1", "C1": "=A1"}],
         [{"A1": "=Z9+Z9"}],
         [{"A1": "=A2+A2", "A2": "=A3+A3", "A3": 3.5}], [{"X1": "=X1", "Y1": 1}],
         [{"A1": "=B1+C1", "B1": "=D1", "C1": "=D1", "D1": 4}]),
        "sheet",
    ),
)  # fmt: skip
