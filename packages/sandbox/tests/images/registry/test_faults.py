"""Registries that disconnect, are overloaded, send wrong data or redirect."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from intercode_sandbox import http
from intercode_sandbox.errors import DataError, InfrastructureError, UsageError
from intercode_sandbox.images import resolve
from intercode_sandbox.images.registry import client
from support.fake_clock import FakeClock
from support.registries import Faults, faulty
from support.saved_images import Saved, entry, layer, sha

DATA = os.urandom(300_000)
IMAGE = Saved([layer(entry("a", content=DATA))])


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Removes delays between attempts, and all credentials."""
    monkeypatch.setattr(client, "retry", partial(http.retry, clock=FakeClock()))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "none.json"))


@contextmanager
def serving(saved: Saved = IMAGE, **faults: object) -> Iterator[tuple[str, Faults]]:
    blobs: dict[str, bytes] = {}
    wrong = Faults(saved.manifest(blobs), blobs)
    for key, value in faults.items():
        setattr(wrong, key, value)
    with faulty(wrong) as host:
        yield host, wrong


def ranges(faults: Faults) -> list[str]:
    last = [request for request in faults.asked if "/blobs/" in request[0]]
    return [sent for path, sent, _ in last if path == last[-1][0]]


def test_an_interrupted_fetch_continues(tmp_path: Path) -> None:
    with serving(cut=[100_000, 100_000]) as (host, faults):
        image = resolve(f"registry:{host}/x:1", tmp_path)
        assert image.root is not None and (image.root / "a").read_bytes() == DATA
        assert ranges(faults) == ["", "bytes=100000-", "bytes=200000-"]


def test_without_ranges_it_starts_again(tmp_path: Path) -> None:
    with serving(cut=[100_000], ranges=False) as (host, faults):
        image = resolve(f"registry:{host}/x:1", tmp_path)
        assert image.root is not None and (image.root / "a").read_bytes() == DATA
        assert ranges(faults) == ["", "bytes=100000-"]


def test_the_download_of_a_killed_process_is_continued(tmp_path: Path) -> None:
    with serving() as (host, faults):
        whole = next(data for data in faults.blobs.values() if len(data) > 100_000)
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs" / f".{sha(whole)}.part").write_bytes(whole[:70_000])
        resolve(f"registry:{host}/x:1", tmp_path)
        assert ranges(faults) == ["bytes=70000-"]
        assert (tmp_path / "blobs" / sha(whole)).read_bytes() == whole


def test_a_busy_registry_recovers(tmp_path: Path) -> None:
    statuses = [(503, {}), (429, {"Retry-After": "7"}), (502, {})]
    with serving(statuses=statuses) as (host, faults):
        assert resolve(f"registry:{host}/x:1", tmp_path).digest == IMAGE.digest
        assert len(faults.asked) == 6


def test_a_registry_that_stays_busy(tmp_path: Path) -> None:
    with (
        serving(statuses=[(503, {})] * client.MAX_ATTEMPTS) as (host, faults),
        pytest.raises(InfrastructureError, match=f"{host} did not answer after 5 attempts.* 503"),
    ):
        resolve(f"registry:{host}/x:1", tmp_path)
    assert len(faults.asked) == client.MAX_ATTEMPTS


def test_no_registry_listens(tmp_path: Path) -> None:
    with serving() as (host, _):
        pass
    with pytest.raises(InfrastructureError, match=r"ConnectError"):
        resolve(f"registry:{host}/x:1", tmp_path)


def test_a_layer_with_another_digest_is_refused_and_removed(tmp_path: Path) -> None:
    blobs: dict[str, bytes] = {}
    IMAGE.manifest(blobs)
    size = max(len(data) for data in blobs.values())
    with serving(swap=os.urandom(size)) as (host, faults):
        with pytest.raises(DataError, match=r"the registry sent sha256:.* instead of"):
            resolve(f"registry:{host}/x:1", tmp_path)
        assert not list((tmp_path / "blobs").glob("*[!k]")), "only the lock stays"
        faults.swap = os.urandom(size + 5000)
        with pytest.raises(DataError, match=f"is longer than its size of {size} bytes"):
            resolve(f"registry:{host}/x:1", tmp_path)
        faults.swap = os.urandom(size - 5000)
        with pytest.raises(InfrastructureError, match="attempts"):
            resolve(f"registry:{host}/x:1", tmp_path)
        faults.swap = None
        assert resolve(f"registry:{host}/x:1", tmp_path / "fresh").digest == IMAGE.digest


