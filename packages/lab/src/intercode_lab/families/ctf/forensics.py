"""Families in which the flag is hidden in files, archives and logs."""

from __future__ import annotations

import base64
from functools import partial

from intercode.core.types import Task
from intercode.datasets.ctf.starter.archives import make_zip
from intercode.datasets.ctf.starter.challenge import WORDS
from intercode.datasets.starter.archives import make_gzip, make_tar
from intercode_lab.families.choices import Choices
from intercode_lab.families.ctf.ctf_task import ctf_task, new_flag, python
from intercode_lab.families.family import Draw, family
from intercode_lab.families.file_chains import DECOYS, add_chain, new_paths
from intercode_lab.families.file_tree import FileTree


def _encoded(flag: str) -> bytes:
    return base64.b64encode(flag.encode()) + b"\n"


@family("ctf")
def odd_permissions(draw: Draw) -> Task:
    """Find the one file with certain permissions among others that look alike."""
    flag, folder = new_flag(draw), draw.query.one(("vault", "cabinet", "drawer"))
    mode = 64 * draw.query.between(4, 7) + 8 * draw.query.between(0, 7) + draw.query.between(1, 3)
    others = (0o644, 0o600, 0o640, 0o755, 0o664, 0o444, 0o700)
    tree = FileTree()
    count = draw.by_difficulty(5, 15, 40, 80, 150)
    chosen = draw.world.index(count)
    for number in range(count):
        path = f"{folder}/{draw.world.one(WORDS)}/{number:03}-{draw.world.name(4)}"
        content = _encoded(flag if number == chosen else new_flag(draw))
        tree.file(path, content, mode=mode if number == chosen else draw.world.one(others))
    return ctf_task(
        draw,
        flag,
        (
            f"Every file below {folder} holds something in base64 that looks like a flag. The real "
            f"one is in the only file with the permissions {mode:04o}.",
            f"Only one file under {folder} has the octal mode {mode:o}. Decode its content from "
            "base64: it is the flag.",
            f"The files below {folder} all look like flags in base64, but only one is real: the "
            f"one whose permissions are {mode:o} in octal. Which flag is in it?",
        ),
        f"find {folder} -type f -perm {mode:o} -exec base64 -d {{}} +",
        tree,
    )


@family("ctf")
def nested_archives(draw: Draw) -> Task:
    """Unpack archives in archives."""
    flag, name = new_flag(draw), draw.query.one(("doll", "onion", "crate"))
    data, inner = _encoded(flag), "flag.txt"
    for depth in range(draw.by_difficulty(2, 4, 7, 10, 14)):
        kind = draw.world.one(("zip", "tar", "gz") if depth else ("zip", "tar"))
        other = " ".join(draw.world.some(WORDS, 5)).encode() + b"\n"
        members = {f"{draw.world.one(WORDS)}-{depth}.txt": other, inner: data}
        pack = make_zip if kind == "zip" else make_tar
        data = make_gzip(data) if kind == "gz" else pack(members)
        inner = f"{name}-{depth}"
    tree = FileTree()
    tree.file(name, data)
    return ctf_task(
        draw,
        flag,
        (
            f"{name} is a zip, tar or gzip file with another one in it, and so on. In a zip or tar "
            f"archive the next one is named {name}-NUMBER; gzip keeps no name. The innermost is a "
            "zip or tar archive with flag.txt, a flag in base64.",
            f"Open {name}: zip, tar and gzip files in each other. The innermost is a zip or tar "
            "archive, and its file flag.txt has the flag, encoded in base64.",
            f"Deep inside {name} there is a file flag.txt, which holds a flag in base64. {name} "
            f"was packed several times with zip, tar or gzip; in zip and tar go on with the file "
            f"{name}-NUMBER, and ignore the others (a gzip file has only one content).",
        ),
        python(f"""
import base64, gzip, io, tarfile, zipfile
data = open("{name}", "rb").read()
def pick(names): return next(n for n in names if n == "flag.txt" or n.startswith("{name}-"))
while True:
    if data[:2] == b"\\x1f\\x8b": data = gzip.decompress(data)
    elif data[:2] == b"PK":
        box = zipfile.ZipFile(io.BytesIO(data)); data = box.read(pick(box.namelist()))
    elif data[257:262] == b"ustar":
        box = tarfile.open(fileobj=io.BytesIO(data))
        data = box.extractfile(pick(box.getnames())).read()
    else: break
print(base64.b64decode(data).decode())
"""),
        tree,
    )


