"""String functions."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import uuid
import zlib
from collections.abc import Callable
from typing import Any

from intercode_sql.dialect.errors import mysql_error, unsupported
from intercode_sql.embedded.catalog.collations import collation_key, weights
from intercode_sql.embedded.catalog.types import (
    ASCII_STRING,
    BOOL,
    BYTES,
    INT,
    PUNCTUATED,
    STRING,
    UNSIGNED_BIGINT,
    UNSIGNED_INT,
    Collation,
)
from intercode_sql.embedded.functions.registry import (
    ARGUMENT_TEXT,
    INTEGER,
    OPTIONAL_INTEGER,
    TEXT,
    TEXTS,
    internal,
    scalar,
)
from intercode_sql.embedded.functions.runtime import check_length


def text_bytes(value: str | bytes) -> bytes:
    """Return the bytes of a string in UTF-8, or of a byte string."""
    return value if isinstance(value, bytes) else value.encode()


# ---------------------------------------------------------------- case and length
@scalar("LOWER", "LCASE", args=[TEXT], returns=ARGUMENT_TEXT, takes_bytes=True)
def lower(text: str | bytes) -> str | bytes:
    """Return a string in lower case, each character by itself. A byte string has no case."""
    return text if isinstance(text, bytes) else _in_case(text, str.lower)


@scalar("UPPER", "UCASE", args=[TEXT], returns=ARGUMENT_TEXT, takes_bytes=True)
def upper(text: str | bytes) -> str | bytes:
    return text if isinstance(text, bytes) else _in_case(text, str.upper)


def _in_case(text: str, change: Callable[[str], str]) -> str:
    if text.isascii():
        return change(text)
    return "".join(new if len(new := change(char)) == 1 else char for char in text)


@scalar("LENGTH", "OCTET_LENGTH", args=[TEXT], returns=INT, takes_bytes=True)
def length(text: str | bytes) -> int:
    return len(text_bytes(text))


@scalar("CHAR_LENGTH", "CHARACTER_LENGTH", args=[TEXT], returns=INT)
def char_length(text: str) -> int:
    return len(text)


@scalar("BIT_LENGTH", args=[TEXT], returns=INT, takes_bytes=True)
def bit_length(text: str | bytes) -> int:
    return 8 * len(text_bytes(text))


# ---------------------------------------------------------------- parts
@scalar("LEFT", args=[TEXT, INTEGER], returns=ARGUMENT_TEXT, nocase_level=0)
def left(text: str, count: float) -> str:
    return text[: max(0, int(count))]


@scalar("RIGHT", args=[TEXT, INTEGER], returns=ARGUMENT_TEXT)
def right(text: str, count: float) -> str:
    return text[-int(count) :] if count >= 1 else ""


@scalar(
    "MID",
    args=[TEXT, INTEGER, OPTIONAL_INTEGER],
    returns=ARGUMENT_TEXT,
    nocase_level=0,
    sqlite_name="substring",
)
def substring(text: str, start: float, size: float | None = None) -> str:
    """Return a part of a string. SUBSTRING and SUBSTR are also compiled to it."""
    position = round(start)
    if position == 0 or (size is not None and size < 1):
        return ""
    begin = position - 1 if position > 0 else len(text) + position
    if begin < 0:
        return ""
    return text[begin:] if size is None else text[begin : begin + round(size)]


@scalar("SUBSTRING_INDEX", args=[TEXT, TEXT, INTEGER], returns=ARGUMENT_TEXT, nocase_level=0)
def substring_index(text: str, delimiter: str, count: float) -> str:
    number = (int(count) + (1 << 31) & 0xFFFFFFFF) - (1 << 31)
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


@internal("trim", gives_bytes=True)
def trim(text: str, chars: str, side: str) -> str:
    if not chars:
        return text
    start, end = 0, len(text)
    while side != "TRAILING" and text.startswith(chars, start, end):
        start += len(chars)
    while side != "LEADING" and text.endswith(chars, start, end):
        end -= len(chars)
    return text[start:end]


# ---------------------------------------------------------------- composition
@scalar("REVERSE", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def reverse(text: str) -> str:
    return text[::-1]


@scalar("REPEAT", args=[TEXT, INTEGER], returns=ARGUMENT_TEXT, nocase_level=0)
def repeat(text: str, count: int) -> str | None:
    """Repeat a string. The result is NULL if it is longer than max_allowed_packet."""
    size = len(text) * max(0, count)
    if size > MAX_PACKET:
        return None
    return text * max(0, check_length(size) and count)


@scalar("SPACE", args=[INTEGER], returns=STRING)
def space(count: int) -> str | None:
    return repeat(" ", count)


@scalar("LPAD", args=[TEXT, INTEGER, TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def lpad(text: str, size: float, fill: str) -> str | None:
    return pad(text, size, fill, True)


@scalar("RPAD", args=[TEXT, INTEGER, TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
def rpad(text: str, size: float, fill: str) -> str | None:
    return pad(text, size, fill, False)


def pad(text: str, size: float, fill: str, start: bool) -> str | None:
    """Fill a string up to ``size`` characters, at its start or at its end."""
    size = int(size)
    if size < 0 or (not fill and size > len(text)) or size > MAX_PACKET:
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


@scalar("INSERT", args=[TEXT, INTEGER, INTEGER, TEXT], returns=ARGUMENT_TEXT, nocase_level=0)
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


@scalar("ELT", args=[INTEGER, TEXTS], returns=ARGUMENT_TEXT)
def elt(number: float) -> int:
    """Return the position of the word that ELT gives. No other one is computed."""
    return int(number) & 0xFFFFFFFF  # MySQL reads 32 bits of it


@scalar("QUOTE", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=1, accepts_null=True)
def quote(text: str | None) -> str:
    if text is None:
        return "NULL"
    for char, escaped in (("\\", "\\\\"), ("'", "\\'"), ("\0", "\\0"), ("\x1a", "\\Z")):
        text = text.replace(char, escaped)
    return f"'{text}'"


# ---------------------------------------------------------------- search and comparison
MAX_PACKET = 64 << 20
"""max_allowed_packet."""


def fold(text: str, collation: Collation) -> str:
    """Return a string as searches compare it: by ``uca`` too, one weight per character."""
    return weights(text, "general" if collation == "uca" else collation)


@scalar("LOCATE", args=[TEXT, TEXT, OPTIONAL_INTEGER], returns=INT, collated=True)
def locate(collation: Collation, part: str, text: str, start: float = 1) -> int:
    """Return the position of a part in a string, from 1, or 0. It has as many bytes there."""
    begin = round(start) - 1
    if not 0 <= begin <= len(text):
        return 0
    if not part:  # found at once, and the server counts the bytes before it
        return len(text[:begin].encode()) + 1
    if text.isascii() and part.isascii():
        return fold(text, collation).find(fold(part, collation), begin) + 1
    encoding = "latin-1" if collation in ("swedish", "bytes") else "utf-8"
    size, wanted = len(part.encode(encoding, "replace")), weights(part, collation)
    text = text.encode(encoding, "replace").decode(encoding)
    line, here = weights(text, collation), len(weights(text[:begin], collation))
    end, there, held = begin, here, 0  # a window of at least so many bytes moves over the text
    for at in range(begin, len(text)):
        while held < size and end < len(text):
            held += len(text[end].encode(encoding))
            there += len(weights(text[end], collation))
            end += 1
        whole = held == size and there - here == len(wanted)
        if whole and line.startswith(wanted, here):
            return at + 1
        held -= len(text[at].encode(encoding))
        here += len(weights(text[at], collation))
    return 0


@scalar("INSTR", args=[TEXT, TEXT], returns=INT, collated=True)
def instr(collation: Collation, text: str, part: str) -> int:
    return locate(collation, part, text)


@scalar("STRCMP", args=[TEXT, TEXT], returns=INT, collated=True)
def strcmp(collation: Collation, a: str, b: str) -> int:
    x, y = collation_key(a, collation), collation_key(b, collation)
    return (x > y) - (x < y)


@scalar("FIND_IN_SET", args=[TEXT, TEXT], returns=INT, collated=True)
def find_in_set(collation: Collation, word: str, words: str) -> int:
    parts = [weights(p, collation) for p in words.split(",")] if words else []
    key = weights(word, collation)  # spaces at the end count
    return parts.index(key) + 1 if key in parts and "," not in word else 0


@internal("field", accepts_null=True)
def field(collation: Collation, value: Any, *others: Any) -> int:
    """Return the position of a string or a number among others, from 1, or 0."""
    if value is None:
        return 0
    keys = [collation_key(v, collation) if isinstance(v, str) else v for v in (value, *others)]
    return keys.index(keys[0], 1) if keys[0] in keys[1:] else 0


@scalar("SOUNDEX", args=[TEXT], returns=ARGUMENT_TEXT, nocase_level=1, takes_bytes=True)
def soundex(text: str | bytes) -> str:
    """Return the sound of a word. Only ASCII has letters among bytes."""
    if isinstance(text, bytes):
        text = text.decode("ascii", "ignore")
    codes = dict(zip("BFPVCGJKQSXZDTLMNR", "111122222222334556", strict=True))
    letters = [c.upper() if c.isascii() else c for c in text if c.isalpha()]
    if not letters:
        return ""
    out, last = letters[0], codes.get(letters[0], "")
    for char in letters[1:]:
        code = codes.get(char, "")
        if code and code != last:
            out += code
        last = code or last
    return out.ljust(4, "0")


# ---------------------------------------------------------------- codes and digests
@scalar("ASCII", args=[TEXT], returns=INT, takes_bytes=True)
def ascii_code(text: str | bytes) -> int:
    return text_bytes(text)[0] if text else 0


@scalar("ORD", args=[TEXT], returns=INT, takes_bytes=True)
def ord_code(text: str | bytes) -> int:
    return int.from_bytes(text_bytes(text[:1]), "big")


@internal("char", accepts_null=True)
def char(*codes: float | None) -> bytes:
    """Return the bytes of these codes; codes above 255 stand for several. NULL stands for none."""
    known = [round(c) & 0xFFFFFFFF for c in codes if c is not None]
    sizes = [(code, max(1, (code.bit_length() + 7) // 8)) for code in known]
    return b"".join(code.to_bytes(size, "big") for code, size in sizes)


@internal("cut_bytes")
def cut_bytes(value: bytes, size: int, padded: int) -> bytes:
    """CAST AS BINARY(n): cut, and filled up with zeros if ``padded``."""
    return value[:size].ljust(size if padded else 0, b"\0")


@internal("latin1")
def latin1_bytes(value: str) -> bytes:
    """Return the bytes of a string in MySQL's latin1."""
    return value.encode("cp1252", "replace")


