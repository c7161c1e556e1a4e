"""References to images, and the credentials that engines store."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from intercode_sandbox.errors import ConfigError, UsageError
from intercode_sandbox.images.registry import credentials, reference
from intercode_sandbox.images.registry_hosts import is_registry_host

DIGEST = "sha256:" + "a" * 64


def test_references() -> None:
    found = reference.parse_reference("docker.io/debian")
    assert (found.host, found.name, found.tag) == (
        "registry-1.docker.io",
        "library/debian",
        "latest",
    )
    assert reference.parse_reference("docker.io/me/tool:1").name == "me/tool"
    found = reference.parse_reference(f"[::1]:5000/a/b_c:x.Y@{DIGEST}")
    assert (found.host, found.name, found.tag, found.tag_or_digest) == (
        "[::1]:5000",
        "a/b_c",
        "x.Y",
        DIGEST,
    )
    assert str(reference.parse_reference("localhost/x")) == "localhost/x:latest"


def test_hosts_of_registries() -> None:
    for host in ("localhost", "docker.io", "a-b.example:5000", "build:80", "127.0.0.1", "[::1]:80"):
        assert is_registry_host(host), host
    for part in (
        "",
        ".",
        "..",
        "library",
        ".hidden",
        "a..b",
        "a.b.",
        "-a.b",
        "a_b.c",
        "recipe:py",
        "dir:",
        "a.b:",
        "[x]",
        "docker.io/library",
    ):
        assert not is_registry_host(part), part


@pytest.mark.parametrize(
    "text",
    [
        "debian",
        "debian:12",
        "me/tool",
        "host.example/",
        "host.example/Upper",
        "host.example/../x",
        "host.example/x:",
        "host.example/x@sha256:12",
        "host.example/x:a/b",
        "host.example:x/y",
        "user@host.example/x",
        "http://host.example/x",
        "host.example/x?y",
        "host.example/x y",
    ],
)
def test_invalid_references(text: str) -> None:
    if text == "host.example/x:":
        assert reference.parse_reference(text).tag == "latest"
        return
    with pytest.raises(UsageError, match="is not a reference to an image in a registry"):
        reference.parse_reference(text)


def test_where_https_may_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for host in ("127.0.0.1:5000", "localhost", "[::1]:80", "127.8.9.1"):
        assert reference.uses_http(host)
    for host in ("10.0.0.1:5000", "localhost.example", "127.0.0.1.example", "example"):
        assert not reference.uses_http(host)
    monkeypatch.setenv(reference.HTTP_REGISTRIES_VARIABLE, "10.0.0.1:5000, box.lan")
    assert reference.uses_http("10.0.0.1:5000") and reference.uses_http("box.lan")
    assert not reference.uses_http("10.0.0.1")


def test_challenges() -> None:
    header = 'Bearer realm="https://a.example/t?x=1",service="s, t", scope=repository:x:pull'
    assert credentials.parse_challenge(header) == (
        "bearer",
        {"realm": "https://a.example/t?x=1", "service": "s, t", "scope": "repository:x:pull"},
    )
    assert credentials.parse_challenge("") == ("", {})


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.json"
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return path


def encoded(text: str) -> dict[str, str]:
    return {"auth": base64.b64encode(text.encode()).decode()}


def test_logins_of_docker_and_podman(file: Path, tmp_path: Path) -> None:
    assert credentials.find_credentials("a.example") is None
    auths = {
        "a.example": encoded("me:pass:word"),
        "https://index.docker.io/v1/": encoded("hub:x"),
        "b.example": {"identitytoken": "t"},
        "c.example": {},
    }
    file.write_text(json.dumps({"auths": auths}))
    assert credentials.find_credentials("a.example") == credentials.Credentials("me", "pass:word")
    assert credentials.find_credentials("registry-1.docker.io") == credentials.Credentials(
        "hub", "x"
    )
    assert credentials.find_credentials("b.example") == credentials.Credentials(token="t")
    assert credentials.find_credentials("c.example") is None
    assert "word" not in repr(credentials.find_credentials("a.example"))
    other = tmp_path / "run" / "containers" / "auth.json"
    other.parent.mkdir(parents=True)
    other.write_text(json.dumps({"auths": {"d.example": encoded("pod:man")}}))
    assert credentials.find_credentials("d.example") == credentials.Credentials("pod", "man")


def test_helper_programs(file: Path, tmp_path: Path) -> None:
    program = tmp_path / "docker-credential-mine"
    program.write_text(
        '#!/bin/sh\nread host; case $host in a.*) echo \'{"Username":"u","Secret":"s"}\';;\n'
        'b.*) echo \'{"Username":"<token>","Secret":"t"}\';; c.*) exit 1;; *) echo no;; esac\n'
    )
    program.chmod(0o755)
    helpers = {f"{letter}.example": "mine" for letter in "abcd"} | {"e.example": "../evil"}
    file.write_text(
        json.dumps({"credHelpers": helpers, "credsStore": "mine", "auths": {"a.second": {}}})
    )
    assert (
        credentials.find_credentials("a.example")
        == credentials.Credentials("u", "s")
        == credentials.find_credentials("a.second")
    )
    assert credentials.find_credentials("b.example") == credentials.Credentials(token="t")
    assert credentials.find_credentials("c.example") is None
    with pytest.raises(ConfigError, match="returned an invalid login"):
        credentials.find_credentials("d.example")
    with pytest.raises(ConfigError, match="which is not installed"):
        credentials.find_credentials("e.example")


@pytest.mark.parametrize("text", ["{", "[]", '{"auths": {"a.example": {"auth": "%%"}}}'])
def test_files_that_are_broken(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError, match=r"config\.json"):
        credentials.find_credentials("a.example")