@family("ctf")
def stolen_by_dns(draw: Draw) -> Task:
    """Put together what one machine sent out in names that it asked for."""
    flag = new_flag(draw)
    thief = f"10.0.{draw.query.between(0, 9)}.{draw.query.between(2, 250)}"
    size = draw.by_difficulty(40, 20, 10, 6, 4)
    code = flag.encode().hex()
    pieces = list(enumerate(code[i : i + size] for i in range(0, len(code), size)))
    queue, second, rows = draw.world.shuffled(pieces), 0, []
    while queue:
        second += draw.world.between(1, 40)
        clock = f"{8 + second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        if draw.world.chance(30):
            number, piece = queue.pop()
            rows.append(f"{clock} {thief} TXT {number}.{piece}.sync.example.net\n")
        elif draw.world.chance(50):
            rows.append(
                f"{clock} 10.0.{draw.world.between(10, 20)}.7 TXT {draw.world.index(99)}."
                f"{draw.world.name(size)}.sync.example.net\n"
            )
        else:
            rows.append(f"{clock} {thief} A {draw.world.one(WORDS)}.example.org\n")
    tree = FileTree()
    tree.file("dns.log", "".join(rows))
    return ctf_task(
        draw,
        flag,
        (
            f"The machine {thief} sent a flag away in its TXT queries in dns.log, as hexadecimal "
            "pieces with their numbers: NUMBER.PIECE.sync.example.net.",
            f"dns.log shows that {thief} asked for TXT records of NUMBER.PIECE.sync.example.net. "
            "The pieces, ordered by number, are a flag in hexadecimal.",
            f"A flag has left our network, and dns.log shows how: {thief} cut its hexadecimal "
            "form into pieces, and sent each by asking for the TXT record of "
            "NUMBER.PIECE.sync.example.net, with its place as NUMBER. Put the flag together "
            "again.",
        ),
        f'awk \'$2 == "{thief}" && $3 == "TXT" {{ print $4 }}\' dns.log | sort -n | cut -d. -f2 '
        "| tr -d '\\n' | python3 -c 'print(bytes.fromhex(input()).decode())'",
        tree,
    )


@family("ctf")
def blanks_at_line_ends(draw: Draw) -> Task:
    """Read the bits that blanks and tabs at the ends of lines are."""
    flag, name = new_flag(draw), draw.query.one(("poem", "story", "report"))
    bits = "".join(f"{byte:08b}" for byte in flag.encode())
    rows = []
    for bit in bits:
        for _ in range(draw.world.index(draw.difficulty)):
            rows.append(" ".join(draw.world.some(WORDS, 4)) + "\n")
        rows.append(" ".join(draw.world.some(WORDS, 3)) + (" " if bit == "0" else "\t") + "\n")
    tree = FileTree()
    tree.file(f"{name}.txt", "".join(rows))
    return ctf_task(
        draw,
        flag,
        (
            f"In {name}.txt some lines end in a space (0) or a tab (1). These bits, eight for a "
            "character, are a flag.",
            f"{name}.txt hides a flag at the ends of its lines: a space there is a 0, a tab a 1, "
            "and eight bits are a character. Lines that end otherwise do not count.",
            f"Look at what cannot be seen in {name}.txt: a line that ends in a space stands for a "
            "0, one that ends in a tab for a 1, and all others for nothing. Every eight of these "
            "bits are a character of the flag.",
        ),
        python(f"""
lines = open("{name}.txt").read().split("\\n")
bits = "".join(str(int(line[-1] == "\\t")) for line in lines if line[-1:] in (" ", "\\t") and line)
print(bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8)).decode())
"""),
        tree,
    )


