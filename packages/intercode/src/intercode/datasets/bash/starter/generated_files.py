"""Generates logs, sensor readings, rentals and archives of the Bash starter suite.

The seeds are fixed, so that the files are always the same.
"""

from __future__ import annotations

import calendar
import hashlib
from collections.abc import Iterator, Sequence
from typing import TypeVar

from intercode.core.types import TreeEntry
from intercode.datasets.starter.archives import make_gzip, make_tar

SITE = "/srv/quaywheel"
DAYS = ("2024-05-01", "2024-05-02", "2024-05-03")
CLIENTS = ("203.0.113.7", "203.0.113.19", "198.51.100.4", "198.51.100.23", "192.0.2.88")
PATHS = ("/bikes", "/stations", "/login", "/rent", "/map.js", "/favicon.ico")
STATUSES = (200, 200, 200, 200, 200, 200, 200, 304, 404, 500)
CAUSES = ("LockJam gate will not turn", "CardDeclined limit reached", "Timeout gateway is slow")
PARTS = ("rental", "payment", "gate")


_T = TypeVar("_T")


class LinearCongruentialGenerator:
    """Random numbers that are the same on every machine and Python version: a linear congruential
    generator with the constants of Numerical Recipes."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def randrange(self, bound: int) -> int:
        """Return the next integer in 0 … ``bound`` - 1."""
        self._state = (1664525 * self._state + 1013904223) % 2**32
        return (self._state >> 12) % bound

    def pick(self, choices: Sequence[_T]) -> _T:
        """Return one of ``choices``."""
        return choices[self.randrange(len(choices))]


def entries() -> Iterator[TreeEntry]:
    """Yield every generated file."""
    for number, day in enumerate(DAYS):
        yield _file(f"{SITE}/logs/access-{day}.log", access_log(day, number), day)
    yield _file(f"{SITE}/logs/app.log", app_log("2024-05", 3, 70), "2024-05-03")
    yield _file(f"{SITE}/logs/app.log.1", app_log("2024-04", 30, 44), "2024-04-30")
    old = app_log("2024-04", 1, 53).encode()
    yield TreeEntry(
        "file", f"{SITE}/logs/archive/app-2024-04.log.gz", 0o644, _at("2024-04-30"), make_gzip(old)
    )
    yield _file(f"{SITE}/data/rentals.csv", rentals(), "2024-05-03")
    for number, station in enumerate(("pier", "mole", "bridge")):
        for offset, day in enumerate(DAYS):
            text = readings(7 * number + offset)
            yield _file(f"/data/sensors/{station}/{day}.txt", text, day)
    yield from archives()


def _at(day: str) -> int:
    """Return 18:00 UTC of a day, in seconds since 1970."""
    return calendar.timegm((*map(int, day.split("-")), 18, 0, 0))


def _file(path: str, text: str, day: str) -> TreeEntry:
    return TreeEntry("file", path, 0o644, _at(day), text.encode())


def access_log(day: str, seed: int) -> str:
    """Return a log of the requests of one day.

    A line has the columns time, client, method, path, status, bytes and milliseconds.
    """
    rng, minute, lines = LinearCongruentialGenerator(seed + 11), 6 * 60, []
    for _ in range(48 + 4 * seed):
        minute += 1 + rng.randrange(26)
        path = rng.pick(PATHS)
        method = "POST" if path in ("/login", "/rent") else "GET"
        status = rng.pick(STATUSES)
        size = 0 if status == 304 else 120 + rng.randrange(4000)
        clock = f"{day}T{minute // 60:02}:{minute % 60:02}:{rng.randrange(60):02}"
        client = rng.pick(CLIENTS)
        milliseconds = 3 + rng.randrange(420)
        lines.append(f"{clock} {client} {method} {path} {status} {size} {milliseconds}\n")
    return "".join(lines)


def app_log(month: str, day: int, count: int) -> str:
    """Return ``count`` log messages of the service.

    Two indented lines follow an error: its location and its cause.
    """
    rng, second, lines = LinearCongruentialGenerator(day * 31 + count), 7 * 3600, []
    for number in range(count):
        second += 40 + rng.randrange(1100)
        clock = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"
        level = rng.pick(("INFO", "INFO", "INFO", "WARN", "ERROR", "DEBUG"))
        part = rng.pick(PARTS)
        message = {
            "INFO": f"request {number} done",
            "WARN": "slow answer, no ERROR yet",
            "DEBUG": f"{rng.randrange(90)} rows read",
            "ERROR": f"request {number} failed",
        }[level]
        lines.append(f"{month}-{day:02} {clock} {level} [{part}] {message}\n")
        if level == "ERROR":
            lines.append(f"    in {part}.py line {20 + rng.randrange(200)}\n")
            lines.append(f"    {rng.pick(CAUSES)}\n")
    return "".join(lines)


def rentals() -> str:
    """Return the rentals of six days, ordered by number, with prices in cents."""
    rng, lines = LinearCongruentialGenerator(5), ["rental,bike,customer,day,minutes,cents\n"]
    days = ("2024-04-28", "2024-04-29", "2024-04-30", *DAYS)
    for number in range(1, 49):
        bike, customer = 1 + rng.randrange(20), 1 + rng.randrange(16)
        minutes = 10 + rng.randrange(180)
        lines.append(
            f"R{number:04},B{bike:03},C{customer:02},{days[(number - 1) // 8]},"
            f"{minutes},{100 + 8 * minutes}\n"
        )
    return "".join(lines)


def readings(seed: int) -> str:
    """Return the hourly temperatures of a day in degrees; some are NA, some hours are missing."""
    rng, lines = LinearCongruentialGenerator(seed + 3), []
    for hour in range(24):
        value = f"{8 + rng.randrange(60) / 10 + 6 - abs(hour - 14) / 2:.1f}"
        fate = rng.randrange(20)
        if fate:
            lines.append(f"{hour:02}:00 {'NA' if fate < 3 else value}\n")
    return "".join(lines)


def archives() -> Iterator[TreeEntry]:
    """Yield a backup of the site, which contains another archive, and a list of checksums."""
    menu = b"tea 220\ncocoa 280\nfish roll 550\nchips 340\n"
    pages = {
        "site/VERSION": b"1.2.0\n",
        "site/config/app.ini": b"[server]\nhost = 127.0.0.1\nport = 8088\n",
        "site/assets.tar": make_tar({"assets/menu.txt": menu, "assets/hours.txt": b"9 to 18\n"}),
        "site/www/index.html": b"<!doctype html>\n<title>Quaywheel</title>\n<p>Closed.</p>\n",
        "site/www/about.html": b"<!doctype html>\n<title>About</title>\n<p>Since 2019.</p>\n",
        "site/www/css/main.css": b"body { margin: 1em }\n",
        "site/www/css/print.css": b"nav { display: none }\n",
        "site/www/img/logo.svg": b"<svg xmlns='http://www.w3.org/2000/svg'><path/></svg>\n",
    }
    backup = make_gzip(make_tar(pages))
    yield TreeEntry("file", f"{SITE}/backups/site.tar.gz", 0o644, _at("2024-04-30"), backup)
    sums = [f"{hashlib.sha256(backup).hexdigest()}  site.tar.gz\n"]
    for day, text in (
        ("2024-04-26", b"-- hire, 26 April\ninsert into counts values (118);\n"),
        ("2024-04-27", b"-- hire, 27 April\ninsert into counts values (121);\n"),
        ("2024-04-28", b"-- hire, 28 April\ninsert into counts values (127);\n"),
        ("2024-04-29", b"-- hire, 29 April\ninsert into counts values (129);\n"),
        ("2024-04-30", b"-- hire, 30 April\ninsert into counts values (134);\n"),
    ):
        sums.append(f"{hashlib.sha256(text).hexdigest()}  db-{day}.sql\n")
    yield _file(f"{SITE}/backups/SHA256SUMS", "".join(sums), "2024-04-30")
