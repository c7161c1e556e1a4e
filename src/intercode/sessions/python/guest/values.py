"""Hands plain values out of an interpreter, as data that nothing of the agent's decides about.

Loaded by host.py when it is asked to. What is sent is the agent's word on what its code came to;
whether that is right is found out elsewhere, by who knows the right value.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HOST: Any = None  # who has loaded this file
_DEEPEST, _MOST = 60, 200_000
_SMALL = 1 << 53
_WORTH = ("decimal", "fractions", "datetime", "uuid")  # modules whose values are what they show


def text(value: str) -> str:
    import _json

    return _json.encode_basestring_ascii(value)


class Encoder:
    """A value as JSON: numbers and texts as they are, everything else a list with its kind first.

    What an agent's own subclass of a built-in type says of itself is not asked: the built-in's
    methods read what it holds.
    """

    def __init__(self) -> None:
        self.left = _MOST

    def encode(self, value: Any, depth: int = 0) -> str:
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            raise ValueError("too large or too deep to be compared")
        if value is None or value is True or value is False:
            return {None: "null", True: "true", False: "false"}[value]
        for kind, how in KINDS:
            if isinstance(value, kind):
                return how(self, value, depth + 1)  # type: ignore[no-any-return]
        return self.other(value, depth + 1)

    def many(self, kind: str, values: Any, depth: int) -> str:
        parts = [self.encode(v, depth) for v in values]
        return "[" + ",".join(['"' + kind + '"', *parts]) + "]"

    def number(self, value: int, depth: int) -> str:
        value = int.__add__(value, 0)
        return str(value) if -_SMALL < value < _SMALL else f'["i","{value:x}"]'

    def real(self, value: float, depth: int) -> str:
        return f'["f","{float.__repr__(float.__add__(value, 0.0))}"]'

    def pairs(self, value: dict[Any, Any], depth: int) -> str:
        flat = [part for pair in dict.items(value) for part in pair]
        return self.many("d", flat, depth)

    def other(self, value: Any, depth: int) -> str:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if kind.__module__ == "numpy" and hasattr(kind, "item") and not getattr(value, "shape", 1):
            return self.encode(value.item(), depth)
        if kind.__module__ in _WORTH:
            return f'["v",{text(name)},{text(repr(value))}]'
        if hasattr(kind, "__next__") or kind in VIEWS:
            try:
                return self.many("g", [name, *self.some(value)], depth)
            except Exception:
                pass
        try:
            truth = bool(value)
        except Exception:
            truth = True
        return f'["o",{text(name)},{"true" if truth else "false"}]'

    def some(self, values: Any) -> list[Any]:
        found: list[Any] = []
        for value in values:
            if len(found) > self.left:
                raise ValueError("endless")
            found.append(value)
        return found


KINDS: Any = (
    (int, Encoder.number),
    (float, Encoder.real),
    (str, lambda e, v, d: text(str.__add__(v, ""))),
    (complex, lambda e, v, d: f'["c","{v.real!r}","{v.imag!r}"]'),
    (bytes, lambda e, v, d: f'["b","{bytes.hex(v)}"]'),
    (bytearray, lambda e, v, d: f'["a","{bytearray.hex(v)}"]'),
    (list, lambda e, v, d: e.many("l", list.__iter__(v), d)),
    (tuple, lambda e, v, d: e.many("t", tuple.__iter__(v), d)),
    (set, lambda e, v, d: e.many("s", set.__iter__(v), d)),
    (frozenset, lambda e, v, d: e.many("z", frozenset.__iter__(v), d)),
    (dict, Encoder.pairs),
    (range, lambda e, v, d: e.many("r", (v.start, v.stop, v.step), d)),
)
VIEWS: Any = (type({}.keys()), type({}.values()), type({}.items()))


def told(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        return f'["!",{text(kind)},{text(str(error)[:300])}]'
    except BaseException:
        return f'["!",{text(kind)},""]'


def value_of(expression: str, space: dict[str, Any]) -> str:
    """What an expression comes to, or the exception that it raises, encoded."""
    try:
        return Encoder().encode(eval(compile(expression, "<test>", "eval", 0, True), space))
    except BaseException as e:
        return told(e)


def values(expressions: tuple[str, ...], fds: list[int]) -> str:
    """What expressions come to in the agent's namespace."""
    found: list[str] = []
    HOST.guarded(lambda: found.extend(value_of(e, HOST.space) for e in expressions))
    return "[" + ",".join(found) + "]"


def clean(setup: str, expressions: tuple[str, ...], fds: list[int]) -> str:
    """The same where no agent's code has run: any module that is named is there."""
    space: dict[str, Any] = Importing(vars(sys.modules["builtins"]))
    try:
        exec(compile(setup, "<setup>", "exec", 0, True), space)
    except Exception:
        pass  # it needs what only a solution defines; what does not, is there
    return "[" + ",".join(value_of(e, space) for e in expressions) + "]"


class Importing(dict):  # type: ignore[type-arg]
    """A namespace in which an unknown name is the module of that name."""

    def __missing__(self, name: str) -> Any:
        try:
            return __import__(name)
        except ImportError:
            raise KeyError(name) from None


def alias(name: str, other: str, fds: list[int]) -> str:
    """Have ``name`` mean what ``other`` does."""
    if other in HOST.space:
        HOST.space[name] = HOST.space[other]
    else:
        HOST.space.pop(name, None)
    return ""


def call(name: str, arguments: list[Any], fds: list[int]) -> str:
    """What a function, or a method of a class ``Solution``, returns for plain arguments."""
    found: list[str] = []

    def work() -> None:
        try:
            space = HOST.space
            function = space[name] if name in space else getattr(space["Solution"](), name)
            found.append(Encoder().encode(function(*arguments)))
        except BaseException as e:
            found.append(told(e))

    HOST.guarded(work)
    return found[0]


def program(code: str, fds: list[int]) -> str:
    """Run a whole program, with what it reads on the descriptor that came with the request."""
    import posix

    posix.dup2(fds[0], 0)
    return str(HOST.guarded(lambda: exec(compile(code, "<program>", "exec", 0, True), HOST.space)))


def names(fds: list[int]) -> str:
    """The namespace as text that depends on nothing but what it holds."""
    lines = []
    for name, value in sorted(HOST.space.items()):
        if name.startswith("__"):
            continue
        code = getattr(value, "__code__", None)
        try:
            shown = repr((code.co_code, code.co_names)) if code else Encoder().encode(value)
        except BaseException:
            shown = type(value).__name__
        lines.append(f"{name} {shown}")
    return "\n".join(lines).replace("\0", "")


def install(host: Any) -> dict[str, Any]:
    """Take part in a host. Returns more requests that it can answer."""
    global HOST
    HOST = host
    return {
        "values": values, "clean": clean, "alias": alias, "call": call, "program": program,
        "told": names,
    }  # fmt: skip
