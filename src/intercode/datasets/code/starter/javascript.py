"""JavaScript: functions to write, called with plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_plus

from intercode.datasets.code.starter.problem import Problem


def tally(items: Sequence[Mapping[str, Any]], key: str) -> dict[str, int]:
    """How often each value of a key occurs."""
    return dict(Counter(str(item[key]) for item in items if item.get(key) is not None))


def flatten(value: Mapping[str, Any]) -> dict[str, Any]:
    """Nested objects with their keys joined by dots."""
    found: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict) and item:
            found |= {f"{key}.{inner}": thing for inner, thing in flatten(item).items()}
        else:
            found[key] = item
    return found


def firings(times: Sequence[int], wait: int) -> list[int]:
    """When a debounced function fires."""
    last = len(times) - 1
    return [t + wait for i, t in enumerate(times) if i == last or times[i + 1] - t > wait]


def parse_query(text: str) -> dict[str, Any]:
    """The parameters of a web address."""
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
    """What was added to a list and removed from it, each as often as it was."""

    def beyond(more: Sequence[Any], fewer: Sequence[Any]) -> Iterator[Any]:
        left = Counter(fewer)
        for item in more:
            if left[item]:
                left[item] -= 1
            else:
                yield item

    return {"added": list(beyond(after, before)), "removed": list(beyond(before, after))}


def fill(text: str, values: Mapping[str, Any]) -> str:
    """A template with its places filled."""
    out, rest = "", text
    while "{{" in rest and "}}" in rest[rest.index("{{") :]:
        head, _, rest = rest.partition("{{")
        name, _, rest = rest.partition("}}")
        found: Any = values
        for part in name.strip().split("."):
            found = found.get(part) if isinstance(found, dict) else None
        out += head + (f"{{{{{name}}}}}" if found is None else str(found))
    return out + rest


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
)  # fmt: skip
