"""Builds typed values from decoded JSON that somebody else may have written."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Union, get_args, get_origin, get_type_hints

from intercode.core.errors import DataError


def build_value(value: Any, kind: Any, where: str) -> Any:
    """Return ``value`` as the type ``kind``: a plain type, a union, a tuple of any length, a
    mapping, or a dataclass of these. Raises DataError that names ``where`` the value is."""
    origin = get_origin(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        rest = [option for option in get_args(kind) if option is not types.NoneType]
        return None if value is None else build_value(value, rest[0], where)
    if origin is tuple and isinstance(value, list):
        inner = get_args(kind)[0]
        return tuple(build_value(v, inner, f"{where}[{n}]") for n, v in enumerate(value))
    if is_dataclass(kind) and isinstance(value, Mapping):
        return _build_dataclass(value, kind, where)
    if origin is Mapping and isinstance(value, Mapping):
        return value
    if kind is float:
        if type(value) in (int, float) and abs(value) <= sys.float_info.max:  # also not a NaN
            return float(value)
    elif type(value) is kind:
        return value
    name = "list" if origin is tuple else "object" if origin is Mapping else None
    name = name or ("object" if is_dataclass(kind) else kind.__name__)
    raise DataError(f"{where!r} has to be a value of type {name}, not {str(value)[:100]!r}")


def _build_dataclass(value: Mapping[str, Any], kind: Any, where: str) -> Any:
    hints = get_type_hints(kind)
    if unknown := value.keys() - hints.keys():
        raise DataError(f"{where!r} has the unknown key {sorted(map(str, unknown))[0]!r}")
    built = {}
    for field in fields(kind):
        if field.name in value:
            built[field.name] = build_value(
                value[field.name], hints[field.name], f"{where}.{field.name}"
            )
        elif field.default is MISSING and field.default_factory is MISSING:
            raise DataError(f"{where!r} has no key {field.name!r}")
    return kind(**built)
