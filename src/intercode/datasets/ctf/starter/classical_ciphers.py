"""Tasks with ciphers that were made before computers."""

from __future__ import annotations

import string

from intercode.datasets.ctf.starter.challenge import Challenge, Files, SeededRandom, python_script

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


CHALLENGES = (
    Challenge(
        "turning",
        "letter.txt is enciphered with a Vigenère cipher of a short key: only the letters a to z "
        "are moved, and only they use up the key. The letter begins with a flag.",
        _turning,
        python_script("""
text = open("letter.txt").read().strip()
key = [ord(c) - ord(p) for c, p in zip(text, "flag")]
out, at = "", 0
for c in text:
    if c.isalpha():
        c, at = chr((ord(c) - 97 - key[at % 4]) % 26 + 97), at + 1
    out += c
print(out.split()[0])
"""),
        "medium",
        ("cryptography",),
    ),
    Challenge(
        "exchange",
        "known.enc is known.txt with every letter exchanged for another one, always the same. "
        "secret.enc was made with the same table. What does it say?",
        _exchange,
        python_script("""
table = dict(zip(open("known.enc").read(), open("known.txt").read()))
print("".join(table.get(c, c) for c in open("secret.enc").read().strip()))
"""),
        "easy",
        ("cryptography",),
    ),
    Challenge(
        "rails",
        "fence.txt was written in a zigzag over some number of rails and then read off rail by "
        "rail. Find the flag in it.",
        _rails,
        python_script(r"""
import re
text = open("fence.txt").read().strip()
for count in range(2, 30):
    turn = 2 * count - 2
    order = sorted(range(len(text)), key=lambda i: (min(i % turn, turn - i % turn), i))
    plain = "".join(c for _, c in sorted(zip(order, text)))
    if found := re.search(r"flag\{[a-z0-9_]+\}", plain):
        print(found[0])
        break
"""),
        "medium",
        ("cryptography",),
    ),
    Challenge(
        "columns",
        "A text was written into a grid of seven columns, row by row, and read off column by "
        "column, in an order that nobody remembers: grid.txt. It begins with `begin flag{`.",
        _columns,
        python_script(r"""
import itertools, re
text = open("grid.txt").read().rstrip("\n")
size = len(text) // 7
columns = [text[i : i + size] for i in range(0, len(text), size)]
for order in itertools.permutations(columns):
    if [c[0] for c in order] == list("begin f") and [c[1] for c in order[:4]] == list("lag{"):
        print(re.search(r"flag\{.*?\}", "".join(map("".join, zip(*order))))[0])
        break
"""),
        "medium",
        ("cryptography",),
    ),
)
