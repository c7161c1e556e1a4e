"""Reads settings from TOML files."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """Return the settings in a TOML file. Raises ConfigError with the file and the position."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        repr(table)  # fails for numbers of too many digits in hexadecimal, too
    except UnicodeDecodeError as e:
        raise ConfigError(f"{path} is not UTF-8 text: {e.reason} at byte {e.start}") from e
    except (ValueError, RecursionError) as e:  # also numbers too long, and lists too deep
        raise ConfigError(f"{path} is not TOML: {e}") from e
    except OSError as e:
        raise ConfigError(f"cannot read {path}: {e.strerror}") from e
    return table
