"""Builds Dockerfiles without a daemon: ``parser`` reads them, ``build`` runs them."""

from __future__ import annotations

from intercode_sandbox.images.dockerfile.build import build_dockerfile

__all__ = ["build_dockerfile"]
