"""Serves a model to programs: Chat Completions, Responses and Messages over one port."""

from intercode.models.bridge.requests import BridgeRequest
from intercode.models.bridge.server import Bridge, BridgeStoppedError, RequestRefusedError

__all__ = ["Bridge", "BridgeRequest", "BridgeStoppedError", "RequestRefusedError"]
