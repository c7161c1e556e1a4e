"""Converts between the paths of a sandbox and those at which its programs see them."""

from __future__ import annotations

from intercode_sandbox.contract import ROOT_VARIABLE, BaseSandbox


def program_root(sandbox: BaseSandbox) -> str:
    """Return the directory below which programs see the files of a sandbox; empty if they see them
    at the sandbox's own paths. What an image or the owner calls so is not meant."""
    given = sandbox.spec.env.get(ROOT_VARIABLE, sandbox.spec.image.env.get(ROOT_VARIABLE))
    root = sandbox.env.get(ROOT_VARIABLE, "")
    return "" if root == given else root


def to_programs(sandbox: BaseSandbox, path: str) -> str:
    """Return the path at which programs see a path of the sandbox."""
    return program_root(sandbox) + path


def from_programs(sandbox: BaseSandbox, shown: str) -> str:
    """Return the path of the sandbox for one that a program reports. Any other path stays as it
    is."""
    root = program_root(sandbox)
    if not root or not f"{shown}/".startswith(f"{root}/"):
        return shown
    return shown.removeprefix(root) or "/"