def test_a_manifest_or_configuration_with_another_digest(tmp_path: Path) -> None:
    with serving() as (host, faults):
        with pytest.raises(DataError, match="has the wrong digest"):
            resolve(f"registry:{host}/x@sha256:{'1' * 64}", tmp_path)
        faults.blobs[sha(IMAGE.config)] = IMAGE.config + b" "
        with pytest.raises(DataError, match="has the wrong digest"):
            resolve(f"registry:{host}/x:1", tmp_path)


def test_a_blob_damaged_on_disk_is_fetched_again(tmp_path: Path) -> None:
    with serving() as (host, faults):
        whole = next(data for data in faults.blobs.values() if len(data) > 100_000)
        (tmp_path / "blobs").mkdir()
        (tmp_path / "blobs" / sha(whole)).write_bytes(os.urandom(len(whole)))
        with pytest.raises(DataError):
            resolve(f"registry:{host}/x:1", tmp_path)
        assert resolve(f"registry:{host}/x:1", tmp_path).digest == IMAGE.digest


def test_redirects_do_not_get_the_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second server has the layers, like a CDN; it must not receive the credentials."""
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {}}))
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    with serving() as (elsewhere, there), serving() as (host, here):
        digest = json.loads(here.manifest)["layers"][0]["digest"]
        here.redirect = f"http://{elsewhere}/v2/x/blobs/{digest}"
        here.statuses = [(401, {"WWW-Authenticate": 'Basic realm="x"'})]
        known = {host: {"auth": "bWU6c2VjcmV0"}, elsewhere: {"auth": "bm90OnRoaXM="}}
        (tmp_path / "auth.json").write_text(json.dumps({"auths": known}))
        assert resolve(f"registry:{host}/x:1", tmp_path / "cache").digest == IMAGE.digest
    assert {authorization for _, _, authorization in here.asked[1:]} == {"Basic bWU6c2VjcmV0"}
    assert [authorization for _, _, authorization in there.asked] == [""]


def test_bearer_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is requested without a login, with one, and with an identity token, and reused."""
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    for number, (entry_, sent) in enumerate(
        [
            ({}, ("", "")),
            ({"auth": "bWU6c2VjcmV0"}, ("", "Basic bWU6c2VjcmV0")),
            ({"identitytoken": "long-lived"}, ("refresh_token=long-lived", "")),
        ]
    ):
        with serving(token=b'{"token": "of-today"}') as (host, faults):
            (tmp_path / "auth.json").write_text(json.dumps({"auths": {host: entry_}}))
            cache = tmp_path / str(number)
            assert resolve(f"registry:{host}/some/x:1", cache).digest == IMAGE.digest
        (path, form, authorization), *more = [a for a in faults.asked if a[0].startswith("/token")]
        assert not more and sent[0] in form and authorization == sent[1]
        assert "repository%3Asome%2Fx%3Apull" in path + form and "service=here" in path + form
    for token in (b"{}", b'{"token": "a\\nb"}', b'{"token": 7}'):
        with serving(token=token) as (host, _), pytest.raises(InfrastructureError, match="a token"):
            resolve(f"registry:{host}/x:1", tmp_path)


def test_circular_redirects(tmp_path: Path) -> None:
    with serving() as (host, faults):
        faults.redirect = (
            f"http://{host}/v2/x/blobs/{json.loads(faults.manifest)['layers'][0]['digest']}"
        )
        with pytest.raises(DataError, match="redirects more than 5 times"):
            resolve(f"registry:{host}/x:1", tmp_path)


@pytest.mark.slow
def test_other_answers(tmp_path: Path) -> None:
    answers = [
        ((403, {}), UsageError, "denies access"),
        ((401, {"WWW-Authenticate": "Basic"}), UsageError, "requires a login"),
        (
            (401, {"WWW-Authenticate": "Digest x=1"}),
            InfrastructureError,
            "unknown kind of login: 'Digest x=1",
        ),
        ((401, {}), InfrastructureError, "unknown kind"),
        ((418, {}), InfrastructureError, "unexpected status 418"),
    ]
    for answer, kind, message in answers:
        with serving(statuses=[answer]) as (host, _), pytest.raises(kind, match=message):
            resolve(f"registry:{host}/x:1", tmp_path)


def test_images_over_the_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERCODE_IMAGE_LIMIT", "100K")
    with serving() as (host, faults):
        with pytest.raises(DataError, match=r"has \d+ bytes; set INTERCODE_IMAGE_LIMIT"):
            resolve(f"registry:{host}/x:1", tmp_path)
        faults.manifest = b" " * (9 << 20)
        with pytest.raises(DataError, match="a document has more than"):
            resolve(f"registry:{host}/x:1", tmp_path)
