"""Dockerfiles built without a daemon: lines.py reads them, building.py builds them."""

from __future__ import annotations

from intercode.sandbox.images.dockerfile.build import build_dockerfile

__all__ = ["build_dockerfile"]
