"""Families in which the flag is encoded or encrypted badly."""

from __future__ import annotations

import base64
import hashlib
import string
from collections.abc import Callable
from itertools import cycle

from intercode.core.types import Task
from intercode.datasets.ctf.starter.challenge import WORDS
from intercode_lab.families.ctf.ctf_task import ctf_task, new_flag, python
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_tree import FileTree

_SMALL = string.ascii_lowercase
_WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base32": base64.b32encode,
    "hex": lambda data: data.hex().encode(),
    "backwards": lambda data: data[::-1],
}


@family("ctf")
def wrapped(draw: Draw) -> Task:
    """Undo several encodings, of which each says what it is."""
    flag, name = new_flag(draw), draw.query.one(("parcel", "bundle", "packet"))
    data = flag.encode()
    for _ in range(draw.by_difficulty(1, 3, 5, 8, 12)):
        kind = draw.world.one(sorted(_WRAPPERS))
        data = kind.encode() + b"\n" + _WRAPPERS[kind](data)
    tree = FileTree()
    tree.file(f"{name}.txt", data + b"\n")
    return ctf_task(
        draw,
        flag,
        (
            f"{name}.txt holds a flag that was encoded once or more. The first line of each "
            "encoding says how: base64, base32, hex, or backwards (by bytes).",
            f"Somebody encoded a flag, perhaps again and again, and put it into {name}.txt. The "
            "first line of each result names the encoding: base64, base32, hex or backwards (by "
            "bytes).",
            f"Which flag is in {name}.txt? It went through one or more encodings in turn, and each "
            "result starts with a line that names the encoding: base64, base32, hex, or "
            "backwards (the bytes in reverse order).",
        ),
        python(f"""
import base64
data = open("{name}.txt", "rb").read().rstrip(b"\\n")
undo = {{b"base64": base64.b64decode, b"base32": base64.b32decode,
        b"hex": lambda d: bytes.fromhex(d.decode()), b"backwards": lambda d: d[::-1]}}
while not data.startswith(b"flag{{"):
    kind, _, rest = data.partition(b"\\n")
    data = undo[kind](rest)
print(data.decode())
"""),
        tree,
    )


@family("ctf")
def repeated_key(draw: Draw) -> Task:
    """Find the short key of an XOR from the known beginning of a flag."""
    flag, name = new_flag(draw), draw.query.one(("safe", "vault", "locker"))
    key = draw.world.data(draw.difficulty)
    tree = FileTree()
    size = "1 byte" if draw.difficulty == 1 else f"{draw.difficulty} bytes"
    text = f"{flag} {' '.join(draw.world.some(WORDS, 5 * draw.difficulty))}".encode()
    tree.file(f"{name}.bin", bytes(a ^ b for a, b in zip(text, cycle(key), strict=False)))
    return ctf_task(
        draw,
        flag,
        (
            f"{name}.bin holds a text that begins with a flag. It was XORed with a key of {size}, "
            "which is repeated. A flag begins with flag{.",
            f"A text that begins with a flag was XORed with a repeated key into {name}.bin. The "
            f"key has {size}, and you know how flags begin: flag{{.",
            f"Recover the flag at the beginning of {name}.bin. The file was encrypted by XOR with "
            f"a key of {size} that is used again and again, and every flag "
            f"starts with flag{{.",
        ),
        python(f"""
data = open("{name}.bin", "rb").read()
key = [a ^ b for a, b in zip(data, b"flag{{")][:{draw.difficulty}]
print("".join(chr(b ^ key[i % len(key)]) for i, b in enumerate(data)).split()[0])
"""),
        tree,
    )


@family("ctf")
def shifted_letters(draw: Draw) -> Task:
    """Undo a shift of letters, whose key follows from the known beginning of a flag."""
    flag, name = new_flag(draw), draw.query.one(("letter", "note", "memo"))
    key = [draw.world.between(1, 25) for _ in range(min(draw.difficulty, 4))]
    length, amounts = "1 letter", "always by the same amount"
    if len(key) > 1:
        length = f"{len(key)} letters"
        amounts = f"by {len(key)} amounts that take turns from one such letter to the next"
    text = f"{flag} and {' '.join(draw.world.some(WORDS, 3 * draw.difficulty))}"
    shifted, at = "", 0
    for sign in text:
        if sign in _SMALL:
            sign, at = _SMALL[(_SMALL.index(sign) + key[at % len(key)]) % 26], at + 1
        shifted += sign
    tree = FileTree()
    tree.file(f"{name}.txt", f"{shifted}\n")
    return ctf_task(
        draw,
        flag,
        (
            f"In {name}.txt every lower-case letter was moved on in the alphabet, {amounts}. No "
            "other character was changed. The original text begins with a flag: flag{...}.",
            f"{name}.txt begins with a flag, but a Vigenère cipher was used on its lower-case "
            f"letters. The key has {length} and advances with lower-case letters only.",
            f"Somebody moved the lower-case letters in {name}.txt along the alphabet, "
            f"{amounts}. All other characters are as they were. Which flag, flag{{...}}, did the "
            "text begin with?",
        ),
        python(f"""
text = open("{name}.txt").read()
letters = [ord(s) - 97 for s in text if s.islower()]
key = [(a - ord(b)  + 97) % 26 for a, b in zip(letters, "flag")][:{len(key)}]
out, at = "", 0
for sign in text:
    if sign.islower():
        sign, at = chr((ord(sign) - 97 - key[at % len(key)]) % 26 + 97), at + 1
    out += sign
print(out.split()[0])
"""),
        tree,
    )