@internal("in_charset")
def in_charset(value: str | bytes, charset: str) -> str:
    """Return a string, or the bytes of one, with the characters that a character set has."""
    codec = "cp1252" if charset == "latin1" else charset
    data = value if isinstance(value, bytes) else value.encode(codec, "replace")
    return data.decode(codec, "replace")


@internal("characters")
def as_characters(value: str | bytes, charset: str, constant: int) -> str:
    """Return the characters of bytes in a character set. Raises StatementError for bytes that are
    none, 1300 for constant ones."""
    if isinstance(value, str):
        return value
    try:
        return value.decode("cp1252" if charset == "latin1" else "utf-8")
    except UnicodeDecodeError as e:
        if not constant:
            raise unsupported("bytes that are no text beside texts") from e
        shown = value[e.start : e.start + 6].hex().upper()
        raise mysql_error(1300, charset, shown) from e


@internal("sent_bytes")
def sent_bytes(value: bytes) -> str | bytes:
    """Return bytes as a client reads them that takes them for UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


@internal("text")
def as_text(value: str | bytes) -> str | None:
    """CAST AS CHAR of a byte string in UTF-8. The result is NULL if it is not."""
    return value.decode() if isinstance(value, bytes) else value


@scalar("UNHEX", args=[TEXT], returns=BYTES)
def unhex(text: str) -> bytes | None:
    if not text.isalnum() and text:
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text)


@scalar("TO_BASE64", args=[TEXT], returns=PUNCTUATED, takes_bytes=True)
def to_base64(text: str | bytes) -> str:
    """Return a string in base 64, in lines of 76 characters."""
    whole = base64.b64encode(text_bytes(text)).decode()
    return "\n".join(whole[i : i + 76] for i in range(0, len(whole), 76))


@scalar("FROM_BASE64", args=[TEXT], returns=BYTES)
def from_base64(text: str) -> bytes | None:
    digits = "".join(text.split())
    return base64.b64decode(digits, validate=True)


@scalar("MD5", args=[TEXT], returns=ASCII_STRING, takes_bytes=True)
def md5(text: str | bytes) -> str:
    return hashlib.md5(text_bytes(text)).hexdigest()


@scalar("SHA1", "SHA", args=[TEXT], returns=ASCII_STRING, takes_bytes=True)
def sha1(text: str | bytes) -> str:
    return hashlib.sha1(text_bytes(text)).hexdigest()


@scalar("SHA2", args=[TEXT, INTEGER], returns=ASCII_STRING, takes_bytes=True)
def sha2(text: str | bytes, bits: float) -> str | None:
    kinds = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    kind = kinds.get(int(bits))
    return hashlib.new(kind, text_bytes(text)).hexdigest() if kind else None


@scalar("CRC32", args=[TEXT], returns=UNSIGNED_INT, takes_bytes=True)
def crc32(text: str | bytes) -> int:
    return zlib.crc32(text_bytes(text))


# ---------------------------------------------------------------- addresses and identifiers
@scalar("INET_ATON", args=[TEXT], returns=UNSIGNED_BIGINT)
def inet_aton(text: str) -> int | None:
    """Return the number of an address, whose last part can stand for several."""
    parts = text.split(".")
    if not all(p.isdigit() and int(p) < 256 for p in parts) or len(parts) > 4:
        return None
    numbers = [int(p) for p in parts]
    numbers[-1:-1] = [0] * (4 - len(numbers)) if len(numbers) > 1 else []
    return sum(n << 8 * i for i, n in enumerate(reversed(numbers)))


@scalar("INET_NTOA", args=[INTEGER], returns=ASCII_STRING)
def inet_ntoa(number: float) -> str:
    return str(ipaddress.IPv4Address(int(number)))


@scalar("IS_IPV4", args=[TEXT], returns=BOOL, accepts_null=True)
def is_ipv4(text: str | None) -> int:
    if text is None:
        return 0
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
