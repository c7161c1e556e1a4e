"""Images from a real registry: tags, digests, platforms, logins and TLS."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from intercode_sandbox.errors import UsageError
from intercode_sandbox.images import registry, resolve
from intercode_sandbox.images.cache import records
from intercode_sandbox.images.oci import documents
from support.certificates import certificate
from support.registries import MANIFEST, push, put_manifest, send
from support.registries import registry as server
from support.saved_images import Saved, described, entry, layer, listing

INDEX = "application/vnd.oci.image.index.v1+json"
SECRET = "$2b$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a"
"""The bcrypt hash of `secret`."""
IMAGE = Saved(
    [layer(entry("a", content=b"1")), layer(entry(".wh.a"), entry("b", content=b"2"))],
    start={"Env": ["X=1"], "WorkingDir": "/b"},
)
OTHER = Saved([IMAGE.layers[0], layer(entry("c", content=b"3"))])


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with server(tmp_path_factory.mktemp("registry")) as host:
        yield host


@pytest.fixture(autouse=True)
def _no_logins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))


def test_by_tag_and_by_digest(host: str, tmp_path: Path) -> None:
    digest = push(f"http://{host}/v2/some/name", IMAGE, "v1")
    lines: list[str] = []
    image = resolve(f"{host}/some/name:v1", tmp_path, lines.append)
    assert image.name == f"registry:{host}/some/name:v1"
    assert (image.digest, image.cwd, image.env) == (IMAGE.digest, "/b", {"X": "1"})
    assert image.root is not None and listing(image.root) == {"b"}
    assert [line.split(" of ")[0] for line in lines] == [
        "fetching layer 1",
        "fetching layer 2",
        "unpacking layer 1",
        "unpacking layer 2",
    ]
    assert resolve(f"registry:{host}/some/name@{digest}", tmp_path).root == image.root
    record = records.find_record(tmp_path, f"registry:{host}/some/name:v1")
    assert record is not None and record.source == f"{host}/some/name@{digest}"


def test_a_tag_is_resolved_again_only_with_force(host: str, tmp_path: Path) -> None:
    base = f"http://{host}/v2/moving"
    push(base, IMAGE, "latest")
    first = resolve(f"registry:{host}/moving", tmp_path)
    push(base, OTHER, "latest")
    assert resolve(f"registry:{host}/moving", tmp_path) == first
    lines: list[str] = []
    second = registry.pull(f"{host}/moving", tmp_path, lines.append, force=True)
    assert second.digest == OTHER.digest == resolve(f"registry:{host}/moving", tmp_path).digest
    assert second.root is not None and listing(second.root) == {"a", "c"}
    assert len(list((tmp_path / "blobs").glob("[!.]*"))) == 3, "the layer in common came once"


@pytest.mark.slow
def test_the_image_for_this_machine(host: str, tmp_path: Path) -> None:
    base = f"http://{host}/v2/many"
    other_platform = Saved([OTHER.layers[1]], overrides={"architecture": "s390x"})
    entries = []
    for saved, machine in ((other_platform, "s390x"), (IMAGE, documents.architecture())):
        digest = push(base, saved, machine)
        data, _ = send("GET", f"{base}/manifests/{digest}", accept=MANIFEST)
        entries.append(
            {
                **described(data),
                "mediaType": MANIFEST,
                "platform": {"os": "linux", "architecture": machine},
            }
        )
    index = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()
    put_manifest(base, index, "all", INDEX)
    assert resolve(f"registry:{host}/many:all", tmp_path).digest == IMAGE.digest
    with pytest.raises(UsageError, match="an image for linux/s390x"):
        resolve(f"registry:{host}/many:s390x", tmp_path)


def test_what_is_not_there(host: str, tmp_path: Path) -> None:
    for name in ("nothing:1", f"nothing@sha256:{'0' * 64}"):
        with pytest.raises(UsageError, match=f"there is no {host}/nothing"):
            resolve(f"registry:{host}/{name}", tmp_path)


def test_over_tls_with_a_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, cert = certificate(tmp_path)
    secrets = tmp_path / "htpasswd"
    secrets.write_text(f"me:{SECRET}\n")
    certificates = {"certificate": str(cert), "key": str(key)}
    auth = {"htpasswd": {"realm": "test", "path": str(secrets)}}
    with server(tmp_path / "registry", tls=certificates, auth=auth) as host:
        trusted = ssl.create_default_context(cafile=cert)
        push(f"https://{host}/v2/private", IMAGE, "1", verify=trusted, login="me:secret")
        spec, cache = f"registry:{host}/private:1", tmp_path / "cache"
        with pytest.raises(UsageError, match=r"is not trusted .*SSL_CERT_FILE"):
            resolve(spec, cache)
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with pytest.raises(UsageError, match=f"requires a login: run `docker login {host}`"):
            resolve(spec, cache)
        wrong = {"auths": {host: {"auth": base64.b64encode(b"me:wrong").decode()}}}
        login = tmp_path / "auth.json"
        monkeypatch.setenv("REGISTRY_AUTH_FILE", str(login))
        login.write_text(json.dumps(wrong))
        with pytest.raises(UsageError, match="denies access") as failure:
            resolve(spec, cache)
        assert "wrong" not in str(failure.value)
        wrong["auths"][host]["auth"] = base64.b64encode(b"me:secret").decode()
        login.write_text(json.dumps(wrong))
        assert resolve(spec, cache).digest == IMAGE.digest
