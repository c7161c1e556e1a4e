"""Strings."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import uuid
from typing import Any

from intercode.sql.embedded.catalog.collations import general_key, uca_key, weights
from intercode.sql.embedded.functions.runtime import ScalarFunction, accepts_null, check_length


def fold(text: str) -> str:
    """A string as searches see it: without case and accents."""
    return weights(text, "general")


def left(text: str, count: float) -> str:
    return text[: max(0, int(count))]


def right(text: str, count: float) -> str:
    return text[-int(count) :] if count >= 1 else ""


def repeat(text: str, count: float) -> str:
    check_length(len(text) * max(0, int(count)))
    return text * max(0, int(count))


def pad(text: str, size: float, fill: str, start: bool) -> str | None:
    size = int(size)
    if size < 0 or (not fill and size > len(text)):
        return None
    if size <= len(text):
        return text[:size]
    check_length(size)
    missing = size - len(text)
    more = (fill * (missing // len(fill) + 1))[:missing]
    return more + text if start else text + more


def replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    check_length(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


def insert(text: str, start: float, size: float, new: str) -> str:
    at, count = int(start), int(size)
    if not 1 <= at <= len(text):
        return text
    end = len(text) if count < 0 else at - 1 + count
    return text[: at - 1] + new + text[end:]


def substring(text: str, start: float, size: float | None = None) -> str:
    at = round(start)
    if at == 0 or (size is not None and size < 1):
        return ""
    begin = at - 1 if at > 0 else len(text) + at
    if begin < 0:
        return ""
    return text[begin:] if size is None else text[begin : begin + round(size)]


def substring_index(text: str, mark: str, count: float) -> str:
    """SUBSTRING_INDEX."""
    number = int(count)
    if not mark or not number:
        return ""
    parts = text.split(mark)
    return mark.join(parts[:number] if number > 0 else parts[number:])


def locate(part: str, text: str, start: float = 1) -> int:
    if start < 1:
        return 0
    return fold(text).find(fold(part), int(start) - 1) + 1


def trim(text: str, chars: str, side: str) -> str:
    if not chars:
        return text
    if side in ("LEADING", "BOTH"):
        while text.startswith(chars):
            text = text[len(chars) :]
    if side in ("TRAILING", "BOTH"):
        while text.endswith(chars):
            text = text[: -len(chars)]
    return text


def strcmp(a: str, b: str) -> int:
    x, y = uca_key(a), uca_key(b)
    return (x > y) - (x < y)


def find_in_set(word: str, words: str) -> int:
    parts = [general_key(p) for p in words.split(",")] if words else []
    return parts.index(general_key(word)) + 1 if general_key(word) in parts else 0


@accepts_null
def field(word: str | None, *words: str | None) -> int:
    if word is None:
        return 0
    keys = [None if w is None else general_key(w) for w in words]
    return keys.index(general_key(word)) + 1 if general_key(word) in keys else 0


@accepts_null
def elt(number: float | None, *words: str | None) -> str | None:
    return words[int(number) - 1] if number and 1 <= number <= len(words) else None


@accepts_null
def concat_ws(glue: str | None, *parts: str | None) -> str | None:
    if glue is None:
        return None
    known = [p for p in parts if p is not None]
    check_length(sum(map(len, known)) + len(glue) * len(known))
    return glue.join(known)


def soundex(text: str) -> str:
    codes = dict(zip("BFPVCGJKQSXZDTLMNR", "111122222222334556", strict=True))
    letters = [c for c in text.upper() if c.isalpha()]
    if not letters:
        return ""
    out, last = letters[0], codes.get(letters[0], "")
    for char in letters[1:]:
        code = codes.get(char, "")
        if code and code != last:
            out += code
        if char not in "HW":
            last = code
    return out.ljust(4, "0")


def quote(text: str) -> str:
    for char, shown in (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0"), ("\x1a", "\\Z")):
        text = text.replace(char, shown)
    return f"'{text}'"


def sha2(text: str, bits: float) -> str | None:
    kinds = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    kind = kinds.get(int(bits))
    return hashlib.new(kind, text.encode()).hexdigest() if kind else None


def json_extract(text: str, path: str) -> str | None:
    """JSON_EXTRACT of one path of names and positions."""
    value: Any = json.loads(text)
    for part in path.removeprefix("$").replace("[", ".[").split(".")[1:]:
        if part.startswith("["):
            value = value[int(part[1:-1])] if isinstance(value, list) else None
        else:
            value = value.get(part.strip('"')) if isinstance(value, dict) else None
        if value is None:
            return None
    return json.dumps(value, ensure_ascii=False)


def json_unquote(text: str) -> str:
    return str(json.loads(text)) if text.startswith('"') and text.endswith('"') else text


def json_valid(text: str) -> int:
    try:
        json.loads(text)
    except ValueError:
        return 0
    return 1


def is_uuid(text: str) -> int:
    try:
        uuid.UUID(text)
    except ValueError:
        return 0
    return 1


def is_ipv4(text: str) -> int:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return 0
    return 1


FUNCTIONS: dict[str, ScalarFunction] = {
    "lower": str.lower, "upper": str.upper, "length": lambda s: len(s.encode()),
    "char_length": len, "bit_length": lambda s: 8 * len(s.encode()), "reverse": lambda s: s[::-1],
    "left": left, "right": right, "ltrim": lambda s: s.lstrip(" "),
    "rtrim": lambda s: s.rstrip(" "), "repeat": repeat, "space": lambda n: repeat(" ", n),
    "lpad": lambda s, n, f: pad(s, n, f, True), "rpad": lambda s, n, f: pad(s, n, f, False),
    "replace": replace, "insert": insert, "substring": substring,
    "substring_index": substring_index, "locate": locate, "instr": lambda s, p: locate(p, s),
    "ascii": lambda s: s.encode()[0] if s else 0,
    "ord": lambda s: int.from_bytes(s[:1].encode(), "big"),
    "unhex": lambda s: bytes.fromhex(s).decode(), "trim": trim, "strcmp": strcmp,
    "find_in_set": find_in_set, "field": field, "elt": elt, "concat_ws": concat_ws,
    "soundex": soundex, "quote": quote, "md5": lambda s: hashlib.md5(s.encode()).hexdigest(),
    "sha1": lambda s: hashlib.sha1(s.encode()).hexdigest(), "sha2": sha2,
    "to_base64": lambda s: base64.b64encode(s.encode()).decode(),
    "from_base64": lambda s: base64.b64decode(s).decode(),
    "char": lambda *codes: bytes(b for c in codes for b in int(c).to_bytes(
        max(1, (int(c).bit_length() + 7) // 8), "big")).decode(),
    "inet_aton": lambda s: int(ipaddress.IPv4Address(s)),
    "inet_ntoa": lambda n: str(ipaddress.IPv4Address(int(n))), "is_ipv4": is_ipv4,
    "is_uuid": is_uuid, "json_extract": json_extract, "json_unquote": json_unquote,
    "json_valid": json_valid, "json_quote": lambda s: json.dumps(s, ensure_ascii=False),
    "json_length": lambda s: len(v) if isinstance(v := json.loads(s), (list, dict)) else 1,
}  # fmt: skip
