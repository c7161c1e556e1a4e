"""Tasks with ciphers of today, used in a wrong way."""

from __future__ import annotations

import hashlib
import math

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Files,
    SeededRandom,
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


CREATE_FILES = {
    "small-exponent": _small_exponent,
    "shared-prime": _shared_prime,
    "twice": _twice,
    "repeated-key": _repeated_key,
    "pin": _pin,
    "generator": _generator,
}
