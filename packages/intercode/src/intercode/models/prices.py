"""Prices of tokens: a user's own, those of a packaged table with sources and dates, and those of
genai-prices (the extra ``models``)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from intercode.core.decoding import bounded, decode_as
from intercode.core.errors import ConfigError
from intercode_sandbox.platforms.paths import user_file

PACKAGED_PRICES = Path(__file__).with_name("prices.toml")
MILLION = 1_000_000

_DATE_SUFFIX = re.compile(r"(?:[-@](?:20\d{2}-?\d{2}-?\d{2}|\d{4}|latest|\d{3}))+$")
_LIBRARY_KEYS = {
    "input": "input",
    "output": "output",
    "cached": "cache_read",
    "written": "cache_write",
}
"""The names of genai-prices for the fields of Price."""
_Dollars = Annotated[float, bounded(0)]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    ``cached`` is the price of prompt tokens that the endpoint read from its prompt cache (None: the
    price of other prompt tokens), ``written`` that of tokens written to it. A prompt of more than
    ``long_from`` tokens costs ``long`` throughout. ``source`` and ``date`` say where and when the
    price was read.

    >>> from intercode.models import Price
    >>> Price(input=0.15, output=0.6).cost(prompt=2_000_000, completion=500_000)
    0.6
    """

    hint: ClassVar[str] = (
        "; a price in $ per million has input and output, maybe cached and written"
    )
    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    written: _Dollars | None = None
    long_from: Annotated[int, bounded(0)] | None = None
    long: Price | None = None
    source: str = ""
    date: str = ""

    def cost(self, prompt: int, completion: int, cached: int = 0, written: int = 0) -> float:
        """Return the cost of a request in dollars; ``prompt`` includes ``cached`` and
        ``written``."""
        if self.long is not None and self.long_from is not None and prompt > self.long_from:
            return self.long.cost(prompt, completion, cached, written)
        rates = (
            (prompt - cached - written, self.input),
            (cached, self.input if self.cached is None else self.cached),
            (written, self.input if self.written is None else self.written),
            (completion, self.output),
        )
        return sum(tokens * rate for tokens, rate in rates) / MILLION

    def max_cost(self, prompt: int, completion: int) -> float:
        """Return the most that a request can cost, in dollars."""
        return max(self.cost(prompt, completion), self.cost(prompt, completion, 0, prompt))

    def affordable_completion_tokens(self, dollars: float, prompt: int) -> int:
        """Return how many answer tokens ``dollars`` pay for after a prompt of ``prompt`` tokens;
        may be negative."""
        left = dollars - self.max_cost(prompt, 0)
        long = prompt > (self.long_from or prompt) and self.long is not None
        rate = self.long.output if long and self.long is not None else self.output
        return int(left * MILLION / rate + 1e-6) if rate > 0 else (1 << 31 if left >= 0 else -1)

    def metadata(self) -> dict[str, Any]:
        """Return the price as a run records it."""
        values = {name: getattr(self, name) for name in ("input", "output", "cached", "written")}
        values |= {"long_from": self.long_from, "source": self.source, "date": self.date}
        values["long"] = self.long.metadata() if self.long else None
        return {k: v for k, v in values.items() if v not in (None, "")}


def find_price(
    provider: str, name: str, file: str | Path | None = None, given: Mapping[str, Any] | None = None
) -> Price | None:
    """Return the price of a model, or None if it is unknown.

    ``given`` takes precedence over ``file``, then the user's prices.toml, then the packaged
    table, then genai-prices if it is installed. Each table is searched for
    ``provider/name`` as written, then without a trailing date or ``latest``, then among the entries
    that end in ``*``, the longest first. A model without a provider is looked up under its plain
    name, in a user's files only. Raises ConfigError for an invalid table.
    """
    if given is not None:
        return parse_price(given, "the option price")
    files = [path for path in (file and Path(file), user_file(PACKAGED_PRICES.name)) if path]
    full = f"{provider}/{name}" if provider else name
    for table in [*map(read_prices, files), *([_packaged_prices()] if provider else [])]:
        if (price := find_in_table(table, full)) is not None:
            return price
    return _library_price(provider, name) if provider else None


def _library_price(provider: str, name: str) -> Price | None:
    """Return the price that genai-prices has, or None. Its version stands for the date."""
    try:
        from genai_prices import __version__, data_snapshot
        from genai_prices.types import TieredPrices, TimeOfDateConstraint
    except ImportError:
        return None
    try:
        owner, model = data_snapshot.get_snapshot().find_provider_model(name, None, provider, None)
    except LookupError:
        return None
    if isinstance(model.prices, list) and any(
        isinstance(p.constraint, TimeOfDateConstraint) for p in model.prices
    ):
        return None  # no single price
    known = {
        field: vars(model.get_prices(datetime.now(UTC))).get(f"{key}_mtok")
        for field, key in _LIBRARY_KEYS.items()
    }
    tiers = {t.start for p in known.values() if isinstance(p, TieredPrices) for t in p.tiers}
    source = f"{(owner.pricing_urls or [owner.id])[0]} (genai-prices {__version__})"

    def price_from(start: int) -> Price | None:
        """Return the price of prompts of more than ``start`` tokens."""
        values: dict[str, Any] = {}
        for field, value in known.items():
            if isinstance(value, TieredPrices):
                value = [value.base, *(t.price for t in value.tiers if t.start <= start)][-1]
            if value is not None:
                values[field] = float(value)
        if not values.keys() >= {"input", "output"}:
            return None
        above = min((t for t in tiers if t > start), default=None)
        long = price_from(above) if above is not None else None
        return Price(**values, long_from=above if long else None, long=long, source=source)

    return price_from(0)


def find_in_table(table: Mapping[str, Price], name: str) -> Price | None:
    """Return the entry of a table for a model's name; see ``find_price``."""
    for candidate in (name, _DATE_SUFFIX.sub("", name)):
        if candidate in table:
            return table[candidate]
    stems = [k for k in table if k.endswith("*") and name.startswith(k[:-1])]
    return table[max(stems, key=len)] if stems else None


def read_prices(path: Path) -> dict[str, Price]:
    """Read prices from a TOML file: one table per model, ``["provider/name"]``, with the fields of
    Price.

    Raises ConfigError that names the file.
    """
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise ConfigError(f"cannot read the prices in {path}: {e}") from e
    return {name: parse_price(entry, f"{path}: {name!r}") for name, entry in data.items()}


def parse_price(entry: Any, where: str) -> Price:
    """Return a price from a table of its fields. Raises ConfigError."""
    price: Price = decode_as(Price, entry, where, ConfigError)
    return price


@cache
def _packaged_prices() -> dict[str, Price]:
    return read_prices(PACKAGED_PRICES)
