"""Programs of this machine find its settings in a sandbox on the image ``host``, but no keys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from intercode_sandbox import Sandbox, host_settings
from intercode_sandbox.errors import SandboxUnavailableError

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("it opens sandboxes of every tier of this machine"),
]
TIERS = ("namespace/1", "namespace/2", "chroot", "landlock")
NAMES = (
    "services",
    "protocols",
    "mime.types",
    "ssl/openssl.cnf",
    "manpath.config",
    "maven/m2.conf",
)
SETTINGS = [f"/etc/{name}" for name in (*NAMES, "host.conf", "inputrc", "shells", "login.defs")]
LOOK = """
import json, mimetypes, socket, ssl
print(len(ssl.create_default_context().get_ca_certs()))
print(socket.getservbyname("https"), socket.getservbyport(25), socket.getprotobyname("udp"))
"""


def open_host(tier: str, network: str) -> Sandbox:
    try:
        return Sandbox("host", network=network, backend=tier)  # type: ignore[arg-type]
    except SandboxUnavailableError as e:
        pytest.skip(f"no {tier} on this machine: {e}")


def outside(code: str) -> str:
    """What a program of the machine prints, with the variables of a sandbox."""
    with os.popen(f"env -i PATH=/usr/bin:/bin python3 -c '{code}'") as output:
        return output.read()


@pytest.mark.parametrize("network", ["host", "none"])
@pytest.mark.parametrize("tier", TIERS)
def test_programs_find_certificates_and_names(tier: str, network: str) -> None:
    with open_host(tier, network) as sandbox:
        shown = sandbox.run(["/usr/bin/python3", "-c", LOOK])
        assert shown.output == outside(LOOK), shown
        for path in filter(os.path.exists, SETTINGS):
            assert sandbox.run(f"cmp - {path} && echo same", stdin=Path(path).read_bytes()).ok
        for command in ("man -w", "mvn -v", "echo .TH a 1 | groff -man -Tascii"):
            ran = sandbox.run(command, merge_stderr=True)
            assert ran.exit_code in (0, 127) and "can't find macro" not in ran.output, ran
        made = sandbox.run(
            "openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 1 -subj /CN=x"
        )
        assert made.ok or made.exit_code == 127, made.stderr


@pytest.mark.parametrize("tier", TIERS)
def test_the_time_zone_is_that_of_the_machine_on_its_network_only(tier: str) -> None:
    zone = "readlink /etc/localtime; cat /etc/localtime | wc -c"
    with open_host(tier, "none") as sandbox:
        assert tier == "landlock" or not sandbox.run("cat /etc/localtime").ok
        assert sandbox.run("date +%Z").stdout == "UTC\n"
    with open_host(tier, "host") as sandbox, os.popen(zone) as shown:
        assert sandbox.run(zone).stdout == shown.read()


@pytest.mark.parametrize("tier", TIERS)
def test_no_key_is_shown(tier: str) -> None:
    with open_host(tier, "host") as sandbox:
        assert not sandbox.run("ls /etc/ssl/private").ok
        found = sandbox.run("grep -rlE 'PRIVATE KEY-' /etc 2>/dev/null")
        assert found.stdout == ""


def test_what_not_everybody_may_read_stays_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a private key that everybody may read, nor files that are too large."""
    certificates = tmp_path / "ssl" / "certs"
    certificates.mkdir(parents=True)
    (certificates / "a.pem").write_text("-----BEGIN CERTIFICATE-----\n")
    (certificates / "b.pem").symlink_to("a.pem")
    (certificates / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\n")
    (certificates / "secret.pem").write_text("x")
    (certificates / "secret.pem").chmod(0o600)
    (certificates / "large").write_bytes(bytes(5 << 20))
    (tmp_path / "ssl" / "private").mkdir()
    (tmp_path / "ssl" / "private" / "own.key").write_text("x")
    (tmp_path / "services").write_text("http 80/tcp\n")
    monkeypatch.setattr(host_settings, "_ETC", tmp_path)
    found = host_settings.read_settings.__wrapped__("none").files
    names = {str(Path(path).relative_to(tmp_path)) for path in found}
    assert names == {"services", "ssl", "ssl/certs", "ssl/certs/a.pem", "ssl/certs/b.pem"}
    assert found[str(certificates / "b.pem")] == [None, "a.pem"]
