"""Layers sealed from live boxes: the same files as a copy would give, however many lie on top."""

from __future__ import annotations

import pytest

from intercode.core.errors import SandboxLostError
from intercode.sandbox.namespace.sandbox import MAX_SEALED_LAYERS, NamespaceSandbox
from support.boxes import eventually

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.namespace_only("layers of live boxes; containers are always copied"),
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


def do(box: NamespaceSandbox, code: str) -> str:
    result = box.run(["/bin/bash", "-c", code])
    assert result.ok, result.output
    return result.output


def on(box: NamespaceSandbox) -> NamespaceSandbox:
    """A box on the sealed files of another one, which is given up."""
    layer = box.seal()
    try:
        return NamespaceSandbox(box.spec, (), (layer, *layer.lower_layers))
    finally:
        layer.release()


def test_a_box_on_a_sealed_layer_has_its_files(box: NamespaceSandbox) -> None:
    do(box, _EVERYTHING)
    before, seen = box.changes(), do(box, "cat /d/one /etc/hosts; readlink /link; ls -lR /d")
    with on(box) as upper:
        assert upper.changes() == before and before["/etc/hostname"].kind == "gone"
        assert do(upper, "cat /d/one /etc/hosts; readlink /link; ls -lR /d") == seen


def test_changes_are_told_against_the_image_and_not_the_layer_below(box: NamespaceSandbox) -> None:
    do(box, _EVERYTHING)
    with box.clone() as plain, on(box) as upper:
        for each in (plain, upper):
            do(each, _CHANGED_AGAIN)
        assert upper.changes() == plain.changes()
        assert "/d/two" not in upper.changes() and upper.changes()["/link"].kind == "dir"
        with upper.clone() as copy:
            assert copy.changes() == upper.changes()


def test_boxes_on_one_layer_are_independent(box: NamespaceSandbox) -> None:
    do(box, "echo shared > /f")
    layer = box.seal()
    boxes = [NamespaceSandbox(box.spec, (), (layer,)) for _ in range(3)]
    layer.release()
    for i, each in enumerate(boxes):
        do(each, f"echo {i} >> /f")
    assert [do(each, "cat /f") for each in boxes] == [f"shared\n{i}\n" for i in range(3)]
    boxes.pop().close()
    assert do(boxes[0], "cat /f") == "shared\n0\n"
    for each in boxes:
        each.close()
    with pytest.raises(SandboxLostError):  # with the last user, the sealed box has gone
        box.changes()


def test_long_chains_are_flattened_into_a_copy(box: NamespaceSandbox) -> None:
    current = box
    for i in range(MAX_SEALED_LAYERS + 2):
        do(current, f"echo {i} > /n{i}; rm -f /n{i - 3}; rm -rf /d; mkdir /d; touch /d/{i}")
        seen = current.changes()
        if len(current.sealed_layers) == MAX_SEALED_LAYERS:
            flat = current.clone()
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


def test_sealing_ends_what_runs(box: NamespaceSandbox) -> None:
    box.spawn(["/bin/bash", "-c", "while :; do date > /now; sleep 0.01; done"])
    eventually(lambda: "/now" in box.changes(), "it writes")
    layer = box.seal()
    assert box.processes() == ()
    layer.release()


def test_the_sealed_files_are_not_within_reach(box: NamespaceSandbox) -> None:
    do(box, "echo below > /f")
    with on(box) as upper:
        do(upper, "echo above > /f")
        ways = "/dev/upper/f /dev/../f /proc/1/root/f /proc/self/root/f /proc/self/root/dev/upper/f"
        assert do(upper, f"cat {ways} 2> /dev/null || :") == "above\n" * 2
        assert not upper.run(["umount", "/dev"]).ok
