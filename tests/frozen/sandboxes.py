"""Items of the sandbox as a library, for each tier and interface; and of the classes of errors."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from frozen.normalise import compact
from frozen.session import Item, Session

BACKENDS = ("namespace/1", "namespace/2", "chroot", "landlock", "docker", "podman", "remote")
INTERFACES = ("blocking", "async")


def sandbox(session: Session, backend: str, interface: str) -> Item:
    """Use sandboxes of a back end; one that the machine lacks is an error, which is recorded."""
    return run_script(session, "sandbox_api.py", backend, interface)


def raised(session: Session) -> Item:
    """Call the Python interface wrongly, and record the classes of the errors."""
    return run_script(session, "raised.py")


def run_script(session: Session, name: str, *arguments: str) -> Item:
    """Run a script of this package that prints the ``exact`` and ``wording`` of an item."""
    item = Item()
    script = str(Path(__file__).with_name(name))
    done = session.execute([sys.executable, "-P", script, *arguments])
    session.add_status(item, name, done)
    found = json.loads(done.stdout or '{"exact": {}, "wording": {}}')
    item.exact.update({key: session.text(compact(v)) for key, v in found["exact"].items()})
    item.wording.update({key: session.text(v) for key, v in found["wording"].items()})
    return item


ITEMS: dict[str, Callable[[Session], Item]] = {
    **{
        f"sandbox-{backend.replace('/', '-')}-{interface}": partial(
            sandbox, backend=backend, interface=interface
        )
        for backend in BACKENDS
        for interface in INTERFACES
    },
    "raised": raised,
}
