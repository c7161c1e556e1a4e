"""What the challenges of the Capture-the-Flag starter suite share: words, names and flags."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Mapping

Files = Mapping[str, bytes | tuple[bytes, int]]
"""File contents by name in the working directory, with a mode where it is not 0644."""

WORDS = (
    "amber",
    "anchor",
    "barley",
    "beacon",
    "birch",
    "cedar",
    "cobalt",
    "copper",
    "coral",
    "crane",
    "delta",
    "ember",
    "falcon",
    "fennel",
    "garnet",
    "gravel",
    "harbor",
    "hazel",
    "heron",
    "indigo",
    "juniper",
    "kelp",
    "lantern",
    "lichen",
    "maple",
    "marble",
    "mason",
    "meadow",
    "nectar",
    "ochre",
    "orchid",
    "pebble",
    "pepper",
    "plover",
    "quartz",
    "raven",
    "reed",
    "saffron",
    "sable",
    "tallow",
    "thistle",
    "timber",
    "umber",
    "velvet",
    "walnut",
    "willow",
    "yarrow",
    "zephyr",
)


class SeededRandom(random.Random):
    """A random number generator with helpers for words, names and flags."""

    def words(self, count: int) -> list[str]:
        """Return random words, with repetitions."""
        return [self.choice(WORDS) for _ in range(count)]

    def flag(self) -> str:
        """Return a flag that cannot be guessed: two words and 64 random bits, in lower case."""
        return "flag{" + "_".join([*self.words(2), f"{self.getrandbits(64):016x}"]) + "}"

    def name(self, digits: int = 4) -> str:
        """Return a random hexadecimal name."""
        return f"{self.getrandbits(4 * digits):0{digits}x}"


CreateFiles = Callable[[SeededRandom, str], Files]
"""Hides a flag in files, at random."""


def stored_zlib(data: bytes) -> bytes:
    """Return ``data`` as a zlib stream of one stored block (RFC 1950, RFC 1951 section 3.2.4).

    It is not compressed, because the output of compressors differs between versions.
    """
    size = len(data)
    if size > 65535:
        raise ValueError(f"{size} bytes do not fit into one block of 65535")
    head = b"\x78\x01\x01" + size.to_bytes(2, "little") + (size ^ 0xFFFF).to_bytes(2, "little")
    return head + data + zlib.adler32(data).to_bytes(4, "big")