@family("ctf")
def behind_data(draw: Draw) -> Task:
    """Cut an archive out of other data."""
    flag, name = new_flag(draw), draw.query.one(("photo.pgm", "scan.pgm", "map.pgm"))
    side = draw.by_difficulty(8, 16, 32, 48, 64)
    image = (
        f"P5\n{side} {side}\n255\n".encode()
        + draw.world.data(side * side // 8).replace(b"PK", b"..") * 8
    )
    archive = make_zip({"read.me": b"look in notes/\n", "notes/1": _encoded(flag)})
    tree = FileTree()
    tree.file(name, image + archive + draw.world.data(16) * (draw.difficulty > 2))
    return ctf_task(
        draw,
        flag,
        (
            f"{name} is larger than its picture: somebody put a zip archive behind it, with a file "
            "notes/1 that has a flag in base64.",
            f"A zip archive hides behind the picture {name}. Its member notes/1 is the flag in "
            "base64.",
            f"Something was appended to the image {name}, a zip archive. Take it out, and decode "
            "its file notes/1 from base64 to get the flag.",
        ),
        python(f"""
import base64, io, zipfile
data = open("{name}", "rb").read()
data = data[data.index(b"PK\\x03\\x04"):data.rindex(b"PK\\x05\\x06") + 22]
print(base64.b64decode(zipfile.ZipFile(io.BytesIO(data)).read("notes/1")).decode())
"""),
        tree,
    )


@family("ctf", held_out=True)
def removed_lines(draw: Draw) -> Task:
    """Put together the lines that were removed from version to version."""
    flag, name = new_flag(draw), draw.query.one(("app.conf", "notes.txt", "deploy.sh"))
    count = draw.by_difficulty(2, 4, 6, 9, 12)
    size = -(-len(flag) // count)
    parts = [flag[i : i + size] for i in range(0, len(flag), size)]
    lines = draw.world.some(WORDS, 6)
    tree = FileTree()
    for number in range(len(parts) + 1):
        secret = [f"key {parts[number]}"] if number < len(parts) else []
        at = draw.world.index(len(lines) + 1)
        content = [*lines[:at], *secret, *lines[at:]]
        tree.file(f"versions/{number + 1}/{name}", "\n".join(content) + "\n")
        lines = [*lines, f"{draw.world.one(WORDS)} {draw.world.between(10, 99)}"]
    return ctf_task(
        draw,
        flag,
        (
            f"versions/ has the versions 1, 2, 3 and so on of {name}. From each one to the next a "
            "line `key PART` was removed; the parts, in the order of the versions, are a flag.",
            f"Each version of {name} in versions/NUMBER lost a line `key PART` of the version "
            "before it. Join the parts in order: they are the flag.",
            f"Compare the versions of {name} in versions/1, versions/2 and so on, in the order of "
            "the numbers. From each one to the next a line `key PART` disappears. All these "
            "parts, one after the other, are a flag.",
        ),
        f"for v in $(ls versions | sort -n); do sed -n 's/^key //p' versions/$v/{name}; done "
        "| tr -d '\\n'",
        tree,
    )


@family("ctf", held_out=True, blind=0.05)
def trail_of_notes(draw: Draw) -> Task:
    """Follow notes that name each other in their own words, past false ends."""
    flag, start = new_flag(draw), draw.query.one(("start", "first", "begin"))
    tree, count = FileTree(), 2 * draw.difficulty
    names = new_paths(tree, count, partial(_note, draw.hidden))
    add_chain(tree, draw.world, WORDS, [start, *names], _encoded(flag))
    for _ in range(DECOYS):
        decoys = new_paths(tree, count, partial(_note, draw.world))
        add_chain(tree, draw.world, WORDS, decoys, _encoded(new_flag(draw)))
    gold = f"base64 -d {names[-1]}"
    return ctf_task(
        draw,
        flag,
        (
            f"The file {start} names a note, which names another, and so on. The last one is a "
            "flag in base64. Many other notes lead nowhere.",
            f"Follow the notes from the file {start} on: at their end is a flag, encoded in "
            "base64. What other notes hold are no flags.",
            f"The first note is {start}. Each note says in its own words which one to read next, "
            "and at the end of the chain there is a flag in base64. Notes outside of the chain "
            "only mislead.",
        ),
        gold,
        tree,
        turns=(*(f"cat {place}" for place in [start, *names[:-1]]), gold),
    )


def _note(choices: Choices) -> str:
    """Return the path of a note."""
    return f"notes/{choices.one(WORDS)}-{choices.name(4)}"
