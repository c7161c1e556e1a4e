"""Credentials for registries, from the files and helpers of `docker login` and `podman login`."""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from intercode_sandbox.errors import ConfigError

_HELPER = re.compile(r"[A-Za-z0-9_.-]+")
_DOCKER_HUB_KEY = "https://index.docker.io/v1/"
_HELPER_TIMEOUT = 30
_PARAMETER = re.compile(r'([A-Za-z]+)\s*=\s*(?:"([^"]*)"|([^\s,"]+))')


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user's name and password, or a token. ``repr`` shows none of them."""

    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)


def find_credentials(host: str) -> Credentials | None:
    """Return the credentials for a registry from the files of Docker and Podman, or None.

    Raises ConfigError for a file that cannot be parsed.
    """
    for path in _auth_files():
        table = _read_auth_file(path)
        found = _find_in_table(table, host, path)
        if found:
            return found
    return None


def parse_challenge(header: str) -> tuple[str, dict[str, str]]:
    """Return the scheme, in lower case, and the parameters of a WWW-Authenticate header."""
    scheme, _, rest = header.strip().partition(" ")
    pairs = _PARAMETER.finditer(rest)
    return scheme.lower(), {m[1].lower(): m[2] if m[2] is not None else m[3] for m in pairs}


def _auth_files() -> list[Path]:
    """Return the paths of credential files: REGISTRY_AUTH_FILE, else Docker's and Podman's."""
    if named := os.environ.get("REGISTRY_AUTH_FILE"):
        return [Path(named)]
    home = Path(os.environ.get("DOCKER_CONFIG") or Path.home() / ".docker")
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    podmans = f"{runtime}/containers" if runtime else f"/run/containers/{os.getuid()}"
    last = Path.home() / ".config" / "containers"
    return [home / "config.json", Path(podmans) / "auth.json", last / "auth.json"]


def _read_auth_file(path: Path) -> Mapping[str, Any]:
    try:
        table = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as e:
        raise ConfigError(f"{path} cannot be read as the file of `docker login`: {e}") from e
    if not isinstance(table, dict):
        raise ConfigError(f"{path} is not a file of `docker login`: it does not hold an object")
    return table


def _find_in_table(table: Mapping[str, Any], host: str, path: Path) -> Credentials | None:
    keys = [host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/", f"http://{host}"]
    if host.endswith("docker.io"):
        keys += [_DOCKER_HUB_KEY, "docker.io", "index.docker.io"]
    helpers, auths = table.get("credHelpers") or {}, table.get("auths") or {}
    for key in keys:
        if key in helpers:
            return _run_helper(str(helpers[key]), key, path)
        entry = auths.get(key)
        if entry and (found := _decode_entry(entry, key, path)):
            return found
        if entry is not None and table.get("credsStore"):
            return _run_helper(str(table["credsStore"]), key, path)
    return None


def _decode_entry(entry: Mapping[str, Any], key: str, path: Path) -> Credentials | None:
    if entry.get("identitytoken"):
        return Credentials(token=str(entry["identitytoken"]))
    if not entry.get("auth"):
        return None
    try:
        text = base64.b64decode(str(entry["auth"]), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as e:
        raise ConfigError(f"{path}: the login for {key} is broken; run `docker login` again") from e
    user, _, password = text.partition(":")
    return Credentials(user, password.rstrip("\0"))


def _run_helper(helper: str, key: str, path: Path) -> Credentials | None:
    """Return the credentials that a helper (docker-credential-NAME) has for a registry."""
    program = shutil.which(f"docker-credential-{helper}") if _HELPER.fullmatch(helper) else None
    if program is None:
        raise ConfigError(
            f"{path} needs the program docker-credential-{helper}, which is not installed"
        )
    try:
        done = subprocess.run(
            [program, "get"],
            input=key,
            capture_output=True,
            text=True,
            timeout=_HELPER_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as e:
        raise ConfigError(f"{program} did not answer for {key} within {_HELPER_TIMEOUT} s") from e
    if done.returncode:
        return None
    try:
        answer = json.loads(done.stdout)
        user, secret = str(answer["Username"]), str(answer["Secret"])
    except (ValueError, KeyError, TypeError) as e:
        raise ConfigError(f"{program} returned an invalid login for {key}") from e
    return Credentials(token=secret) if user == "<token>" else Credentials(user, secret)
