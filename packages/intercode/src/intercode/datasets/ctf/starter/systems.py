"""Tasks about what systems keep: permissions, databases, histories, accounts."""

from __future__ import annotations

import hashlib
import sqlite3
from itertools import pairwise

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Files,
    SeededRandom,
    stored_zlib,
)


def _permissions(rng: SeededRandom, flag: str) -> Files:
    files: dict[str, tuple[bytes, int]] = {}
    modes = (0o644, 0o600, 0o640, 0o755, 0o664, 0o444, 0o700)
    for number in range(60):
        decoy = f"{rng.flag()}\n".encode()
        files[f"vault/{rng.choice(WORDS)}/{number:03}-{rng.name()}"] = decoy, rng.choice(modes)
    chosen = rng.choice(sorted(files))
    files[chosen] = f"{flag}\n".encode(), 0o421
    return files


def _database(rng: SeededRandom, flag: str) -> Files:
    base = sqlite3.connect(":memory:")
    base.executescript(
        "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, left_on TEXT);"
        "CREATE TABLE doors (id INTEGER PRIMARY KEY, room TEXT);"
        "CREATE TABLE visits (person INTEGER, door INTEGER, at INTEGER, said TEXT);"
    )
    names, rooms = rng.sample(WORDS, 12), rng.sample(WORDS, 8)
    gone, room = rng.randrange(12), rng.randrange(8)
    for number, name in enumerate(names):
        left = "2024-04-30" if number == gone else None
        base.execute("INSERT INTO people VALUES (?, ?, ?)", (number, name, left))
    base.executemany("INSERT INTO doors VALUES (?, ?)", enumerate(rooms))
    rows = [(gone, room, 1000 + 7 * at, sign) for at, sign in enumerate(flag)]
    for _ in range(400):
        visitor, door = rng.randrange(12), rng.randrange(8)
        if (visitor, door) != (gone, room):
            rows.append((visitor, door, rng.randint(900, 1400), rng.choice("abcdef0123456789_")))
    rng.shuffle(rows)
    base.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    base.execute("CREATE TABLE hint AS SELECT ? AS room", (rooms[room],))
    base.commit()
    data = bytearray(base.serialize())
    data[92:100] = bytes(8)  # which change and which version of SQLite wrote it: read by nobody
    return {"doors.sqlite": bytes(data)}


def _object(kind: str, body: bytes) -> tuple[str, bytes]:
    """Return a loose object of git: its name and its file (gitformat-loose)."""
    data = f"{kind} {len(body)}\0".encode() + body
    return hashlib.sha1(data).hexdigest(), stored_zlib(data)


def _history(rng: SeededRandom, flag: str) -> Files:
    files: dict[str, bytes] = {
        "app/.git/HEAD": b"ref: refs/heads/main\n",
        "app/.git/config": b"[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
    }

    def keep(kind: str, body: bytes) -> str:
        name, data = _object(kind, body)
        files[f"app/.git/objects/{name[:2]}/{name[2:]}"] = data
        return name

    parent, secret = "", rng.randrange(1, 6)
    for number in range(8):
        setting = f"token = {flag}\n" if number == secret else f"token = {rng.name(8)}\n"
        texts = {"README": " ".join(rng.words(9)) + "\n", "app.ini": f"[app]\n{setting}"}
        tree = b"".join(
            f"100644 {name}\0".encode() + bytes.fromhex(keep("blob", text.encode()))
            for name, text in sorted(texts.items())
        )
        who = f"Ada <ada@quay.example> {1714550400 + 3600 * number} +0000"
        above = f"parent {parent}\n" if parent else ""
        what = f"{rng.choice(WORDS)} {number}"
        commit = f"tree {keep('tree', tree)}\n{above}author {who}\ncommitter {who}\n\n{what}\n"
        parent = keep("commit", commit.encode())
        if number == 7:
            files |= {f"app/{name}": text.encode() for name, text in texts.items()}
    files["app/.git/refs/heads/main"] = f"{parent}\n".encode()
    return files


def _accounts(rng: SeededRandom, flag: str) -> Files:
    words = [f"{a}{b}" for a in WORDS for b in range(10)]
    rng.shuffle(words)
    password, lines = rng.choice(words), []
    for user in rng.sample(WORDS, 6):
        salt = rng.name(8)
        value = hashlib.sha256(f"{salt}:{rng.randbytes(9).hex()}".encode()).hexdigest()
        lines.append(f"{user}:sha256:{salt}:{value}\n")
    salt = rng.name(8)
    value = hashlib.sha256(f"{salt}:{password}".encode()).hexdigest()
    lines.insert(rng.randrange(6), f"keeper:sha256:{salt}:{value}\n")
    key = hashlib.sha256(password.encode()).digest()
    locked = bytes(b ^ key[i % 32] for i, b in enumerate(flag.encode()))
    about = "hash = SHA-256 of SALT:PASSWORD\nsafe.bin = a flag XOR SHA-256 of keeper's password\n"
    return {
        "accounts": "".join(lines).encode(),
        "words.txt": ("\n".join(words) + "\n").encode(),
        "README": about.encode(),
        "safe.bin": locked,
    }


def _trail(rng: SeededRandom, flag: str) -> Files:
    names = [f"{a}-{rng.name()}" for a in rng.sample(WORDS, 24)]
    files = {
        f"trail/{name}": f"{rng.words(1)[0]}\nnext: {after}\n".encode()
        for name, after in pairwise(names)
    }
    files[f"trail/{names[-1]}"] = f"{flag}\n".encode()
    for _ in range(40):
        name, after = f"{rng.choice(WORDS)}-{rng.name(6)}", rng.choice(names)
        files[f"trail/{name}"] = f"{rng.flag()}\nnext: {after}\n".encode()
    return {**files, "start": f"next: {names[0]}\n".encode()}


CREATE_FILES = {
    "permissions": _permissions,
    "doors": _database,
    "history": _history,
    "accounts": _accounts,
    "trail": _trail,
}