@family("ctf", held_out=True)
def small_primes(draw: Draw) -> Task:
    """Break RSA whose modulus has small factors."""
    flag, name = new_flag(draw), draw.query.one(("message", "cable", "wire"))
    e, low = 65537, draw.by_difficulty(300, 1000, 5000, 30000, 100000)
    size = draw.by_difficulty(1, 2, 3, 3, 4)
    p, q = _prime(draw, low), _prime(draw, 2 * low + 1000)
    text = " ".join([flag, *draw.world.some(WORDS, 8 * (draw.difficulty - 1))]).encode()
    blocks = [text[i : i + size] for i in range(0, len(text), size)]
    numbers = [str(pow(int.from_bytes(block), e, p * q)) for block in blocks]
    tree = FileTree()
    tree.file(f"{name}.txt", f"n = {p * q}\ne = {e}\n{' '.join(numbers)}\n")
    each = "each byte" if size == 1 else f"each block of {size} bytes"
    return ctf_task(
        draw,
        flag,
        (
            f"{name}.txt has a public RSA key n, e and then an encrypted text that begins with a "
            f"flag: {each} was encrypted separately, as a big-endian number.",
            f"A text with a flag at its beginning was encrypted with RSA (c = m^e mod n) into "
            f"{name}.txt: {each} is an m, as a big-endian number. The modulus is far too small.",
            f"In {name}.txt there are n and e of a public RSA key, and below them a text: one "
            f"number for {each} (big-endian), encrypted without padding. Decrypt it, and give the "
            "flag that it begins with.",
        ),
        python(f"""
lines = open("{name}.txt").read().splitlines()
n, e = (int(line.split()[2]) for line in lines[:2])
p = next(p for p in range(3, n, 2) if n % p == 0)
d = pow(e, -1, (p - 1) * (n // p - 1))
numbers = [pow(int(c), d, n) for c in lines[2].split()]
print(b"".join(m.to_bytes((m.bit_length() + 7) // 8, "big") for m in numbers).decode().split()[0])
"""),
        tree,
    )


def _prime(draw: Draw, low: int) -> int:
    """Return a prime from ``low`` to twice as much."""
    while True:
        number = draw.world.between(low, 2 * low) | 1
        if all(number % d for d in range(3, int(number**0.5) + 1, 2)) and number % 65537 != 1:
            return number


@family("ctf")
def password_list(draw: Draw) -> Task:
    """Find a password by its salted hash, and open a safe with it."""
    flag, user = new_flag(draw), draw.query.one(WORDS)
    count = draw.by_difficulty(10, 50, 200, 480, 480)
    words = draw.world.some([f"{a}{b}" for a in WORDS for b in range(10)], count)
    password = draw.world.one(words)
    digest = draw.by_difficulty("md5", "sha1", "sha256", "sha256", "sha512")
    rows = []
    for name in [user, *draw.world.some([w for w in WORDS if w != user], draw.difficulty)]:
        salt = draw.world.name(8)
        secret = password if name == user else draw.world.name(18)
        value = hashlib.new(digest, f"{salt}:{secret}".encode()).hexdigest()
        rows.append(f"{name}:{salt}:{value}\n")
    key = hashlib.sha256(password.encode()).digest()
    tree = FileTree()
    tree.file("accounts", "".join(draw.world.shuffled(rows)))
    tree.file("words.txt", "\n".join(words) + "\n")
    tree.file("safe.bin", bytes(b ^ key[i % 32] for i, b in enumerate(flag.encode())))
    return ctf_task(
        draw,
        flag,
        (
            f"accounts has lines USER:SALT:HASH, where HASH is the {digest} of SALT:PASSWORD. The "
            f"password of {user} is in words.txt. safe.bin is a flag XORed with the SHA-256 digest "
            "of that password (32 bytes, repeated).",
            f"Find {user}'s password among words.txt. The lines of accounts are USER:SALT:HASH, "
            f"where HASH is the {digest} of SALT:PASSWORD. XOR safe.bin with the SHA-256 digest of "
            "the password (32 bytes), repeated, to get the flag.",
            f"{user} has chosen a password from words.txt. The file accounts has a line "
            f"USER:SALT:HASH for each user, and HASH is {digest}(SALT:PASSWORD). Find the "
            "password, take its SHA-256 digest (32 bytes), repeat that as often as needed, and XOR "
            "safe.bin with it: the result is the flag.",
        ),
        python(f"""
import hashlib
rows = [line.split(":") for line in open("accounts").read().split()]
salt, value = next(row[1:] for row in rows if row[0] == "{user}")
for word in open("words.txt").read().split():
    if hashlib.new("{digest}", f"{{salt}}:{{word}}".encode()).hexdigest() == value:
        key = hashlib.sha256(word.encode()).digest()
        safe = open("safe.bin", "rb").read()
        print(bytes(b ^ key[i % 32] for i, b in enumerate(safe)).decode())
"""),
        tree,
    )
