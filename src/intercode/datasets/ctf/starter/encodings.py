"""Tasks in which the flag is written in another way."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Challenge,
    Files,
    SeededRandom,
    python_script,
)

_MORSE = {
    "a": ".-", "b": "-...", "c": "-.-.", "d": "-..", "e": ".", "f": "..-.", "g": "--.", "h": "....",
    "i": "..", "j": ".---", "k": "-.-", "l": ".-..", "m": "--", "n": "-.", "o": "---", "p": ".--.",
    "q": "--.-", "r": ".-.", "s": "...", "t": "-", "u": "..-", "v": "...-", "w": ".--", "x": "-..-",
    "y": "-.--", "z": "--..", "0": "-----", "1": ".----", "2": "..---", "3": "...--", "4": "....-",
    "5": ".....", "6": "-....", "7": "--...", "8": "---..", "9": "----.", "_": "..--.-",
}  # fmt: skip
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


CHALLENGES = (
    Challenge(
        "parcel",
        "parcel.txt holds a flag that was wrapped several times. The first line of each wrapping "
        "says how: base64, base32, base85 (Python's b85), hex, rot13, or backwards (by bytes).",
        _parcel,
        python_script("""
import base64, codecs
data = open("parcel.txt", "rb").read().rstrip(b"\\n")
undo = {
    b"base64": base64.b64decode, b"base32": base64.b32decode, b"base85": base64.b85decode,
    b"hex": lambda d: bytes.fromhex(d.decode()), b"backwards": lambda d: d[::-1],
    b"rot13": lambda d: codecs.encode(d.decode(), "rot13").encode(),
}
while not data.startswith(b"flag{"):
    kind, _, rest = data.partition(b"\\n")
    data = undo[kind](rest)
print(data.decode())
"""),
        "easy",
        ("encoding",),
    ),
    Challenge(
        "morse",
        "A station sent the two lines of received.txt in Morse code; table.tsv is its table. The "
        "second line is the inside of a flag: put it between flag{ and }.",
        _morse,
        python_script("""
table = dict(reversed(line.rstrip("\\n").split("\\t")) for line in open("table.tsv"))
body = open("received.txt").read().splitlines()[1]
print("flag{" + "".join(table[code] for code in body.split()) + "}")
"""),
        "easy",
        ("encoding",),
    ),
    Challenge(
        "line-ends",
        "The poem in poem.txt is dull, but look at what stands at the ends of its lines, where "
        "nobody looks: one bit a line, the first bit of a byte first. They spell a flag.",
        _line_ends,
        python_script("""
lines = open("poem.txt").read().split("\\n")
bits = "".join("0" if s[-1] == " " else "1" for s in lines if s and s[-1] in " \\t")
print(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).decode())
"""),
        "medium",
        ("encoding", "steganography"),
    ),
    Challenge(
        "pixels",
        "A flag hides in picture.ppm, a binary PPM file, in the lowest bit of every colour value "
        "from the first on, eight values to a character, the highest bit first, up to a NUL.",
        _pixels,
        python_script("""
data = open("picture.ppm", "rb").read().split(b"\\n", 3)[3]
bits = "".join(str(b & 1) for b in data)
text = bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits) - 7, 8))
print(text[: text.index(0)].decode())
"""),
        "medium",
        ("steganography", "images"),
    ),
    Challenge(
        "invisible",
        "note.md looks like a shopping list, yet it has more characters than one can see. Two of "
        "the invisible ones are a 0 (the one with the smaller code) and a 1; together: a flag.",
        _invisible,
        python_script("""
text = open("note.md", encoding="utf-8").read()
bits = "".join("01"[c == "\\u200c"] for c in text if c in "\\u200b\\u200c")
print(bytes(int(bits[i : i + 8], 2) for i in range(0, len(bits), 8)).decode())
"""),
        "medium",
        ("steganography", "unicode"),
    ),
    Challenge(
        "numbers",
        "Each line of numbers.txt gives one character of a flag: its place, a base, and the "
        "character's ASCII code in that base. The lines got mixed up.",
        _numbers,
        "sort numbers.txt | tr -d : | while read -r _ _ base digits; do "
        'printf "\\\\x$(printf %x "$(($base#$digits))")"; done; echo',
        "easy",
        ("encoding",),
    ),
)
