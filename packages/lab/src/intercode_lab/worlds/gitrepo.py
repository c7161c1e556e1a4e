"""Builds a Git repository with the same bytes on any machine, without Git."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping, Sequence

from intercode_lab.families.file_tree import FileTree


class Repository:
    """Commits and refs of a repository. Texts of files are given by path."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._files: dict[str, dict[str, str]] = {}
        self.refs: dict[str, str] = {}
        self.reflog: list[str] = []

    def commit(
        self, files: Mapping[str, str], parents: Sequence[str], author: str, time: int, message: str
    ) -> str:
        """Add a commit and return its id. ``author``: with an address."""
        tree = self._tree({path: self._add("blob", text.encode()) for path, text in files.items()})
        signature = f"{author} {time} +0000"
        head = "".join(f"parent {parent}\n" for parent in parents)
        text = f"tree {tree}\n{head}author {signature}\ncommitter {signature}\n\n{message}\n"
        name = self._add("commit", text.encode())
        self._files[name] = dict(files)
        return name

    def log(self, old: str, new: str, author: str, time: int, what: str) -> None:
        """Add an entry to the log of the main branch."""
        self.reflog.append(f"{old} {new} {author} {time} +0000\t{what}\n")

    def write(self, tree: FileTree, folder: str) -> None:
        """Add the repository with ``main`` checked out, below a folder of a tree."""
        git = f"{folder}/.git"
        pack, index = _pack(self._objects)
        name = f"{git}/objects/pack/pack-{pack[-20:].hex()}"
        tree.file(f"{name}.pack", pack, mode=0o444)
        tree.file(f"{name}.idx", index, mode=0o444)
        tree.file(f"{git}/HEAD", "ref: refs/heads/main\n")
        tree.file(
            f"{git}/config",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
            "\tlogallrefupdates = true\n[user]\n\tname = Deputy\n\temail = deputy@example.org\n",
        )
        for ref, commit in self.refs.items():
            tree.file(f"{git}/refs/{ref}", f"{commit}\n")
        if self.reflog:
            tree.file(f"{git}/logs/HEAD", "".join(self.reflog))
            tree.file(f"{git}/logs/refs/heads/main", "".join(self.reflog))
        files = self._files[self.refs["heads/main"]]
        for path, text in files.items():
            tree.file(f"{folder}/{path}", text)
        tree.file(f"{git}/index", self._index(files))

    def _add(self, kind: str, data: bytes) -> str:
        data = f"{kind} {len(data)}\0".encode() + data
        name = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        self._objects[name] = data
        return name

    def _tree(self, blobs: Mapping[str, str]) -> str:
        inner: dict[str, dict[str, str]] = {}
        rows = []
        for path, name in blobs.items():
            top, slash, rest = path.partition("/")
            if slash:
                inner.setdefault(top, {})[rest] = name
            else:
                rows.append((top, "100644", name))
        rows += [(f"{top}/", "40000", self._tree(below)) for top, below in inner.items()]
        data = b"".join(
            f"{mode} {name.rstrip('/')}\0".encode() + bytes.fromhex(digest)
            for name, mode, digest in sorted(rows)
        )
        return self._add("tree", data)

    def _index(self, files: Mapping[str, str]) -> bytes:
        """Return an index of files, whose unknown times Git reads again."""
        data = b"DIRC" + (2).to_bytes(4, "big") + len(files).to_bytes(4, "big")
        for path, text in sorted(files.items()):
            name = self._add("blob", text.encode())
            entry = bytes(24) + (0o100644).to_bytes(4, "big") + bytes(8)
            entry += len(text.encode()).to_bytes(4, "big") + bytes.fromhex(name)
            entry += min(len(path), 0xFFF).to_bytes(2, "big") + path.encode()
            data += entry + bytes(8 - len(entry) % 8)
        return data + hashlib.sha1(data, usedforsecurity=False).digest()


def _pack(objects: Mapping[str, bytes]) -> tuple[bytes, bytes]:
    """Return a pack of objects, and its index."""
    pack = b"PACK" + (2).to_bytes(4, "big") + len(objects).to_bytes(4, "big")
    places, sums = b"", b""
    for _, whole in sorted(objects.items()):
        head, _, data = whole.partition(b"\0")
        number, size = ("", "commit", "tree", "blob").index(head.split()[0].decode()), len(data)
        first, size = (number << 4) | (size & 15), size >> 4
        entry = bytearray()
        while size:
            entry.append(first | 0x80)
            first, size = size & 0x7F, size >> 7
        entry.append(first)
        entry += _store(data)
        places += len(pack).to_bytes(4, "big")
        sums += zlib.crc32(entry).to_bytes(4, "big")
        pack += entry
    pack += hashlib.sha1(pack, usedforsecurity=False).digest()
    names = sorted(map(bytes.fromhex, objects))
    counts = (sum(name[0] <= n for name in names) for n in range(256))
    index = b"\xfftOc" + (2).to_bytes(4, "big") + b"".join(n.to_bytes(4, "big") for n in counts)
    index += b"".join(names) + sums + places + pack[-20:]
    return pack, index + hashlib.sha1(index, usedforsecurity=False).digest()


def _store(data: bytes) -> bytes:
    """Return data as zlib's format without compression, which is the same in any version."""
    blocks = [data[n : n + 0xFFFF] for n in range(0, len(data), 0xFFFF)] or [b""]
    out = b"\x78\x01"
    for n, block in enumerate(blocks):
        size = len(block).to_bytes(2, "little")
        out += bytes([n == len(blocks) - 1]) + size + bytes(b ^ 0xFF for b in size) + block
    return out + zlib.adler32(data).to_bytes(4, "big")
