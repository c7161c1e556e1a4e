"""Tasks with ciphers that were made before computers."""

from __future__ import annotations

import string

from intercode.datasets.ctf.starter.challenge import Files, SeededRandom

_SMALL = string.ascii_lowercase


def _shifted(text: str, key: list[int]) -> str:
    """Letters moved on by the key, which advances with each of them; other signs stay."""
    out, at = "", 0
    for sign in text:
        if sign in _SMALL:
            sign, at = _SMALL[(_SMALL.index(sign) + key[at % len(key)]) % 26], at + 1
        out += sign
    return out


def _turning(rng: SeededRandom, flag: str) -> Files:
    key = [rng.randint(1, 25) for _ in range(4)]
    text = f"{flag} is what {' '.join(rng.words(9))} was for"
    return {"letter.txt": _shifted(text, key).encode() + b"\n"}


def _exchange(rng: SeededRandom, flag: str) -> Files:
    mixed = list(_SMALL)
    rng.shuffle(mixed)
    table = str.maketrans(_SMALL, "".join(mixed))
    known = "pack my box with five dozen liquor jugs, " + " ".join(rng.words(6))
    return {
        "known.txt": f"{known}\n".encode(),
        "known.enc": f"{known.translate(table)}\n".encode(),
        "secret.enc": f"{flag.translate(table)}\n".encode(),
    }


def _rails(rng: SeededRandom, flag: str) -> Files:
    text = f"{'-'.join(rng.words(3))}-{flag}-{'-'.join(rng.words(3))}"
    count = rng.randint(4, 9)
    rows = [""] * count
    for at, sign in enumerate(text):
        step = at % (2 * count - 2)
        rows[min(step, 2 * count - 2 - step)] += sign
    return {"fence.txt": "".join(rows).encode() + b"\n"}


def _columns(rng: SeededRandom, flag: str) -> Files:
    key = rng.sample(range(7), 7)
    text = f"begin {flag} end "
    text += "x" * (-len(text) % 7)
    columns = [text[k::7] for k in key]
    return {"grid.txt": "".join(columns).encode() + b"\n"}


CREATE_FILES = {
    "turning": _turning,
    "exchange": _exchange,
    "rails": _rails,
    "columns": _columns,
}
