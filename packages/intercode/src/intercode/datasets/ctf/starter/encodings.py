"""Tasks in which the flag is written in another way."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Files,
    SeededRandom,
)

_MORSE = {
    "a": ".-",
    "b": "-...",
    "c": "-.-.",
    "d": "-..",
    "e": ".",
    "f": "..-.",
    "g": "--.",
    "h": "....",
    "i": "..",
    "j": ".---",
    "k": "-.-",
    "l": ".-..",
    "m": "--",
    "n": "-.",
    "o": "---",
    "p": ".--.",
    "q": "--.-",
    "r": ".-.",
    "s": "...",
    "t": "-",
    "u": "..-",
    "v": "...-",
    "w": ".--",
    "x": "-..-",
    "y": "-.--",
    "z": "--..",
    "0": "-----",
    "1": ".----",
    "2": "..---",
    "3": "...--",
    "4": "....-",
    "5": ".....",
    "6": "-....",
    "7": "--...",
    "8": "---..",
    "9": "----.",
    "_": "..--.-",
}
_WRAPPERS: dict[str, Callable[[bytes], bytes]] = {
    "base64": base64.b64encode,
    "base32": base64.b32encode,
    "base85": base64.b85encode,
    "hex": lambda data: data.hex().encode(),
    "rot13": lambda data: codecs.encode(data.decode(), "rot13").encode(),
    "backwards": lambda data: data[::-1],
}


def _parcel(rng: SeededRandom, flag: str) -> Files:
    data = flag.encode()
    for _ in range(rng.randint(6, 9)):
        kind = rng.choice(sorted(_WRAPPERS))
        data = kind.encode() + b"\n" + _WRAPPERS[kind](data)
    return {"parcel.txt": data + b"\n"}


def _morse(rng: SeededRandom, flag: str) -> Files:
    table = "".join(f"{sign}\t{code}\n" for sign, code in _MORSE.items())
    body = flag.removeprefix("flag{").removesuffix("}")
    noise = " ".join(_MORSE[c] for c in "test_" + rng.choice(WORDS))
    sent = " ".join(_MORSE[c] for c in body)
    return {"table.tsv": table.encode(), "received.txt": f"{noise}\n{sent}\n".encode()}


def _line_ends(rng: SeededRandom, flag: str) -> Files:
    bits = "".join(f"{byte:08b}" for byte in flag.encode())
    lines = [f"{' '.join(rng.words(5))}{' ' if bit == '0' else chr(9)}\n" for bit in bits]
    lines += [" ".join(rng.words(5)) + "\n" for _ in range(20)]
    return {"poem.txt": "".join(lines).encode()}


def _pixels(rng: SeededRandom, flag: str) -> Files:
    bits = "".join(f"{byte:08b}" for byte in flag.encode() + b"\0")
    side = 40
    data = bytearray(rng.getrandbits(8) for _ in range(3 * side * side))
    for at, bit in enumerate(bits):
        data[at] = data[at] & 0xFE | int(bit)
    return {"picture.ppm": f"P6\n{side} {side}\n255\n".encode() + bytes(data)}


def _invisible(rng: SeededRandom, flag: str) -> Files:
    bits = "".join(f"{byte:08b}" for byte in flag.encode())
    text, at = "", 0
    while at < len(bits):
        step = rng.randint(1, 3)
        marks = "".join("\u200b" if bit == "0" else "\u200c" for bit in bits[at : at + step])
        text, at = f"{text}{rng.choice(WORDS)}{marks} ", at + step
    return {"note.md": f"# Shopping\n\n{text.strip()}\n".encode()}


def _numbers(rng: SeededRandom, flag: str) -> Files:
    lines = []
    for number, byte in enumerate(flag.encode()):
        base = rng.choice((2, 3, 5, 7, 8, 12, 16))
        digits, value = "", byte
        while value:
            digits, value = "0123456789abcdef"[value % base] + digits, value // base
        lines.append(f"{number:03} base {base:2}: {digits}\n")
    rng.shuffle(lines)
    return {"numbers.txt": "".join(lines).encode()}


CREATE_FILES = {
    "parcel": _parcel,
    "morse": _morse,
    "line-ends": _line_ends,
    "pixels": _pixels,
    "invisible": _invisible,
    "numbers": _numbers,
}
