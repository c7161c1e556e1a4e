"""Sealed layers give the same files as copies, however many are stacked."""

from __future__ import annotations

import pytest

from intercode_sandbox.errors import SandboxLostError
from intercode_sandbox.namespace.sandbox import MAX_SEALED_LAYERS, NamespaceSandbox
from support.sandboxes import eventually

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("layers of live sandboxes; containers are always copied"),
]

_EVERYTHING = """
mkdir -p /d/deep /emptied && echo one > /d/one && echo two > /d/two && ln -s /d/one /link
mkfifo /d/pipe; chmod 700 /d/deep; rm /etc/hostname; echo changed >> /etc/hosts; touch /emptied/x
"""
_CHANGED_AGAIN = """
rm /d/two /link; mkdir /link && echo inside > /link/f; rm -r /d/deep; mkdir /d/deep /d/new
rm -r /emptied; mkdir /emptied
echo back > /etc/hostname; echo three > /d/new/three; chmod 600 /d/one
"""


def do(sandbox: NamespaceSandbox, code: str) -> str:
    result = sandbox.run(["/bin/bash", "-c", code])
    assert result.ok, result.output
    return result.output


def on(sandbox: NamespaceSandbox) -> NamespaceSandbox:
    """Seal a sandbox, and return a new one on its files."""
    layer = sandbox.seal()
    try:
        return NamespaceSandbox(sandbox.spec, (), (layer, *layer.lower_layers))
    finally:
        layer.close()


def test_a_sandbox_on_a_sealed_layer_has_its_files(sandbox: NamespaceSandbox) -> None:
    do(sandbox, _EVERYTHING)
    before, seen = (
        sandbox.changes(),
        do(sandbox, "cat /d/one /etc/hosts; readlink /link; ls -lR /d"),
    )
    with on(sandbox) as upper:
        assert upper.changes() == before and before["/etc/hostname"].kind == "gone"
        assert do(upper, "cat /d/one /etc/hosts; readlink /link; ls -lR /d") == seen


def test_changes_are_relative_to_the_image_and_not_the_sealed_layer(
    sandbox: NamespaceSandbox,
) -> None:
    do(sandbox, _EVERYTHING)
    with sandbox.fork() as plain, on(sandbox) as upper:
        for each in (plain, upper):
            do(each, _CHANGED_AGAIN)
        assert upper.changes() == plain.changes()
        assert "/d/two" not in upper.changes() and upper.changes()["/link"].kind == "dir"
        with upper.fork() as copy:
            assert copy.changes() == upper.changes()


def test_sandboxes_on_one_layer_are_independent(sandbox: NamespaceSandbox) -> None:
    do(sandbox, "echo shared > /f")
    layer = sandbox.seal()
    sandboxes = [NamespaceSandbox(sandbox.spec, (), (layer,)) for _ in range(3)]
    layer.close()
    for i, each in enumerate(sandboxes):
        do(each, f"echo {i} >> /f")
    assert [do(each, "cat /f") for each in sandboxes] == [f"shared\n{i}\n" for i in range(3)]
    sandboxes.pop().close()
    assert do(sandboxes[0], "cat /f") == "shared\n0\n"
    for each in sandboxes:
        each.close()
    with pytest.raises(SandboxLostError):  # the sealed sandbox ends with its last user
        sandbox.changes()


def test_too_many_layers_are_copied_into_one(sandbox: NamespaceSandbox) -> None:
    current = sandbox
    for i in range(MAX_SEALED_LAYERS + 2):
        do(current, f"echo {i} > /n{i}; rm -f /n{i - 3}; rm -rf /d; mkdir /d; touch /d/{i}")
        seen = current.changes()
        if len(current.sealed_layers) == MAX_SEALED_LAYERS:
            flat = current.fork()
            assert flat.sealed_layers == () and flat.changes() == seen
            current.close()
            current = flat
        else:
            assert len(current.sealed_layers) == (
                i if i < MAX_SEALED_LAYERS else i - MAX_SEALED_LAYERS
            )
        current = on(current)
        assert current.changes() == seen
    files = [path for path in current.changes() if path.startswith("/n")]
    assert len(files) == 3 and next(iter(current.changes())) == "/d"
    current.close()


def test_sealing_ends_all_processes(sandbox: NamespaceSandbox) -> None:
    sandbox.spawn(["/bin/bash", "-c", "while :; do date > /now; sleep 0.01; done"])
    eventually(lambda: "/now" in sandbox.changes(), "it writes")
    layer = sandbox.seal()
    assert sandbox.processes() == ()
    layer.close()


def test_the_sealed_files_cannot_be_reached(sandbox: NamespaceSandbox) -> None:
    do(sandbox, "echo below > /f")
    with on(sandbox) as upper:
        do(upper, "echo above > /f")
        ways = "/dev/upper/f /dev/../f /proc/1/root/f /proc/self/root/f /proc/self/root/dev/upper/f"
        assert do(upper, f"cat {ways} 2> /dev/null || :") == "above\n" * 2
        assert not upper.run(["umount", "/dev"]).ok
