"""What a Capture-the-Flag task of ours is: a question, files made from a seed, and a solution."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Files = Mapping[str, bytes | tuple[bytes, int]]
"""Names in the task's folder to contents, with a mode where it is not 0644."""

WORDS = (
    "amber", "anchor", "barley", "beacon", "birch", "cedar", "cobalt", "copper", "coral", "crane",
    "delta", "ember", "falcon", "fennel", "garnet", "gravel", "harbor", "hazel", "heron", "indigo",
    "juniper", "kelp", "lantern", "lichen", "maple", "marble", "mason", "meadow", "nectar", "ochre",
    "orchid", "pebble", "pepper", "plover", "quartz", "raven", "reed", "saffron", "sable", "tallow",
    "thistle", "timber", "umber", "velvet", "walnut", "willow", "yarrow", "zephyr",
)  # fmt: skip


class SeededRandom(random.Random):
    """Chance that comes out the same for the same task and seed."""

    def words(self, count: int) -> list[str]:
        """Words, each perhaps several times."""
        return [self.choice(WORDS) for _ in range(count)]

    def flag(self) -> str:
        """A flag nobody can guess: two words and 64 bits. Letters are small; it is ASCII."""
        return "flag{" + "_".join([*self.words(2), f"{self.getrandbits(64):016x}"]) + "}"

    def name(self, digits: int = 4) -> str:
        """A short hexadecimal name."""
        return f"{self.getrandbits(4 * digits):0{digits}x}"


@dataclass(frozen=True, slots=True)
class Challenge:
    """One task. ``make`` hides a flag in files, by chance; ``gold`` is Bash that prints the flag
    from these files, with nothing beyond coreutils and Python."""

    name: str
    query: str
    create_files: Callable[[SeededRandom, str], Files]
    gold: str
    hardness: str
    tags: tuple[str, ...]


def python_script(code: str) -> str:
    """Bash that runs a Python program."""
    return f"python3 - <<'END'\n{code.strip()}\nEND"


def stored_zlib(data: bytes) -> bytes:
    """A zlib stream that no version of a compressor makes otherwise: stored, not compressed
    (RFC 1950, RFC 1951 section 3.2.4)."""
    size = len(data)
    if size > 65535:
        raise ValueError(f"{size} bytes do not fit into one block of 65535")
    low, high = 1, 0
    for byte in data:
        low = (low + byte) % 65521
        high = (high + low) % 65521
    head = b"\x78\x01\x01" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return head + data + (high << 16 | low).to_bytes(4, "big")
