"""String functions."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import uuid
import zlib

from intercode.sql.embedded.catalog.collations import general_key, uca_key, weights
from intercode.sql.embedded.catalog.types import ASCII_STRING, BOOL, INT, STRING
from intercode.sql.embedded.functions.registry import (
    ARGUMENT_TEXT,
    NUMBER,
    OPTIONAL_NUMBER,
    TEXT,
    TEXTS,
    internal,
    scalar,
)
from intercode.sql.embedded.functions.runtime import check_length


def fold(text: str) -> str:
    """Return a string without case and accents, as searches compare it."""
    return weights(text, "general")


# ---------------------------------------------------------------- case and length
@scalar("LOWER", "LCASE", args=[TEXT], returns=ARGUMENT_TEXT)
def lower(text: str) -> str:
    return str.lower(text)


@scalar("UPPER", "UCASE", args=[TEXT], returns=ARGUMENT_TEXT)
def upper(text: str) -> str:
    return str.upper(text)


@scalar("LENGTH", "OCTET_LENGTH", args=[TEXT], returns=INT)
def length(text: str) -> int:
    return len(text.encode())


@scalar("CHAR_LENGTH", "CHARACTER_LENGTH", args=[TEXT], returns=INT)
def char_length(text: str) -> int:
    return len(text)


@scalar("BIT_LENGTH", args=[TEXT], returns=INT)
def bit_length(text: str) -> int:
    return 8 * len(text.encode())


# ---------------------------------------------------------------- parts
@scalar("LEFT", args=[TEXT, NUMBER], returns=ARGUMENT_TEXT, nocase_level=0)
def left(text: str, count: float) -> str:
    return text[: max(0, int(count))]


@scalar("RIGHT", args=[TEXT, NUMBER], returns=ARGUMENT_TEXT)
def right(text: str, count: float) -> str:
    return text[-int(count) :] if count >= 1 else ""


@scalar(
    "MID", args=[TEXT, NUMBER, OPTIONAL_NUMBER], returns=ARGUMENT_TEXT, nocase_level=0,
    sqlite_name="substring",
)  # fmt: skip
def substring(text: str, start: float, size: float | None = None) -> str:
    """Return a part of a string. SUBSTRING and SUBSTR are also compiled to it."""
    position = round(start)
    if position == 0 or (size is not None and size < 1):
        return ""
    begin = position - 1 if position > 0 else len(text) + position
    if begin < 0:
        return ""
    return text[begin:] if size is None else text[begin : begin + round(size)]


@scalar("SUBSTRING_INDEX", args=[TEXT, TEXT, NUMBER], returns=ARGUMENT_TEXT, nocase_level=0)
def substring_index(text: str, delimiter: str, count: float) -> str:
    number = int(count)
    if not delimiter or not number:
        return ""
    parts = text.split(delimiter)
    return delimiter.join(parts[:number] if number > 0 else parts[number:])


@scalar("LTRIM", args=[TEXT], returns=ARGUMENT_TEXT)
def ltrim(text: str) -> str:
    return text.lstrip(" ")


@scalar("RTRIM", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def rtrim(text: str) -> str:
    return text.rstrip(" ")


@internal("trim")
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


# ---------------------------------------------------------------- composition
@scalar("REVERSE", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def reverse(text: str) -> str:
    return text[::-1]


@scalar("REPEAT", args=[TEXT, NUMBER], returns=ARGUMENT_TEXT, nocase_level=0)
def repeat(text: str, count: float) -> str:
    check_length(len(text) * max(0, int(count)))
    return text * max(0, int(count))


@scalar("SPACE", args=[NUMBER], returns=ASCII_STRING)
def space(count: float) -> str:
    return repeat(" ", count)


@scalar("LPAD", args=[TEXT, NUMBER, TEXT], returns=ARGUMENT_TEXT)
def lpad(text: str, size: float, fill: str) -> str | None:
    return pad(text, size, fill, True)


@scalar("RPAD", args=[TEXT, NUMBER, TEXT], returns=ARGUMENT_TEXT)
def rpad(text: str, size: float, fill: str) -> str | None:
    return pad(text, size, fill, False)


def pad(text: str, size: float, fill: str, start: bool) -> str | None:
    """Fill a string up to ``size`` characters, at its start or at its end."""
    size = int(size)
    if size < 0 or (not fill and size > len(text)):
        return None
    if size <= len(text):
        return text[:size]
    check_length(size)
    missing = size - len(text)
    more = (fill * (missing // len(fill) + 1))[:missing]
    return more + text if start else text + more


@scalar("REPLACE", args=[TEXT, TEXT, TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def replace(text: str, old: str, new: str) -> str:
    if not old:
        return text
    check_length(len(text) + text.count(old) * max(0, len(new) - len(old)))
    return text.replace(old, new)


@scalar("INSERT", args=[TEXT, NUMBER, NUMBER, TEXT], returns=ARGUMENT_TEXT, nocase_level=1)
def insert(text: str, start: float, size: float, new: str) -> str:
    position, count = int(start), int(size)
    if not 1 <= position <= len(text):
        return text
    end = len(text) if count < 0 else position - 1 + count
    return text[: position - 1] + new + text[end:]


@scalar("CONCAT_WS", args=[TEXT, TEXTS], returns=ARGUMENT_TEXT, accepts_null=True)
def concat_ws(separator: str | None, *parts: str | None) -> str | None:
    if separator is None:
        return None
    known = [p for p in parts if p is not None]
    check_length(sum(map(len, known)) + len(separator) * len(known))
    return separator.join(known)


@scalar("ELT", args=[NUMBER, TEXTS], returns=ARGUMENT_TEXT, accepts_null=True)
def elt(number: float | None, *words: str | None) -> str | None:
    return words[int(number) - 1] if number and 1 <= number <= len(words) else None


@scalar("QUOTE", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=1)
def quote(text: str) -> str:
    for char, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0"), ("\x1a", "\\Z")):
        text = text.replace(char, escaped)
    return f"'{text}'"


# ---------------------------------------------------------------- search and comparison
@scalar("LOCATE", args=[TEXT, TEXT, OPTIONAL_NUMBER], returns=INT)
def locate(part: str, text: str, start: float = 1) -> int:
    if start < 1:
        return 0
    return fold(text).find(fold(part), int(start) - 1) + 1


@scalar("INSTR", args=[TEXT, TEXT], returns=INT)
def instr(text: str, part: str) -> int:
    return locate(part, text)


@scalar("STRCMP", args=[TEXT, TEXT], returns=INT)
def strcmp(a: str, b: str) -> int:
    x, y = uca_key(a), uca_key(b)
    return (x > y) - (x < y)


@scalar("FIND_IN_SET", args=[TEXT, TEXT], returns=INT)
def find_in_set(word: str, words: str) -> int:
    parts = [general_key(p) for p in words.split(",")] if words else []
    return parts.index(general_key(word)) + 1 if general_key(word) in parts else 0


@scalar("FIELD", args=[TEXT, TEXTS], returns=INT, accepts_null=True)
def field(word: str | None, *words: str | None) -> int:
    if word is None:
        return 0
    keys = [None if w is None else general_key(w) for w in words]
    return keys.index(general_key(word)) + 1 if general_key(word) in keys else 0


@scalar("SOUNDEX", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=1)
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


# ---------------------------------------------------------------- codes and digests
@scalar("ASCII", args=[TEXT], returns=INT)
def ascii_code(text: str) -> int:
    return text.encode()[0] if text else 0


@scalar("ORD", args=[TEXT], returns=INT)
def ord_code(text: str) -> int:
    return int.from_bytes(text[:1].encode(), "big")


@internal("char")
def char(*codes: float) -> str:
    """Return the characters of these codes; codes above 255 stand for several bytes."""
    sizes = [(int(c), max(1, (int(c).bit_length() + 7) // 8)) for c in codes]
    return b"".join(code.to_bytes(size, "big") for code, size in sizes).decode()


@scalar("UNHEX", args=[TEXT], returns=STRING)
def unhex(text: str) -> str:
    return bytes.fromhex(text).decode()


@scalar("TO_BASE64", args=[TEXT], returns=ASCII_STRING)
def to_base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@scalar("FROM_BASE64", args=[TEXT], returns=STRING)
def from_base64(text: str) -> str:
    return base64.b64decode(text).decode()


@scalar("MD5", args=[TEXT], returns=ASCII_STRING)
def md5(text: str) -> str:
    return hashlib.md5(text.encode()).hexdigest()


@scalar("SHA1", "SHA", args=[TEXT], returns=ASCII_STRING)
def sha1(text: str) -> str:
    return hashlib.sha1(text.encode()).hexdigest()


@scalar("SHA2", args=[TEXT, NUMBER], returns=ASCII_STRING)
def sha2(text: str, bits: float) -> str | None:
    kinds = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    kind = kinds.get(int(bits))
    return hashlib.new(kind, text.encode()).hexdigest() if kind else None


@scalar("CRC32", args=[TEXT], returns=INT)
def crc32(text: str) -> int:
    return zlib.crc32(text.encode())


# ---------------------------------------------------------------- addresses and identifiers
@scalar("INET_ATON", args=[TEXT], returns=INT)
def inet_aton(text: str) -> int:
    return int(ipaddress.IPv4Address(text))


@scalar("INET_NTOA", args=[NUMBER], returns=ASCII_STRING)
def inet_ntoa(number: float) -> str:
    return str(ipaddress.IPv4Address(int(number)))


@scalar("IS_IPV4", args=[TEXT], returns=BOOL)
def is_ipv4(text: str) -> int:
    try:
        ipaddress.IPv4Address(text)
    except ValueError:
        return 0
    return 1


@scalar("IS_UUID", args=[TEXT], returns=BOOL)
def is_uuid(text: str) -> int:
    try:
        uuid.UUID(text)
    except ValueError:
        return 0
    return 1
