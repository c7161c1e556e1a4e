"""Expands variables, quotes and escapes in the instructions of a Dockerfile."""

from __future__ import annotations

import re
from collections.abc import Mapping

from intercode_sandbox.errors import DataError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d")
_BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|\d)(?:(:?[-+?])(.*))?", re.DOTALL)


def env_instruction(name: str, value: str) -> str:
    """Return the instruction ENV that sets a variable to a text, in which nothing is expanded."""
    quoted = re.sub(r'([\\"$])', r"\\\1", value).replace("\n", "\\\n")
    return f'ENV {name}="{quoted}"'


def split_words(
    text: str, values: Mapping[str, str], escape: str = "\\", split: bool = True
) -> list[str]:
    """Split a text into words; expand variables and remove quotes and escapes.

    A variable without a value is empty. With ``split=False``, white space does not separate words.
    Raises DataError for unterminated quotes or braces, and unsupported forms of variables.
    """
    out: list[str] = []
    word, begun, quote, at = "", False, "", 0
    while at < len(text):
        sign = text[at]
        if quote == "'" and sign != "'":
            word, at = word + sign, at + 1
        elif sign in ("'", '"') and quote in ("", sign):
            quote, begun, at = ("" if quote else sign), True, at + 1
        elif sign == escape and at + 1 < len(text):
            plain = quote == '"' and text[at + 1] not in f'"${escape}'
            word, at = word + (sign if plain else "") + text[at + 1], at + 2
        elif sign == "$":
            value, at = _expand_variable(text, at, values, escape)
            word += value
        elif sign.isspace() and not quote and split:
            if word or begun:
                out.append(word)
            word, begun, at = "", False, at + 1
        else:
            word, at = word + sign, at + 1
    if quote:
        raise DataError(f"the quote {quote} is not closed in {text!r}")
    return [*out, word] if word or begun else out


def expand(text: str, values: Mapping[str, str], escape: str = "\\") -> str:
    """Return a text as one expanded word; see ``split_words``."""
    return "".join(split_words(text, values, escape, split=False))


def expand_document(text: str, values: Mapping[str, str], escape: str = "\\") -> str:
    """Return the text of a here-document with variables expanded and quotes unchanged."""
    out, at = "", 0
    while at < len(text):
        if text[at] == escape and text[at + 1 : at + 2] in ("$", escape):
            out, at = out + text[at + 1], at + 2
        elif text[at] == "$":
            value, at = _expand_variable(text, at, values, escape)
            out += value
        else:
            out, at = out + text[at], at + 1
    return out


def _expand_variable(text: str, at: int, values: Mapping[str, str], escape: str) -> tuple[str, int]:
    """Return the value of the variable at a ``$``, and the index after it."""
    if text[at + 1 : at + 2] != "{":
        found = _NAME.match(text, at + 1)
        return (values.get(found[0], ""), found.end()) if found else ("$", at + 1)
    end = _closing_brace(text, at + 2)
    inside = text[at + 2 : end]
    parts = _BRACED.fullmatch(inside)
    if parts is None:
        raise DataError(
            f"${{{inside}}} is not supported: write ${{name}}, ${{name:-default}} "
            "or ${name:+value}"
        )
    name, sign, other = parts[1], parts[2] or "", parts[3] or ""
    value = values.get(name)
    is_set = bool(value) if sign.startswith(":") else value is not None
    if sign.endswith("+"):
        return (expand(other, values, escape) if is_set else ""), end + 1
    if sign.endswith("-"):
        return ((value or "") if is_set else expand(other, values, escape)), end + 1
    if sign.endswith("?") and not is_set:
        raise DataError(f"the variable {name} is required: {expand(other, values, escape)}")
    return value or "", end + 1


def _closing_brace(text: str, at: int) -> int:
    depth = 1
    for i in range(at, len(text)):
        if text.startswith("${", i):
            depth += 1
        elif text[i] == "}":
            depth -= 1
            if depth == 0:
                return i
    raise DataError(f"a brace is not closed in {text!r}")


def parse_pairs(text: str, values: Mapping[str, str], escape: str, what: str) -> dict[str, str]:
    """Parse ``a=b c="d e"``, or the older form ``name value``, into a dictionary.

    Raises DataError for a name without a value.
    """
    first = text.split(None, 1)
    if "=" not in first[0]:
        if len(first) < 2:
            raise DataError(f"{what} {text}: there is no value; write {what} {text}=value")
        return {first[0]: expand(first[1], values, escape)}
    found: dict[str, str] = {}
    for word in split_words(text, values, escape):
        name, mark, value = word.partition("=")
        if not mark or not name:
            raise DataError(f"{what}: {word!r} is not of the form name=value")
        found[name] = value
    return found
