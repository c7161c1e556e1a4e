"""Tasks with ciphers of today, used in a wrong way."""

from __future__ import annotations

import hashlib
import math

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Challenge,
    Files,
    SeededRandom,
    python_script,
)

_SMALL = math.prod(p for p in range(3, 800) if all(p % d for d in range(2, 29) if d < p))


def _probably_prime(number: int, rng: SeededRandom) -> bool:
    """Miller and Rabin's test with six bases drawn by chance, after small factors."""
    if math.gcd(number, _SMALL) > 1:
        return False
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(6):
        x = pow(rng.randrange(2, number - 1), odd, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


def _prime(rng: SeededRandom, bits: int, e: int) -> int:
    """Return a prime of that many bits whose predecessor has no factor in common with ``e``."""
    while True:
        number = rng.getrandbits(bits) | 3 << bits - 2 | 1
        if math.gcd(number - 1, e) == 1 and _probably_prime(number, rng):
            return number


def _small_exponent(rng: SeededRandom, flag: str) -> Files:
    n = math.prod(_prime(rng, 192, 3) for _ in range(5))
    text = f"n = {n}\ne = 3\nc = {pow(int.from_bytes(flag.encode(), 'big'), 3, n)}\n"
    return {"message.txt": text.encode()}


def _shared_prime(rng: SeededRandom, flag: str) -> Files:
    e, shared = 65537, _prime(rng, 192, 65537)
    keys = [shared * _prime(rng, 192, e) for _ in range(2)]
    keys += [_prime(rng, 192, e) * _prime(rng, 192, e) for _ in range(2)]
    rng.shuffle(keys)
    weak = next(i for i, n in enumerate(keys) if n % shared == 0)
    c = pow(int.from_bytes(flag.encode(), "big"), e, keys[weak])
    lines = [f"key {i}: n = {n}, e = {e}\n" for i, n in enumerate(keys)]
    return {"keys.txt": "".join(lines).encode(), "sent.txt": f"to key {weak}: {c}\n".encode()}


def _xored(data: bytes, key: bytes) -> bytes:
    return bytes(b ^ key[i % len(key)] for i, b in enumerate(data))


def _twice(rng: SeededRandom, flag: str) -> Files:
    first = (" ".join(rng.words(20)) + "\n").encode()
    second = f"{rng.choice(WORDS)}: {flag}\n".encode()
    pad = rng.randbytes(len(first))
    return {
        "monday.txt": first,
        "monday.enc": _xored(first, pad),
        "tuesday.enc": _xored(second, pad),
    }


def _repeated_key(rng: SeededRandom, flag: str) -> Files:
    key = rng.randbytes(rng.randint(9, 16))
    text = f"-----BEGIN NOTE-----\n{' '.join(rng.words(12))}\n{flag}\n-----END NOTE-----\n"
    return {"note.enc": _xored(text.encode(), key)}


def _pin(rng: SeededRandom, flag: str) -> Files:
    salt, pin = rng.name(8), f"{rng.randrange(10**5):05}"
    key = hashlib.sha256(f"{salt}{pin}".encode()).digest()
    text = f"salt = {salt}\nkey = SHA-256 of the salt and a PIN of five digits, as ASCII\n"
    text += "locked = the text, XORed with the key again and again\ncheck = "
    text += f"{hashlib.sha256(key).hexdigest()} (SHA-256 of the key)\n"
    return {"locked.txt": text.encode(), "locked.bin": _xored(flag.encode(), key)}


def _generator(rng: SeededRandom, flag: str) -> Files:
    a, c, m = 1103515245, 12345, 2**31
    state, stream = rng.getrandbits(31), b""
    known = " ".join(rng.words(4))
    data = f"subject: {known}\n{flag}\n".encode()
    while len(stream) < len(data):
        state = (a * state + c) % m
        stream += (state >> 7 & 0xFFFFFF).to_bytes(3, "big")
    code = f"""\
def stream(seed):
    state = seed
    while True:
        state = ({a} * state + {c}) % {m}
        yield from (state >> 7 & 0xFFFFFF).to_bytes(3, "big")

# sent = bytes(a ^ b for a, b in zip(text, stream(seed))), and texts begin with "subject: "
"""
    sent = bytes(a ^ b for a, b in zip(data, stream, strict=False))
    return {"cipher.py": code.encode(), "sent.bin": sent}


CHALLENGES = (
    Challenge(
        "small-exponent",
        "message.txt has a flag, encrypted with RSA (of five primes): the text's bytes, highest "
        "first, are the number. There was no padding.",
        _small_exponent,
        python_script(r"""
import re
c = int(re.search(r"c = (\d+)", open("message.txt").read())[1])
r = 1 << (c.bit_length() + 2) // 3
while (s := (2 * r + c // r**2) // 3) < r:
    r = s
print(r.to_bytes(r.bit_length() // 8 + 1, "big").lstrip(b"\0").decode())
"""),
        "medium",
        ("cryptography", "rsa"),
    ),
    Challenge(
        "shared-prime",
        "Four RSA keys in keys.txt were made by a machine that had little chance to draw from. "
        "sent.txt is a flag for one of them: the text's bytes, highest first, as a number.",
        _shared_prime,
        python_script(r"""
import math, re
keys = [tuple(map(int, k)) for k in re.findall(r"n = (\d+), e = (\d+)", open("keys.txt").read())]
to, c = map(int, re.search(r"key (\d): (\d+)", open("sent.txt").read()).groups())
n, e = keys[to]
p = next(g for i, (m, _) in enumerate(keys) if i != to and (g := math.gcd(n, m)) > 1)
m = pow(c, pow(e, -1, (p - 1) * (n // p - 1)), n)
print(m.to_bytes(64, "big").lstrip(b"\0").decode())
"""),
        "medium",
        ("cryptography", "rsa"),
    ),
    Challenge(
        "twice",
        "The pad with which Monday's text was encrypted, byte by byte with XOR, was used once more "
        "on Tuesday. What did Tuesday's text say? It has a flag in it.",
        _twice,
        python_script(r"""
import re
a, b, c = (open(n, "rb").read() for n in ("monday.txt", "monday.enc", "tuesday.enc"))
print(re.search(r"flag\{.*?\}", bytes(x ^ y ^ z for x, y, z in zip(a, b, c)).decode())[0])
"""),
        "easy",
        ("cryptography",),
    ),
    Challenge(
        "repeated-key",
        "note.enc was XORed with a key of 9 to 16 bytes, again and again. Notes of this kind begin "
        "with the line -----BEGIN NOTE----- and hold a flag.",
        _repeated_key,
        python_script(r"""
import re
data = open("note.enc", "rb").read()
known = b"-----BEGIN NOTE-----\n"
for size in range(9, 17):
    key = bytes(a ^ b for a, b in zip(data, known[:size]))
    text = bytes(b ^ key[i % size] for i, b in enumerate(data))
    if text.startswith(known) and text.endswith(b"-----END NOTE-----\n"):
        print(re.search(rb"flag\{.*?\}", text)[0].decode())
        break
"""),
        "medium",
        ("cryptography",),
    ),
    Challenge(
        "pin",
        "locked.bin is a flag that was locked with a PIN; locked.txt says how. Unlock it.",
        _pin,
        python_script(r"""
import hashlib, re
text, data = open("locked.txt").read(), open("locked.bin", "rb").read()
salt, check = re.search(r"salt = (\w+)", text)[1], re.search(r"check = (\w+)", text)[1]
for pin in range(10**5):
    key = hashlib.sha256(f"{salt}{pin:05}".encode()).digest()
    if hashlib.sha256(key).hexdigest() == check:
        print(bytes(b ^ key[i % 32] for i, b in enumerate(data)).decode())
        break
"""),
        "medium",
        ("cryptography", "hashes"),
    ),
    Challenge(
        "generator",
        "sent.bin was encrypted with the generator in cipher.py, whose seed is lost. How the text "
        "begins is known. Find the flag in it.",
        _generator,
        python_script(r"""
import re
data = open("sent.bin", "rb").read()
a, c, m = 1103515245, 12345, 2**31
known = bytes(x ^ y for x, y in zip(data, b"subject: "))
outs = [int.from_bytes(known[i : i + 3], "big") for i in (0, 3, 6)]
for low in range(128):
    state = outs[0] << 7 | low
    second = (a * state + c) % m
    third = (a * second + c) % m
    if [second >> 7, third >> 7] == outs[1:]:
        stream = b""
        while len(stream) < len(data):
            stream += (state >> 7 & 0xFFFFFF).to_bytes(3, "big")
            state = (a * state + c) % m
        text = bytes(x ^ y for x, y in zip(data, stream)).decode()
        print(re.search(r"flag\{.*?\}", text)[0])
        break
"""),
        "hard",
        ("cryptography", "generators"),
    ),
)
