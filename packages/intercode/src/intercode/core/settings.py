"""Declares settings, which are fields of dataclasses, and checks them against their types."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from intercode.core.errors import UsageError
from intercode_sandbox.registry import unknown_name_error

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_KINDS: dict[Any, tuple[tuple[Any, ...], tuple[str, ...]]] = {
    bool: ((bool,), ("True", "False")),
    int: ((int,), ("a whole number",)),
    float: ((int, float), ("a number",)),
    str: ((str,), ("a text",)),
    Mapping: ((Mapping,), ("a table",)),
    Callable: ((Callable,), ("a function",)),
    NoneType: ((NoneType,), ("None",)),
}
"""The types that are checked: the classes of their values, and what messages call those."""


def setting(
    default: Any,
    description: str,
    *,
    recorded: bool = False,
    from_record: Callable[[Any], bool] | None = None,
    option: str | None = None,
    least: int | None = None,
    most: int = sys.maxsize,
    above: float | None = None,
) -> Any:
    """Declare a setting, a field of a class of settings.

    Args:
        default: the default value; the class of an empty table; MISSING if there is none.
        description: one sentence for the help and the page of settings.
        recorded: results record it among the ``env_options``.
        from_record: tests whether a record of others may choose a value; None: it may choose none.
        option: what stands for the value in the help, if a command has an option for the setting.
        least: the least value.
        most: the greatest value of a setting that has a least one.
        above: the value must be greater, and finite.

    >>> from dataclasses import dataclass
    >>> from intercode.environments import SandboxSettings, setting
    >>> @dataclass(frozen=True, kw_only=True)
    ... class RoundingSettings(SandboxSettings):
    ...     tolerance: float = setting(0.0, "by how much a number may differ", least=0)
    >>> RoundingSettings(tolerance=0.5).tolerance
    0.5
    """
    metadata = {
        "description": description,
        "recorded": recorded,
        "from_record": from_record,
        "option": option,
        "least": least,
        "most": most,
        "above": above,
    }
    if default is dict:
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def describe(one: Field[Any]) -> str:
    """Return the description of a setting, with its default unless that says nothing."""
    text, default = str(one.metadata["description"]), one.default
    if default in (MISSING, None, ()) or default is False or "(default" in text:
        return text
    return f"{text} (default {default})"


def check_ranges(settings: DataclassInstance) -> None:
    """Raise UsageError for a number that is not in the range of its setting."""
    for one in fields(settings):
        value = getattr(settings, one.name)
        least, above = one.metadata.get("least"), one.metadata.get("above")
        if value is None:
            continue
        if least is not None and not least <= value <= one.metadata["most"]:
            bound = f"least {least}" if value < least else f"most {one.metadata['most']}"
            raise UsageError(f"{one.name} = {_shown(value)} must be at {bound}")
        if above is not None and not above < value <= sys.float_info.max:
            raise UsageError(
                f"{one.name} = {_shown(value)} must be greater than {above:g}, and finite"
            )


def _shown(value: float) -> str:
    """Return a number as text. Python refuses to write out whole numbers of many digits."""
    return f"{value}" if abs(value) < 10**30 or isinstance(value, float) else "the given number"


def check_types(settings: DataclassInstance) -> None:
    """Raise UsageError for a setting that has not its declared type, UnknownNameError for one that
    is none of its choices.

    A type is checked if it is one of ``_KINDS``, a Literal, or a union of those. Each default is
    accepted.
    """
    for one, types in _checked_fields(type(settings)):
        value = getattr(settings, one.name)
        if value is not one.default and not any(_has_type(value, kind) for kind in types):
            raise _error(one.name, value, types)


@functools.cache
def _checked_fields(kind: type[DataclassInstance]) -> list[tuple[Field[Any], list[Any]]]:
    """Return the settings whose types are checked, and the types of each."""
    found = ((one, _members(one, kind)) for one in fields(kind) if one.init)
    return [(one, types) for one, types in found if all(map(_is_checked, types))]


def _members(one: Field[Any], kind: type[DataclassInstance]) -> list[Any]:
    """Return the types of which a setting has one, the members of a union."""
    bases = [base for base in kind.__mro__ if is_dataclass(base) and one in fields(base)]
    namespace = {"__annotations__": {one.name: one.type}, "__module__": bases[-1].__module__}
    try:
        declared = get_type_hints(type("", (), namespace))[one.name]
    except Exception:  # such as a name that is imported for type checkers alone
        declared = Any
    members = get_args(declared) if get_origin(declared) in (Union, UnionType) else (declared,)
    return [*members, NoneType] if one.default is None else list(members)


def declared_types(kind: type[DataclassInstance], names: Sequence[str]) -> list[Any]:
    """Return the types of which a setting has one, empty if they are not known.

    ``names``: that of the setting, and then those in its table.
    """
    declared = {one.name: one for one in fields(kind)}
    types = _members(declared[names[0]], kind) if names[0] in declared else []
    for _ in names[1:]:
        types = [get_args(one)[1] for one in types if get_origin(one) is Mapping]
    return types


def _is_checked(declared: Any) -> bool:
    return get_origin(declared) in (Literal, Callable, Mapping) or declared in _KINDS


def _has_type(value: object, declared: Any) -> bool:
    if get_origin(declared) is Literal:
        return value in get_args(declared)
    classes, _ = _KINDS[get_origin(declared) or declared]
    return isinstance(value, classes) and (declared is bool or not isinstance(value, bool))


def _error(name: str, value: object, types: list[Any]) -> UsageError:
    choices = [choice for one in types if get_origin(one) is Literal for choice in get_args(one)]
    kinds = [_KINDS[get_origin(one) or one][1] for one in types if get_origin(one) is not Literal]
    words = list(dict.fromkeys(word for kind in kinds for word in kind))
    if choices:
        return unknown_name_error(name.replace("_", " "), value, [*map(str, choices), *words])
    *first, last = words
    known = f"{', '.join(first)} or {last}" if first else last
    hint = "; an option of a command takes true or false" if "True" in words else ""
    return UsageError(
        f"{name} is {known}, not {value!r:.80}{hint if isinstance(value, str) else ''}"
    )
