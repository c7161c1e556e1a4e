"""Tasks in which the flag went over a wire or into a log."""

from __future__ import annotations

import struct

from intercode.datasets.ctf.starter.challenge import Challenge, Files, SeededRandom, python_script

_EPOCH = 1714550400  # 2024-05-01 08:00 UTC


def _dns_queries(rng: SeededRandom, flag: str) -> Files:
    code = flag.encode().hex()
    pieces = [code[i : i + 10] for i in range(0, len(code), 10)]
    thief, queue = f"10.0.0.{rng.randint(2, 250)}", list(enumerate(pieces))
    rng.shuffle(queue)
    lines, clock = [], 0
    while queue:
        clock += rng.randint(1, 40)
        when = f"{8 + clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"
        if rng.random() < 0.15:
            number, piece = queue.pop()
            lines.append(f"{when} {thief} TXT {number}.{piece}.sync.example.net\n")
        else:
            host = f"{rng.choice(rng.words(3))}.{rng.name()}.cdn.example.org"
            lines.append(f"{when} 10.0.0.{rng.randint(2, 250)} A {host}\n")
    return {"dns.log": "".join(lines).encode()}


def _one_bit_answers(rng: SeededRandom, flag: str) -> Files:
    lines = []
    for position, sign in enumerate(flag, 1):
        low, high = 32, 126
        while low < high:
            middle = (low + high) // 2
            true = ord(sign) > middle
            size = 4817 if true else 1290
            ask = f"unicode(substr((SELECT%20secret%20FROM%20keys),{position},1))>{middle}"
            lines.append(f'198.51.100.23 "GET /item?id=7%20AND%20{ask}" 200 {size}\n')
            if rng.random() < 0.3:
                who, what = f"203.0.113.{rng.randint(2, 99)}", f"/item?id={rng.randint(1, 40)}"
                lines.append(f'{who} "GET {what}" 200 4817\n')
            low, high = (middle + 1, high) if true else (low, middle)
    return {"access.log": "".join(lines).encode()}


def _packet(source: int, target: int, sequence: int, data: bytes) -> bytes:
    """Return an Ethernet frame with IPv4 and TCP; checksums are zero, as after offloading."""
    tcp = struct.pack("!HHIIBBHHH", source, target, sequence, 0, 5 << 4, 0x18, 4096, 0, 0) + data
    ends = bytes((10, 0, 0, 2, 10, 0, 0, 3))
    head = struct.pack("!BBHHHBBH8s", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0, ends)
    return b"\2\0\0\0\0\1\2\0\0\0\0\2\x08\0" + head + tcp


def _capture(rng: SeededRandom, flag: str) -> Files:
    body = f"name={rng.choice(rng.words(3))}&token={flag}&end=1".encode()
    text = b"POST /login HTTP/1.1\r\nHost: door.example\r\n\r\n" + body
    start, port = rng.getrandbits(28), rng.randint(30000, 60000)
    packets = [_packet(port, 80, start + at, text[at : at + 7]) for at in range(0, len(text), 7)]
    for _ in range(30):
        noise = " ".join(rng.words(3)).encode()
        packets.append(_packet(rng.randint(30000, 60000), 443, rng.getrandbits(28), noise))
    rng.shuffle(packets)
    out = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for number, packet in enumerate(packets):
        out += struct.pack("<IIII", _EPOCH + number, 0, len(packet), len(packet)) + packet
    return {"traffic.pcap": out}


def _keys(rng: SeededRandom, flag: str) -> Files:
    shifted = {"{": "[", "}": "]", "_": "-"}
    lines = []
    for sign in flag:
        if rng.random() < 0.25:
            lines += [f"press {rng.choice('abcdefghij')}\n", "press BackSpace\n"]
        if sign in shifted:
            lines += ["down Shift\n", f"press {shifted[sign]}\n", "up Shift\n"]
        else:
            lines.append(f"press {sign}\n")
    return {"keys.log": "".join([*lines, "press Return\n"]).encode()}


CHALLENGES = (
    Challenge(
        "names-asked",
        "dns.log shows which names the machines of an office asked for. One of them carried a "
        "flag out, in numbered pieces of hexadecimal that went in no order.",
        _dns_queries,
        "grep -oE '[0-9]+\\.[0-9a-f]+\\.sync\\.example\\.net' dns.log | sort -n | cut -d. -f2 "
        "| tr -d '\\n' | python3 -c 'print(bytes.fromhex(input()).decode())'",
        "medium",
        ("logs", "forensics"),
    ),
    Challenge(
        "one-bit-answers",
        "Somebody read a secret out of our database one comparison at a time; access.log has the "
        "requests and the sizes of the answers. A large answer means that the comparison held. "
        "What did they read? It is a flag.",
        _one_bit_answers,
        python_script(r"""
import re
low, high = {}, {}
for line in open("access.log"):
    if found := re.search(r",(\d+),1\)\)>(\d+)\" 200 (\d+)", line):
        place, middle, size = map(int, found.groups())
        if size > 2000:
            low[place] = max(low.get(place, 0), middle + 1)
        else:
            high[place] = min(high.get(place, 126), middle)
print("".join(chr(low.get(p, high.get(p))) for p in sorted(low.keys() | high.keys())))
"""),
        "hard",
        ("logs", "databases"),
    ),
    Challenge(
        "capture",
        "traffic.pcap holds a login over port 80, cut into small packets that did not arrive in "
        "order. The token that was sent is a flag.",
        _capture,
        python_script(r"""
import re, struct
data, at, found = open("traffic.pcap", "rb").read(), 24, []
while at < len(data):
    size = struct.unpack_from("<I", data, at + 8)[0]
    frame, at = data[at + 16 : at + 16 + size], at + 16 + size
    source, target, number = struct.unpack_from("!HHI", frame, 34)
    if target == 80:
        found.append((number, frame[54:]))
text = b"".join(part for _, part in sorted(found)).decode()
print(re.search(r"token=(flag\{.*?\})", text)[1])
"""),
        "hard",
        ("network", "forensics"),
    ),
    Challenge(
        "keys",
        "keys.log is what a keyboard sent while somebody typed a flag, with slips of the finger. "
        "The keyboard is a US one: shifted, [ is {, ] is } and - is _.",
        _keys,
        python_script("""
out, shift = "", False
for what, key in map(str.split, open("keys.log")):
    if key == "Shift":
        shift = what == "down"
    elif key == "BackSpace":
        out = out[:-1]
    elif key != "Return":
        out += {"[": "{", "]": "}", "-": "_"}.get(key, key) if shift else key
print(out)
"""),
        "easy",
        ("logs",),
    ),
)
