"""Tasks in which the flag is packed away."""

from __future__ import annotations

import base64
import io
import tarfile
import zipfile

from intercode.datasets.ctf.starter.challenge import (
    WORDS,
    Files,
    SeededRandom,
)
from intercode.datasets.starter.archives import make_gzip, make_tar

_DATE = (2024, 5, 1, 8, 0, 0)


def make_zip(members: dict[str, bytes]) -> bytes:
    """Return a zip archive of stored files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            info = zipfile.ZipInfo(name, _DATE)
            info.create_system, info.external_attr = 3, 0o100644 << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def _dolls(rng: SeededRandom, flag: str) -> Files:
    data, name = base64.b64encode(flag.encode()), "flag.txt"
    for depth in range(12):
        kind = rng.choice(("zip", "tar", "gz"))
        other = f"{rng.choice(WORDS)}-{depth}.txt"
        if kind == "gz":
            data = make_gzip(data)
        else:
            pack = make_zip if kind == "zip" else make_tar
            data = pack({other: " ".join(rng.words(6)).encode() + b"\n", name: data})
        name = f"doll-{depth}"
    return {"doll": data}


def _unlisted(rng: SeededRandom, flag: str) -> Files:
    names = [f"{word}.txt" for word in rng.sample(WORDS, 9)]
    lost = rng.randrange(3, 7)
    members = {n: " ".join(rng.words(8)).encode() + b"\n" for n in names}
    members[names[lost]] = flag.encode() + b"\n"
    whole = make_zip(members)
    start = int.from_bytes(whole[-6:-2], "little")
    size = [46 + len(n) for n in names]
    at = start + sum(size[:lost])
    directory = whole[start:at] + whole[at + size[lost] : -22]
    end = bytearray(whole[-22:])
    end[8:12] = (len(names) - 1).to_bytes(2, "little") * 2
    end[12:16] = len(directory).to_bytes(4, "little")
    return {"texts.zip": whole[:start] + directory + bytes(end)}


def _behind(rng: SeededRandom, flag: str) -> Files:
    image = b"P5\n24 24\n255\n" + bytes(rng.getrandbits(8) for _ in range(24 * 24))
    behind = {"read.me": b"look in notes/\n", "notes/1": flag.encode()}
    return {"photo.pgm": image + make_zip(behind)}


def _torn(rng: SeededRandom, flag: str) -> Files:
    buffer = io.BytesIO()
    parts = [flag[i : i + 6] for i in range(0, len(flag), 6)]
    order = list(enumerate(parts))
    rng.shuffle(order)
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for number, part in order:
            info = tarfile.TarInfo(f"pages/{rng.name()}.txt")
            text = " ".join(rng.words(4)).encode() + b"\n"
            info.size, info.mtime = len(text), 1714550400 + 3600 * number
            info.pax_headers = {"comment": part}
            archive.addfile(info, io.BytesIO(text))
    return {"pages.tar": buffer.getvalue()}


CREATE_FILES = {
    "dolls": _dolls,
    "unlisted": _unlisted,
    "behind": _behind,
    "torn": _torn,
}
